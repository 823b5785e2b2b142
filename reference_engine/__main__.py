"""`python -m reference_engine` is `oe-engine`, for callers that know their interpreter only."""

from reference_engine.cli.main import main

main()
