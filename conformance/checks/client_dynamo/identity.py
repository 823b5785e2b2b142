"""Who the engine says it is: what a sidecar reads before it uses the engine (needs 1 to 9)."""

from __future__ import annotations

import re

from conformance.checks.client_dynamo.need import model_info, need, server_info
from conformance.checks.probe import Probe
from conformance.model.case import Case
from oe_wire import v1

# The client's own revision of the protocol.
CLIENT_REVISION = 1
# A module commit of the schema registry (32 digits) or a git commit (40).
COMMIT = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}")
ROLES = {
    v1.ENGINE_ROLE_AGGREGATED: "AGGREGATED",
    v1.ENGINE_ROLE_PREFILL: "PREFILL",
    v1.ENGINE_ROLE_DECODE: "DECODE",
}
READS = 3


@need(1, advice="Set engine_name to the name of the engine.")
def named(probe: Probe, _: Case) -> None:
    """engine_name is not blank."""
    info = server_info(probe)
    if not info.message.engine_name.strip():
        probe.fail("an engine_name", "a blank one", info.call)


@need(2, advice="Report schema_revision 1 or more, and the oldest client revision served.")
def revisions(probe: Probe, _: Case) -> None:
    """A client of revision 1 is served."""
    info = server_info(probe)
    if info.message.schema_revision < 1:
        probe.fail("schema_revision of at least 1", str(info.message.schema_revision), info.call)
    if info.message.minimum_client_revision > CLIENT_REVISION:
        actual = str(info.message.minimum_client_revision)
        probe.fail(f"minimum_client_revision of at most {CLIENT_REVISION}", actual, info.call)


@need(
    3,
    advice="Report the commit of the schema that the engine was built from. The released API text "
    "asks for a release or a tag, which this client refuses; its own pin must be equal.",
)
def release_is_a_commit(probe: Probe, _: Case) -> None:
    """schema_release is a commit."""
    info = server_info(probe)
    if not COMMIT.fullmatch(info.message.schema_release):
        release = info.message.schema_release[:60]
        probe.fail("32 or 40 hexadecimal digits", repr(release), info.call)


@need(4, advice="Report the role that the engine was started in.")
def role_is_set(probe: Probe, _: Case) -> None:
    """The engine has one of the three roles."""
    info = server_info(probe)
    if info.message.engine_role not in ROLES:
        expected = " or ".join(ROLES.values())
        probe.fail(expected, f"the number {info.message.engine_role}", info.call)


@need(5, advice="List the one model that the engine serves; aliases belong into ModelInfo.")
def one_model(probe: Probe, _: Case) -> None:
    """supported_models names one model."""
    info = server_info(probe)
    names = list(info.message.supported_models)
    if len(names) != 1 or not names[0].strip():
        blank = sum(not name.strip() for name in names)
        probe.fail("one entry, not blank", f"{len(names)} entries, {blank} blank", info.call)


@need(6, advice="Set supports_token_ids_input explicitly.")
def takes_token_ids(probe: Probe, _: Case) -> None:
    """supports_token_ids_input is present and true."""
    info = model_info(probe)
    if not info.message.HasField("supports_token_ids_input"):
        probe.fail("supports_token_ids_input true", "absent", info.call)
    if not info.message.supports_token_ids_input:
        probe.fail("supports_token_ids_input true", "false", info.call)


@need(7, advice="Answer GetModelInfo with the names of the model that was asked for.")
def model_goes_by_its_name(probe: Probe, _: Case) -> None:
    """The ModelInfo of a name carries that name."""
    info = model_info(probe)
    message, name = info.message, probe.declared.model_name
    if name not in {message.model_id, message.served_model_name, *message.served_model_aliases}:
        probe.fail(f"{name!r} among the names of its ModelInfo", "other names", info.call)


@need(8, advice="Report the connector that hands KV blocks over, where the role needs one.")
def connector(probe: Probe, _: Case) -> None:
    """A prefill or decode engine names its transfer backend."""
    info = server_info(probe)
    found = info.message.kv_connector
    if not (info.message.HasField("kv_connector") and found.enabled):
        probe.fail("kv_connector with enabled = true", "absent or not enabled", info.call)
    if not found.transfer_backend:
        probe.fail("kv_connector with a transfer_backend", "an empty one", info.call)


@need(9, advice="Build the identity once, at start.")
def identity_stays(probe: Probe, _: Case) -> None:
    """What the sidecar read first still holds when it reads again."""
    first = _identity(server_info(probe).message)
    for _try in range(READS - 1):
        again = server_info(probe)
        if _identity(again.message) != first:
            probe.fail("the identity read before", "another one", again.call)


def _identity(info: v1.ServerInfo) -> tuple[object, ...]:
    models = tuple(info.supported_models)
    return info.engine_name, info.schema_release, info.engine_role, models
