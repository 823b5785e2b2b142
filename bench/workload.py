"""What is generated: prompts as token ids, and how many tokens each of them gets."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Workload:
    """prompts[i] is followed by exactly outputs[i] tokens, drawn greedily, whatever they are."""

    name: str
    prompts: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]

    @property
    def num_outputs(self) -> int:
        """Tokens to generate over all prompts: what a rate counts."""
        return sum(self.outputs)


def uniform(batch: int, prompt: int, output: int, vocab_size: int) -> Workload:
    """`batch` prompts of equal length with equally long outputs."""
    prompts = _prompts([prompt] * batch, vocab_size)
    return Workload(f"batch {batch}", prompts, (output,) * batch)


def ragged(requests: int, prompt: int, output: int, vocab_size: int) -> Workload:
    """Prompts of 1/8 to all of `prompt` tokens; outputs of 1/8 to all of `output`, most short.

    The lengths of outputs are squares of uniform numbers, so their mean is 0.42 of the longest:
    chat traffic has many short answers and few long ones.
    """
    generator = torch.Generator().manual_seed(1)
    share = torch.rand(requests, generator=generator)
    lengths = (prompt * (1 + 7 * share) / 8).long().tolist()
    share = torch.rand(requests, generator=generator) ** 2
    outputs = (output * (1 + 7 * share) / 8).long().clamp(min=1).tolist()
    return Workload(f"{requests} ragged", _prompts(lengths, vocab_size), tuple(outputs))


def _prompts(lengths: list[int], vocab_size: int) -> tuple[tuple[int, ...], ...]:
    generator = torch.Generator().manual_seed(0)
    return tuple(
        tuple(torch.randint(32, vocab_size, (length,), generator=generator).tolist())
        for length in lengths
    )
