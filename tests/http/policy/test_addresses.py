from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.http.addresses import parse_address, refusal

REFUSED = {
    "0.0.0.0": "unspecified",
    "0.1.2.3": "this network",
    "10.255.255.255": "private",
    "100.64.0.1": "carrier-grade NAT",
    "100.127.255.255": "carrier-grade NAT",
    "100.100.100.200": "cloud metadata",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "168.63.129.16": "cloud metadata",
    "169.254.0.23": "link-local",
    "169.254.169.254": "cloud metadata",
    "169.254.170.2": "cloud metadata",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.0.0.8": "protocol assignments",
    "192.0.0.192": "cloud metadata",
    "192.0.2.1": "documentation",
    "192.88.99.1": "6to4 relay",
    "192.168.1.1": "private",
    "198.19.0.1": "benchmarking",
    "203.0.113.7": "documentation",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "::": "unspecified",
    "::1": "loopback",
    "::7f00:1": "IPv4-compatible",
    "::ffff:127.0.0.1": "IPv4-mapped",
    "::ffff:8.8.8.8": "IPv4-mapped",
    "64:ff9b::808:808": "NAT64",
    "64:ff9b:1::1": "NAT64",
    "100::1": "discard-only",
    "2001:0:4136:e378::1": "Teredo",
    "2001:20::1": "protocol assignments",
    "2001:db8::1": "documentation",
    "2002:7f00:1::": "6to4",
    "3fff::1": "documentation",
    "4000::1": "not global unicast",
    "fc00::1": "unique local",
    "fd00:ec2::254": "cloud metadata",
    "fd20:ce::254": "cloud metadata",
    "fd12:3456::1": "unique local",
    "fe80::1": "link-local",
    "fe80::1%1": "scoped",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
}
PUBLIC = ("1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.15.0.1")
PUBLIC_V6 = ("2606:4700:4700::1111", "2a00:1450:4001:82a::200e", "2620:fe::fe")


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_refused(text: str, reason: str) -> None:
    """Each kind of address that is not public is refused by its name."""
    assert refusal(ip_address(text)) == reason


@pytest.mark.parametrize("text", [*PUBLIC, *PUBLIC_V6])
def test_public(text: str) -> None:
    """Public addresses pass, those beside a refused network, too."""
    assert refusal(ip_address(text)) == ""


@given(st.ip_addresses(v=4))
def test_ipv4_against_the_library(address: IPv4Address) -> None:
    """What passes is global to the standard library as well, and no multicast."""
    if not refusal(address):
        assert address.is_global
        assert not address.is_multicast
        assert not address.is_private


@given(st.ip_addresses(v=6))
def test_ipv6_against_the_library(address: IPv6Address) -> None:
    """What passes carries no IPv4 address inside, and is global unicast."""
    if not refusal(address):
        assert address.is_global
        assert address.ipv4_mapped is None
        assert address.sixtofour is None
        assert address.teredo is None


@given(st.ip_addresses(v=4))
def test_no_tunnel_to_any_ipv4(address: IPv4Address) -> None:
    """An IPv4 address is refused in every IPv6 form of it, a public one as well."""
    number = int(address)
    for base, shift in (("::ffff:0:0", 0), ("64:ff9b::", 0), ("::", 0), ("2002::", 80)):
        assert refusal(IPv6Address(int(IPv6Address(base)) | number << shift))


def test_no_address() -> None:
    """A resolver's answer that is no address is none."""
    assert parse_address("127.1") is None
    assert parse_address("127.0.0.1") == IPv4Address("127.0.0.1")
