"""llama.cpp's server from the package xllamacpp: `python llama_cpp_server.py MODEL PORT SLOTS`,
with a fourth word `shared` for one cache that all slots share.

It ends when its standard input is closed, so it cannot outlive the test that started it.
"""

import sys

import xllamacpp

CONTEXT_TOKENS = 2048  # of each slot


def main() -> None:
    """Serve until standard input ends."""
    model, port, slots = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    # Newer packages can listen on several addresses.
    if hasattr(parameters, "hostnames"):
        parameters.hostnames = ["127.0.0.1"]
    else:
        parameters.hostname = "127.0.0.1"
    parameters.port = port
    parameters.n_parallel = slots
    parameters.kv_unified = sys.argv[4:] == ["shared"]
    parameters.n_ctx = CONTEXT_TOKENS if parameters.kv_unified else slots * CONTEXT_TOKENS
    parameters.endpoint_metrics = parameters.endpoint_slots = True
    parameters.warmup = False
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 2
    server = xllamacpp.Server(parameters)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main()
