"""The command line `oe-conform`."""

import os

# gRPC reads it when it is imported. Its own log lines about a failed handshake would stand
# around the one line that says what is wrong.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
