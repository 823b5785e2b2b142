"""Guides with the real model, where it has been pulled."""

import json
import re

import jsonschema
import pytest

from reference_engine.engine.config import EngineConfig
from reference_engine.engine.request import Request, Sampling, Stopping
from reference_engine.guided.guide import Guide, GuideKind
from reference_engine.guided.guides import Guides
from reference_engine.model.catalog import SMOLLM2, cache_directory
from reference_engine.model.load import load_model
from reference_engine.server.app import build_core
from tests.reference_engine.engine.fakes import run

pytestmark = pytest.mark.skipif(
    not (cache_directory() / SMOLLM2).is_file(),
    reason="SmolLM2 is not in the cache; run: oe-engine pull smollm2",
)

CITY = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "capital": {"type": "boolean"},
        "founded": {"type": "string", "format": "date"},
    },
    "required": ["name", "capital", "founded"],
    "additionalProperties": False,
}
CALL = {
    "format": {
        "type": "tag",
        "begin": "<tool_call>",
        "content": {"type": "json_schema", "json_schema": CITY},
        "end": "<|im_end|>",
    }
}
ASKED = {
    "Is Paris in France? Answer yes or no.": Guide(GuideKind.CHOICE, choices=("yes", "no")),
    "Write a date.": Guide(GuideKind.REGEX, r"\d{4}-\d{2}-\d{2}"),
    "Write a sum.": Guide(GuideKind.EBNF_GRAMMAR, 'root ::= n ("+" n){1,3}\nn ::= [0-9]{1,2}'),
    "Describe Paris as JSON.": Guide(GuideKind.JSON_SCHEMA, json.dumps(CITY)),
    "Call the tool for Paris.": Guide(GuideKind.STRUCTURAL_TAG, json.dumps(CALL)),
}


def test_outputs_conform():
    """One batch of guides: each greedy output ends with STOP and is in its language."""
    loaded = load_model("smollm2")
    guides = Guides(loaded.tokenizer)
    core = build_core(loaded, EngineConfig(num_blocks=64, block_size=16, max_running=8), guides)
    requests = []
    for text, guide in ASKED.items():
        prompt = loaded.tokenizer.chat_prompt([{"role": "user", "content": text}])
        requests.append(
            Request(
                prompt=tuple(loaded.tokenizer.encode(prompt)),
                sampling=Sampling(seed=1, temperature=0.0),
                stopping=Stopping(max_tokens=80),
                grammar=guides.compile(guide),
            )
        )
    results = run(core, *requests)
    choice, date, total, city, call = [result.text() for result in results]
    assert [result.finish().stop is not None for result in results] == [True] * 5
    assert choice in {"yes", "no"}
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", date)
    assert re.fullmatch(r"\d{1,2}(\+\d{1,2}){1,3}", total)
    jsonschema.validate(json.loads(city), CITY, format_checker=jsonschema.FormatChecker())
    found = re.fullmatch(r"<tool_call>(.*)(<\|im_end\|>)?", call, re.DOTALL)
    jsonschema.validate(json.loads(found[1].removesuffix("<|im_end|>")), CITY)
