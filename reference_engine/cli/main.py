"""`oe-engine serve`, `worker`, `ask` and `pull`; one clear line when something is wrong."""

import os
import sys

# Both are read at import. Spinning OpenMP threads cost 20 to 100 times the work as soon as
# anything else runs on the machine, and gRPC prints lines of its own about a port in use.
os.environ.setdefault("GOMP_SPINCOUNT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import rich_click as click

from reference_engine.cli.ask import ask
from reference_engine.cli.pull import SOURCES
from reference_engine.cli.pull import pull as fetch
from reference_engine.cli.serve import serve
from reference_engine.cli.worker import worker
from reference_engine.errors import EngineException


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oe-conform", prog_name="oe-engine")
def cli() -> None:
    """The reference engine of the OpenEngine protocol."""


cli.add_command(serve)
cli.add_command(ask)
cli.add_command(worker)


@cli.command()
@click.argument("name", type=click.Choice(sorted(SOURCES)))
def pull(name: str) -> None:
    """Fetch a model, check it, and keep it in the user's cache directory."""
    click.echo(fetch(name))


def main() -> None:
    """Entry point: exit code 2 and one line on stderr for every error made on purpose."""
    try:
        cli(prog_name="oe-engine")
    except EngineException as error:
        click.echo(f"oe-engine: {error}", err=True)
        sys.exit(2)
