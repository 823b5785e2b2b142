"""Mutants of what the two text APIs share."""
