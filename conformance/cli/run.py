"""`oe-conform run`: judge a target and write reports."""

from __future__ import annotations

import rich_click as click

from conformance.cli.http_target import HttpWords, http_options, is_http
from conformance.cli.run_options import RunWords, run_options
from conformance.cli.target_options import TargetOptions, target_options
from conformance.errors import ConfigError


@click.command()
@target_options
@http_options
@run_options
def run(*, where: TargetOptions, http: HttpWords, words: RunWords) -> int:
    """Judge a target and say which profiles it may claim."""
    outputs = words.outputs
    _fitting(where, http, words)
    with where.start() as ready:
        # The suite takes half a second to import, in which an engine that was started imports
        # torch.
        from conformance.cli import judged  # noqa: PLC0415

        if is_http(where):
            done = judged.over_http(words, http, where)
        else:
            done = judged.over_grpc(words, ready, own=where.target is None)
    return judged.told(done, words, outputs)


def _fitting(where: TargetOptions, http: HttpWords, words: RunWords) -> None:
    """Raises ConfigError for options of the other kind of target."""
    only_grpc = words.clients or words.require_client or words.dialect or words.record
    if is_http(where) and only_grpc:
        names = "--client, --require-client, --dialect and --record"
        raise ConfigError(f"one of {names} with an HTTP target", expected="a gRPC target")
    if not is_http(where) and (http.given or any("/" in name for name in words.profiles)):
        names = "--scripted, --condition, --allow and runtime profiles"
        raise ConfigError(f"{names} are for HTTP targets", expected="--target http://host:port")
    if words.require_client and not words.clients:
        raise ConfigError("--require-client without a client", expected="--client NAME")
    if words.update and words.baseline_file is None:
        raise ConfigError("--update-baseline without a file", expected="--baseline FILE")
