"""Tables of requests whose streams show what a law is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from conformance.model.case import Case
from conformance.oracle.limits import SAFE_STOP_CONDITIONS, limits_of
from conformance.strategies import faults, simple_request
from conformance.strategies.requests import FREQUENT_TEXTS, candidate_selections, settle_choice
from conformance.strategies.simple import PROSE
from conformance.wire.declared import Declared
from oe_wire import v1

# Tokens within which any text contains a letter "e" or a space, and few enough to be cheap.
STOP_WITHIN = 32
MIN_TOKENS = 8
SHORT = 8
# Distinctive text that an engine could only know from the prompt or the metadata.
MARKER = "oe-private-7f3a9c-marker"


def prose(declared: Declared, max_tokens: int = SHORT, **sampling: Any) -> v1.GenerateRequest:
    """A repeatable request that continues a sentence, or token ids where text is not taken."""
    request = simple_request(declared, prompt=PROSE, max_tokens=max_tokens, **sampling)
    settle_choice(request)
    return request


def plain(declared: Declared) -> Iterable[Case]:
    """One output, greedy and sampled, and two where the engine gives more than one."""
    yield Case(prose(declared, temperature=0.0))
    yield Case(prose(declared, max_tokens=1))
    if declared.max_num_sequences > 1:
        yield Case(prose(declared, max_tokens=4, num_sequences=2, seed=1))


def counts(declared: Declared) -> Iterable[Case]:
    """One output, two, and the most where that is cheap."""
    yield Case(prose(declared))
    for count in sorted({2, min(declared.max_num_sequences, 8)}):
        if 1 < count <= declared.max_num_sequences:
            yield Case(prose(declared, max_tokens=2, num_sequences=count))


def longer(declared: Declared) -> Iterable[Case]:
    """Streams of several messages."""
    yield Case(prose(declared, max_tokens=16, temperature=0.0))
    yield Case(prose(declared, max_tokens=16, temperature=1.0, seed=7))


def _stops(
    declared: Declared, conditions: list[v1.StopCondition], *, include: bool | None = None
) -> Case:
    limits = limits_of(declared)
    room = min(limits.max_stop_conditions or SAFE_STOP_CONDITIONS, len(conditions))
    # Seeded: whether a stop is met must not change when a failing case is sent again.
    request = prose(declared, max_tokens=STOP_WITHIN, seed=1)
    request.stopping.conditions.extend(conditions[:room])
    if include is not None:
        request.stopping.include_stop_in_output = include
    return Case(request)


def _texts() -> list[v1.StopCondition]:
    return [v1.StopCondition(stop_text=text) for text in FREQUENT_TEXTS[:SAFE_STOP_CONDITIONS]]


def _ids(declared: Declared) -> list[v1.StopCondition]:
    distinct = dict.fromkeys(limits_of(declared).tokens)
    return [v1.StopCondition(stop_token_id=token) for token in list(distinct)[:16]]


def stops(declared: Declared) -> Iterable[Case]:
    """Ends by stop text, by stop token and by length, and one that may come by EOS."""
    yield _stops(declared, _texts())
    yield _stops(declared, _ids(declared)[:SAFE_STOP_CONDITIONS])
    yield Case(prose(declared, max_tokens=2))
    yield Case(prose(declared, max_tokens=STOP_WITHIN, temperature=0.0))


def stop_tails(declared: Declared) -> Iterable[Case]:
    """Stop texts and tokens that are left out, and ones that are kept where that is offered."""
    yield _stops(declared, _texts())
    yield _stops(declared, _ids(declared)[:SAFE_STOP_CONDITIONS], include=False)
    if limits_of(declared).stop_in_output:
        yield _stops(declared, _texts(), include=True)
        yield _stops(declared, _ids(declared)[:SAFE_STOP_CONDITIONS], include=True)


def min_tokens(declared: Declared) -> Iterable[Case]:
    """Stops that come often, and a minimum that they must wait for."""
    for conditions in (_texts(), _ids(declared)[:SAFE_STOP_CONDITIONS]):
        case = _stops(declared, conditions)
        if isinstance(case.request, v1.GenerateRequest):
            most = case.request.stopping.max_tokens
            case.request.stopping.min_tokens = min(MIN_TOKENS, most)
        yield case


def no_eos(declared: Declared) -> Iterable[Case]:
    """Longer outputs that may not end on the model's end token."""
    for temperature in (0.0, 1.0):
        request = prose(declared, max_tokens=64, temperature=temperature, seed=3)
        request.stopping.ignore_eos = True
        yield Case(request)


