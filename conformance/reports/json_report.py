"""The JSON report: everything in a run, versioned, and checked against its schema when written."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from importlib import resources
from typing import Any

import jsonschema

from conformance.checks import all_checks, http_checks
from conformance.errors import HarnessError
from conformance.http.exchange import Exchange
from conformance.model.case import request_json
from conformance.model.profile_verdict import ProfileVerdict
from conformance.reports.http_call import http_call
from conformance.reports.redact import redacted
from conformance.runner.baseline import Comparison
from conformance.runner.clients import ClientResult
from conformance.runner.opened import AnyDeclared
from conformance.runner.report import Report
from conformance.runner.result import Failure
from conformance.runner.store import name_of
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.identity import BUILD
from conformance.wire.declared import Declared
from conformance.wire.dialect import shown_in
from conformance.wire.transcript import Transcript

SCHEMA_VERSION = 1
_DIGITS = 6  # microseconds


def json_report(report: Report, *, include_payloads: bool = False) -> str:
    """The report as JSON text. Raises HarnessError if it does not match its own schema."""
    content = report_content(report, include_payloads=include_payloads)
    try:
        jsonschema.Draft202012Validator(schema()).validate(content)
    except jsonschema.ValidationError as error:
        raise HarnessError(f"report does not match its schema: {error.message}") from error
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


@cache
def schema() -> Any:
    """The JSON Schema of the report."""
    file = resources.files("conformance.reports") / "schema" / f"report-{SCHEMA_VERSION}.json"
    return json.loads(file.read_text(encoding="utf-8"))


def report_content(report: Report, *, include_payloads: bool = False) -> dict[str, Any]:
    """The report as a JSON object."""
    return {
        "schema_version": SCHEMA_VERSION,
        "suite": {"name": "oe-conform", "version": report.environment.suite},
        "started": report.started.isoformat(timespec="seconds"),
        "seconds": round(report.seconds, _DIGITS),
        "seed": report.seed,
        "budget": report.budget,
        "slow_factor": report.slow_factor,
        "ended_early": report.ended_early or None,
        "environment": dataclasses.asdict(report.environment),
        "target": _target(report),
        "verdict": {
            "claim": report.verdict.claim.value,
            "text": report.verdict.text,
            "exit_code": report.verdict.exit_code,
        },
        "baseline": _baseline(report.comparison),
        "profiles": [_profile(verdict, report) for verdict in report.verdict.profiles],
        "requirements": _requirements(report, include_payloads=include_payloads),
        "clients": [_client(client) for client in report.clients],
    }


def _client(client: ClientResult) -> dict[str, Any]:
    return {
        "name": client.client.name,
        "version": client.client.version,
        "digest": client.client.digest,
        "text": client.text,
        "counts": {result.value: count for result, count in client.counts.items()},
        "needs": [
            {
                "id": each.need.id,
                "text": each.need.text,
                "otherwise": each.otherwise.value,
                "result": each.result.value,
                "expected": each.expected,
                "detail": each.detail,
                "requests": each.requests,
                "tokens": each.tokens,
                "seconds": round(each.seconds, _DIGITS),
            }
            for each in client.needs
        ],
    }


def _baseline(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    known = [
        {"id": requirement, "reason": entry.reason, "issue": entry.issue}
        for requirement, entry in comparison.known.items()
    ]
    return {"file": comparison.path.name, "known": known, "problems": list(comparison.problems)}


def _target(report: Report) -> dict[str, Any]:
    declared, engine = report.declared, report.declared.engine
    runtime = {} if isinstance(declared, Declared) else {"runtime": _runtime(declared)}
    return runtime | {
        "address": report.address,
        "class": declared.target_class.value,
        "dialect": declared.dialect,
        "role": declared.role,
        "model": declared.model_name,
        "profiles": sorted(declared.profiles),
        "engine_name": _engine_name(declared),
        "engine_version": _engine_version(declared),
        "instance_id": getattr(engine, "instance_id", ""),
        "schema_release": getattr(engine, "schema_release", ""),
        "schema_revision": getattr(engine, "schema_revision", 0),
    }


def _engine_name(declared: AnyDeclared) -> str:
    if isinstance(declared, HttpDeclared):
        return declared.runtime.name
    return str(getattr(declared.engine, "engine_name", ""))


def _engine_version(declared: AnyDeclared) -> str:
    """As the engine itself reports it: a configured build is in the profile's name only."""
    if isinstance(declared, HttpDeclared):
        return declared.observed.get(BUILD, "")
    return str(getattr(declared.engine, "engine_version", ""))


