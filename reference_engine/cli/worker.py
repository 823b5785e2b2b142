"""The options of `oe-engine worker`."""

import logging
from pathlib import Path
from typing import Any

import rich_click as click

from reference_engine.cli.serve import LOG_LEVELS
from reference_engine.worker.process_options import WorkerOptions

FILE = click.Path(path_type=Path)


@click.command()
@click.option("--model", default="tiny", show_default=True, help="tiny, smollm2 or a path")
@click.option(
    "--listen",
    default="127.0.0.1:8080",
    show_default=True,
    help="host:port (port 0: any free one) or [ipv6]:port",
)
@click.option("--work-path", default="/v1/systemone", show_default=True, help="path of the work")
@click.option("--health-path", default="/health", show_default=True, help="path of the health")
@click.option(
    "--body-limit",
    type=click.IntRange(min=1),
    default=1024 * 1024,
    show_default=True,
    help="bytes of a request",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0.001, max=86_400),
    default=30.0,
    show_default=True,
    help="seconds from the headers of a request to its answer",
)
@click.option(
    "--budget-header",
    default="",
    help="header by which a caller asks for a smaller budget, in milliseconds (default: none)",
)
@click.option(
    "--queue",
    type=click.IntRange(1, 1_000_000),
    default=64,
    show_default=True,
    help="requests accepted at once, running and waiting",
)
@click.option("--forward", metavar="ORIGIN", help="serve the worker at this http://host:port")
@click.option(
    "--response-limit",
    type=click.IntRange(min=1),
    default=8 * 1024 * 1024,
    show_default=True,
    help="bytes of a forwarded answer",
)
@click.option("--threads", type=click.IntRange(1, 1024), help="CPU threads of the model")
@click.option(
    "--testing", is_flag=True, help="serve states and counters on demand; never in production"
)
@click.option(
    "--grace",
    type=click.FloatRange(1, 3600),
    default=10.0,
    show_default=True,
    help="seconds that running requests get after a stop signal",
)
@click.option("--ready-file", type=FILE, help="JSON with address and pid, written when serving")
@click.option("--log-level", type=click.Choice(LOG_LEVELS), default="info", show_default=True)
def worker(log_level: str, **options: Any) -> None:
    """Serve decisions over HTTP (choice, yes or no, score) until SIGTERM or SIGINT."""
    # torch takes seconds to import, which `--help` and a bad option should not wait for.
    from reference_engine.worker.process import run  # noqa: PLC0415

    logging.basicConfig(
        level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    run(WorkerOptions(**options))
