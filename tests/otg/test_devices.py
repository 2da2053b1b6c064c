"""Emulated devices: what they are to the engine, and how flows between them become flows between ports."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from nicbench.otg.configuration import Configuration, read_configuration
from nicbench.otg.devices import Gateway
from nicbench.otg.flows import ServedPort
from nicbench.otg.model import INVALID, NOT_IMPLEMENTED, OtgError

from .frames import PORTS, SERVED, frame_of, header, value_of

ROUTER = "02:00:00:00:00:fe"


def device(number: int, port: int, **members: Any) -> dict[str, Any]:
    """A device with an interface ``eN``, and the addresses ``iN`` and ``sN`` in the networks of its port."""
    ethernet = {
        "name": f"e{number}",
        "mac": f"02:00:00:00:00:{number:02x}",
        "connection": {"choice": "port_name", "port_name": f"p{port}"},
        "ipv4_addresses": [{"name": f"i{number}", "address": f"10.0.{port}.{number}", "gateway": f"10.0.{port}.254"}],
        "ipv6_addresses": [
            {"name": f"s{number}", "address": f"2001:db8:{port}::{number}", "gateway": f"2001:db8:{port}::fe"}
        ],
    }
    return {"name": f"d{number}", "ethernets": [ethernet | members]}


DEVICES = [device(1, 1), device(2, 1), device(3, 2), device(4, 2)]


def flow(senders: list[str], receivers: list[str], *kinds: str, **members: Any) -> dict[str, Any]:
    """A flow between devices without metrics, with headers that are left open."""
    ends = {"tx_names": senders, "rx_names": receivers} | members
    packet = [header(kind) for kind in kinds]
    return {"name": "f", "tx_rx": {"choice": "device", "device": ends}, "packet": packet}


def read(*flows: dict[str, Any], devices: Any = DEVICES, macs: dict[Gateway, str] | None = None) -> Configuration:
    return read_configuration({"ports": PORTS, "devices": devices, "flows": list(flows)}, SERVED, 1, macs)


def refused(*flows: dict[str, Any], devices: Any = DEVICES) -> OtgError:
    with pytest.raises(OtgError) as caught:
        read(*flows, devices=devices)
    return caught.value


def addresses_of(configuration: Configuration, frames: int) -> list[tuple[str, ...]]:
    """Destination and source MAC address, source and destination of IPv4, of the first frames of the first flow."""
    made = [frame_of(configuration.flows[0].program, number) for number in range(frames)]
    return [
        (*(frame[at : at + 6].hex(":") for at in (0, 6)), *(str(ip_address(frame[at : at + 4])) for at in (26, 30)))
        for frame in made
    ]


def gateway(interface: str, address: str) -> Gateway:
    return interface, ip_address(address)


def test_a_flow_has_the_addresses_of_every_pair_in_turn_and_the_gateways_mac() -> None:
    macs = {gateway(f"e{number}", "10.0.1.254"): ROUTER for number in (1, 2)}
    made = read(flow(["i1", "i2"], ["i3", "i4"], "ethernet", "ipv4", "udp"), macs=macs)
    own, other = "02:00:00:00:00:01", "02:00:00:00:00:02"
    assert addresses_of(made, 5) == [
        (ROUTER, own, "10.0.1.1", "10.0.2.3"),
        (ROUTER, own, "10.0.1.1", "10.0.2.4"),
        (ROUTER, other, "10.0.1.2", "10.0.2.3"),
        (ROUTER, other, "10.0.1.2", "10.0.2.4"),
        (ROUTER, own, "10.0.1.1", "10.0.2.3"),
    ]
    assert (made.flows[0].transmit, made.flows[0].receive) == ("p1", ("p2",))
    assert made.needs == {0: frozenset(macs)}
    one_to_one = read(flow(["i1", "i2"], ["i3", "i4"], "ethernet", "ipv4", mode="one_to_one"), macs=macs)
    assert [pair[2:] for pair in addresses_of(one_to_one, 2)] == [("10.0.1.1", "10.0.2.3"), ("10.0.1.2", "10.0.2.4")]


def test_what_is_given_is_sent_as_it_is_given() -> None:
    one = flow(["i1"], ["i3"])
    one["packet"] = [
        header("ethernet", src="02:0a:0a:0a:0a:0a", dst="02:0b:0b:0b:0b:0b"),
        header("ipv4", dst=["1.1.1.1", "1.1.1.2"]),
    ]
    made = addresses_of(read(one), 2)
    assert made[0] == ("02:0b:0b:0b:0b:0b", "02:0a:0a:0a:0a:0a", "10.0.1.1", "1.1.1.1")
    assert made[1][3] == "1.1.1.2"


def test_names_of_interfaces_stand_for_the_address_of_the_packets_version() -> None:
    six = read(flow(["e1"], ["e3"], "ethernet", "ipv6"), macs={gateway("e1", "2001:db8:1::fe"): ROUTER})
    frame = frame_of(six.flows[0].program, 0)
    assert (frame[:6].hex(":"), ip_address(frame[22:38])) == (ROUTER, ip_address("2001:db8:1::1"))
    without_ip = read(flow(["e1"], ["e3", "e4"], "ethernet"))
    field = without_ip.flows[0].program["fields"][0]
    assert [value_of(field["values"], 48, number) for number in (0, 1)] == [0x020000000003, 0x020000000004]
    assert not without_ip.needs


def test_neighbours_of_one_subnet_need_no_gateway() -> None:
    alike = [device(1, 1), device(2, 2, ipv4_addresses=[{"name": "i2", "address": "10.0.1.9", "gateway": "10.0.1.1"}])]
    made = read(flow(["i1"], ["i2"], "ethernet", "ipv4"), devices=alike)
    assert addresses_of(made, 1) == [("02:00:00:00:00:02", "02:00:00:00:00:01", "10.0.1.1", "10.0.1.9")]
    assert not made.needs


def test_a_gateway_whose_mac_is_given_is_not_asked_for() -> None:
    given = {"name": "i1", "address": "10.0.1.1", "gateway": "10.0.1.254", "gateway_mac": {"value": "2:0:0:0:0:fe"}}
    made = read(flow(["i1"], ["i3"], "ethernet", "ipv4"), devices=[device(1, 1, ipv4_addresses=[given]), *DEVICES[2:]])
    assert (addresses_of(made, 1)[0][0], made.needs) == (ROUTER, {})
    assert [each["gateway"] for each in made.devices.hosts[0].program([0])["addresses"]] == [None, "2001:db8:1::fe"]


def test_tags_of_interfaces_go_to_the_engine_and_into_tags_of_packets() -> None:
    vlans = [{"name": "v", "id": 7, "tpid": "x88A8"}, {"name": "w", "id": 9, "priority": 3}]
    made = read(
        flow(["e1"], ["e3"], "ethernet", "vlan", "vlan", "ipv4"), devices=[device(1, 1, vlans=vlans), *DEVICES[2:]]
    )
    assert frame_of(made.flows[0].program, 0)[14:20].hex() == "000781000009"
    program = made.devices.hosts[0].program([5, 6])
    assert (program["port"], program["further_ports"], program["mac"]) == (5, [6], "02:00:00:00:00:01")
    assert program["tags"] == [
        {"tag_type": 0x88A8, "priority": 0, "id": 7},
        {"tag_type": 0x8100, "priority": 3, "id": 9},
    ]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"connection": {"choice": "vxlan_name", "vxlan_name": "l"}}, "connection.vxlan_name"),
        ({"dhcpv4_interfaces": [{"name": "dhcp"}]}, "dhcpv4_interfaces"),
        ({"vlans": [{"name": "v", "tpid": "x9300"}]}, "vlans[0].tpid"),
    ],
)
def test_what_is_not_emulated_is_refused_with_its_path(change: dict[str, Any], path: str) -> None:
    error = refused(devices=[device(1, 1, **change)])
    assert (error.code, error.errors[0].split(": ")[0]) == (NOT_IMPLEMENTED, f"config.devices[0].ethernets[0].{path}")


def test_devices_that_cannot_be_are_refused_with_their_paths() -> None:
    twice = [device(1, 1), device(1, 1, mac="01:00:00:00:00:01")]
    errors = refused(devices=[*twice, device(7, 9, mac="")]).errors
    assert [error.split(": ")[0] for error in errors] == [
        "config.devices[1].name",
        "config.devices[1].ethernets[0].name",
        "config.devices[1].ethernets[0].ipv4_addresses[0].name",
        "config.devices[1].ethernets[0].ipv6_addresses[0].name",
        "config.devices[1].ethernets[0].mac",
        "config.devices[2].ethernets[0].connection.port_name",
        "config.devices[2].ethernets[0].mac",
        "config.devices",
        "config.devices",
    ]


@pytest.mark.parametrize(
    ("one", "path"),
    [
        (flow(["i1"], ["x"], "ethernet"), "rx_names[0]"),
        (flow([], ["i1"], "ethernet"), "tx_names"),
        (flow(["i1"], ["i3", "i4"], "ethernet", mode="one_to_one"), ""),
        (flow(["i1", "i2"], ["i2", "i3"], "ethernet"), ""),
    ],
)
def test_endpoints_that_cannot_be_are_refused_with_their_paths(one: dict[str, Any], path: str) -> None:
    error = refused(one)
    assert error.code == INVALID
    assert error.errors[0].split(": ")[0] == f"config.flows[0].tx_rx.device.{path}".rstrip(".")


def test_a_device_stands_for_its_interfaces_and_a_flow_is_sent_by_each_port_of_its_senders() -> None:
    both = read(flow(["d1", "d3"], ["d2", "d4"], "ethernet", "ipv4", mode="one_to_one"))
    assert [(each.name, each.transmit, each.receive) for each in both.flows] == [
        ("f", "p1", ("p1",)),
        ("f", "p2", ("p2",)),
    ]
    back = read(flow(["i1"], ["i3"], "ethernet", "ipv4", bidirectional=True))
    assert [(each.transmit, each.receive) for each in back.flows] == [("p1", ("p2",)), ("p2", ("p1",))]
    assert back.needs == {0: {("e1", ip_address("10.0.1.254"))}, 1: {("e3", ip_address("10.0.2.254"))}}
    ends = [frame_of(each.program, 0)[26:34] for each in back.flows]
    assert ends[0][:4] + ends[0][4:] == ends[1][4:] + ends[1][:4]


def lag(*ports: str, protocol: str = "static") -> dict[str, Any]:
    """A group ``l`` of these ports."""
    members = [{"port_name": port, "ethernet": {"name": f"l{port}", "mac": "02:00:00:00:01:01"}} for port in ports]
    return {"name": "l", "ports": members, "protocol": {"choice": protocol, protocol: {}}}


def test_the_ports_of_a_static_group_share_the_frames_of_its_hosts() -> None:
    there = {"connection": {"choice": "lag_name", "lag_name": "l"}}
    served = {**SERVED, "third": ServedPort(2, "third", 10e9)}
    ports = [*PORTS, {"name": "p3", "location": "third"}]
    devices = [device(1, 1, **there), device(3, 3)]
    config: dict[str, Any] = {"ports": ports, "devices": devices, "lags": [lag("p1", "p2")]}
    one = flow(["i1"], ["i3"], "ethernet", "ipv4")
    config["flows"] = [{**one, "rate": {"pps": "30"}, "duration": {"fixed_packets": {"packets": 7}}}]
    made = read_configuration(config, served, 1)
    told = [(each.transmit, each.program["rate_frames_per_s"], each.program["frames"]) for each in made.flows]
    assert told == [("p1", 15, 3), ("p2", 15, 4)]
    assert made.devices.hosts[0].ports == ("p1", "p2")
    back = {**config, "flows": [flow(["i3"], ["i1"], "ethernet", "ipv4")]}
    assert read_configuration(back, served, 1).flows[0].receive == ("p1", "p2")


def test_flows_between_groups_are_sent_and_received_by_their_ports() -> None:
    served = {name: ServedPort(number, name, 10e9) for number, name in enumerate("abcd")}
    ports = [{"name": f"p{number}", "location": name} for number, name in enumerate("abcd", start=1)]
    groups = [lag("p1", "p2"), {**lag("p3", "p4"), "name": "m"}]
    one = {"name": "f", "tx_rx": {"port": {"tx_name": "l", "rx_names": ["m"]}}, "packet": [{"choice": "ethernet"}]}
    config = {"ports": ports, "lags": groups, "flows": [{**one, "duration": {"fixed_packets": {"packets": 7}}}]}
    made = read_configuration(config, served, 1)
    told = [(each.transmit, each.receive, each.program["frames"]) for each in made.flows]
    assert told == [("p1", ("p3", "p4"), 3), ("p2", ("p3", "p4"), 4)]


def test_groups_that_cannot_be_are_refused_with_their_paths() -> None:
    twice = {**lag("p1"), "name": "m"}
    for lags, code, path in (
        ([lag("p1", protocol="lacp")], NOT_IMPLEMENTED, "config.lags[0].protocol.lacp"),
        ([lag()], INVALID, "config.lags[0].ports"),
        ([lag("p9")], INVALID, "config.lags[0].ports[0].port_name"),
        ([lag("p1"), twice], INVALID, "config.lags[1].ports[0].port_name"),
    ):
        with pytest.raises(OtgError) as caught:
            read_configuration({"ports": PORTS, "lags": lags}, SERVED, 1)
        assert (caught.value.code, caught.value.errors[0].split(": ")[0]) == (code, path)


def test_more_hosts_than_a_port_has_are_refused() -> None:
    ethernet = {"mac": "02:00:00:00:00:01", "connection": {"port_name": "p1"}}
    many = [{"name": "d", "ethernets": [{"name": f"e{number}", **ethernet} for number in range(1025)]}]
    assert refused(devices=many).errors == ["config.devices: have 1025 ethernets at port 'p1', of at most 1024"]


def test_a_flow_may_have_more_pairs_than_16_bits_count() -> None:
    def hosts(port: int) -> dict[str, Any]:
        numbers = [(host, number) for host in range(5) for number in range(52)]
        ethernets = [
            {
                "name": f"e{port}-{host}",
                "mac": f"02:00:00:00:{port:02x}:{host:02x}",
                "connection": {"choice": "port_name", "port_name": f"p{port}"},
                "ipv4_addresses": [
                    {"name": f"{port}-{each}-{number}", "address": f"10.{port}.{each}.{number + 1}", "prefix": 8}
                    | {"gateway": "10.0.0.1"}
                    for each, number in numbers
                    if each == host
                ],
            }
            for host in range(5)
        ]
        return {"name": f"d{port}", "ethernets": ethernets}

    names = [[f"{port}-{host}-{number}" for host in range(5) for number in range(52)] for port in (1, 2)]
    made = read(flow(*names, "ethernet", "ipv4", "udp"), devices=[hosts(1), hosts(2)])
    lists = [each["values"]["list"] for each in made.flows[0].program["fields"]]
    assert {len(values) for values in lists} == {260 * 260}
    assert len({(source, destination) for *_, source, destination in zip(*lists, strict=True)}) == 260 * 260
    assert addresses_of(made, 1) == [("02:00:00:00:02:00", "02:00:00:00:01:00", "10.1.0.1", "10.2.0.1")]
