"""The gRPC face of the engine: what it advertises, how it refuses, and its servicers."""
