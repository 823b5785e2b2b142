"""The `format` keyword: enforced exactly or refused.

llguidance lets through days that a month does not have and seconds beyond a minute; dates and
times are therefore restricted by patterns of our own, which leave out 29 February and leap
seconds altogether.
"""

from typing import Any

from reference_engine.errors import GuideError

_DATE = (
    "[1-9][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_CLOCK}:[0-5][0-9](?:\.[0-9]{{1,6}})?(?:Z|[+-]{_CLOCK})"

_PATTERNS = {"date": f"^{_DATE}$", "time": f"^{_TIME}$", "date-time": f"^{_DATE}T{_TIME}$"}
_NATIVE = frozenset({"duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"})
FORMATS = tuple(sorted(_PATTERNS.keys() | _NATIVE))


def restrict_format(part: dict[str, Any]) -> None:
    """Replace the format of a schema in place; drop one that is for numbers, such as int32.

    GuideError when it is unknown.
    """
    name = part.get("format")
    if not isinstance(name, str):
        return
    types = part.get("type", "string")
    if "string" not in (types if isinstance(types, list) else [types]):
        del part["format"]
        return
    if name not in FORMATS:
        raise GuideError(f"uses a format that is not supported, expected {', '.join(FORMATS)}")
    if name not in _PATTERNS:
        return
    del part["format"]
    if "pattern" not in part:
        part["pattern"] = _PATTERNS[name]
    elif isinstance(part.setdefault("allOf", []), list):
        part["allOf"] = [*part["allOf"], {"pattern": _PATTERNS[name]}]
