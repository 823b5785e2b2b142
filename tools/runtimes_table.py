"""Write the tables of docs/reference/runtimes.md from profiles/runtimes/*.toml.

python tools/runtimes_table.py            writes the tables
python tools/runtimes_table.py --check    exits 1 if they are not as the profiles say
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from conformance.runtimes.profile import Effect, RuntimeProfile, State
from conformance.runtimes.registry import runtime_profiles

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "reference" / "runtimes.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
_WORDS = {
    State.SUPPORTED: "yes",
    State.CONDITIONAL: "if",
    State.UNSUPPORTED: "no",
    State.UNKNOWN: "?",
}
_PROBES = (Effect.NON_MUTATING, Effect.CONSUMPTIVE, Effect.INFERENCE_CANARY)


def tables() -> str:
    """All tables, as they stand between the two marks."""
    profiles = list(runtime_profiles().values())
    parts = [
        "### Profiles",
        _table(
            ("Profile", "Tier", "Where", "Contracts", "Known deviations"),
            [_row(profile) for profile in profiles],
        ),
        "### Routes that are read",
        _table(
            ("Profile", *(effect.value for effect in _PROBES)),
            [_probes(profile) for profile in profiles],
        ),
        "### Capabilities",
        _table(
            ("Profile", "yes", "if", "no", "?"),
            [_capabilities(profile) for profile in profiles],
        ),
    ]
    return "\n\n".join(parts)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _row(profile: RuntimeProfile) -> tuple[str, ...]:
    contracts = sorted({route.contract for route in profile.routes if route.contract})
    deviations = sorted(each.requirement for each in profile.deviations)
    return (
        f"`{profile.id}`",
        profile.tier,
        " or ".join(profile.locality),
        _code(contracts),
        _code(name.removeprefix("OE-HTTP-") for name in deviations),
    )


def _probes(profile: RuntimeProfile) -> tuple[str, ...]:
    by_effect = {
        effect: [
            f"{route.method} {route.path}" for route in profile.routes if route.effect is effect
        ]
        for effect in _PROBES
    }
    return (f"`{profile.id}`", *(_code(by_effect[effect]) for effect in _PROBES))


def _capabilities(profile: RuntimeProfile) -> tuple[str, ...]:
    by_word: dict[str, list[str]] = {word: [] for word in _WORDS.values()}
    for name, capability in sorted(profile.capabilities.items()):
        by_word[_WORDS[capability.state]].append(name)
    return (f"`{profile.id}`", *(_code(names) for names in by_word.values()))


def rewritten(text: str) -> str:
    """The document with its tables as they should be. Raises ValueError without the marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{DOCUMENT}: {BEGIN} and {END} are not both there")
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


def main() -> None:
    """Write or check the document."""
    parser = argparse.ArgumentParser(description="Write the tables of the runtime profiles.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if they differ")
    check: bool = parser.parse_args().check
    old = DOCUMENT.read_text("utf-8")
    new = rewritten(old)
    if check and old != new:
        sys.exit(f"{DOCUMENT}: not as the profiles say; run python tools/runtimes_table.py")
    if not check:
        DOCUMENT.write_text(new, "utf-8")


if __name__ == "__main__":
    main()
