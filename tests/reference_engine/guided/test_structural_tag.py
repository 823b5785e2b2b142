"""Structural tags, each format by what it accepts."""

import json
import random

import pytest

from reference_engine.guided.guide import GuideKind
from tests.reference_engine.guided.languages import guides, language, refusal, tokenizer

DIGITS = {"type": "regex", "pattern": "[0-9]+"}
POINT = {
    "type": "json_schema",
    "json_schema": {
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "required": ["x"],
        "additionalProperties": False,
    },
}
ANY = {"type": "any_text"}
WORD = {"type": "grammar", "grammar": 'root ::= "[" root? "]"'}


def const(value):
    return {"type": "const_string", "value": value}


def tag(begin, content, end):
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def sequence(*elements):
    return {"type": "sequence", "elements": list(elements)}


def either(*elements):
    return {"type": "or", "elements": list(elements)}


def triggered(**changes):
    tags = [tag("<f=a>", POINT, "</f>"), tag("<f=b>", DIGITS, "</f>")]
    return {"type": "triggered_tags", "triggers": ["<f="], "tags": tags, **changes}


def separated(**changes):
    tags = [tag("<a>", DIGITS, "</a>"), tag("<b>", POINT, "</b>")]
    return {"type": "tags_with_separator", "separator": ", ", "tags": tags, **changes}


CALLS = [
    "<f=b>12</f>",
    'hi <f=b>1</f> then <f=a>{"x": 1}</f> end',
    "a<<f=b>1</f><",
    "a<f b <f=b>1</f>",
]

