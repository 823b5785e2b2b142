"""Illegal options: guides, media, candidates, adapters, and what the engine reports as false."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.oracle.extras import UNKNOWN_ADAPTER
from conformance.oracle.limits import Limits
from conformance.strategies.fault import UINT32_MAX, Fault, assigned, fault
from conformance.strategies.guides import malformed_guides, unoffered_guides
from conformance.wire.declared import Declared
from oe_wire import v1

# Reserved for examples: nothing answers there, if an engine tries to fetch it at all.
IMAGE_URL = "http://oe-conform.invalid/image.png"
# A hand-over that looks whole and belongs to no prefill.
SESSION = v1.KvSessionRef(
    session_id="oe-conform-no-such-session",
    transfer_backend="oe-conform",
    endpoints=[v1.KvEndpoint(host="oe-conform.invalid", port=1, protocol="tcp")],
)
SELECTIONS = {
    v1.CANDIDATE_TOKEN_SELECTION_MODE_TOP_N: v1.CandidateTokenSelection(top_n=1),
    v1.CANDIDATE_TOKEN_SELECTION_MODE_TOKEN_IDS: v1.CandidateTokenSelection(
        token_ids=v1.TokenIds(ids=[10])
    ),
    v1.CANDIDATE_TOKEN_SELECTION_MODE_ALL: v1.CandidateTokenSelection(all=v1.AllCandidates()),
}


def option_faults(declared: Declared, limits: Limits) -> list[Fault]:
    """Every one that the declarations of this engine make certain."""
    found = [
        *_guide_faults(declared),
        *_media_faults(limits),
        *_candidate_faults(declared),
        assigned("GEN-028", "lora_name", UNKNOWN_ADAPTER),
    ]
    if declared.legacy:
        return found
    if limits.stop_in_output is False:
        found.append(assigned("GEN-030", "stopping.include_stop_in_output", value=True))
    if limits.cache_bypass is False:
        found.append(assigned("GEN-030", "kv.bypass_prefix_cache", value=True))
    if limits.cache_salt is False:
        found.append(assigned("GEN-030", "kv.cache_salt", "salt"))
    if "kv_handoff" not in declared.profiles:
        found.append(fault("GEN-032", "KV session", _with_session))
    return found


def _with_session(request: v1.GenerateRequest) -> None:
    request.kv.session.CopyFrom(SESSION)


def _guide_faults(declared: Declared) -> list[Fault]:
    def guided(row: str, guide: v1.GuidedDecoding, name: str) -> Fault:
        def apply(request: v1.GenerateRequest) -> None:
            request.guided.CopyFrom(guide)
            # What keeps an output from ending with its guide could be refused as well.
            request.stopping.ClearField("min_tokens")
            request.stopping.ClearField("ignore_eos")

        return fault(row, f"{name} {guide.WhichOneof('guide') or ''}".rstrip(), apply)

    return [
        guided("GEN-023", v1.GuidedDecoding(), "no guide"),
        *(guided("GEN-023", guide, "unoffered") for guide in unoffered_guides(declared)),
        *(guided("GEN-024", guide, "malformed") for guide in malformed_guides(declared)),
    ]


def _media_faults(limits: Limits) -> list[Fault]:
    def media(name: str, item: v1.MediaItem) -> Fault:
        return fault("GEN-027", name, lambda request: request.media.append(item))

    found = [media("no source", v1.MediaItem(modality=v1.MODALITY_IMAGE))]
    if limits.multimodal is False:
        found += [
            media("url", v1.MediaItem(modality=v1.MODALITY_IMAGE, url=IMAGE_URL)),
            media("data", v1.MediaItem(raw_bytes=b"oe", mime_type="image/png")),
        ]
    return found


def _candidate_faults(declared: Declared) -> list[Fault]:
    """For output and prompt: no variant, modes not offered, too many, and no token's id."""
    model = declared.model if declared.model is not None else v1.ModelInfo()
    found = []
    for which in ("output", "prompt"):
        offer: v1.LogprobCapabilities = getattr(model.generation, f"{which}_logprobs")
        for name, selection in _illegal_selections(offer):
            found.append(_candidates(which, name, selection, logprobs=offer.supported))
    return found


def _candidates(
    which: str, name: str, selection: v1.CandidateTokenSelection, *, logprobs: bool
) -> Fault:
    def apply(request: v1.GenerateRequest) -> None:
        if logprobs:
            setattr(request.response, f"return_{which}_logprobs", True)
        getattr(request.response, f"{which}_candidates").CopyFrom(selection)

    return fault("GEN-025", f"{which}: {name}", apply)


def _illegal_selections(
    offer: v1.LogprobCapabilities,
) -> Iterator[tuple[str, v1.CandidateTokenSelection]]:
    yield "no selection", v1.CandidateTokenSelection()
    for mode, selection in SELECTIONS.items():
        if mode not in offer.candidate_selection_modes:
            yield f"unoffered {selection.WhichOneof('selection')}", selection
    counted = v1.CANDIDATE_TOKEN_SELECTION_MODE_TOP_N in offer.candidate_selection_modes
    if counted and 0 < offer.max_top_n < UINT32_MAX:
        yield "top_n over max_top_n", v1.CandidateTokenSelection(top_n=offer.max_top_n + 1)
    if v1.CANDIDATE_TOKEN_SELECTION_MODE_TOKEN_IDS in offer.candidate_selection_modes:
        outside = v1.TokenIds(ids=[UINT32_MAX])
        yield "no token's id", v1.CandidateTokenSelection(token_ids=outside)
