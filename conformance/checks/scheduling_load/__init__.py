"""Checks of the scheduling_load profile, one module per group of requirements."""
