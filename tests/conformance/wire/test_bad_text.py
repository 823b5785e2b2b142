"""Finding the text that is not UTF-8 in bytes that do not parse."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError

from conformance.wire.bad_text import bad_text
from oe_wire import v1

GOOD = v1.GenerateResponse(
    request_id="r",
    token=v1.TokenOutput(
        output_index=0, tokens=[v1.TokenInfo(token_id=7, logprob=-0.5)], text="語!"
    ),
    usage=v1.Usage(prompt_tokens=1),
).SerializeToString()


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (GOOD, None),
        (GOOD.replace("語".encode(), b"\xe8\xaa\x21"), "token.text"),
        (GOOD.replace(b"\x01r", b"\x01\xff"), "request_id"),
        (GOOD[:-1], None),
        (b"\xff\xff\xff", None),
        (b"\x0b", None),
        (b"", None),
    ],
)
def test_the_field_is_named(data: bytes, path: str | None) -> None:
    """The first bad string is named; bytes that are no message at all hold none."""
    assert bad_text(v1.GenerateResponse, data) == path


def test_the_library_refuses_what_is_found() -> None:
    """The premise: protobuf does not take a string that is not UTF-8."""
    with pytest.raises(DecodeError):
        v1.GenerateResponse.FromString(GOOD.replace("語".encode(), b"\xe8\xaa\x21"))
