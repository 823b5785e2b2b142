"""Reference engine of the openengine.v1 protocol: small, readable, and it really generates."""
