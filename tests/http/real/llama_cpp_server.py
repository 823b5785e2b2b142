"""llama.cpp's server from the package xllamacpp: `python llama_cpp_server.py MODEL PORT SLOTS
CONTEXT`, with so many tokens of context for each slot, or with a fifth word `shared` for one cache
of so many that all slots share.

It ends when its standard input is closed, so it cannot outlive the test that started it.
"""

import sys

import xllamacpp


def main() -> None:
    """Serve until standard input ends."""
    model = sys.argv[1]
    port, slots, context = (int(word) for word in sys.argv[2:5])
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    # Newer packages can listen on several addresses.
    if hasattr(parameters, "hostnames"):
        parameters.hostnames = ["127.0.0.1"]
    else:
        parameters.hostname = "127.0.0.1"
    parameters.port = port
    parameters.n_parallel = slots
    parameters.kv_unified = sys.argv[5:] == ["shared"]
    parameters.n_ctx = context if parameters.kv_unified else slots * context
    parameters.endpoint_metrics = parameters.endpoint_slots = True
    parameters.warmup = False
    # Threads that wait for each other spin: on two shared cores a token of a small model took two
    # threads nearly twice as long as one.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main()
