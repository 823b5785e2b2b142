"""The table of RPCs that CAP-007 asks for must fit the profiles."""

from __future__ import annotations

import pytest

from conformance.checks.core.capability_rpcs import ASKED, REFUSED
from conformance.model.registry import default_registry
from oe_wire.services import METHODS

OPTIONAL = [profile.name for profile in default_registry().profiles if profile.name != "core"]


def test_every_optional_profile_is_asked_for() -> None:
    """A profile without an RPC in the table could be served unseen."""
    assert sorted(ASKED) == sorted(OPTIONAL)


@pytest.mark.parametrize("name", OPTIONAL)
def test_an_rpc_that_is_asked_for_belongs_to_its_profile_only(name: str) -> None:
    """Else it would be right to serve it although the profile is not advertised."""
    for method, request in ASKED[name]:
        owners = {
            profile.name
            for profile in default_registry().profiles
            if method in dict(profile.methods())
        }
        assert owners == {name}
        assert isinstance(request, METHODS[method].request)


def test_requests_that_must_be_refused_fit_their_rpcs() -> None:
    """Each is of the type that its RPC takes."""
    for method, request in REFUSED.items():
        assert isinstance(request, METHODS[method].request)
