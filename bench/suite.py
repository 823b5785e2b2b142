"""What the suite costs: `python bench/suite.py`, see bench/README.md.

A run against the reference engine, and the same requests again from a bare client; then how many
requests it takes from a planted fault to its smallest counterexample.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import grpc

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance.mutants.methods import GENERATE
from conformance.mutants.mutant import Mutant
from conformance.mutants.proxy import proxied
from conformance.mutants.table import MUTANTS
from conformance.runner.budget import BUDGETS
from conformance.runner.local_engine import local_engine
from conformance.runner.run import run
from conformance.runner.selection import Selection
from conformance.runner.session import Options, open_session
from conformance.wire.target import Target, parse_address
from conformance.wire.transcript import ActionKind, Transcript
from oe_wire import v1
from oe_wire.services import METHODS

# Rows whose checks make calls and do not wait for states or times, which a replay would not do.
ROWS = ("OE-CORE-GEN-*", "OE-CORE-STREAM-*", "OE-CORE-USE-*", "OE-CORE-ERR-*", "OE-CORE-META-*")
# Waits or restarts, faults, limits that take long to reach.
LEFT_OUT = ("OE-CORE-GEN-03[4-8]", "OE-CORE-STREAM-02[78]", "OE-CORE-ERR-00[28]")


def main() -> int:
    """0; figures are printed, never judged."""
    options = _options()
    with local_engine("tiny") as engine:
        target = Target(parse_address(engine.address))
        _overhead(target, options.rounds)
        _minimal(engine.address, options.mutants)
    return 0


def _overhead(target: Target, rounds: int) -> None:
    """The same calls by the suite and by a bare client, taking turns; the best round counts."""
    best = {"suite": float("inf"), "bare": float("inf")}
    count = 0
    for _ in range(rounds):
        calls: list[Transcript] = []
        selection = Selection(ids=ROWS, excluded=LEFT_OUT)
        report = run(Options(target, seed=1, selection=selection, recorder=calls.append))
        # Its own time of each check: connecting, detection and warm-up are paid once.
        spent = sum(judgement.seconds for judgement in report.judgements)
        best["suite"] = min(best["suite"], spent)
        best["bare"] = min(best["bare"], _replayed(target, calls))
        count = len(calls)
    print(
        f"{count} calls: suite {best['suite']:.1f} s, bare client {best['bare']:.1f} s = "
        f"{best['suite'] / best['bare']:.2f} x"
    )


def _replayed(target: Target, calls: Sequence[Transcript]) -> float:
    """Seconds for the same calls one after the other, each read as far as it was."""
    with grpc.insecure_channel(target.address) as channel:
        made = {
            name: channel.unary_stream(method.path, None, None) for name, method in METHODS.items()
        }
        start = time.monotonic()
        for number, call in enumerate(calls):
            _again(made[call.method], call, f"again-{number}")
        return time.monotonic() - start


def _again(
    make: "grpc.UnaryStreamMultiCallable[bytes, bytes]", call: Transcript, name: str
) -> None:
    data = call.request_bytes
    if isinstance(call.request, v1.GenerateRequest) and call.request.request_id:
        request = v1.GenerateRequest()
        request.CopyFrom(call.request)
        # An id of the same length, so that limits are met in the same way.
        size = len(call.request.request_id.encode())
        request.request_id = name[:size].ljust(min(size, len(call.request.request_id)), "x")
        data = request.SerializeToString()
    parse = METHODS[call.method].response.FromString
    stream = make(data, metadata=call.metadata, timeout=60)
    read = 0
    try:
        for message in stream:
            parse(message)
            read += 1
            if read == len(call.events) and call.acted(ActionKind.CANCEL):
                stream.cancel()
    except grpc.RpcError:
        pass


def _minimal(address: str, most: int) -> None:
    """Requests of a check from its start to the smallest case, before that is replayed."""
    spent = sorted(_requests(address, mutant) for mutant in _planted(most))
    print(
        f"{len(spent)} planted faults in Generate: median {statistics.median(spent):.0f} requests "
        f"to the smallest counterexample, most {spent[-1]}"
    )


def _planted(most: int) -> Iterator[Mutant]:
    """Evenly chosen ones of those that change Generate alone."""
    chosen = [mutant for mutant in MUTANTS if set(mutant.behaviour) == {GENERATE}]
    step = max(1, len(chosen) // most)
    yield from chosen[::step]


def _requests(address: str, mutant: Mutant) -> int:
    budget = BUDGETS["standard"]
    with proxied(address, mutant) as front:
        session = open_session(Options(Target(parse_address(front)), budget=budget, seed=1))
        row = next(row for row in session.plan.rows if row.requirement.id == mutant.requirement)
        connection = session.connect()
        try:
            if row.check is None:
                raise RuntimeError(f"{mutant.requirement} has no check here: {row.detail}")
            result = session.judge(row, row.check, connection)
        finally:
            connection.close()
    replays = 0 if result.failure is None else result.failure.replays
    return result.judgement.requests - replays


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The cost of the suite.")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each; the best one counts")
    parser.add_argument("--mutants", type=int, default=30, help="planted faults that are searched")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
