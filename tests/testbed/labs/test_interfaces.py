"""Interfaces that may not be used are refused with the reason and the way out; what `ip` answers was recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nicbench.core.errors import NotReadyError
from nicbench.testbed.interfaces.host_interfaces import Interfaces, check_interface

GOLDEN = Path(__file__).parents[2] / "golden" / "interfaces"


def _read(name: str) -> str:
    return (GOLDEN / f"{name}.json").read_text()


@pytest.fixture
def interfaces() -> Interfaces:
    """A namespace with a port for each of these fates; `way0` carries its default route."""
    return Interfaces.parse(_read("link"), _read("address"), [_read("route4"), _read("route6")], {"far0": "other"})


def test_an_interface_that_is_up_and_unused_may_be_used(interfaces: Interfaces) -> None:
    assert check_interface(interfaces, "up0", "tester", for_tester=True)["address"].startswith("02:6e:62:")


@pytest.mark.parametrize(
    ("device", "message", "next_step"),
    [
        pytest.param("none0", "there is no interface none0", "up0", id="none: those that are there are named"),
        pytest.param("far0", "in the network namespace other", "namespace: other", id="in another namespace"),
        pytest.param("way0", "carries the default route", "another interface", id="default route"),
        pytest.param("busy0", "in use: it has the address 192.0.2.1/24", "ip address flush dev busy0", id="address"),
        pytest.param("member0", "member of the bridge br0", "nomaster", id="member of a bridge"),
        pytest.param("xdp0", "has an XDP program", "xdp off", id="XDP program"),
        pytest.param("down0", "is down", "ip link set dev down0 up", id="down"),
        pytest.param("nocarrier0", "no carrier", "the other end", id="no carrier"),
        pytest.param("lo", "loopback", "a link", id="loopback"),
    ],
)
def test_the_tester_may_not_use_an_interface_and_is_told_why(
    interfaces: Interfaces, device: str, message: str, next_step: str
) -> None:
    with pytest.raises(NotReadyError) as caught:
        check_interface(interfaces, device, "tester, port t0", for_tester=True)

    assert message in caught.value.message
    assert next_step in str(caught.value.next_step)
    assert caught.value.place == "tester, port t0"


@pytest.mark.parametrize(
    ("device", "next_step"),
    [
        pytest.param("nwp7", "did you mean nwp1? There are also: ifb0, nwp0", id="one digit is wrong"),
        pytest.param("port7", "choose one of those that a test may use: ifb0, nwp0, nwp1", id="none is similar"),
        pytest.param("eth1", "choose one of those that a test may use: ifb0, nwp0, nwp1", id="like the way out"),
    ],
)
def test_what_is_proposed_for_a_name_that_no_interface_has_may_be_used(device: str, next_step: str) -> None:
    links = [
        {"ifname": "lo", "flags": ["LOOPBACK", "UP"]},
        {"ifname": "eth0", "flags": ["UP"]},
        {"ifname": "eth0.5", "flags": ["UP"], "link": "eth0", "linkinfo": {"info_kind": "vlan"}},
        *({"ifname": name, "flags": ["UP"]} for name in ("ifb0", "nwp0", "nwp1")),
    ]
    found = Interfaces.parse(json.dumps(links), "[]", ['[{"dst": "default", "dev": "eth0"}]'])
    with pytest.raises(NotReadyError) as caught:
        check_interface(found, device, "tester", for_tester=True)

    assert caught.value.next_step == next_step


@pytest.mark.parametrize("device", ["busy0", "member0", "xdp0"])
def test_a_dut_may_have_an_address_a_bridge_and_a_program_of_its_own(interfaces: Interfaces, device: str) -> None:
    assert check_interface(interfaces, device, "dut", for_tester=False)["ifname"] == device


def test_not_even_a_dut_may_use_the_interface_with_the_default_route(interfaces: Interfaces) -> None:
    with pytest.raises(NotReadyError, match="default route"):
        check_interface(interfaces, "way0", "dut", for_tester=False)


@pytest.mark.parametrize(
    ("route", "extra_links"),
    [
        pytest.param({"dst": "default", "dev": "up0", "metric": 600}, [], id="by a second default route"),
        pytest.param(
            {"dst": "default", "nexthops": [{"dev": "busy0"}, {"dev": "up0"}]}, [], id="by one of several paths"
        ),
        pytest.param(
            {"dst": "default", "dev": "up0.7"},
            [{"ifname": "up0.7", "link": "up0", "linkinfo": {"info_kind": "vlan"}}],
            id="under a VLAN",
        ),
        pytest.param(
            {"dst": "default", "dev": "bond0"},
            [{"ifname": "bond0"}, {"ifname": "up0", "master": "bond0"}],
            id="as a member of a bond",
        ),
    ],
)
def test_the_default_route_is_found_however_it_is_carried(
    route: dict[str, object], extra_links: list[dict[str, object]]
) -> None:
    links = json.loads(_read("link")) + extra_links
    interfaces = Interfaces.parse(json.dumps(links), _read("address"), [json.dumps([route])])
    with pytest.raises(NotReadyError, match="carries the default route"):
        check_interface(interfaces, "up0", "tester", for_tester=True)


VLAN = {"ifname": "on0", "link": "way0", "linkinfo": {"info_kind": "vlan"}}
MACVLAN = {"ifname": "on0", "link_index": 13, "linkinfo": {"info_kind": "macvlan"}}  # way0 by its number
BRIDGED = [{"ifname": "up0", "master": "br1"}, {"ifname": "way0", "master": "br1"}]
STACKED = {"ifname": "on0", "link": "on1", "linkinfo": {"info_kind": "ipvlan"}}


@pytest.mark.parametrize(
    ("device", "extra_links"),
    [
        pytest.param("on0", [VLAN], id="a VLAN on it"),
        pytest.param("on0", [MACVLAN], id="a macvlan on it"),
        pytest.param("on0", [STACKED, {**VLAN, "ifname": "on1"}], id="an ipvlan on a VLAN on it"),
        pytest.param("pway0", [], id="the other end of its veth pair"),
        pytest.param("pup0", [*BRIDGED, {"ifname": "br1"}], id="a veth pair into its bridge"),
    ],
)
@pytest.mark.parametrize("for_tester", [True, False])
def test_an_interface_whose_frames_come_to_the_default_route_is_refused(
    device: str, extra_links: list[dict[str, object]], for_tester: bool
) -> None:
    replaced = {link["ifname"] for link in extra_links}
    links = [link for link in json.loads(_read("link")) if link["ifname"] not in replaced] + extra_links
    interfaces = Interfaces.parse(json.dumps(links), "[]", [_read("route4")])
    with pytest.raises(NotReadyError, match="which carries the default route"):
        check_interface(interfaces, device, "tester", for_tester=for_tester)


def test_a_macvlan_on_an_interface_of_another_namespace_is_refused_for_nobody_knows_where_it_leads() -> None:
    link = {"ifname": "on0", "link_index": 2, "link_netnsid": 0, "linkinfo": {"info_kind": "macvlan"}}
    interfaces = Interfaces.parse(json.dumps([link]), "[]", [])
    with pytest.raises(NotReadyError, match="another network namespace"):
        check_interface(interfaces, "on0", "tester", for_tester=True)


def test_a_veth_whose_other_end_is_in_another_namespace_may_be_used() -> None:
    link = {
        "ifname": "up0", "flags": ["UP", "LOWER_UP"], "link_index": 2, "link_netnsid": 0,
        "linkinfo": {"info_kind": "veth"},
    }  # fmt: skip
    interfaces = Interfaces.parse(json.dumps([link]), "[]", [])
    assert check_interface(interfaces, "up0", "tester", for_tester=True)["ifname"] == "up0"


def test_an_interface_is_known_by_its_other_names_too() -> None:
    interfaces = Interfaces.parse(json.dumps([{"ifname": "eth0", "altnames": ["enp3s0"]}]), "[]", [])
    assert [interfaces.name_of(text) for text in ("eth0", "enp3s0", "eth0:1", "eth1")] == ["eth0", "eth0", "eth0", None]
