"""Guided decoding: outputs that belong to a language which the caller describes."""
