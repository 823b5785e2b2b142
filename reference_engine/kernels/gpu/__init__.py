"""The kernels in Triton; same names, arguments and results as the twins one level up."""

from reference_engine.kernels.gpu.logits import process_logits
from reference_engine.kernels.gpu.lora import lora_expand, lora_shrink
from reference_engine.kernels.gpu.paged_decode import paged_decode
from reference_engine.kernels.gpu.rms_norm import add_rms_norm, rms_norm
from reference_engine.kernels.gpu.rope_store import rope_store
from reference_engine.kernels.gpu.silu_mul import silu_mul

__all__ = [
    "add_rms_norm",
    "lora_expand",
    "lora_shrink",
    "paged_decode",
    "process_logits",
    "rms_norm",
    "rope_store",
    "silu_mul",
]
