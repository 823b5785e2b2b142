"""The `oe-engine` command."""
