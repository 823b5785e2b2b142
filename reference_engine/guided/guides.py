"""Compiles guides for one model and hands out matchers."""

import threading
import time
from collections import OrderedDict
from functools import cached_property

from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from reference_engine.errors import GuideError
from reference_engine.guided.gbnf_lark import add_ebnf
from reference_engine.guided.guide import Grammar, Guide, GuideKind
from reference_engine.guided.json_schema import ANY_OBJECT, load_json, schema_grammar
from reference_engine.guided.lark import LarkWriter, quoted
from reference_engine.guided.matcher import MAX_MASK_SECONDS, Matcher
from reference_engine.guided.regex import portable
from reference_engine.guided.structural_tag import structural_tag_grammar
from reference_engine.guided.vocabulary import build_vocabulary, special_names
from reference_engine.model.tokenizer import Tokenizer

# 256 KiB of schema compile in about 1 s.
MAX_GUIDE_BYTES = 256 * 1024
# EBNF is read in Python, under the lock that the engine's thread needs too.
MAX_EBNF_BYTES = 64 * 1024
MAX_COMPILED = 128
# Four for each property that may be left out: room for 2,000 of them in a row.
MAX_ROW = 8192

BACKENDS = frozenset({"", "llguidance"})


def guide_kinds(tokenizer: Tokenizer) -> tuple[GuideKind, ...]:
    """What can be asked for: nothing if no token can end an output."""
    return tuple(GuideKind) if tokenizer.eos_token_ids else ()


class Guides:
    """Thread-safe. A grammar is compiled once and copied per output, which takes 5 to 25 us."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self._compiled: OrderedDict[Grammar, LLMatcher] = OrderedDict()

    @cached_property
    def _vocabulary(self) -> LLTokenizer:
        return build_vocabulary(self._tokenizer)

    def compile(self, guide: Guide) -> Grammar:
        """Translate and compile, at most once per guide; not for the engine's thread.

        Raises GuideError, whose text goes on after the name of the field.
        """
        most = MAX_EBNF_BYTES if guide.kind is GuideKind.EBNF_GRAMMAR else MAX_GUIDE_BYTES
        if guide.num_bytes > most:
            raise GuideError(f"has {guide.num_bytes} bytes, expected at most {most}")
        try:
            grammar = Grammar(guide.kind, self._translate(guide))
        except RecursionError as error:
            raise GuideError("is nested too deep") from error
        self._prototype(grammar)
        return grammar

    def matcher(self, grammar: Grammar) -> Matcher:
        """A matcher at the beginning of an output."""
        prototype = self._prototype(grammar)
        with self._lock:
            # llguidance refuses two calls on one matcher at a time.
            copy = prototype.deep_copy()
        return Matcher(copy, self._tokenizer.eos_token_ids)

    def _translate(self, guide: Guide) -> str:
        if guide.kind is GuideKind.JSON_SCHEMA:
            return schema_grammar(load_json(guide.text))
        if guide.kind is GuideKind.JSON_OBJECT:
            return schema_grammar(load_json(ANY_OBJECT))
        if guide.kind is GuideKind.REGEX:
            return LLMatcher.grammar_from_regex(portable(guide.text))
        if guide.kind is GuideKind.STRUCTURAL_TAG:
            special = special_names(self._tokenizer)
            return structural_tag_grammar(guide.text, special, self._tokenizer.eos_token_ids)
        writer = LarkWriter()
        if guide.kind is GuideKind.EBNF_GRAMMAR:
            return writer.text(add_ebnf(writer, guide.text))
        if not guide.choices:
            raise GuideError("has no choices, expected at least one")
        return writer.text(writer.terminal(" | ".join(map(quoted, dict.fromkeys(guide.choices)))))

    def _prototype(self, grammar: Grammar) -> LLMatcher:
        """The compiled grammar, from the cache if it is there."""
        with self._lock:
            found = self._compiled.get(grammar)
            if found is not None:
                self._compiled.move_to_end(grammar)
                return found
        # Without the lock: the engine's thread must not wait for somebody's compilation.
        built = self._build(grammar)
        with self._lock:
            self._compiled[grammar] = built
            if len(self._compiled) > MAX_COMPILED:
                self._compiled.popitem(last=False)
        return built

    def _build(self, grammar: Grammar) -> LLMatcher:
        matcher = LLMatcher(
            self._vocabulary,
            grammar.text,
            log_level=0,
            # Verbose errors would repeat the guide.
            limits=LLParserLimits(max_items_in_row=MAX_ROW, verbose_errors=False),
        )
        if matcher.is_error():
            raise GuideError(f"does not compile, expected {_EXPECTED[grammar.kind]}")
        start = time.thread_time()
        mask = matcher.compute_bitmask()
        if "NoExtension" in matcher.get_error():
            raise GuideError("admits no output")
        if matcher.is_error() or time.thread_time() - start > MAX_MASK_SECONDS:
            raise GuideError("is too complex, expected a smaller one")
        first = self._first_token(mask)
        if first is None and not matcher.is_accepting():
            raise GuideError("admits no output")
        if first is not None and not matcher.deep_copy().consume_token(first):
            # Some limits show only once the parser has taken a token.
            raise GuideError("is too complex, expected a smaller one")
        return matcher

    def _first_token(self, mask: bytes) -> int | None:
        """A token of the mask that does not end the output."""
        bits = int.from_bytes(mask, "little")
        for token_id in self._tokenizer.eos_token_ids:
            bits &= ~(1 << token_id)
        return (bits & -bits).bit_length() - 1 if bits else None


_EXPECTED = {
    GuideKind.JSON_SCHEMA: "a JSON Schema with supported keywords",
    GuideKind.REGEX: "a regex without look-around, word borders and back references",
    GuideKind.EBNF_GRAMMAR: "an EBNF grammar with a rule root",
    GuideKind.STRUCTURAL_TAG: "formats whose schemas, regexes and grammars compile",
    GuideKind.CHOICE: "a list of texts",
    GuideKind.JSON_OBJECT: "nothing else",
}
