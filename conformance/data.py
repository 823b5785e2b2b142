"""Finds data shipped with the suite, in a checkout and in an installed wheel alike."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from conformance.errors import ConfigError


def data_dir(name: str) -> Traversable:
    """Folder `name` inside the package (wheel) or else beside it (checkout).

    Raises ConfigError when neither exists: an incomplete installation.
    """
    packaged = files("conformance") / name
    if packaged.is_dir():
        return packaged
    checkout = Path(__file__).resolve().parent.parent / name
    if checkout.is_dir():
        return checkout
    raise ConfigError(
        f"data folder {name!r} is missing",
        source=str(packaged),
        expected="a complete installation of oe-conform, or a checkout with this folder",
    )
