"""Whether an artifact holds a text that must not be in it, in any of the forms that texts take."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

from conformance.errors import HarnessError

# Members of answers that hold what a model said.
_SPOKEN = frozenset(
    {"content", "text", "response", "generated_text", "delta", "reasoning_content", "thinking"}
    | {"refusal", "arguments"}
)
# Shorter texts are found by chance: `stop` is a word of the record, too.
SHORTEST = 12
# Of credentials and addresses even shorter texts are looked for.
SHORTEST_PRIVATE = 6


def forms(text: str) -> Iterator[tuple[str, bytes]]:
    """The forms of a text by name: raw, JSON-escaped, hex, percent-encoded, and in base64 at each
    of the three places where it may begin.
    """
    data = text.encode("utf-8", errors="surrogatepass")
    yield "raw", data
    yield "escaped", json.dumps(text)[1:-1].encode()
    yield "quoted", json.dumps(text, ensure_ascii=False)[1:-1].encode(errors="surrogatepass")
    yield "escaped twice", json.dumps(json.dumps(text)[1:-1])[1:-1].encode()
    yield "repr", repr(text)[1:-1].encode("utf-8", errors="backslashreplace")
    yield "hex", data.hex().encode()
    yield "HEX", data.hex().upper().encode()
    yield "percent", quote(data, safe="").encode()
    yield "plus", quote_plus(data).encode()
    for shift in range(3):
        # Digits that depend on the bytes around the text are left out.
        start = -(-shift * 8 // 6)
        digits = len(data) * 8 // 6 - 1
        for name, encode in (("base64", base64.b64encode), ("base64url", base64.urlsafe_b64encode)):
            yield name, encode(b"\0" * shift + data)[start : start + digits]


def leak_of(artifact: bytes, texts: Iterable[str], shortest: int = SHORTEST) -> str:
    """The form in which one of the texts, of so many characters at least, is in the artifact;
    empty when none is.
    """
    for text in texts:
        if len(text) < shortest:
            continue
        for name, form in forms(text):
            if len(form) >= shortest and form in artifact:
                return name
    return ""


def checked_text(artifact: str, texts: Iterable[str], shortest: int = SHORTEST) -> str:
    """The artifact, if none of the texts is in it. Raises HarnessError, which shows neither."""
    form = leak_of(artifact.encode("utf-8", errors="surrogatepass"), texts, shortest)
    if form:
        raise HarnessError(f"a record holds a text that may not leave the process ({form})")
    return artifact


def spoken(values: Iterable[Any]) -> list[str]:
    """What a model said in the messages of a response: each text, and all of them joined."""
    texts = [text for value in values for text in _spoken(value, spoken=False)]
    return [*texts, "".join(texts)]


def _spoken(value: Any, *, spoken: bool, depth: int = 12) -> Iterator[str]:
    if isinstance(value, str):
        if spoken:
            yield value
    elif depth and isinstance(value, dict):
        for name, item in value.items():
            yield from _spoken(item, spoken=name in _SPOKEN, depth=depth - 1)
    elif depth and isinstance(value, list):
        for item in value:
            yield from _spoken(item, spoken=spoken, depth=depth - 1)
