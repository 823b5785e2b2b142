from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from conformance.errors import HarnessError
from conformance.records.category import Category
from conformance.records.record import (
    CallRecord,
    Completion,
    Dispatch,
    Finish,
    Usage,
    checked,
    intent_from,
    intent_json,
    record_json,
    schema,
)
from tests.http.records.samples import complete, intent


def test_schema_is_one() -> None:
    """The schema itself is valid, and closed at every object."""
    jsonschema.Draft202012Validator.check_schema(schema())

    def objects(value: Any) -> None:
        if isinstance(value, dict):
            if value.get("type") == "object" and "properties" in value:
                assert value["additionalProperties"] is False
            for item in value.values():
                objects(item)
        elif isinstance(value, list):
            for item in value:
                objects(item)

    objects(schema()["$defs"])


def test_schema_knows_the_closed_lists() -> None:
    """Every category, finish, dispatch and completion of the code is one of the schema's."""
    record = schema()["$defs"]["record"]["properties"]
    categories = record["error"]["oneOf"][1]["properties"]["category"]["enum"]
    assert categories == [each.value for each in Category]
    assert record["completion"]["properties"]["finish"]["enum"] == [*map(str, Finish), None]
    assert record["completion"]["properties"]["class"]["enum"] == [*map(str, Completion)]
    assert record["dispatch"]["enum"] == [*map(str, Dispatch)]


def test_absent_is_null() -> None:
    """What the provider did not say is null, and never 0."""
    value = record_json(replace(complete(intent()), usage=Usage(completion=0)))
    assert value["usage"] == {"prompt": None, "completion": 0, "total": None, "cached": None}
    assert set(value["timing_us"].values()) == {None}
    assert value["provider_timing_us"] is None


def test_an_intent_comes_back() -> None:
    """JSON and back is the same intent."""
    assert intent_from(intent_json(intent(attempts=3))) == intent(attempts=3)


FAILED = replace(complete(intent()), completion=Completion.FAILED, error=Category.DNS)


@pytest.mark.parametrize(
    "record",
    [
        replace(complete(intent()), error=Category.DNS),
        replace(complete(intent()), response=None),
        replace(complete(intent()), dispatch=Dispatch.SENT_UNKNOWN),
        replace(FAILED, dispatch=Dispatch.NOT_SENT),
        replace(FAILED, dispatch=Dispatch.NOT_SENT, response=None, status=200),
        replace(FAILED, dispatch=Dispatch.SENT_UNKNOWN, error=None),
        replace(complete(intent()), usage=Usage(prompt=-1)),
        replace(complete(intent()), status=99),
        replace(complete(intent()), response="the answer itself"),
        replace(complete(replace(intent(), route="what was said"))),
        replace(complete(replace(intent(), requested_model="a b"))),
        replace(complete(replace(intent(), effect="state-change"))),
        replace(complete(intent()), attempt=0),
    ],
)
def test_contradictions(record: CallRecord) -> None:
    """A record that contradicts itself, or has room for text, is not written."""
    with pytest.raises(HarnessError, match="does not match") as refused:
        record_json(record)
    assert "said" not in str(refused.value)
    assert "itself" not in str(refused.value)


def test_no_other_member() -> None:
    """A member that the schema does not name has no place."""
    value = record_json(complete(intent())) | {"output": "text"}
    with pytest.raises(HarnessError, match="does not match"):
        checked("record", value)
