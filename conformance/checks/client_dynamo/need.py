"""How a need of the client is judged: the check decorator, and the calls that its sidecars make.

A sidecar speaks v0.1.0 whatever else an engine serves, so only Control and Inference are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from google.protobuf.message import Message

from conformance.checks.check import Body, Check, Table, check
from conformance.checks.core.discovery_calls import Read, read
from conformance.checks.probe import Probe
from conformance.laws.law import Finding, Ruling
from conformance.model.case import FRESH_ID, Case
from conformance.oracle.limits import limits_of
from conformance.strategies.simple import fitting_tokens, token_ids
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

PROMPT_TOKENS = 4
TOKENS = 8
# Asked of streams that are to be cut short.
LONG_TOKENS = 1024
M = TypeVar("M", bound=Message)
Rule = Callable[[Transcript, Declared], Ruling]


def need(number: int, *, advice: str, table: Table | None = None) -> Callable[[Body], Check]:
    """Make a Check of a body that judges the need with this number."""
    return check(f"OE-CLIENT-DYNAMO-{number:03}", advice=advice, table=table)


def server_info(probe: Probe) -> Read[v1.ServerInfo]:
    """Control.GetServerInfo; the case is skipped when it fails."""
    return read(probe, "Control/GetServerInfo", v1.GetServerInfoRequest(), v1.ServerInfo)


def model_info(probe: Probe) -> Read[v1.ModelInfo]:
    """Control.GetModelInfo of the tested model; the case is skipped when it fails."""
    request = v1.GetModelInfoRequest(model=probe.declared.model_name)
    return read(probe, "Control/GetModelInfo", request, v1.ModelInfo)


def load_info(probe: Probe, *, per_rank: bool = False) -> Read[v1.LoadInfo]:
    """Control.GetLoad; the case is skipped when it fails."""
    request = v1.GetLoadRequest(include_per_rank=per_rank)
    return read(probe, "Control/GetLoad", request, v1.LoadInfo)


def ranks(engine: v1.ServerInfo) -> range:
    """The data-parallel ranks that the engine advertises; one rank when it says nothing."""
    parallelism = engine.parallelism
    start = parallelism.data_parallel_start_rank
    if not parallelism.HasField("data_parallel_start_rank"):
        start = parallelism.data_parallel_rank
    size = parallelism.data_parallel_size if parallelism.HasField("data_parallel_size") else 1
    return range(start, start + size)


def sidecar_request(
    declared: Declared, max_tokens: int = TOKENS, sequences: int = 1
) -> v1.GenerateRequest:
    """A request as a sidecar makes it: token ids, and option groups that are there but empty."""
    request = v1.GenerateRequest(request_id=FRESH_ID, model=declared.model_name)
    request.token_ids.ids.extend(token_ids(declared, PROMPT_TOKENS))
    request.stopping.max_tokens = fitting_tokens(declared, max_tokens)
    request.kv.SetInParent()
    request.response.SetInParent()
    if sequences > 1:
        request.sampling.num_sequences = sequences
        request.sampling.temperature = 1.0
        request.sampling.seed = 1
    else:
        request.sampling.temperature = 0.0
    return request


def known_stop_tokens(declared: Declared) -> list[int]:
    """Two token ids that are in the vocabulary, in ascending order."""
    return sorted(set(limits_of(declared).tokens))[:2]


def follow(probe: Probe, transcript: Transcript, rule: Rule) -> None:
    """Judge a finished call by a rule; skip the case when the rule says nothing about it."""
    ruling = rule(transcript, probe.declared)
    if isinstance(ruling, Finding):
        probe.fail(ruling.expected, ruling.actual, transcript, ruling.event)
    if ruling is None:
        probe.skip("the call met no precondition of the need")


def streamed(number: int, *, advice: str, table: Table, rule: Rule) -> Check:
    """A check that sends the cases of `table` and judges each stream by `rule`."""

    def body(probe: Probe, case: Case) -> None:
        follow(probe, probe.generate(case), rule)

    made = need(number, advice=advice, table=table)(body)
    return Check(made.requirement, body, table, None, advice, f"client_dynamo.{rule.__name__}")
