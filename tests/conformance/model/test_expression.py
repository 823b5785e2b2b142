"""The language of `applies`: what it accepts, what it means, how it explains itself."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.errors import ConfigError
from conformance.model.expression import (
    ALWAYS,
    MAX_DEPTH,
    MAX_LENGTH,
    evaluate,
    explain,
    failing_names,
    names,
    parse,
)
from conformance.model.facts import Facts
from oe_wire import v1

TOP_N = v1.CANDIDATE_TOKEN_SELECTION_MODE_TOP_N
quick = settings(deadline=None, max_examples=200)


def model(**fields: object) -> v1.ModelInfo:
    return v1.ModelInfo(**fields)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model.supports_text_input", True),
        ("not model.supports_text_input", False),
        ("model.supports_text_input == false", False),
        ("model.max_context_length == 128", True),
        ("1 < model.max_context_length <= 128", True),
        ("200 > model.max_context_length > 150", False),
        ("model.max_context_length > -1", True),
        ("'top_n' in model.generation.output_logprobs.candidate_selection_modes", True),
        ("'all' not in model.generation.output_logprobs.candidate_selection_modes", True),
        ("model.served_model_name == 'tiny'", True),
        ("'fast' in model.tokenizer_modes", False),
        ("role in ['aggregated', 'decode']", True),
        ("role != 'decode' and not legacy and generates", True),
        ("'core' in profiles and 'tasks' not in profiles", True),
        ("dialect == 'v0.1.0'", True),
        ("engine.engine_role == 'aggregated'", True),
        ("present(model)", True),
        ("present(model.generation)", True),
        ("present(model.generation.guided_decoding)", False),
        ("present(model.served_model_aliases)", False),
        ("present(model.served_model_name)", True),
        ("present(model.reasoning_parser)", False),
        ("true", True),
        ("false or true and false", False),
    ],
)
def test_meaning(text: str, expected: bool, facts: Callable[..., Facts]) -> None:
    """Each construct gives the value that the target's declarations imply."""
    info = model(supports_text_input=True, max_context_length=128, served_model_name="tiny")
    info.generation.output_logprobs.candidate_selection_modes.append(TOP_N)
    engine = v1.EngineInfo(engine_role=v1.ENGINE_ROLE_AGGREGATED)
    assert evaluate(parse(text), facts(model=info, engine=engine)) is expected


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("other", [-1, 0, 1])
def test_absent_numbers_are_in_no_order(
    operator: str, other: int, facts: Callable[..., Facts]
) -> None:
    """An unreported limit satisfies no ordering, from either side."""
    assert not evaluate(parse(f"model.max_context_length {operator} {other}"), facts())
    assert not evaluate(parse(f"{other} {operator} model.max_context_length"), facts())


def test_absent_is_neither_true_nor_false(facts: Callable[..., Facts]) -> None:
    """An unreported flag equals nothing, and a test for it fails."""
    unreported = facts(model=None)
    assert not evaluate(parse("model.supports_lora"), unreported)
    assert not evaluate(parse("model.supports_lora == false"), unreported)
    assert evaluate(parse("model.supports_lora != true"), unreported)
    assert not evaluate(parse("'regex' in model.generation.guided_decoding.modes"), unreported)


def test_present_zero_is_not_absent(facts: Callable[..., Facts]) -> None:
    """Explicit zero and false are values."""
    zero = facts(model=model(max_context_length=0, supports_lora=False))
    assert evaluate(parse("present(model.max_context_length)"), zero)
    assert evaluate(parse("model.supports_lora == false"), zero)


def test_a_legacy_engine_answers_server_info(facts: Callable[..., Facts]) -> None:
    """Fields that ServerInfo lacks read as absent; the first twelve read as usual."""
    legacy = facts(engine=v1.ServerInfo(schema_revision=1), capabilities=None)
    assert evaluate(parse("engine.schema_revision == 1"), legacy)
    assert not evaluate(parse("engine.configuration_epoch >= 0"), legacy)
    assert not evaluate(parse("present(engine.service_endpoints)"), legacy)
    assert not evaluate(parse("present(capabilities)"), legacy)


