"""Checks of the contract of workers over HTTP."""
