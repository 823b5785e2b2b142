"""What outputs say: whole characters, a language, an order (STREAM-025 to 027)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from hypothesis import strategies as st

from conformance.checks import steering
from conformance.checks.check import Check, check
from conformance.checks.core.comparing import ended_well, results
from conformance.checks.core.laws import law_check
from conformance.checks.core.stream_cases import SHORT, prose
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.oracle.limits import limits_of
from conformance.strategies import simple_request
from conformance.strategies.guides import GUIDED_TOKENS, good_guides, wide_guide
from conformance.wire.declared import Declared
from oe_wire import v1

# Prompts after which models go on in characters of several bytes.
WIDE_PROMPTS = ("日本語、中国語、韓国語、", "🙂🙃🙂🙃🙂🙃", "Привет, как дела? Хорошо, а")
# More outputs than one, and few enough for any engine that offers several.
SEQUENCES = 4


def _guided(
    declared: Declared, guide: v1.GuidedDecoding, temperature: float, seed: int = 0
) -> Case:
    request = simple_request(declared, max_tokens=GUIDED_TOKENS, temperature=temperature, seed=seed)
    request.guided.CopyFrom(guide)
    return Case(request)


def _wide(declared: Declared) -> Iterator[Case]:
    """Outputs of several bytes a character: certain with a guide, likely with a prompt."""
    guide = wide_guide(declared)
    if guide is not None:
        for seed in range(2):
            yield _guided(declared, guide, 1.0, seed)
    if limits_of(declared).text_input:
        for prompt in WIDE_PROMPTS if guide is None else WIDE_PROMPTS[:1]:
            yield Case(simple_request(declared, prompt=prompt, max_tokens=16, temperature=0.0))
    else:
        yield Case(prose(declared, max_tokens=32, seed=5))


def _any_wide(declared: Declared) -> st.SearchStrategy[Case]:
    guide = wide_guide(declared)
    if guide is None:
        return st.sampled_from(list(_wide(declared)))
    return st.builds(
        lambda temperature, seed: _guided(declared, guide, temperature, seed),
        st.sampled_from((0.0, 0.7, 1.5)),
        st.integers(0, 1000),
    )


def _guides(declared: Declared) -> Iterable[Case]:
    """Every mode on offer, greedy and sampled."""
    for guide in good_guides(declared):
        yield _guided(declared, guide, 0.0)
        yield _guided(declared, guide, 1.0, 3)


def _any_guide(declared: Declared) -> st.SearchStrategy[Case]:
    return st.builds(
        lambda guide, temperature, seed: _guided(declared, guide, temperature, seed),
        st.sampled_from(good_guides(declared)),
        st.sampled_from((0.0, 0.7, 1.5)),
        st.integers(0, 1000),
    )


CHECKS: tuple[Check, ...] = (
    law_check(
        "STREAM-025",
        advice="Decode the tokens of an output together and hold back what ends in an incomplete "
        "UTF-8 sequence until the next token completes it.",
        table=_wide,
        strategy=_any_wide,
    ),
    law_check(
        "STREAM-026",
        advice="Mask every token that leads out of the guide's language, and allow the end token "
        "only where the language allows the text to end.",
        table=_guides,
        strategy=_any_guide,
    ),
)


def _several(declared: Declared) -> Iterable[Case]:
    count = min(SEQUENCES, declared.max_num_sequences)
    sampled = prose(declared, max_tokens=2 * SHORT, temperature=1.0, seed=3, num_sequences=count)
    yield Case(sampled)
    yield Case(prose(declared, max_tokens=2 * SHORT, temperature=0.0, num_sequences=count))


@check(
    "OE-CORE-STREAM-027",
    advice="Send what is produced for one index in the order in which it was produced; one queue "
    "for each output, or one for all, keeps it.",
    table=_several,
)
def order_of_production(probe: Probe, case: Case) -> None:
    """The tokens of each index come in the order in which they were produced.

    That order is known from elsewhere: of the first output from a request for one, of the others
    from the same request again. Outputs may differ for other reasons, so only the same tokens in
    another order count.
    """
    request = case.request
    if not isinstance(request, v1.GenerateRequest):
        probe.skip("no request")
    if not steering.idle(probe):
        probe.skip("the engine was busy before")
    alone = v1.GenerateRequest()
    alone.CopyFrom(request)
    alone.sampling.num_sequences = 1
    known = results(ended_well(probe, Case(alone)))
    again = results(ended_well(probe, case))
    together = ended_well(probe, case)
    judged = False
    expected = (*known[:1], *again[1:])
    for index, (output, other) in enumerate(zip(results(together), expected, strict=False)):
        if output.tokens == other.tokens:
            judged = judged or len(set(output.tokens)) > 1
        elif Counter(output.tokens) == Counter(other.tokens):
            actual = f"the same tokens in another order at index {index}"
            probe.fail("tokens in the order of production", actual, together)
    if not judged:
        probe.skip("the outputs do not repeat on this engine")
