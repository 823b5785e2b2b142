"""Run by test_triton.py as a process of its own, with TRITON_INTERPRET=1: values of each kernel.

Prints one line per case that is wrong.
"""

import sys

import torch

from reference_engine.kernels.dispatch import triton_kernels
from tests.reference_engine.kernels.cases import all_cases, worst


def main() -> int:
    """0 if every case is within its tolerance."""
    kernels = triton_kernels()
    wrong = 0
    count = 0
    for case in all_cases():
        error = worst(case.run(kernels, torch.device("cpu")))
        count += 1
        if not error <= case.tolerance:
            wrong += 1
            sys.stdout.write(f"{case.name}: error {error:.2g}, tolerance {case.tolerance:.2g}\n")
    sys.stdout.write(f"{count} cases, {wrong} wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
