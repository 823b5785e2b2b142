"""What a caller asks for: a kind of guide and its source, not yet compiled."""

from dataclasses import dataclass
from enum import Enum


class GuideKind(Enum):
    """The ways to describe a language; each value is the name of the request's field."""

    JSON_SCHEMA = "json_schema"
    REGEX = "regex"
    EBNF_GRAMMAR = "ebnf_grammar"
    STRUCTURAL_TAG = "structural_tag"
    CHOICE = "choice"
    JSON_OBJECT = "json_object"


@dataclass(frozen=True, slots=True)
class Guide:
    """`choices` counts for CHOICE, `text` for the others; JSON_OBJECT needs neither."""

    kind: GuideKind
    text: str = ""
    choices: tuple[str, ...] = ()

    @property
    def num_bytes(self) -> int:
        """UTF-8 bytes of the source."""
        return sum(len(part.encode()) for part in (self.text, *self.choices))


@dataclass(frozen=True, slots=True)
class Grammar:
    """A translated guide in the text form of llguidance. Plain data: it can go to a process."""

    kind: GuideKind
    text: str
