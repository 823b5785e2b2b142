"""The toy engine itself: a second opinion is worth something only if it is one."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
from pathlib import Path

import grpc
import pytest

from oe_wire import v1
from oe_wire.services import METHODS
from tests.legacy_engine.behaviour import BEHAVIOURS
from tests.legacy_engine.script import TALE, encode, write
from tests.legacy_engine.server import LegacyEngine

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted((ROOT / "tests" / "legacy_engine").glob("*.py"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_it_knows_neither_the_suite_nor_the_reference_engine(source: Path) -> None:
    """It is written from the wire alone."""
    tree = ast.parse(source.read_text("utf-8"))
    nodes = list(ast.walk(tree))
    names = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    names |= {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    assert not {name for name in names if name.startswith(("conformance", "reference_engine"))}


def test_it_serves_as_a_program() -> None:
    """It prints its address, serves, and ends on a signal."""
    command = [sys.executable, "-m", "tests.legacy_engine", "--behaviour", "mocker"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            with grpc.insecure_channel(address) as channel:
                method = METHODS["openengine.v1.Control/GetServerInfo"]
                ask = channel.unary_unary(
                    method.path,
                    method.request.SerializeToString,
                    method.response.FromString,
                )
                info = ask(v1.GetServerInfoRequest(), timeout=20)
            assert info.engine_name == "toy"
            assert info.schema_release == ""
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_every_behaviour_starts_and_stops(name: str) -> None:
    """Nothing is left running."""
    with LegacyEngine(BEHAVIOURS[name]) as engine:
        assert engine.address.startswith("127.0.0.1:")
    assert not engine.state.active


def test_the_script_is_what_the_rules_say() -> None:
    """Limit, stop text, stop token, end token and minimum, decided before a token is sent."""
    request = v1.GenerateRequest(token_ids=v1.TokenIds(ids=[5]))
    behaviour = BEHAVIOURS["clean"]
    short = write(request, [5], 0, 4, behaviour)
    assert (len(short.tokens), short.produced, short.match) == (4, 4, None)
    text = "".join(write(request, [5], 0, 8, behaviour).texts)
    assert text in TALE.replace("\n", ".") * 2
    request.stopping.conditions.add(stop_text=text[3:5])
    stopped = write(request, [5], 0, 100, behaviour)
    assert "".join(stopped.texts) == text[: text.find(text[3:5])]
    assert stopped.match is not None
    assert stopped.produced == len(stopped.tokens) + 1
    request.stopping.include_stop_in_output = True
    shown = write(request, [5], 0, 100, behaviour)
    assert "".join(shown.texts).endswith(text[3:5])
    assert shown.produced == len(shown.tokens)
    del request.stopping.conditions[:]
    request.stopping.conditions.add(stop_token_id=encode(text[0])[0])
    request.stopping.min_tokens = 6
    assert len(write(request, [5], 0, 100, behaviour).tokens) > 5
    del request.stopping.conditions[:]
    ended = write(request, [5], 0, 100, behaviour)
    assert ended.match == v1.StopMatch(eos_token_id=2)
    request.stopping.ignore_eos = True
    assert len(write(request, [5], 0, 100, behaviour).tokens) == 100
