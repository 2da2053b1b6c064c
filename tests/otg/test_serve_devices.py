"""Emulated devices at the simulated ports of a server, driven by the real client: they find each other, and flows
between them have the addresses that were found.
"""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import grpc
import pytest

from nicbench.otg.v1.nicbench_pb2 import GetHostsRequest
from nicbench.otg.v1.nicbench_pb2_grpc import NicbenchStub

from .served import (
    Served,
    add_flow,
    capture,
    captured_frames,
    configured,
    flow_metrics,
    transmit,
    wait_for_stop,
    wait_until,
)

MACS = {1: "02:00:00:00:00:01", 2: "02:00:00:00:00:02"}


def add_device(config: Any, number: int, gateway: int, vlan: int | None = None) -> None:
    """A device at port ``number``, in a subnet of its own; its gateway is the device of the other port."""
    ethernet = config.devices.add(name=f"d{number}").ethernets.add(name=f"e{number}", mac=MACS[number])
    ethernet.connection.port_name = f"p{number}"
    if vlan is not None:
        ethernet.vlans.add(name=f"v{number}", id=vlan)
    ethernet.ipv4_addresses.add(name=f"i{number}", address=f"10.0.0.{number}", gateway=f"10.0.0.{gateway}", prefix=32)
    ethernet.ipv6_addresses.add(
        name=f"s{number}", address=f"2001:db8::{number}", gateway=f"2001:db8::{gateway}", prefix=128
    )


def with_devices(api: Any, *, gateway: int = 2, vlan: int | None = None, frames: int = 20) -> Any:
    """Devices at both ports, and a flow from the first to the second whose addresses are left open."""
    config = configured(api)
    add_device(config, 1, gateway, vlan)
    add_device(config, 2, 1, vlan)
    flow = add_flow(config, "f", frames=frames)
    flow.tx_rx.device.tx_names, flow.tx_rx.device.rx_names = ["i1"], ["i2"]
    flow.packet.ethernet()
    if vlan is not None:
        flow.packet.vlan()
    flow.packet.ipv4()
    flow.packet.udp()
    return config


def control_protocols(api: Any, state: str) -> None:
    control = api.control_state()
    control.protocol.all.state = state
    api.set_control_state(control)


def neighbours(api: Any, version: int = 4, *names: str) -> dict[str, tuple[str, str | None]]:
    """Whom each interface asks for, with the MAC address that was found."""
    request = api.states_request()
    request.choice = f"ipv{version}_neighbors"
    getattr(request, request.choice).ethernet_names = list(names)
    told = getattr(api.get_states(request), request.choice)
    return {each.ethernet_name: (getattr(each, f"ipv{version}_address"), each.link_layer_address) for each in told}


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_devices_find_each_other_until_protocols_are_stopped(server: Served, transport: str) -> None:
    api = server.api(transport)
    api.set_config(with_devices(api))
    found = {"e1": ("10.0.0.2", MACS[2]), "e2": ("10.0.0.1", MACS[1])}
    wait_until(lambda: neighbours(api) == found)
    assert neighbours(api, 4, "e2") == {"e2": found["e2"]}
    wait_until(lambda: neighbours(api, 6)["e1"] == ("2001:db8::2", MACS[2]))
    with pytest.raises(Exception, match=r"ethernet_names\[0\]: no ethernet"):
        neighbours(api, 4, "nobody")
    control_protocols(api, "stop")
    assert neighbours(api) == {}
    control_protocols(api, "start")
    wait_until(lambda: neighbours(api) == found)


@pytest.mark.parametrize("vlan", [None, 9])
def test_a_flow_between_devices_goes_to_the_gateway_that_answered(server: Served, vlan: int | None) -> None:
    api = server.api()
    api.set_config(with_devices(api, vlan=vlan))
    capture(api, "start")
    transmit(api, "start")  # which starts the devices too
    metric = wait_for_stop(api)["f"]
    assert (metric.frames_tx, metric.frames_rx, metric.loss, metric.port_tx, metric.port_rx) == (20, 20, 0, "p1", "p2")
    capture(api, "stop")
    own = [frame for frame in captured_frames(api, "p2") if frame[23 + 4 * (vlan is not None) :][:1] == b"\x11"]
    assert {frame[:12].hex(":") for frame in own} == {f"{MACS[2]}:{MACS[1]}"}
    assert {frame[12:16].hex() for frame in own} == {"08004500" if vlan is None else "81000009"}
    told = json.load(urllib.request.urlopen(f"{server.http}/nicbench/v1/hosts"))
    assert (told["started"], told["duplicates"]) == (True, [])
    assert [(port["name"], port["arp_answered"]) for port in told["ports"]] >= [("p1", 1), ("p2", 1)]
    with grpc.insecure_channel(server.grpc) as channel:
        same = NicbenchStub(channel).GetHosts(GetHostsRequest())
    assert [(each.ethernet, each.address, each.mac, each.state) for each in same.neighbours] == [
        (each["ethernet"], each["address"], each["mac"] or "", "reachable" if each["mac"] else "incomplete")
        for each in told["neighbours"]
    ]
    assert [port.arp_answered for port in same.ports] == [port["arp_answered"] for port in told["ports"]]