FORMATS = {
    "const_string": (const('say "hi"\n'), ['say "hi"\n'], ["say", ""]),
    "json_schema": (POINT, ['{"x": 1}'], ['{"y": 1}', ""]),
    "json_schema true": ({"type": "json_schema", "json_schema": True}, ["1", "[]"], ["x"]),
    "regex": (DIGITS, ["1", "42"], ["", "a"]),
    "grammar": (WORD, ["[]", "[[]]"], ["[", ""]),
    "any_text": (ANY, ["", "whatever\n<x>é"], []),
    "any_text excludes": ({**ANY, "excludes": ["no", "\\"]}, ["n o", "yes/"], ["a no b", "\\"]),
    "or": (either(const("none"), POINT, WORD), ["none", '{"x":1}', "[[]]"], ["", "non", "{}"]),
    "sequence": (sequence(const("a"), DIGITS, const("b")), ["a1b", "a23b"], ["ab", "a1"]),
    "text up to a tag": (
        sequence(ANY, tag("<q>", DIGITS, "</q>")),
        ["<q>1</q>", "hello <<q>1</q>"],
        ["hello", "<q>1</q>x"],
    ),
    "regex up to a constant": (
        sequence({"type": "regex", "pattern": "[a-z]*"}, const("end"), ANY),
        ["end", "aend", "end of it"],
        ["a", "en"],
    ),
    "tag": (tag("<t>", DIGITS, "</t>"), ["<t>1</t>"], ["<t></t>", "<t>1", "1"]),
    "tag without markers": (tag("", DIGITS, ""), ["12"], ["", "a"]),
    "tag around text": (tag("<t>", ANY, "</t>"), ["<t></t>", "<t><t></t>"], ["<t>", "<t></t>x"]),
    "tag with several ends": (
        tag("<", {**ANY, "excludes": ["bad"]}, [">", "]"]),
        ["<>", "<abc]"],
        ["<bad>", "<a>]", "<a"],
    ),
    "tag around constants": (tag("<", const("x"), ["!", ""]), ["<x", "<x!"], ["<", "x!"]),
    "reasoning, then calls": (
        sequence(tag("<think>", ANY, "</think>"), triggered()),
        ["<think>ab c</think>", "<think></think>x<f=b>1</f>"],
        ["x", "<think>", "<think>a</think><f="],
    ),
    "triggered_tags": (triggered(), ["", "hello", *CALLS], ["<f=", "<f=c", "x<f=b>a", "<f=b>12"]),
    "triggered_tags at_least_one": (
        triggered(at_least_one=True),
        ["<f=b>12</f>", '<f=b>12</f> and <f=a>{"x": 1}</f> x'],
        ["", "hello", "hi <f=b>1</f>"],
    ),
    "triggered_tags stop_after_first": (
        triggered(stop_after_first=True),
        ["", "hi", "hi <f=b>12</f>"],
        ["<f=b>12</f> ", "<f=b>12</f><f=b>12</f>"],
    ),
    "triggered_tags exactly one": (
        triggered(stop_after_first=True, at_least_one=True),
        ["<f=b>12</f>"],
        ["", "<f=b>12</f> ", "hi <f=b>12</f>"],
    ),
    "triggered_tags excludes": (
        triggered(excludes=["bad"]),
        ["good<f=b>1</f>"],
        ["bad", "<f=b>1</f>bad"],
    ),
    "two triggers": (
        triggered(triggers=["<f=a", "<f=b"]),
        ['x<f=a>{"x":1}</f><f=b>1</f>', "<f=c"],
        ["<f=a>1</f>", "<f=b"],
    ),
    "triggered_tags in a tag": (
        tag("<a>", triggered(), "</a>"),
        ["<a></a>", "<a>x<f=b>1</f>y</a>", "<a>x</a>"],
        ["<a>x</a>y", "<a>x</a><f=b>1</f></a>", "<a><f="],
    ),
    "tags_with_separator": (
        separated(),
        ["", "<a>1</a>", '<a>1</a>, <b>{"x":1}</b>, <a>2</a>'],
        ["<a>1</a>, ", '<a>1</a><b>{"x":1}</b>', ", "],
    ),
    "tags_with_separator at_least_one": (separated(at_least_one=True), ["<a>1</a>"], [""]),
    "tags_with_separator exactly one": (
        separated(at_least_one=True, stop_after_first=True),
        ["<a>1</a>"],
        ["", "<a>1</a>, <a>1</a>"],
    ),
    "tags in a tag": (
        tag("[", separated(separator=","), "]"),
        ["[]", '[<b>{"x":1}</b>,<a>1</a>]'],
        ["[<a>1</a>,]"],
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_acceptance(name):
    """Each format accepts its own texts and no others."""
    form, inside, outside = FORMATS[name]
    compiled = language(
        GuideKind.STRUCTURAL_TAG, json.dumps({"type": "structural_tag", "format": form})
    )
    assert [text for text in inside if not compiled.accepts(text)] == []
    assert [text for text in outside if compiled.accepts(text)] == []


@pytest.mark.parametrize("name", FORMATS)
def test_random_outputs_are_accepted_again(name):
    """What the masks let through is in the language, however it is cut into tokens."""
    form = FORMATS[name][0]
    compiled = language(GuideKind.STRUCTURAL_TAG, json.dumps({"format": form}))
    rng = random.Random(name)
    for output in (compiled.random_output(rng, most=120) for _ in range(4)):
        assert output is None or compiled.accepts(output), output


def test_the_older_form():
    """Structures with triggers are triggered tags; a schema may be JSON inside a string."""
    schema = POINT["json_schema"]
    for given in (schema, json.dumps(schema)):
        source = {
            "type": "structural_tag",
            "structures": [{"begin": "<f=a>", "schema": given, "end": "</f>"}],
            "triggers": ["<f="],
        }
        compiled = language(GuideKind.STRUCTURAL_TAG, json.dumps(source))
        assert compiled.accepts('x<f=a>{"x":1}</f>y')
        assert not compiled.accepts("<f=")
        assert not compiled.accepts('<f=a>{"y":1}</f>')


SPECIAL, END = "<|reserved_1|>", "<|endoftext|>"


def accepts_ids(compiled, *parts):
    """Whether ids are a whole output; a text is cut into tokens without control tokens."""
    ids = []
    for part in parts:
        if isinstance(part, int):
            ids.append(part)
        else:
            ids += [token for char in part for token in tokenizer().encode(char)]
    matcher = guides().matcher(compiled.grammar)
    return all(map(matcher.advance, ids)) and matcher.complete


@pytest.mark.parametrize("content", [DIGITS, POINT, const("7"), ANY])
def test_markers_as_text_or_as_token(content):
    """A marker that names a control token is accepted as that token and as its text."""
    token_id = tokenizer().encode(SPECIAL)[0]
    inner = '{"x":1}' if content is POINT else "7"
    source = {"format": tag(f"a{SPECIAL}b", content, f"x{SPECIAL}y")}
    compiled = language(GuideKind.STRUCTURAL_TAG, json.dumps(source))
    for begin in (token_id, SPECIAL):
        for end in (token_id, SPECIAL):
            assert accepts_ids(compiled, "a", begin, "b" + inner + "x", end, "y")
    assert not accepts_ids(compiled, "ab" + inner + "xy")


def test_a_trigger_can_be_a_token():
    """A trigger that names a control token works as that token and as its text."""
    token_id = tokenizer().encode(SPECIAL)[0]
    form = triggered(triggers=[SPECIAL], tags=[tag(f"{SPECIAL}go", DIGITS, "!")])
    compiled = language(GuideKind.STRUCTURAL_TAG, json.dumps({"format": form}))
    assert accepts_ids(compiled, "text", token_id, "go1!", "more")
    assert accepts_ids(compiled, f"text{SPECIAL}go1!")
    assert not accepts_ids(compiled, "text", token_id)
    assert not accepts_ids(compiled, "text", token_id, "no")


@pytest.mark.parametrize("content", [DIGITS, POINT, const("7"), ANY])
def test_an_end_marker_that_is_eos_may_be_left_out(content):
    """Where the end marker names the EOS token, EOS itself ends the output."""
    inner = '{"x":1}' if content is POINT else "7"
    compiled = language(GuideKind.STRUCTURAL_TAG, json.dumps({"format": tag("<t>", content, END)}))
    assert accepts_ids(compiled, "<t>" + inner)
    assert not accepts_ids(compiled, "<t")


DEEP = ANY
for _ in range(40):
    DEEP = either(DEEP)

WRONG = {
    "not JSON": ("{", "no valid JSON"),
    "no object": ("[]", "no JSON object"),
    "neither form": ("{}", "no list of objects at structures"),
    "another type": ('{"type": "json_schema", "format": {}}', "type other than structural_tag"),
    "format without type": ({}, "unknown type at format, expected const_string"),
    "unknown format": ({"type": "secret"}, "unknown type at format, expected const_string"),
    "value missing": ({"type": "const_string"}, "no string at format.value"),
    "half a pair": (const("\ud800"), "half a surrogate pair"),
    "no schema": ({"type": "json_schema"}, "no schema at format.json_schema"),
    "another style": ({**POINT, "style": "xml"}, "style other than json"),
    "unsupported schema": ({"type": "json_schema", "json_schema": {"not": {}}}, "keyword not"),
    "schema false": ({"type": "json_schema", "json_schema": False}, "no JSON Schema"),
    "bad regex": ({"type": "regex", "pattern": "("}, "does not compile"),
    "bad grammar": ({"type": "grammar", "grammar": "root ::= x"}, "does not define"),
    "no elements": (sequence(), "no list of objects at format.elements"),
    "elements of texts": (
        {"type": "or", "elements": ["a"]},
        "no list of objects at format.elements",
    ),
    "tag without content": (
        {"type": "tag", "begin": "a", "end": "b"},
        "no object at format.content",
    ),
    "nested error": (
        sequence(const("a"), either(const("b"), {"type": "tag"})),
        "format.elements[1].elements[1]",
    ),
    "text without an end": (sequence(ANY, POINT), "text without an end at format.elements[0]"),
    "no triggers": (triggered(triggers=[]), "no list of triggers"),
    "empty trigger": (triggered(triggers=[""]), "no list of triggers"),
    "unmatched trigger": (triggered(triggers=["<g="]), "0 triggers for format.tags[0].begin"),
    "two matching triggers": (
        triggered(triggers=["<f", "<f="]),
        "2 triggers for format.tags[0].begin",
    ),
    "flag of text": (triggered(at_least_one="yes"), "no boolean at format.at_least_one"),
    "excludes nothing": ({**ANY, "excludes": [""]}, "excludes the empty string"),
    "too deep": (DEEP, "deeper than 32"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_the_place(name):
    """What is wrong is refused with its place and without its content."""
    source, message = WRONG[name]
    text = source if isinstance(source, str) else json.dumps({"format": source})
    found = refusal(GuideKind.STRUCTURAL_TAG, text)
    assert message in found
    assert "secret" not in found
