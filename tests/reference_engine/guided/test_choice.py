"""Choices: the output is one of the texts."""

import random

import pytest

from reference_engine.guided.guide import GuideKind
from reference_engine.guided.guides import MAX_GUIDE_BYTES
from tests.reference_engine.guided.languages import language, refusal

CHOICES = ("yes", "yes indeed", "no", 'quote " and \\', "line\nbreak", "é😀", "")


@pytest.mark.parametrize("choice", CHOICES)
def test_each_choice_is_possible(choice):
    """Every text of the list is accepted, also one that another begins with, and the empty one."""
    assert language(GuideKind.CHOICE, choices=CHOICES).accepts(choice)


def test_nothing_else_is():
    """Random outputs are members, and a beginning of a member is no output."""
    compiled = language(GuideKind.CHOICE, choices=CHOICES[2:4])
    rng = random.Random(3)
    assert {compiled.random_output(rng) for _ in range(20)} == set(CHOICES[2:4])
    assert not compiled.accepts("n")
    assert not compiled.accepts("non")


def test_no_choices_are_refused():
    """An empty list admits nothing."""
    assert "expected at least one" in refusal(GuideKind.CHOICE)


def test_size_is_bounded():
    """The bytes of all choices count."""
    choices = tuple(f"{number:0999}" for number in range(300))
    assert str(MAX_GUIDE_BYTES) in refusal(GuideKind.CHOICE, choices=choices)
