"""The formats inside a structural tag, each as an expression of Lark.

Free text and regexes end where what follows them is first complete, so a format is told the
`ends` that can follow it and writes them too; () when nothing that is fixed follows.
"""

import json
import re
from collections.abc import Callable
from typing import ClassVar

from reference_engine.errors import GuideError
from reference_engine.guided.gbnf_lark import add_ebnf
from reference_engine.guided.json_schema import checked
from reference_engine.guided.lark import LarkWriter, quoted, spelled
from reference_engine.guided.regex import portable
from reference_engine.guided.tag_fields import Json, child, flag, items, text_of, texts

Ends = tuple[str, ...]

MAX_DEPTH = 32
ANY_TEXT = "/(?s:.*)/"
_OPENINGS = {"const_string": "value", "tag": "begin"}


class TagFormats:
    """Translates formats into rules of one writer."""

    def __init__(
        self, writer: LarkWriter, special_tokens: dict[str, int], end_ids: frozenset[int]
    ) -> None:
        self._writer = writer
        self._special = special_tokens
        self._end_ids = end_ids
        names = sorted(special_tokens, key=len, reverse=True)
        self._marker = re.compile("(" + "|".join(map(re.escape, names)) + ")") if names else None
        self._depth = 0

    def translate(self, node: Json, path: str, ends: Ends = ()) -> str:
        """An expression for the format, followed by one of the ends."""
        kind = node.get("type")
        method = self._methods.get(kind) if isinstance(kind, str) else None
        if method is None:
            raise GuideError(f"has an unknown type at {path}, expected {', '.join(self._methods)}")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise GuideError(f"nests formats deeper than {MAX_DEPTH}")
        expression = method(self, node, path, ends)
        self._depth -= 1
        return expression

    def marker(self, text: str) -> str:
        """A fixed text; a part that names a control token may be that token instead.

        A token that ends the output can't be followed by anything: its text is optional.
        """
        parts = self._marker.split(text) if self._marker else [text]
        return " ".join(map(self._marker_part, filter(None, parts))) or '""'

    def _marker_part(self, part: str) -> str:
        token_id = self._special.get(part)
        if token_id is None:
            return quoted(part)
        if token_id in self._end_ids:
            return f"({quoted(part)})?"
        return f"({quoted(part)} | <[{token_id}]>)"

    def _then(self, expression: str, ends: Ends) -> str:
        if not any(ends):
            return expression
        return f"{expression} ({' | '.join(map(self.marker, ends))})"

    def _const_string(self, node: Json, path: str, ends: Ends) -> str:
        return self._then(self.marker(text_of(node, "value", path)), ends)

    def _json_schema(self, node: Json, path: str, ends: Ends) -> str:
        if node.get("style", "json") != "json":
            raise GuideError(f"has a style other than json at {path}")
        if "json_schema" not in node:
            raise GuideError(f"has no schema at {path}.json_schema")
        schema = json.dumps(checked(node["json_schema"]))
        return self._then(self._writer.rule(f"%json {schema}"), ends)

    def _grammar(self, node: Json, path: str, ends: Ends) -> str:
        return self._then(add_ebnf(self._writer, text_of(node, "grammar", path)), ends)

    def _regex(self, node: Json, path: str, ends: Ends) -> str:
        pattern = portable(text_of(node, "pattern", path)).replace("/", "\\/")
        return self._until(f"/{pattern}/", ends)

    def _any_text(self, node: Json, path: str, ends: Ends) -> str:
        excluded = texts(node, "excludes", path) or texts(node, "excluded_str", path)
        return self._until(self._without(excluded), ends)

    def _without(self, excluded: list[str]) -> str:
        """A terminal for text without any of these."""
        if not all(excluded):
            raise GuideError("excludes the empty string")
        if not excluded:
            return self._writer.terminal(ANY_TEXT)
        inner = "|".join(map(spelled, excluded))
        return self._writer.terminal(f"{ANY_TEXT} & ~/(?s:.*)({inner})(?s:.*)/")

    def _until(self, regular: str, ends: Ends) -> str:
        """Something regular up to where one of the ends is first complete, that end included."""
        fixed = [end for end in ends if end]
        whole = self._writer.rule(self._writer.terminal(regular))
        options = [whole] if len(fixed) < len(ends) or not ends else []
        if fixed:
            choice = " | ".join(map(quoted, fixed))
            options.append(self._writer.lazy(self._writer.terminal(f"{regular} ({choice})")))
        for end in fixed:
            before, token_id, after = self._split(end)
            if token_id is None:
                continue
            if token_id in self._end_ids:
                options.append(whole)
                continue
            head = self._writer.terminal(f"{regular} {quoted(before)}" if before else regular)
            rest = self.marker(after) if after else ""
            options.append(f"{self._writer.rule(head)} <[{token_id}]> {rest}".rstrip())
        return f"({' | '.join(dict.fromkeys(options))})"

    def _split(self, text: str) -> tuple[str, int | None, str]:
        """The text around the first control token that it names."""
        found = self._marker.search(text) if self._marker else None
        if found is None:
            return text, None, ""
        return text[: found.start()], self._special[found[0]], text[found.end() :]

    def _sequence(self, node: Json, path: str, ends: Ends) -> str:
        elements = items(node, "elements", path)
        parts: list[str] = []
        matched = False
        for number, element in enumerate(elements):
            last = number + 1 == len(elements)
            where = f"{path}.elements[{number}]"
            following = ends if last else _opening(element, elements[number + 1], where)
            parts.append(
                self.translate(_without_opening(element) if matched else element, where, following)
            )
            matched = bool(following) and not last
        return f"({' '.join(parts)})"

    def _or(self, node: Json, path: str, ends: Ends) -> str:
        options = [
            self.translate(element, f"{path}.elements[{number}]", ends)
            for number, element in enumerate(items(node, "elements", path))
        ]
        return f"({' | '.join(options)})"

    def _tag(self, node: Json, path: str, ends: Ends) -> str:
        return self.tag_after(node, path, "", ends)

    def tag_after(self, node: Json, path: str, trigger: str, ends: Ends = ()) -> str:
        """A tag whose beginning has been matched up to the end of `trigger`."""
        begin = text_of(node, "begin", path)[len(trigger) :]
        own = node.get("end")
        closing = tuple([own] if isinstance(own, str) else texts(node, "end", path))
        content = self.translate(child(node, "content", path), f"{path}.content", closing or ("",))
        opening = f"{self.marker(begin)} " if begin else ""
        return self._then(f"{opening}{content}", ends)

    def _triggered_tags(self, node: Json, path: str, ends: Ends) -> str:
        first = flag(node, "stop_after_first", path)
        tags = items(node, "tags", path)
        triggers = texts(node, "triggers", path)
        if not triggers or not all(triggers):
            raise GuideError(f"has no list of triggers at {path}.triggers")
        plain = self._without([*triggers, *texts(node, "excludes", path)])
        branches = self._writer.rule(" | ".join(self._branches(tags, triggers, plain, path)))
        rest = self._until(plain, ends)
        if not flag(node, "at_least_one", path):
            return f"({self._then(branches, ends)} | {rest})" if first else f"({branches}* {rest})"
        tag = self._any_tag(tags, path)
        return self._then(tag, ends) if first else f"({tag} {branches}* {rest})"

    def _branches(self, tags: list[Json], triggers: list[str], plain: str, path: str) -> list[str]:
        """For every trigger: text up to it, then the rest of one of its tags."""
        by_trigger: dict[str, list[str]] = {}
        for number, tag in enumerate(tags):
            where = f"{path}.tags[{number}]"
            begin = text_of(tag, "begin", where)
            matching = [trigger for trigger in triggers if begin.startswith(trigger)]
            if len(matching) != 1:
                raise GuideError(f"has {len(matching)} triggers for {where}.begin, expected one")
            rest = self.tag_after(tag, where, matching[0])
            by_trigger.setdefault(matching[0], []).append(rest)
        return [
            f"{self._until(plain, (trigger,))} ({' | '.join(rests)})"
            for trigger, rests in by_trigger.items()
        ]

    def _any_tag(self, tags: list[Json], path: str) -> str:
        options = [
            self.tag_after(tag, f"{path}.tags[{number}]", "") for number, tag in enumerate(tags)
        ]
        return self._writer.rule(" | ".join(options))

    def _tags_with_separator(self, node: Json, path: str, ends: Ends) -> str:
        tag = self._any_tag(items(node, "tags", path), path)
        separator = self.marker(text_of(node, "separator", path))
        many = tag if flag(node, "stop_after_first", path) else f"{tag} ({separator} {tag})*"
        return self._then(f"({many})" if flag(node, "at_least_one", path) else f"({many})?", ends)

    _methods: ClassVar[dict[str, Callable[["TagFormats", Json, str, Ends], str]]] = {
        "const_string": _const_string,
        "json_schema": _json_schema,
        "grammar": _grammar,
        "regex": _regex,
        "any_text": _any_text,
        "sequence": _sequence,
        "or": _or,
        "tag": _tag,
        "triggered_tags": _triggered_tags,
        "tags_with_separator": _tags_with_separator,
    }


def _opening(element: Json, following: Json, path: str) -> Ends:
    """The fixed text at the beginning of the next element, where open-ended text must stop."""
    if element.get("type") not in {"any_text", "triggered_tags", "regex", "or"}:
        return ()
    text = following.get(_OPENINGS.get(str(following.get("type")), ""))
    if isinstance(text, str) and text:
        return (text,)
    if element["type"] == "any_text":
        raise GuideError(f"has text without an end at {path}, expected a const_string or tag next")
    return ()


def _without_opening(element: Json) -> Json:
    return {**element, _OPENINGS[element["type"]]: ""}
