"""The engine core: one thread that turns requests into tokens, step by step.

Read in this order: request, sequence, block, scheduler, runner, sampler, logprobs, stop,
detokenizer, output, engine. Nothing here knows gRPC.
"""
