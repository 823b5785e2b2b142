"""EBNF guides: characters decide, not how a lexer would cut them."""

import random

import pytest

from reference_engine.guided.guide import GuideKind
from tests.reference_engine.guided.languages import language, refusal

EBNF = GuideKind.EBNF_GRAMMAR
ARITHMETIC = """
# sums and differences
root ::= expr
expr ::= term (("+" | "-") term)*
term ::= num | "(" expr ")"
num  ::= [0-9]+ ("." [0-9]+)?
"""
DOUBLING = (
    "\n".join(f"r{n} ::= r{n + 1} r{n + 1}" for n in range(40)) + '\nr40 ::= "a"\nroot ::= r0'
)

CASES = [
    ('root ::= [a-z]* "end"', ["end", "aend", "endend"], ["a", "enda"]),
    (ARITHMETIC, ["1", "1+2", "(1+2.5)-3"], ["1+", "(1", "", "1."]),
    ('root ::=\n  "a"\n  | "b" root # again\n\n', ["a", "bba"], ["b", "aa"]),
    ('root ::= "\\u00e9" [^\\n"\\]-]{2} .? "\\U0001F600"', ["éab😀", "éab\n😀"], ["é-a😀", "éa😀"]),
    ('list ::= [a-z]* "end" list | "!"\nroot ::= list', ["endaend!", "!"], ["a!", "end"]),
    (
        'root ::= "a"{0,0} "b" "c"{0} "d"{2,} "e"?',
        ["bdd", "bddde"],
        ["abdd", "bd"],
    ),
    ('root ::= "" | "x"', ["", "x"], ["xx"]),
    ("root ::=", [""], ["a"]),
    ('root ::= "(" root? ")"', ["()", "((()))"], ["(", "())"]),
    ("root ::= [\\x41-\\x43]+ [\\-a]", ["ABC-", "Aa"], ["D-", "-"]),
    ('root ::= "a" unused\nunused ::= " "*\nmore ::= "x" more | "y"', ["a", "a  "], ["ay"]),
    ("root ::= A-b\nA-b ::= [^^]", ["x"], ["^", ""]),
]


@pytest.mark.parametrize(("source", "inside", "outside"), CASES)
def test_acceptance(source, inside, outside):
    """Each grammar accepts its own texts and no others."""
    compiled = language(EBNF, source)
    assert [text for text in inside if not compiled.accepts(text)] == []
    assert [text for text in outside if compiled.accepts(text)] == []


@pytest.mark.parametrize("source", [case[0] for case in CASES])
def test_random_outputs_are_accepted_again(source):
    """What the masks let through is in the language, however it is cut into tokens."""
    compiled = language(EBNF, source)
    rng = random.Random(5)
    for output in filter(
        lambda one: one is not None, (compiled.random_output(rng) for _ in range(5))
    ):
        assert compiled.accepts(output), output


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "no rule named root"),
        ('x ::= "a"', "no rule named root"),
        ("root ::= x", "does not define"),
        ('root ::= "a"\nroot ::= "b"', "line 2 defines a rule for the second time"),
        ('root ::= "a', "line 1 has a character"),
        ('root ::= "a"\n\nx ::= ("a"', "line 3 has a group that is not closed"),
        ('root ::= "a")', "line 1 expected a rule"),
        ('root = "a"', "line 1 has a character"),
        ("root ::= *", "operator without an item"),
        ('root ::= "a"{3,1}', "maximum is below"),
        ("root ::= [z-a]", "end is before its start"),
        ('root ::= "\\q"', "unknown escape"),
        ('root ::= "\\ud800"', "no character"),
        ("root ::= []", "line 1 has a character"),
        ("root ::= root", "admits no output"),
        (f"root ::= {'(' * 65}{')' * 65}", "deeper than 64"),
        (DOUBLING, "more than 20000 items"),
        ('root ::= x{1000}\nx ::= "ab"{1000}', "more than 20000 items"),
        ('start: "a"', "line 1 has a character"),
        ('root ::= "a"**', "two repetitions in a row"),
    ],
)
def test_errors_name_the_place(source, message):
    """A grammar that is wrong is refused with the line or with what is missing."""
    assert message in refusal(EBNF, source)
