"""Requirement ids in short: hundreds of them fill a screen."""

from __future__ import annotations


def ranges(ids: tuple[str, ...]) -> str:
    """Ids in the order given, with runs of numbers joined: `OE-CORE-GEN-001..003,007`."""
    groups: dict[str, list[int]] = {}
    for identifier in ids:
        prefix, _, digits = identifier.rpartition("-")
        groups.setdefault(prefix, []).append(int(digits))
    parts = []
    for prefix, numbers in groups.items():
        runs: list[list[int]] = []
        for number in numbers:
            if runs and number == runs[-1][-1] + 1:
                runs[-1].append(number)
            else:
                runs.append([number])
        spelled = [f"{r[0]:03}" if len(r) == 1 else f"{r[0]:03}..{r[-1]:03}" for r in runs]
        parts.append(f"{prefix}-{','.join(spelled)}")
    return "  ".join(parts)
