"""Models: configuration, weights, tokenizer, KV cache and the forward pass over packed batches."""