def test_a_gateway_that_does_not_answer_is_named_and_nothing_is_sent(server: Served) -> None:
    api = server.api()
    api.set_config(with_devices(api, gateway=77))
    with pytest.raises(Exception, match=r"config.devices: ''e1'': 10.0.0.77 does not"):
        transmit(api, "start")
    assert flow_metrics(api)["f"].frames_tx == 0


def test_two_devices_with_one_address_are_told(server: Served) -> None:
    api = server.api()
    config = with_devices(api)
    config.devices[1].ethernets[0].ipv4_addresses[0].address = "10.0.0.1"
    api.set_config(config)
    control_protocols(api, "start")

    def told() -> Any:
        told = json.load(urllib.request.urlopen(f"{server.http}/nicbench/v1/hosts"))
        return {(each["ethernet"], each["address"], each["mac"]) for each in told["duplicates"]}

    wait_until(lambda: {("e1", "10.0.0.1", MACS[2]), ("e2", "10.0.0.1", MACS[1])} <= told())
    config.flows[0].tx_rx.device.tx_names, config.flows[0].tx_rx.device.rx_names = ["s1"], ["s2"]
    config.flows[0].packet.clear()
    config.flows[0].packet.ethernet().ipv6().udp()
    api.set_config(config)
    transmit(api, "start")
    wait_for_stop(api)
    note = f"10.0.0.1 of e1 is claimed by {MACS[2]} too"
    wait_until(lambda: any(note in event.get("text", "") for event in server.events()))
    assert list(server.run_folder().glob("raw/hosts-*.json"))


def test_an_address_of_ipv6_that_another_had_first_is_not_used_and_named(server: Served) -> None:
    api = server.api()
    config = with_devices(api)
    config.devices[1].ethernets[0].ipv6_addresses[0].address = "2001:db8::1"
    config.devices[1].ethernets[0].ipv6_addresses[0].gateway = "2001:db8::9"
    api.set_config(config)
    transmit(api, "start")  # IPv4 is not affected
    assert wait_for_stop(api)["f"].frames_rx == 20
    note = f"2001:db8::1 of e1 is claimed by {MACS[2]} too, 1 times, and was first: the device does not use it"
    wait_until(lambda: any(note in event.get("text", "") for event in server.events()))
    config.flows[0].tx_rx.device.tx_names, config.flows[0].tx_rx.device.rx_names = ["s1"], ["s2"]
    config.flows[0].packet.clear()
    config.flows[0].packet.ethernet().ipv6().udp()
    api.set_config(config)
    with pytest.raises(Exception, match=rf"config.devices: ''e1'': 2001:db8::1 is that of {MACS[2]}"):
        transmit(api, "start")
    assert flow_metrics(api)["f"].frames_tx == 0


def ping(api: Any, version: int, *ends: tuple[str, str]) -> list[str]:
    """Has interfaces ping addresses: what became of each."""
    action = api.control_action()
    requests = getattr(action.protocol, f"ipv{version}").ping.requests
    for source, destination in ends:
        requests.add(src_name=source, dst_ip=destination)
    told = getattr(api.set_control_action(action).response.protocol, f"ipv{version}").ping.responses
    assert [(each.src_name, each.dst_ip) for each in told] == list(ends)
    return [each.result for each in told]


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_devices_ping_each_other(server: Served, transport: str) -> None:
    api = server.api(transport)
    api.set_config(with_devices(api))
    both = (("i1", "10.0.0.2"), ("i2", "10.0.0.1"))
    assert ping(api, 4, *both, ("i1", "10.0.0.77")) == ["succeeded", "succeeded", "failed"]
    assert ping(api, 6, ("s1", "2001:db8::2")) == ["succeeded"]
    for version, source, what in ((4, "s1", "src_name: no address of IPv4"), (6, "nobody", "src_name: no address")):
        with pytest.raises(Exception, match=rf"control_action.protocol.ipv{version}.ping.requests\[0\].{what}"):
            ping(api, version, (source, "10.0.0.2" if version == 4 else "::2"))


def test_routers_need_ports_that_a_daemon_can_be_reached_through(server: Served) -> None:
    api = server.api()
    config = configured(api, captured=False)
    add_device(config, 1, 2)
    router = config.devices[0].bgp
    router.router_id = "192.0.2.1"
    peer = router.ipv4_interfaces.add(ipv4_name="i1").peers.add(name="b", peer_address="10.0.0.2", as_number=65001)
    peer.as_type = "ebgp"
    with pytest.raises(Exception, match="simulated ports reach no daemon of BGP"):
        api.set_config(config)
