"""Mutants of Responses, by what they break."""
