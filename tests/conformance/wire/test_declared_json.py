from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.errors import ConfigError
from conformance.wire.declared import Declared, TargetClass
from conformance.wire.declared_json import read_declared, to_text
from oe_wire import v1

DECLARED = Declared(
    TargetClass.PROFILE_AWARE,
    "v0.1.0",
    engine_info=v1.EngineInfo(engine_name="e", instance_id="i", configuration_epoch=2**60),
    capabilities=v1.Capabilities(model="m"),
    model=v1.ModelInfo(model_id="m"),
    model_name="m",
)


def test_what_was_declared_reads_back(tmp_path: Path) -> None:
    """Every message and name; what was absent stays so."""
    file = tmp_path / "target.json"
    file.write_text(to_text(DECLARED))
    assert read_declared(file) == DECLARED


def test_the_vendors_own_fields_are_left_out() -> None:
    """`extra` may hold anything."""
    info = v1.EngineInfo(engine_name="e")
    info.extra["host"] = "internal.example"
    assert "internal" not in to_text(Declared(TargetClass.LEGACY, "v0.1.0", engine_info=info))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "no JSON object"),
        ("{", "cannot be read"),
        ("{}", "class"),
        (json.dumps({"class": "new", "dialect": "", "model_name": ""}), "new"),
        (json.dumps({"klass": "legacy"}), "klass"),
        (
            json.dumps({"class": "legacy", "dialect": "", "model_name": "", "model": "m"}),
            "cannot be read",
        ),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path: Path, text: str, said: str) -> None:
    """Naming the file and the key."""
    file = tmp_path / "target.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_declared(file)
