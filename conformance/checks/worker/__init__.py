"""Checks of the worker contract."""
