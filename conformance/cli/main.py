"""Entry point of `oe-conform`: every error becomes one line and exit code 2."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from importlib import import_module

import rich_click as click

from conformance.errors import ConformError

# Exit code for "could not be judged": bad options, unreachable target, harness error.
NOT_JUDGED = 2


# Each command is in the module of its name, which is imported when the command is asked for: all
# of them take half a second, and an engine that `run` starts should be started at once.
COMMANDS = ("run", "list", "explain", "replay", "judge", "mutants", "requirements", "smoke")


class Commands(click.RichGroup):
    """The group of COMMANDS."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Their names, as `--help` lists them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of this name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"conformance.cli.{cmd_name}")
        found = (each for each in vars(module).values() if isinstance(each, click.Command))
        return next(each for each in found if each.name == cmd_name)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oe-conform", prog_name="oe-conform")
def cli() -> None:
    """Judge an inference engine against the OpenEngine profiles.

    Exit codes: 0 everything judged holds, 1 a requirement is broken, 2 nothing could be judged.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    # A CI system that gives up sends SIGTERM; the calls on the target must end then too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = cli.main(args=arguments, prog_name="oe-conform", standalone_mode=False)
    except click.UsageError as error:
        where = f"{error.ctx.command_path}: " if error.ctx is not None else ""
        _stop(f"{where}{error.format_message()}")
    except click.ClickException as error:
        _stop(error.format_message())
    except ConformError as error:
        _stop(str(error))
    except (click.Abort, KeyboardInterrupt):
        _stop("interrupted")
    except BrokenPipeError:
        # The reader of our output has left (`oe-conform list | head`); nobody is there to be told.
        sys.stderr.close()
        sys.exit(NOT_JUDGED)
    sys.exit(code if isinstance(code, int) else 0)


def _stop(message: str) -> None:
    line = " ".join(message.split())
    click.echo(f"oe-conform: {line}", err=True)
    sys.exit(NOT_JUDGED)