def _runtime(declared: HttpDeclared) -> dict[str, Any]:
    runtime = declared.runtime
    around = runtime.orchestration
    return {
        "profile": runtime.id,
        "title": runtime.title,
        "digest": runtime.digest,
        "tier": runtime.tier,
        "scripted": declared.scripted,
        "conditions": sorted(declared.conditions),
        "allowed": sorted(effect.value for effect in declared.allowed),
        "observed": dict(declared.observed),
        **({} if around is None else {"orchestration": around.json}),
    }


def _profile(verdict: ProfileVerdict, report: Report) -> dict[str, Any]:
    profile = next(p for p in report.profiles if p.name == verdict.profile)
    return {
        "name": verdict.profile,
        "version": verdict.version,
        "stage": profile.stage,
        "digest": profile.digest,
        "claim": verdict.claim.value,
        "status": verdict.status.value,
        "text": verdict.text,
        "expected": verdict.expected,
        "executed": verdict.executed,
        "counts": {status.value: count for status, count in verdict.counts.items()},
        "unchecked": list(verdict.unchecked),
    }


def _requirements(report: Report, *, include_payloads: bool) -> list[dict[str, Any]]:
    judgements = {judgement.requirement: judgement for judgement in report.judgements}
    checks = all_checks() if isinstance(report.declared, Declared) else http_checks()
    rows = []
    for row in report.plan.rows:
        requirement, judgement = row.requirement, judgements.get(row.requirement.id)
        check = checks.get(requirement.id)
        entry: dict[str, Any] = {
            "id": requirement.id,
            "profile": requirement.profile,
            "level": requirement.level.value,
            "check": check.name if check is not None else None,
            "status": judgement.status.value if judgement is not None else "unchecked",
        }
        if judgement is not None:
            entry |= {
                "reason": judgement.reason.value if judgement.reason is not None else None,
                "detail": judgement.detail,
                "cases_run": judgement.cases_run,
                "cases_judged": judgement.cases_judged,
                "requests": judgement.requests,
                "tokens": judgement.tokens,
                "seconds": round(judgement.seconds, _DIGITS),
            }
        failure = report.failure(requirement.id)
        if failure is not None:
            dialect = report.declared.dialect
            entry["failure"] = _failure(failure, dialect, include_payloads=include_payloads)
        rows.append(entry)
    return rows


def _failure(failure: Failure, dialect: str, *, include_payloads: bool) -> dict[str, Any]:
    return {
        "name": name_of(failure),
        "check": failure.check,
        "expected": failure.expected,
        "actual": failure.actual,
        "replays": failure.replays,
        "reproduced": failure.reproduced,
        "event": failure.event,
        "call": _any_call(failure, dialect, include_payloads=include_payloads),
    }


def _any_call(failure: Failure, dialect: str, *, include_payloads: bool) -> dict[str, Any] | None:
    match failure.transcript:
        case None:
            return None
        case Exchange() as exchange:
            return http_call(exchange, include_payloads=include_payloads)
        case transcript:
            return _call(transcript, dialect, include_payloads=include_payloads)


def _call(transcript: Transcript, dialect: str, *, include_payloads: bool) -> dict[str, Any]:
    def shown(content: dict[str, Any]) -> Any:
        named = shown_in(dialect, content)
        return named if include_payloads else redacted(named)

    ending = transcript.ending
    call = {
        "method": transcript.method,
        "request": None if transcript.request is None else shown(request_json(transcript.request)),
        # Values may be credentials of the operator's, so only names are kept.
        "metadata": [key for key, _ in transcript.metadata],
        "events": [
            {
                "seconds": round(event.seconds, _DIGITS),
                "message": shown(request_json(event.message)),
            }
            for event in transcript.events
        ],
        "actions": [
            {"seconds": round(action.seconds, _DIGITS), "kind": action.kind.value}
            for action in transcript.actions
        ],
        "status": ending.code.name,
        "origin": ending.origin.value,
        "seconds": round(ending.seconds, _DIGITS),
    }
    # What an engine writes into a status message may quote the prompt.
    return call | ({"details": ending.details} if include_payloads else {})
