"""Requests built to use features really use them, by the oracle's own reading."""

from __future__ import annotations

import pytest

from conformance.model.registry import default_registry
from conformance.oracle.features import used
from conformance.strategies.feature_use import GUIDES, KEYS, USES, using
from conformance.wire.declared import Declared, TargetClass
from oe_wire import v1

DECLARED = Declared(
    TargetClass.PROFILE_AWARE,
    "v0.1.0",
    model=v1.ModelInfo(supports_text_input=True, supports_token_ids_input=True),
    model_name="m",
)


@pytest.mark.parametrize("feature", [*USES, *KEYS])
def test_a_request_uses_the_feature(feature: str) -> None:
    """And none besides, but the input that every request has."""
    case = using(DECLARED, [feature])
    assert case is not None
    assert isinstance(case.request, v1.GenerateRequest)
    found = used(case.request, case.metadata)
    assert feature in found
    assert found - {feature} <= {"input.text", "input.token_ids"}


def test_a_request_uses_a_combination() -> None:
    """All features at once."""
    features = ["request.guided", "request.cache_salt", "metadata.priority"]
    case = using(DECLARED, features)
    assert case is not None
    assert isinstance(case.request, v1.GenerateRequest)
    assert set(features) <= used(case.request, case.metadata)


@pytest.mark.parametrize("feature", ["request.media", "rpc.execute", "com.example.fast"])
def test_what_generate_alone_cannot_use(feature: str) -> None:
    """There is no request then."""
    assert using(DECLARED, ["input.text", feature]) is None


def test_every_use_is_a_feature_of_the_registry() -> None:
    """No token is misspelt."""
    assert {*USES, *KEYS} <= default_registry().features


def test_guides_are_of_the_mode_they_are_listed_under() -> None:
    """The oneof that is set has the name of the mode."""
    for mode, build in GUIDES.items():
        guide = v1.GuidedDecoding()
        build(guide)
        assert guide.WhichOneof("guide") == mode
