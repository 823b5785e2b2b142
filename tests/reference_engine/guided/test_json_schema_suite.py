"""The public JSON Schema test suite, where a copy is at hand.

JSON_SCHEMA_TEST_SUITE names its directory, the one with `tests/` inside. Schemas that can't be
enforced are refused; of the others no invalid instance may be accepted, and every output must
validate.
"""

import json
import os
import random
from pathlib import Path

import jsonschema
import pytest

from reference_engine.errors import GuideError
from reference_engine.guided.guide import GuideKind
from tests.reference_engine.guided.languages import language

SUITE = os.environ.get("JSON_SCHEMA_TEST_SUITE")
DRAFTS = {
    "draft4": jsonschema.Draft4Validator,
    "draft6": jsonschema.Draft6Validator,
    "draft7": jsonschema.Draft7Validator,
    "draft2019-09": jsonschema.Draft201909Validator,
    "draft2020-12": jsonschema.Draft202012Validator,
}
# In 2019-09 and later these keywords only describe; draft 7 lets a validator choose.
NOTES = {"content"}
# Whether U+FEFF is white space, and what \W is beyond ASCII, is where dialects differ.
DIALECT = {"ecmascript-regex"}
# Schemas and instances of these drafts that compile: 2 % below what was counted.
LEAST = {"draft4": 127, "draft6": 165, "draft7": 169, "draft2019-09": 185, "draft2020-12": 179}


def cases(draft):
    folder = Path(SUITE, "tests", draft)
    for file in sorted(folder.rglob("*.json")):
        if file.stem not in NOTES | DIALECT:
            for case in json.loads(file.read_text()):
                yield f"{file.stem}: {case['description']}", case


@pytest.mark.skipif(not SUITE, reason="JSON_SCHEMA_TEST_SUITE names no copy of the test suite")
@pytest.mark.parametrize("draft", DRAFTS)
def test_nothing_invalid_is_accepted(draft):
    """Refused schemas aside, instances that the suite calls invalid are refused as outputs."""
    compiled_schemas, wrong = 0, []
    for name, case in cases(draft):
        schema = case["schema"]
        try:
            compiled = language(GuideKind.JSON_SCHEMA, json.dumps(schema))
        except GuideError:
            continue
        compiled_schemas += 1
        for test in case["tests"]:
            text = json.dumps(test["data"], ensure_ascii=False)
            if not test["valid"] and compiled.accepts(text):
                wrong.append((name, test["description"]))
        wrong += [(name, text) for text in invalid_outputs(compiled, DRAFTS[draft], schema)]
    assert wrong == []
    assert compiled_schemas >= LEAST[draft]


def invalid_outputs(compiled, kind, schema):
    """Random outputs that the validator of the draft does not take."""
    check, rng = kind(schema, format_checker=kind.FORMAT_CHECKER), random.Random(1)
    outputs = [compiled.random_output(rng, most=150) for _ in range(2)]
    return [one for one in outputs if one is not None and not check.is_valid(json.loads(one))]
