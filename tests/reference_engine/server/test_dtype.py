"""`oe-engine serve --dtype`."""

import sys

import pytest
import torch

from reference_engine.cli import main as entry
from reference_engine.errors import ConfigError
from reference_engine.server import process


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [([], "auto"), *((["--dtype", name], name) for name in ("auto", "float32", "bfloat16"))],
)
def test_the_option_reaches_the_model(monkeypatch, arguments, expected):
    """The model is loaded in the type that was asked for, under the threads that it will have."""
    called = []
    monkeypatch.setattr(torch, "set_num_threads", called.append)

    def load(_name, _device, dtype):
        called.append(dtype)
        raise ConfigError("enough")

    monkeypatch.setattr(process, "load_model", load)
    command = ["oe-engine", "serve", "--listen", "127.0.0.1:0", "--threads", "3", *arguments]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit):
        entry.main()
    assert called == [3, expected]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_ranks_load_in_the_same_type(dtype):
    """What a rank is given to load with says the type too."""
    assert process._load("tiny", "cpu", dtype).dtype == getattr(torch, dtype)


def test_another_type_is_refused(monkeypatch, capsys):
    """Exit code 2 and the names that there are."""
    monkeypatch.setattr(sys, "argv", ["oe-engine", "serve", "--dtype", "float16"])
    with pytest.raises(SystemExit) as caught:
        entry.main()
    assert caught.value.code == 2
    assert "bfloat16" in capsys.readouterr().err