def test_an_enum_number_without_a_name_is_not_an_error(facts: Callable[..., Facts]) -> None:
    """A value from a newer revision matches none of the known names."""
    info = model()
    info.generation.guided_decoding.modes.append(99)
    modes = parse("'regex' in model.generation.guided_decoding.modes")
    assert not evaluate(modes, facts(model=info))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model.supports_text", "supports_text_input"),
        ("model.extra.key", "field of Struct 'key'"),
        ("model.tokenizer_modes.first", "holds no single message"),
        ("modell.max_context_length", "unknown name 'modell.max_context_length'"),
        ("rolle == 'prefill'", "perhaps role"),
        ("role == 'prefil'", "perhaps prefill"),
        ("role in ['prefill', 'decod']", "perhaps decode"),
        ("'topn' in model.generation.output_logprobs.candidate_selection_modes", "top_n"),
        ("'kv_event' in profiles", "kv_events"),
        ("role", "is not a condition"),
        ("model.max_context_length", "is not a condition"),
        ("model", "unknown name 'model'"),
        ("model.generation == model.generation", "compares message with message"),
        ("legacy == 'yes'", "compares bool with text"),
        ("model.max_context_length == '8'", "compares number with text"),
        ("role < 'prefill'", "orders values of type text"),
        ("model.supports_lora > false", "orders values of type bool"),
        ("'prefill' in role", "mixes one value and a list"),
        ("model.tokenizer_modes == 'fast'", "mixes one value and a list"),
        ("role in []", "is not a list of constants"),
        ("role in ['prefill', 1]", "is not a list of constants"),
        ("role in [dialect]", "is not a list of constants"),
        ("role is 'prefill'", "uses is"),
        ("model.supports_lora == True", "is not a constant"),
        ("model.supports_lora == None", "is not a constant"),
        ("model.max_context_length > 1.5", "is not a constant"),
        ("present(role)", "always there"),
        ("present(model.nothing)", "unknown field"),
        ("present(model, engine)", "is not a known call"),
        ("len(model.tokenizer_modes) > 1", "is not a known call"),
        ("model.max_context_length + 1 > 2", "is not part of the language"),
        ("[legacy for legacy in profiles]", "is not part of the language"),
        ("(lambda: legacy)()", "is not a known call"),
        ("'a'.upper() == 'A'", "is not a known call"),
        ("legacy if generates else legacy", "is not part of the language"),
        ("legacy and", "cannot parse"),
        ("legacy; generates", "cannot parse"),
        ("legacy\0", "cannot parse"),
        ("not " * MAX_LENGTH + "legacy", "characters"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    """Anything outside the language is a ConfigError that names the part."""
    with pytest.raises(ConfigError) as caught:
        parse(text, ["core", "kv_events"])
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["(" * 240 + "legacy" + ")" * 240, "-" * 400 + "1 < 2"])
def test_nesting_beyond_the_parser_is_a_config_error(text: str) -> None:
    """Nesting that Python's own parser or this language refuses never crashes the loader."""
    with pytest.raises(ConfigError, match=r"cannot parse|nested too deep"):
        parse(text)


def test_the_deepest_chain_is_evaluated(facts: Callable[..., Facts]) -> None:
    """Whatever is accepted can be evaluated and explained."""
    count = MAX_DEPTH - 3
    chain = parse("not " * count + "legacy")
    assert evaluate(chain, facts(legacy=count % 2 == 0))
    assert explain(chain, facts(legacy=count % 2 == 1))


def test_an_empty_text_always_holds(facts: Callable[..., Facts]) -> None:
    """No condition is the condition that always holds."""
    assert parse("  ") is ALWAYS
    assert not ALWAYS
    assert evaluate(ALWAYS, facts())
    assert explain(ALWAYS, facts()) == ""
    assert names(ALWAYS) == ()


@pytest.mark.parametrize(
    ("text", "said", "read"),
    [
        ("generates and legacy", "legacy is false", ("legacy",)),
        ("model.max_context_length > 9", "model.max_context_length is 8 (needs", None),
        ("model.supports_lora", "model.supports_lora is absent", ("model.supports_lora",)),
        ("not generates", "generates holds", ("generates",)),
        ("'tasks' in profiles", "profiles is [core] (needs 'tasks' in profiles)", ("profiles",)),
        ("present(model.generation)", "model.generation is absent", ("model.generation",)),
        ("'fast' in model.tokenizer_modes", "model.tokenizer_modes is empty", None),
        ("legacy or role == 'decode'", "legacy is false; role is aggregated", ("legacy", "role")),
        ("1 > 2", "1 > 2 is false", ("1 > 2",)),
        ("false", "false is false", None),
    ],
)
def test_explanations(
    text: str, said: str, read: tuple[str, ...] | None, facts: Callable[..., Facts]
) -> None:
    """The reason is one line and names the leaf that decided."""
    target = facts(model=model(max_context_length=8))
    line = explain(parse(text), target)
    assert said in line
    assert "\n" not in line
    if read is not None:
        assert failing_names(parse(text), target) == read


