"""The `openengine-` keys of data-plane calls, and all other keys: META-001 to 004, 006 to 009."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from conformance.checks.check import Strategy, check
from conformance.checks.core.judging import completed, judge, skip_uncertain
from conformance.checks.core.plain_calls import plain_calls
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.oracle.metadata import (
    PRIORITIES,
    PRIORITY,
    ROUTING_KEY,
    TARGET_RANK,
    reported_ranks,
)
from conformance.strategies import simple_case
from conformance.strategies.metadata import (
    BAD_KEYS,
    MALFORMED,
    PRINTABLE,
    TOO_LARGE,
    foreign_keys,
    malformed_decimals,
    repeated_keys,
    routing_keys,
    unknown_keys,
)
from conformance.strategies.simple import PROSE
from conformance.wire.declared import Declared
from conformance.wire.transcript import Metadata, Transcript
from oe_wire import v1

# Tokens of a greedy output that is compared with another: enough to differ if anything does.
COMPARED_TOKENS = 6


def _with(declared: Declared, *metadata: tuple[str, str | bytes]) -> Case:
    return Case(simple_case(declared).request, metadata)


def _drawn(metadata: st.SearchStrategy[Metadata]) -> Strategy:
    """The simplest request with metadata that is drawn."""
    return lambda declared: metadata.map(lambda pairs: _with(declared, *pairs))


def _malformed(declared: Declared) -> Iterable[Case]:
    # The first two are of each key, since a quick look may take no more.
    yield _with(declared, (PRIORITY, "one"))
    yield _with(declared, (TARGET_RANK, "-1"))
    for key in (PRIORITY, TARGET_RANK):
        for value in (*MALFORMED, *TOO_LARGE[key]):
            yield _with(declared, (key, value))


@check(
    "OE-CORE-META-001",
    advice="Match the value with -?[0-9]+ (no sign for a rank) before converting it, compare it "
    "with 32 bits, and refuse the request with INVALID_ARGUMENT; library parsers take spaces, "
    "plus signs and underscores.",
    table=_malformed,
    strategy=_drawn(malformed_decimals(PRIORITY) | malformed_decimals(TARGET_RANK)),
)
def malformed_number(probe: Probe, case: Case) -> None:
    """A priority or rank that is no decimal integer of its range is refused."""
    judge(probe, case, served_too=False)


def _repeated(declared: Declared) -> Iterable[Case]:
    for key, first, second in (
        (PRIORITY, "1", "1"),
        (ROUTING_KEY, "a", "b"),
        (TARGET_RANK, "0", "0"),
        (PRIORITY, "1", "2"),
        (ROUTING_KEY, "a", "a"),
    ):
        yield _with(declared, (key, first), (key, second))
    yield _with(declared, (PRIORITY, "1"), ("x-between", "1"), (PRIORITY, "1"))


@check(
    "OE-CORE-META-002",
    advice="Count the openengine- keys of the call before reading any; a map of keys to values "
    "has already lost the first one.",
    table=_repeated,
    strategy=_drawn(repeated_keys()),
)
def repeated_key(probe: Probe, case: Case) -> None:
    """A key that is given twice is refused, equal values or not."""
    judge(probe, case, served_too=False)


def _routing(declared: Declared) -> Iterable[Case]:
    for value in ("", "a", PRINTABLE.strip(), "a b", "0", "k" * 1024):
        yield _with(declared, (ROUTING_KEY, value))


@check(
    "OE-CORE-META-003",
    advice="Refuse an empty openengine-routing-key and take any other as it is: it is opaque.",
    table=_routing,
    strategy=_drawn(routing_keys()),
)
def routing_key(probe: Probe, case: Case) -> None:
    """An empty routing key is refused and any other accepted."""
    judge(probe, case)


def _ranks(declared: Declared) -> Iterable[Case]:
    ranks = reported_ranks(declared)
    if ranks is None:
        yield Case()
        return
    for rank in dict.fromkeys((ranks[0], ranks[-1] + 1, ranks[-1], 2**32 - 1, ranks[0] - 1)):
        if 0 <= rank < 2**32:
            yield _with(declared, (TARGET_RANK, str(rank)))


@check(
    "OE-CORE-META-004",
    advice="Compare openengine-target-dp-rank with the range that ParallelismInfo reports, from "
    "data_parallel_start_rank on, and never fall back to another rank.",
    table=_ranks,
)
def target_rank(probe: Probe, case: Case) -> None:
    """A rank of the reported range is accepted and one beside it refused."""
    if case.request is None:
        skip_uncertain(probe)
    judge(probe, case)


def _priorities(declared: Declared) -> Iterable[Case]:
    for value in (1, 0, -1, PRIORITIES[0], PRIORITIES[-1]):
        yield _with(declared, (PRIORITY, str(value)))


@check(
    "OE-CORE-META-006",
    advice="Ignore openengine-priority on a model that does not support it: it is a hint that "
    "fleets set on every request.",
    table=_priorities,
)
def priority_without_support(probe: Probe, case: Case) -> None:
    """A well-formed priority is no reason to refuse a request."""
    judge(probe, case)


def _outside(declared: Declared) -> Iterable[Case]:
    for number, method in enumerate(plain_calls(declared)):
        yield Case(metadata=BAD_KEYS[number % len(BAD_KEYS)], params={"method": method})


def _any_outside(declared: Declared) -> st.SearchStrategy[Case]:
    keys = malformed_decimals(PRIORITY) | malformed_decimals(TARGET_RANK) | repeated_keys()
    methods = st.sampled_from(tuple(plain_calls(declared)))
    return st.builds(lambda method, bad: Case(None, bad, {"method": method}), methods, keys)


@check(
    "OE-CORE-META-007",
    advice="Read the openengine- keys in the handlers of the data plane, not in an interceptor "
    "of all RPCs.",
    table=_outside,
    strategy=_any_outside,
)
def outside_data_plane(probe: Probe, case: Case) -> None:
    """Malformed keys change nothing on an RPC outside the data plane."""
    same_outcome(probe, case)


def same_outcome(probe: Probe, case: Case) -> None:
    """A call outside the data plane ends with the same status with the case's metadata as without.

    Whether the RPC answers as it should is judged elsewhere; its answer may change by itself.
    """
    method = case.params["method"]
    request = plain_calls(probe.declared).get(method)
    if request is None:
        probe.skip("the engine does not declare this RPC")
    plain = probe.call(method, request)
    changed = probe.call(method, request, metadata=case.metadata)
    if changed.ending.code is not plain.ending.code:
        keys = ", ".join(sorted({key for key, _ in case.metadata}))
        probe.fail(f"{describe(plain)}, as without {keys}", describe(changed), changed)


def _unknown(declared: Declared) -> Iterable[Case]:
    for key, value in (
        ("openengine-x-future", "1"),
        ("openengine-x-future-bin", b"\x00\xff"),
        ("openengine-priority-class", "not a number"),
        ("openengine-dp-rank", ""),
    ):
        yield _with(declared, (key, value))


@check(
    "OE-CORE-META-008",
    advice="Ignore openengine- keys that this version does not know: later minors add some.",
    table=_unknown,
    strategy=_drawn(unknown_keys()),
)
def unknown_key(probe: Probe, case: Case) -> None:
    """A key of the reserved prefix that no rule names is ignored."""
    judge(probe, case)


def _greedy(declared: Declared, metadata: Metadata) -> Case:
    case = simple_case(declared, prompt=PROSE, max_tokens=COMPARED_TOKENS, temperature=0.0)
    return Case(case.request, metadata)


def _foreign(declared: Declared) -> Iterable[Case]:
    for metadata in (
        (("x-request-id", "oe"), ("priority", "high"), ("model", "another")),
        (("x-blob-bin", b"\x00\x01"), ("x-empty", ""), ("x-twice", "1"), ("x-twice", "2")),
        (("openengine", "1"), ("temperature", "2"), ("max-tokens", "1"), ("seed", "7")),
    ):
        yield _greedy(declared, metadata)


def _any_foreign(declared: Declared) -> st.SearchStrategy[Case]:
    return foreign_keys().map(lambda metadata: _greedy(declared, metadata))


@check(
    "OE-CORE-META-009",
    advice="Read only the keys of the protocol; anything else belongs to callers and middleware.",
    table=_foreign,
    strategy=_any_foreign,
)
def foreign_key(probe: Probe, case: Case) -> None:
    """Keys outside the protocol change neither acceptance nor the greedy output."""
    plain = probe.generate(Case(case.request))
    completed(probe, plain)
    changed = probe.generate(case)
    if changed.ending.code is not plain.ending.code:
        probe.fail(f"{describe(plain)}, as without the keys", describe(changed), changed)
    if outputs(plain) == outputs(changed):
        return
    # Engines whose output depends on what else they compute are no evidence against the keys.
    again = probe.generate(Case(case.request)), probe.generate(case)
    if outputs(again[0]) != outputs(plain) or outputs(again[1]) != outputs(changed):
        probe.skip("greedy outputs do not repeat, so they cannot be compared")
    probe.fail("the output of the same request without the keys", "another output", changed)


def outputs(transcript: Transcript) -> tuple[tuple[int, int], ...]:
    """(output index, token id) of every record, in order of arrival."""
    return tuple(
        (message.token.output_index, record.token_id)
        for message in transcript.messages
        if isinstance(message, v1.GenerateResponse) and message.HasField("token")
        for record in message.token.tokens
    )
