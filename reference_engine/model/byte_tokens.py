"""The exact bytes behind vocabulary entries, for the two ways in which vocabularies spell them."""

import re
from collections.abc import Callable

BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
"""How vocabularies with byte fallback spell a single byte."""


def byte_alphabet() -> dict[str, int]:
    """Character -> byte of byte-level BPE (GPT-2): printable Latin-1 stands for itself.

    The other bytes follow in order from U+0100, so that no token holds a space or a control
    character.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    alphabet.update({chr(256 + i): byte for i, byte in enumerate(others)})
    return alphabet


_ALPHABET = byte_alphabet()


def byte_level(token: str) -> bytes:
    """Bytes of a byte-level token; characters outside the alphabet stand for their UTF-8."""
    if all(char in _ALPHABET for char in token):
        return bytes(_ALPHABET[char] for char in token)
    return token.encode()


def metaspace(token: str) -> bytes:
    """Bytes of a SentencePiece-style token: U+2581 is a space, <0xNN> is one byte."""
    match = BYTE_TOKEN.fullmatch(token)
    if match:
        return bytes([int(match[1], 16)])
    return token.replace("\u2581", " ").encode()


Spelling = Callable[[str], bytes]
"""Vocabulary entry -> the bytes it adds to the text."""
