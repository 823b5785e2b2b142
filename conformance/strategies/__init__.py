"""Requests built from what an engine declares; the simplest ones come first when shrinking."""

from conformance.strategies.fault import Fault
from conformance.strategies.faults import faults, single_faults
from conformance.strategies.requests import Feature, cases, requests
from conformance.strategies.simple import simple_case, simple_request, takes_tokens

__all__ = [
    "Fault",
    "Feature",
    "cases",
    "faults",
    "requests",
    "simple_case",
    "simple_request",
    "single_faults",
    "takes_tokens",
]
