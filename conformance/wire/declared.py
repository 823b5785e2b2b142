"""What an engine says about itself: the only source from which checks and requests are planned."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from google.protobuf.message import Message

from oe_wire import v1

# The limits that stand in for an unreported one (Capabilities.core, each field's documentation).
FALLBACK_REQUEST_ID_BYTES = 256
FALLBACK_REQUEST_BYTES = 4 * 1024 * 1024


class TargetClass(StrEnum):
    """What kind of OpenEngine server answers (detection table of the protocol)."""

    PROFILE_AWARE = "profile-aware"
    LEGACY = "legacy"
    LEGACY_SINGLE = "legacy-single"


@dataclass(frozen=True, slots=True)
class Declared:
    """The discovery answers of one engine, for one of its models.

    engine_scope: GetCapabilities(""); capabilities: GetCapabilities(model_name); both None on an
    engine without discovery. model: the ModelInfo of `model_name`, None when the engine gave none.
    known_tokens: token ids seen in the warm-up's output, so legal as input; empty when unknown.
    """

    target_class: TargetClass
    dialect: str
    server_info: v1.ServerInfo | None = None
    engine_info: v1.EngineInfo | None = None
    engine_scope: v1.Capabilities | None = None
    capabilities: v1.Capabilities | None = None
    model: v1.ModelInfo | None = None
    model_name: str = ""
    known_tokens: tuple[int, ...] = ()

    @property
    def engine(self) -> Message | None:
        """EngineInfo, or ServerInfo where only that exists (fields 1-12 are the same)."""
        return self.engine_info if self.engine_info is not None else self.server_info

    @property
    def legacy(self) -> bool:
        """Whether the engine speaks only the v0.1.0 services."""
        return self.target_class is not TargetClass.PROFILE_AWARE

    @property
    def single_service(self) -> bool:
        """Whether the engine serves the one service of the first drafts."""
        return self.target_class is TargetClass.LEGACY_SINGLE

    @property
    def role(self) -> str:
        """The engine role as a short lower-case name; `unspecified` for unknown numbers."""
        number = getattr(self.engine, "engine_role", 0)
        value = v1.EngineRole.DESCRIPTOR.values_by_number.get(number)
        return "unspecified" if value is None else value.name.removeprefix("ENGINE_ROLE_").lower()

    @property
    def profiles(self) -> frozenset[str]:
        """Names of the advertised profiles; empty on legacy engines."""
        scope = self.engine_scope
        return frozenset() if scope is None else frozenset(p.name for p in scope.profiles)

    @property
    def generates(self) -> bool:
        """Whether plain Generate requests can be served: a model that takes some input, and a role
        that runs both phases.
        """
        if self.model is None or self.role in {"prefill", "decode"}:
            return False
        takes_text = self.model.supports_text_input
        takes_tokens = self.model.supports_token_ids_input
        unreported = not (
            self.model.HasField("supports_text_input")
            or self.model.HasField("supports_token_ids_input")
        )
        return takes_text or takes_tokens or (unreported and self.legacy)

    @property
    def max_num_sequences(self) -> int:
        """The largest num_sequences that is safe to send: the reported one, else 1."""
        generation = None if self.model is None else self.model.generation
        if generation is None or not generation.HasField("max_num_sequences"):
            return 1
        return max(1, generation.max_num_sequences)

    @property
    def max_request_id_bytes(self) -> int:
        """The reported limit of request ids in bytes, or the fallback."""
        core = None if self.capabilities is None else self.capabilities.core
        if core is None or not core.HasField("max_request_id_bytes"):
            return FALLBACK_REQUEST_ID_BYTES
        return core.max_request_id_bytes
