"""The end of a tunnel in the kernel: the words for `ip`, and what cannot be one interface."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from nicbench.testbed.duts.tunnel_ends import TunnelEndOptions, link_words

ENDS = {"source": "192.0.2.1", "destination": "192.0.2.2"}
ENDS6 = {"source": "2001:db8::1", "destination": "2001:db8::2"}


def options(**tunnel: Any) -> TunnelEndOptions:
    return TunnelEndOptions.model_validate_json(json.dumps({"tunnel": tunnel}), strict=True)


@pytest.mark.parametrize(
    ("tunnel", "words"),
    [
        (
            {"kind": "vxlan", "vni": 7, **ENDS},
            "address 02:00:5e:00:00:02 type vxlan id 7 local 192.0.2.2 remote 192.0.2.1 dstport 4789",
        ),
        (
            {"kind": "geneve", "vni": 7, **ENDS6},
            "address 02:00:5e:00:00:02 type geneve id 7 remote 2001:db8::1 dstport 6081 udp6zerocsumtx udp6zerocsumrx",
        ),
        (
            {"kind": "geneve", "vni": 7, "ethernet": False, **ENDS},
            "type geneve id 7 remote 192.0.2.1 dstport 6081 innerprotoinherit",
        ),
        ({"kind": "gre", "key": 5, **ENDS}, "type gre local 192.0.2.2 remote 192.0.2.1 key 5"),
        (
            {"kind": "gre", "ethernet": True, **ENDS6},
            "address 02:00:5e:00:00:02 type ip6gretap local 2001:db8::2 remote 2001:db8::1",
        ),
        ({"kind": "ip", **ENDS}, "type ipip mode any local 192.0.2.2 remote 192.0.2.1"),
        ({"kind": "ip", **ENDS6}, "type ip6tnl mode any local 2001:db8::2 remote 2001:db8::1"),
    ],
)
def test_the_interface_is_made_with_the_ends_exchanged(tunnel: dict[str, Any], words: str) -> None:
    assert " ".join(link_words(options(**tunnel).tunnel)) == words


@pytest.mark.parametrize(
    ("tunnel", "why"),
    [
        ({"kind": "gre"}, "the ends of the tunnel are not known"),
        ({"kind": "vxlan", "vni": {"first": 1, "count": 2}, **ENDS}, "one number, not several"),
        ({"kind": "pppoe", "session": 1}, "vxlan"),
    ],
)
def test_what_is_no_interface_of_the_kernel_is_refused(tunnel: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        options(**tunnel)
