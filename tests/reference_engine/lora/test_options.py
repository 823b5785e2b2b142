"""`oe-engine serve --lora` and its limits."""

import sys
from pathlib import Path

import pytest

from oe_wire import v1
from reference_engine.cli import main as entry
from reference_engine.cli.serve import serve as command
from reference_engine.lora.limits import LoraLimits
from reference_engine.model.load import load_model
from reference_engine.server import process
from reference_engine.server.process_options import ProcessOptions
from tests.reference_engine.lora.build import random_tensors, write_adapter
from tests.reference_engine.server.running import generate_request, serving


def options(*arguments):
    """What the command line says with these arguments."""
    context = command.make_context("serve", ["--listen", "127.0.0.1:0", *arguments])
    del context.params["log_level"]
    return ProcessOptions(**context.params)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--lora", "name"], "--lora is 'name', expected NAME=PATH"),
        (["--lora", "=path"], "--lora is '=path', expected NAME=PATH"),
        (["--lora", "name="], "--lora is 'name=', expected NAME=PATH"),
        (["--lora", "n=/no/such"], "--lora n=/no/such: source_path is not a directory"),
        (["--lora", "n=/tmp", "--max-loras", "0"], "--lora n=/tmp is given, but LoRA is switched"),
        (["--lora", "n=/tmp", "--lora", "n=/"], "--lora n=/tmp: adapter_config.json: no such file"),
        (["--max-lora-rank", "0"], "0 is not in the range"),
        (["--lora-root", "/no/such"], "does not exist"),
        (["--lora-root", "/usr", "--lora", "n=/tmp"], "--lora n=/tmp: source_path is outside"),
    ],
)
def test_bad_options(monkeypatch, capsys, arguments, expected):
    """A bad option gives exit code 2 and a text that names it, without a traceback."""
    monkeypatch.setattr(sys, "argv", ["oe-engine", "serve", "--listen", "127.0.0.1:0", *arguments])
    with pytest.raises(SystemExit) as caught:
        entry.main()
    assert caught.value.code == 2
    output = capsys.readouterr().err
    assert expected in " ".join(output.replace("│", " ").split())
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("arguments", "limits"),
    [
        ([], LoraLimits(8, 8, 64)),
        (["--max-loras", "4"], LoraLimits(4, 4, 64)),
        (["--max-resident-loras", "2", "--max-lora-rank", "16"], LoraLimits(8, 2, 16)),
        (["--max-loras", "2", "--max-resident-loras", "5"], LoraLimits(2, 2, 64)),
        (["--max-loras", "0"], None),
        (["--lora-root", "/usr"], LoraLimits(8, 8, 64, Path("/usr"))),
    ],
)
def test_limits(arguments, limits):
    """LoRA is on unless --max-loras is 0, and never more adapters are resident than loaded."""
    config = process.engine_config(load_model("tiny").config, options(*arguments))
    assert config.lora == limits


def test_tiny_with_an_adapter(tmp_path, monkeypatch):
    """A relative path is one of the directory that the engine was started in."""
    loaded = load_model("tiny")
    targets = ("q_proj", "down_proj")
    tensors = random_tensors(loaded.config, targets)
    write_adapter(tmp_path / "adapter", tensors, target_modules=list(targets))
    monkeypatch.chdir(tmp_path)
    given = options("--lora", "mine=adapter", "--kv-blocks", "64")
    config = process.engine_config(loaded.config, given)
    with serving(loaded, config, process._serve_options(given)) as engine:
        listing = engine.call("openengine.v1.Control/ListLoras", v1.ListLorasRequest()).message
        (one,) = listing.adapters
        assert (one.lora_id, one.lora_name) == (1, "mine")
        assert one.source_path == str(tmp_path / "adapter")
        found = [
            engine.generate(generate_request("def f(", model="tiny", lora_name=name)).text()
            for name in ("mine", "")
        ]
    assert found[0] != found[1]
