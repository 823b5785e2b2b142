"""The smallest valid request of an engine, and variations on it for tables of cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from conformance.model.case import FRESH_ID, Case
from conformance.oracle.limits import limits_of, window
from conformance.wire.declared import Declared
from oe_wire import v1

# A prompt after which every language model goes on in words, short enough for any window.
PROSE = "Once upon a time"
# Asked for by a request that is meant to be cut short: seconds of work on any engine, and little
# of it is done. Engines with a smaller window are asked for what fits.
LONG_TOKENS = 4096
# By how much longer a request is tried when a shorter one ended before what had to happen while
# it ran: how soon that is, no rule says.
LONGER = (1, 6, 24)


def takes_tokens(declared: Declared) -> bool:
    """Whether requests are built with token ids: where text is not known to be taken."""
    limits = limits_of(declared)
    return bool(limits.token_input) and not limits.text_input


def simple_request(
    declared: Declared,
    *,
    prompt: str = "a",
    tokens: int | None = None,
    max_tokens: int = 1,
    **sampling: Any,
) -> v1.GenerateRequest:
    """A valid request under FRESH_ID for at most `max_tokens` tokens (less where limits say so).

    tokens: send this many token ids instead of the text. sampling: fields of SamplingParams.
    """
    request = v1.GenerateRequest(
        request_id=FRESH_ID,
        model=declared.model_name,
        stopping=v1.StoppingOptions(max_tokens=fitting_tokens(declared, max_tokens)),
    )
    if tokens is not None or takes_tokens(declared):
        request.token_ids.ids.extend(token_ids(declared, tokens or 1))
    else:
        request.prompt = prompt
    for name, value in sampling.items():
        setattr(request.sampling, name, value)
    return request


def simple_case(declared: Declared, **options: Any) -> Case:
    """`simple_request` as a case; `params` among the options become the case's."""
    params: Mapping[str, Any] = options.pop("params", {})
    return Case(simple_request(declared, **options), params=params)


def long_request(
    declared: Declared, tokens: int = LONG_TOKENS, sequences: int = 1
) -> v1.GenerateRequest:
    """A request whose outputs run to `tokens` tokens, or to what the engine's limits leave.

    Several outputs are sampled, since engines may refuse to make several greedy ones.
    """
    request = simple_request(declared, prompt=PROSE, max_tokens=tokens)
    request.stopping.ignore_eos = True
    if sequences > 1:
        request.sampling.num_sequences = sequences
        request.sampling.temperature = 1.0
    return request


def ever_longer(declared: Declared, case: Case) -> Iterator[Case]:
    """The case's request for LONGER times its tokens, as far as the limits go."""
    request = cast(v1.GenerateRequest, case.request)
    for factor in LONGER:
        longer = v1.GenerateRequest()
        longer.CopyFrom(request)
        wanted = factor * request.stopping.max_tokens
        longer.stopping.max_tokens = fitting_tokens(declared, wanted)
        yield replace(case, request=longer)


def token_ids(declared: Declared, count: int) -> Sequence[int]:
    """`count` legal token ids, over and over the ones that are known."""
    legal = limits_of(declared).tokens
    return [legal[index % len(legal)] for index in range(count)]


def fitting_tokens(declared: Declared, wanted: int) -> int:
    """`wanted`, or what the declared output limit and window leave beside a short prompt."""
    limits = limits_of(declared)
    most = min(limits.max_output_tokens or wanted, max(1, window(limits) - 32))
    return max(1, min(wanted, most))
