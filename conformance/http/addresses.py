"""Which IP addresses are public: everything that is not known to be is refused, with a reason."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
_Networks = tuple[tuple[IPv4Network | IPv6Network, str], ...]


def _networks(*rows: tuple[str, str]) -> _Networks:
    return tuple((ip_network(text), reason) for text, reason in rows)


# IANA's special-purpose registries (RFC 6890 and updates), and what clouds add to them. The first
# network that holds an address names the reason, so the narrow ones stand first.
_REFUSED = _networks(
    ("169.254.169.254/32", "cloud metadata"),
    ("169.254.170.0/24", "cloud metadata"),  # credentials of containers
    ("100.100.100.200/32", "cloud metadata"),
    ("192.0.0.192/32", "cloud metadata"),
    ("168.63.129.16/32", "cloud metadata"),  # public by number, the host's agent in fact
    ("fd00:ec2::/32", "cloud metadata"),
    ("fd20:ce::254/128", "cloud metadata"),
    ("0.0.0.0/32", "unspecified"),
    ("0.0.0.0/8", "this network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier-grade NAT"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "protocol assignments"),
    ("192.0.2.0/24", "documentation"),
    ("192.88.99.0/24", "6to4 relay"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("::ffff:0:0/96", "IPv4-mapped"),
    ("::ffff:0:0:0/96", "IPv4-translated"),
    ("::/96", "IPv4-compatible"),
    ("64:ff9b::/96", "NAT64"),
    ("64:ff9b:1::/48", "NAT64"),
    ("100::/64", "discard-only"),
    ("2001::/32", "Teredo"),
    ("2001:db8::/32", "documentation"),
    ("2001::/23", "protocol assignments"),
    ("2002::/16", "6to4"),
    ("3fff::/20", "documentation"),
    ("5f00::/16", "segment routing"),
    ("fc00::/7", "unique local"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
)
# All that IANA has given out for global unicast so far.
_GLOBAL_V6 = IPv6Network("2000::/3")


def refusal(address: Address) -> str:
    """Why an address may not be reached over the network; empty for a public one."""
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "scoped"
    for network, reason in _REFUSED:
        if address.version == network.version and address in network:
            return reason
    if isinstance(address, IPv6Address) and address not in _GLOBAL_V6:
        return "not global unicast"
    # Whatever this Python knows and the table does not.
    return "" if address.is_global and not address.is_multicast else "not global"


def parse_address(text: str) -> Address | None:
    """The address that a resolver's answer spells; None for none."""
    try:
        return ip_address(text)
    except ValueError:
        return None
