"""Judges inference engines against the OpenEngine profiles, with evidence for every failure."""
