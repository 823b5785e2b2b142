"""The options of `oe-engine serve`."""

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rich_click as click

from reference_engine.server.process_options import ProcessOptions

LOG_LEVELS = ["debug", "info", "warning", "error"]
FILE = click.Path(path_type=Path)


@click.command()
@click.option("--model", default="tiny", show_default=True, help="tiny, smollm2 or a path")
@click.option(
    "--listen",
    default="127.0.0.1:50051",
    show_default=True,
    help="host:port (port 0: any free one), [ipv6]:port or unix:path",
)
@click.option("--control-listen", help="host:port of a second listener for Control and Discovery")
@click.option("--advertise-host", help="host that discovery names for two listeners")
@click.option(
    "--alias",
    "aliases",
    multiple=True,
    default=["default"],
    show_default=True,
    help="another name of the model; may be repeated",
)
@click.option(
    "--max-running",
    type=click.IntRange(1, 4096),
    default=64,
    show_default=True,
    help="sequences computed in one step",
)
@click.option(
    "--max-waiting",
    type=click.IntRange(0, 1_000_000),
    default=256,
    show_default=True,
    help="requests queued beyond them before new ones are refused",
)
@click.option(
    "--kv-blocks",
    type=click.IntRange(1, 10_000_000),
    help="blocks of KV cache (default: by the model, at most 512 MiB)",
)
@click.option(
    "--block-size",
    type=click.IntRange(1, 1024),
    default=16,
    show_default=True,
    help="tokens of a block",
)
@click.option("--threads", type=click.IntRange(1, 1024), help="CPU threads of the model")
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="where the model runs; auto is a GPU if there is one",
)
@click.option(
    "--dtype",
    type=click.Choice(["auto", "float32", "bfloat16"]),
    default="auto",
    show_default=True,
    help="what weights are multiplied in; auto is bfloat16 where the hardware has it and it pays",
)
@click.option(
    "--data-parallel-size",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="ranks: processes with a model and a cache of their own",
)
@click.option(
    "--stall-timeout-ms",
    type=click.IntRange(0, 86_400_000),
    default=30_000,
    show_default=True,
    help="a stream that is not read for longer is ended; 0: never",
)
@click.option(
    "--probe-timeout-ms",
    type=click.IntRange(1, 30_000),
    default=10_000,
    show_default=True,
    help="an inference probe gives up when nothing is computed for longer",
)
@click.option(
    "--max-watch-streams",
    type=click.IntRange(4, 1024),
    default=64,
    show_default=True,
    help="WatchLoad streams at once; beyond 100 their intervals become longer",
)
@click.option(
    "--lora",
    "loras",
    multiple=True,
    metavar="NAME=PATH",
    help="an adapter to load at start, from a directory as PEFT writes it; may be repeated",
)
@click.option(
    "--max-loras",
    type=click.IntRange(0, 1024),
    default=8,
    show_default=True,
    help="adapters loaded at once; 0: no LoRA",
)
@click.option(
    "--max-resident-loras",
    type=click.IntRange(1, 1024),
    help="those of them that are in memory at once (default: all)",
)
@click.option(
    "--max-lora-rank",
    type=click.IntRange(1, 1024),
    default=64,
    show_default=True,
    help="largest rank of an adapter",
)
@click.option(
    "--lora-root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="adapters are loaded from below this directory only (default: from anywhere)",
)
@click.option("--tls-cert", type=FILE, help="PEM certificate chain")
@click.option("--tls-key", type=FILE, help="PEM key of --tls-cert")
@click.option("--tls-client-ca", type=FILE, help="PEM certificates that callers must chain to")
@click.option(
    "--grace",
    type=click.FloatRange(0, 3600),
    default=10.0,
    show_default=True,
    help="seconds that running requests get after a stop signal",
)
@click.option(
    "--admin/--no-admin", default=True, show_default=True, help="serve pausing and cache resets"
)
@click.option(
    "--paused-admission",
    type=click.Choice(["reject", "hold"]),
    default="reject",
    show_default=True,
    help="new requests during a pause: refused, or accepted and run after it",
)
@click.option(
    "--testing",
    is_flag=True,
    help="serve faults and reconfiguration on demand; never in production",
)
@click.option("--ready-file", type=FILE, help="JSON with address and pid, written when serving")
@click.option("--log-level", type=click.Choice(LOG_LEVELS), default="info", show_default=True)
def serve(log_level: str, **options: Any) -> None:
    """Serve a model over gRPC until SIGTERM or SIGINT."""
    with _kept():
        # torch takes seconds to import, which `--help` and a bad option should not wait for.
        from reference_engine.server.process import run  # noqa: PLC0415

    logging.basicConfig(
        level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    run(ProcessOptions(**options))
    # Nothing is left to be found; Python would look three times before it ends, for 0.7 s in all.
    gc.freeze()


@contextmanager
def _kept() -> Iterator[None]:
    """What the block makes is not looked through for garbage, now or later.

    Imports make 190,000 objects that stay. Looking at them takes a seventh of the import, and
    would stop a serving engine for 80 ms each time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
