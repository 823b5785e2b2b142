"""Run by test_triton.py as a process of its own: compiles all launches of all cases for sm_90.

A stand-in for the driver names the target, so that Triton specialises and compiles exactly as it
would before a launch on an H100 or H200; nothing is launched and no GPU is needed.
"""

import sys
from functools import partialmethod
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from reference_engine.kernels.dispatch import triton_kernels
from tests.reference_engine.kernels.cases import all_cases

SHARED_MEMORY = 227 * 1024
"""Bytes that a block can have on sm_90."""


class NoDriver:
    """What Triton asks a driver before it compiles."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return device

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)


def main() -> int:
    """0 if everything compiles and fits; a compile error ends it with its trace."""
    driver.set_active(NoDriver())
    compiled: dict[int, tuple[str, Any]] = {}
    run = JITFunction.run

    def compile_only(self: JITFunction, *args: Any, warmup: bool, **options: Any) -> None:
        del warmup
        kernel = run(self, *args, warmup=True, **options)
        compiled[id(kernel)] = (self.__name__, kernel)

    JITFunction.run = partialmethod(compile_only)
    kernels = triton_kernels()
    for case in all_cases():
        case.run(kernels, torch.device("cpu"))
    wrong = 0
    for name, kernel in compiled.values():
        if not kernel.asm["cubin"].startswith(b"\x7fELF"):
            sys.stdout.write(f"{name}: no cubin\n")
            wrong += 1
        if kernel.metadata.shared > SHARED_MEMORY:
            sys.stdout.write(f"{name}: {kernel.metadata.shared} bytes of shared memory\n")
            wrong += 1
    names = sorted({name for name, _ in compiled.values()})
    sys.stdout.write(
        f"{len(compiled)} variants of {len(names)} kernels, {wrong} wrong: {' '.join(names)}\n"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
