"""Regex guides: the whole output matches, in a dialect that other dialects agree with."""

import random
import re

import pytest

from reference_engine.guided.guide import GuideKind
from reference_engine.guided.regex import portable
from tests.reference_engine.guided.languages import language, refusal

PATTERNS = [
    r"[a-z]{3,5}",
    r"\d{4}-\d{2}-\d{2}",
    r"(foo|bar)+",
    r"[^a-c\n]{2}",
    r"\w+@\w+\.(com|org)",
    r"(?i)yes|no",
    r"a/b\\c",
    r"[\w.-]{1,8}",
    r"^anchored$",
    r"é+😀?",
    r".{0,6}",
    r"\s?x\s?",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_random_outputs_match(pattern):
    """Whatever is drawn, Python's re agrees that the whole output matches."""
    compiled = language(GuideKind.REGEX, pattern)
    rng = random.Random(7)
    for output in filter(None, (compiled.random_output(rng) for _ in range(8))):
        assert re.fullmatch(pattern, output), output


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        (r"a{2}", "aa", "aaa"),
        (r"a|ab", "ab", "b"),
        (r"\d", "7", "\N{ARABIC-INDIC DIGIT SEVEN}"),
        (r"[\w-]", "-", "é"),
        (r"[^\d]", "x", "7"),
        ("", "", "a"),
    ],
)
def test_acceptance(pattern, inside, outside):
    """An output is accepted exactly when all of it matches."""
    compiled = language(GuideKind.REGEX, pattern)
    assert compiled.accepts(inside)
    assert not compiled.accepts(outside)


@pytest.mark.parametrize(
    "pattern", ["(a", "a**b(", r"(?=a)b", r"\bfoo", r"(a)\1", "a{3,1}", "[z-a]"]
)
def test_what_cannot_be_enforced_is_refused(pattern):
    """Malformed and unsupported regexes are refused in words that repeat nothing of them."""
    message = refusal(GuideKind.REGEX, pattern)
    assert "regex" in message
    assert pattern not in message


@pytest.mark.parametrize("pattern", [r"a[^\s\S]", r"[^\s\S]"])
def test_an_empty_language_is_refused(pattern):
    """A regex that nothing matches is refused before any token."""
    assert refusal(GuideKind.REGEX, pattern) == "admits no output"


@pytest.mark.parametrize(
    "pattern", ["(a{1000}){1000}", "((x{99}){99}){9}", "a{999999999999}", "[ab]{30000}"]
)
def test_counts_are_bounded(pattern):
    """Counts that would make millions of states are refused."""
    assert "counted repetitions" in refusal(GuideKind.REGEX, pattern)


def test_portable_classes():
    """Positive shorthand classes are ASCII, negated ones stay as wide as they were."""
    assert portable(r"\d[\d.][^\w]\\d") == r"[0-9][[0-9].][^\w]\\d"
