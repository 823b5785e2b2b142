"""Structural tags: JSON that mixes free text with tags whose content follows a guide.

Both forms are read: `{"type": "structural_tag", "format": {...}}`, and the older one with
`structures` and `triggers`.
"""

from reference_engine.errors import GuideError
from reference_engine.guided.json_schema import load_json
from reference_engine.guided.lark import LarkWriter
from reference_engine.guided.tag_fields import Json, child, items, text_of
from reference_engine.guided.tag_format import TagFormats


def structural_tag_grammar(
    source: str, special_tokens: dict[str, int], ends: frozenset[int]
) -> str:
    """The grammar of a structural tag.

    special_tokens: ids of control tokens by name, which can stand for a marker of that name.
    ends: ids among them that end an output. Raises GuideError naming the part that is wrong.
    """
    outer = load_json(source)
    if not isinstance(outer, dict):
        raise GuideError("is no JSON object")
    writer = LarkWriter()
    formats = TagFormats(writer, special_tokens, ends)
    if "format" in outer:
        if outer.get("type", "structural_tag") != "structural_tag":
            raise GuideError("has a type other than structural_tag")
        start = formats.translate(child(outer, "format"), "format")
    else:
        start = formats.translate(_from_legacy(outer), "structures")
    return writer.text(start)


def _from_legacy(outer: Json) -> Json:
    """The older form as triggered tags."""
    tags = []
    for number, item in enumerate(items(outer, "structures")):
        path = f"structures[{number}]"
        schema = item.get("schema", True)
        tags.append(
            {
                "begin": text_of(item, "begin", path),
                "content": {
                    "type": "json_schema",
                    "json_schema": load_json(schema) if isinstance(schema, str) else schema,
                },
                "end": text_of(item, "end", path),
            }
        )
    return {"type": "triggered_tags", "triggers": outer.get("triggers"), "tags": tags}
