import pytest

from reference_engine.errors import AdapterError, UnsupportedAdapterError
from reference_engine.lora.pattern import safe_pattern


@pytest.mark.parametrize(
    "text",
    [
        r".*\.(q_proj|v_proj)",
        r"^model\.layers\.[0-9]+\.mlp\.(up|down)_proj$",
        r"(?:.*?(?:self_attn|mlp).*?(?:q|v)_proj.*?)|(?:\bmodel\.layers\.[\d]{1,}\.up_proj)",
        r"\(+[*+{)]\)\*\+\{[]*+]",
        r"(a)?b",
    ],
)
def test_usual_expressions(text):
    """They compile to themselves; escaped characters and classes count for nothing."""
    assert safe_pattern("field", text).pattern == text


@pytest.mark.parametrize(
    "text", ["(a+)+", "(a|b)*", "(?:a){2,}", ".*" * 6, "a{1,}" * 6, "a" * 3000]
)
def test_expressions_that_could_take_long(text):
    """The field is named, the expression is not repeated."""
    with pytest.raises(UnsupportedAdapterError, match="field ") as caught:
        safe_pattern("field", text)
    assert text not in str(caught.value)


@pytest.mark.parametrize("text", ["(", "[a", "*", "a**", "(?P<x"])
def test_no_expressions(text):
    """What does not compile is malformed."""
    with pytest.raises(AdapterError, match="field is no regular expression"):
        safe_pattern("field", text)
