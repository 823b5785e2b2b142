"""Checks of the profile testing."""
