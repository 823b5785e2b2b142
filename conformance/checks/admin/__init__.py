"""Checks of the profile admin, one module per group of requirements."""
