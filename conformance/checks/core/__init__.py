"""Checks of the core profile, one module per group of requirements."""