def prompt_info(declared: Declared) -> Iterable[Case]:
    """Prompt log probabilities, of token ids where they are taken."""
    if not offers(declared, "prompt"):
        return
    count = 4 if limits_of(declared).token_input else None
    request = simple_request(declared, prompt=PROSE, tokens=count, max_tokens=2)
    request.response.return_prompt_logprobs = True
    yield Case(request)
    if count is not None:
        later = v1.GenerateRequest()
        later.CopyFrom(request)
        later.response.prompt_logprob_start = 2
        yield Case(later)


def prompt_or_not(declared: Declared) -> Iterable[Case]:
    """With prompt information and without."""
    yield Case(prose(declared, max_tokens=2))
    yield from prompt_info(declared)


def logprobs(declared: Declared) -> Iterable[Case]:
    """Output log probabilities of one sampled and one greedy output."""
    if not offers(declared, "output"):
        return
    for temperature in (0.0, 1.0):
        request = prose(declared, temperature=temperature)
        request.response.return_output_logprobs = True
        yield Case(request)


def candidates(declared: Declared) -> Iterable[Case]:
    """Each advertised way to select candidates, for output tokens and for prompt tokens."""
    for which in ("output", "prompt"):
        if not offers(declared, which):
            continue
        for selection in candidate_selections(declared, which):
            request = prose(declared, max_tokens=3)
            setattr(request.response, f"return_{which}_logprobs", True)
            getattr(request.response, f"{which}_candidates").CopyFrom(selection)
            yield Case(request)


def ranks(declared: Declared) -> Iterable[Case]:
    """Log probabilities, alone and with candidates."""
    yield from logprobs(declared)
    yield from candidates(declared)


def offers(declared: Declared, which: str) -> bool:
    """Whether log probabilities of `prompt` or `output` tokens are advertised."""
    model = declared.model if declared.model is not None else v1.ModelInfo()
    offer: v1.LogprobCapabilities = getattr(model.generation, f"{which}_logprobs")
    return offer.supported


def token_prompts(declared: Declared) -> Iterable[Case]:
    """Token ids as input, for one output and for two."""
    if not limits_of(declared).token_input:
        return
    for count in (1, 2):
        if count <= declared.max_num_sequences:
            yield Case(simple_request(declared, tokens=5, max_tokens=2, num_sequences=count))


def cached(declared: Declared) -> Iterable[Case]:
    """The same longer prompt twice: an engine with a prefix cache has something to report."""
    count = 64 if limits_of(declared).token_input else None
    request = simple_request(declared, prompt=f"{PROSE}, " * 4, tokens=count, max_tokens=2)
    yield Case(request)
    yield Case(request)


def one_fault_per_row(declared: Declared) -> Iterable[Case]:
    """The simplest request with one fault of each row."""
    seen: set[str] = set()
    for fault in faults(declared):
        if fault.rule not in seen:
            seen.add(fault.rule)
            request = simple_request(declared)
            fault.apply(request)
            yield Case(request)


def every_fault(declared: Declared) -> Iterable[Case]:
    """The simplest request with every fault, one at a time."""
    for fault in faults(declared):
        request = simple_request(declared)
        fault.apply(request)
        yield Case(request)


def plain_and_faulty(declared: Declared) -> Iterable[Case]:
    """Requests that are served and requests that are refused."""
    yield from plain(declared)
    yield from one_fault_per_row(declared)


def marked(declared: Declared) -> Iterable[Case]:
    """Refused requests that carry a marker in the prompt and in the metadata."""
    for change in (
        v1.SamplingParams(temperature=-1.0),
        v1.SamplingParams(top_p=2.0),
        v1.SamplingParams(num_sequences=0),
        None,
    ):
        request = simple_request(declared, prompt=f"{MARKER} tell")
        if change is None:
            request.model = ""
        else:
            request.sampling.CopyFrom(change)
        yield Case(request, metadata=(("openengine-routing-key", MARKER),))


def aborted(declared: Declared) -> Iterable[Case]:
    """Long requests with the number of messages after which to abort them."""
    for messages in (1, 4):
        request = prose(declared, max_tokens=1024, temperature=0.0)
        request.stopping.ignore_eos = True
        yield Case(request, params={"messages": messages})
