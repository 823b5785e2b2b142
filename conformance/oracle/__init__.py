"""What a right engine answers to a request: pure, from the final request and what was declared."""

from conformance.oracle.expectation import Expectation
from conformance.oracle.generate import expect

__all__ = ["Expectation", "expect"]
