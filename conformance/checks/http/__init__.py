"""Checks of the HTTP contracts."""
