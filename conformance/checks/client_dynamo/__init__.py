"""Checks of the needs that Dynamo's sidecars have; advisory, apart from every profile."""
