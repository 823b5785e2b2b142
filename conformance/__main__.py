"""`python -m conformance` is `oe-conform`, for callers that know their interpreter only."""

from conformance.cli.main import main

main()