def test_expressions_are_equal_by_text() -> None:
    """Two parses of one text are interchangeable, also as dictionary keys."""
    assert parse("legacy") == parse(" legacy ")
    assert len({parse("legacy"), parse("legacy")}) == 1
    assert str(parse("legacy")) == "legacy"


def test_names_are_those_read() -> None:
    """Names come once each, in order, without constants and calls."""
    text = (
        "present(model.max_context_length) and (role == 'decode' or model.max_context_length > 1)"
    )
    assert names(parse(text)) == ("model.max_context_length", "role")


def leaves(limit: int | None, flag: bool | None, role: str) -> st.SearchStrategy[tuple[str, bool]]:
    """Leaves of a condition with the value they have for these facts."""
    comparisons = [
        ("==", lambda a, b: a == b),
        ("!=", lambda a, b: a != b),
        ("<", lambda a, b: a is not None and a < b),
        (">=", lambda a, b: a is not None and a >= b),
    ]
    numbers = st.tuples(st.sampled_from(comparisons), st.integers(0, 3)).map(
        lambda drawn: (
            f"model.max_context_length {drawn[0][0]} {drawn[1]}",
            drawn[0][1](limit, drawn[1]),
        )
    )
    roles = st.sampled_from(["aggregated", "prefill", "decode"])
    fixed = [
        ("model.supports_lora", flag is True),
        ("model.supports_lora == false", flag is False),
        ("present(model.supports_lora)", flag is not None),
        ("true", True),
    ]
    return (
        numbers
        | roles.map(lambda name: (f"role == '{name}'", role == name))
        | roles.map(lambda name: (f"role not in ['{name}']", role != name))
        | st.sampled_from(fixed)
    )


def conditions(leaf: st.SearchStrategy[tuple[str, bool]]) -> st.SearchStrategy[tuple[str, bool]]:
    """Conditions over the leaves, each with its value."""

    def grow(inner: st.SearchStrategy[tuple[str, bool]]) -> st.SearchStrategy[tuple[str, bool]]:
        pairs = st.tuples(inner, inner)
        return (
            pairs.map(lambda two: (f"({two[0][0]} and {two[1][0]})", two[0][1] and two[1][1]))
            | pairs.map(lambda two: (f"({two[0][0]} or {two[1][0]})", two[0][1] or two[1][1]))
            | inner.map(lambda one: (f"not ({one[0]})", not one[1]))
        )

    return st.recursive(leaf, grow, max_leaves=6).filter(lambda pair: len(pair[0]) <= MAX_LENGTH)


def facts_with(limit: int | None, flag: bool | None, role: str) -> Facts:
    info = v1.ModelInfo()
    if limit is not None:
        info.max_context_length = limit
    if flag is not None:
        info.supports_lora = flag
    return SimpleNamespace(
        model=info,
        capabilities=None,
        engine=None,
        role=role,
        dialect="v0.1.0",
        legacy=False,
        generates=True,
        profiles=frozenset({"core"}),
    )


@quick
@given(st.data())
def test_any_condition_has_the_value_of_its_parts(data: st.DataObject) -> None:
    """Evaluation agrees with a value computed beside the text, and explains exactly the false."""
    limit = data.draw(st.none() | st.integers(0, 3))
    flag = data.draw(st.none() | st.booleans())
    role = data.draw(st.sampled_from(["aggregated", "prefill", "decode"]))
    text, expected = data.draw(conditions(leaves(limit, flag, role)))
    target = facts_with(limit, flag, role)
    expression = parse(text)
    assert evaluate(expression, target) is expected
    assert (explain(expression, target) == "") is expected
    assert (failing_names(expression, target) == ()) is expected


TOKENS = [
    "legacy", "role", "model", ".", "max_context_length", "profiles", "present", "(", ")", "[", "]",
    "and", "or", "not", "in", "==", "<", "is", "'prefill'", "1", "-", "true", "lambda", ":", ",",
    "\n", "*", "\x00", "for", "if", "else", ":=", "await", "f'{role}'",
]  # fmt: skip


@quick
@given(st.lists(st.sampled_from(TOKENS), max_size=12).map(" ".join))
def test_no_text_escapes_the_language(text: str) -> None:
    """Any text either parses to something that evaluates to a bool or is a ConfigError."""
    try:
        expression = parse(text)
    except ConfigError:
        return
    assert isinstance(evaluate(expression, facts_with(1, flag=True, role="decode")), bool)
