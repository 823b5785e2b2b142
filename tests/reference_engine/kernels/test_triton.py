import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)

ROOT = Path(__file__).parents[3]
KERNELS = "_chunks _expand _mask_and_scale _merge _penalise _rms_norm _rope_store _shrink _silu_mul"


def run_module(name: str, **environment: str) -> str:
    """Output of a module of this folder; Triton decides at import whether it interprets."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("TRITON_")}
    result = subprocess.run(
        [sys.executable, "-m", f"tests.reference_engine.kernels.{name}"],
        cwd=ROOT,
        env={
            **inherited,
            "OMP_NUM_THREADS": "1",
            # Unset, Triton 3.9 warns that 3.10 will have another default.
            "TRITON_DEFAULT_FP_FUSION": "1",
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


def test_kernels_give_right_values() -> None:
    """In the interpreter, all kernels are within rounding of float64 in all variants."""
    output = run_module("interpret", TRITON_INTERPRET="1")
    assert re.search(r"^[3-9]\d cases, 0 wrong$", output, re.MULTILINE)


def test_kernels_compile_for_sm90(tmp_path: Path) -> None:
    """All variants compile for sm_90, without a GPU, within its shared memory."""
    output = run_module("compile_sm90", TRITON_CACHE_DIR=str(tmp_path))
    assert output.strip().endswith(f"0 wrong: {KERNELS}")
