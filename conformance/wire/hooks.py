"""What the suite can do to a target from outside: commands of the operator, or the local engine."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conformance.errors import ConfigError, HarnessError

# A model of tens of gigabytes is loaded within this.
COMMAND_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Hooks:
    """restart: stop the engine, if it runs, and start it again at the same address. stop: end it
    gracefully. Both return when it is done and raise HarnessError when it can't be; None = the
    operator gave no such hook, and what needs it is not judged.
    """

    restart: Callable[[], None] | None = None
    stop: Callable[[], None] | None = None


def command(words: Sequence[str], *, name: str) -> Callable[[], None]:
    """A hook that runs a command, without a shell, and waits for its end.

    Raises ConfigError for an empty command. The hook raises HarnessError when the command cannot
    be run, fails or takes longer than COMMAND_SECONDS; its output is not shown, it may be long.
    """
    if not words or not all(isinstance(word, str) and word for word in words):
        raise ConfigError(
            f"{list(words)!r}", where=f"hooks.{name}", expected="a list of words: a program first"
        )

    def run() -> None:
        shown = shlex.join(words)
        try:
            done = subprocess.run(  # noqa: S603 - the operator's own command
                list(words),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HarnessError(f"hook {name}: {shown}: {error}") from error
        if done.returncode != 0:
            raise HarnessError(f"hook {name}: {shown}: exit code {done.returncode}")

    return run
