"""Packets of the kinds that tests send: TCP, UDP, IPv6, VXLAN and GRE, with single values, lists and increments."""

from __future__ import annotations

from typing import Any

import httpx

from .served import wait_until


def tcp_values(packet: Any) -> None:
    ethernet, ip, tcp = packet.ethernet().ipv4().tcp()
    ethernet.src.value, ethernet.dst.value = "00:00:01:01:01:01", "00:00:01:01:01:02"
    ip.src.value, ip.dst.values = "1.1.1.1", ["1.1.1.2", "1.1.1.3"]
    tcp.src_port.values, tcp.dst_port.increment.start = [5000, 5050, 5015], 80
    tcp.dst_port.increment.step, tcp.dst_port.increment.count = 3, 7


def udp_increments(packet: Any) -> None:
    _, tag, ip, udp = packet.ethernet().vlan().ipv4().udp()
    tag.id.decrement.start, tag.id.decrement.count = 100, 5
    ip.options.add().choice = "router_alert"
    udp.src_port.increment.start, udp.src_port.increment.count = 65_530, 12
    udp.dst_port.decrement.start, udp.dst_port.decrement.count = 3, 4
    udp.checksum.generated = "bad"


def ipv6_udp(packet: Any) -> None:
    _, ip, udp = packet.ethernet().ipv6().udp()
    ip.src.increment.start, ip.src.increment.step, ip.src.increment.count = "::ffff:ffff:ffff:ffff", "::3", 4
    ip.dst.values, udp.src_port.value = ["2001:db8::1", "2001:db8::2"], 7


def vxlan(packet: Any) -> None:
    _, ip, udp, tunnel, _, inner, tcp = packet.ethernet().ipv6().udp().vxlan().ethernet().ipv4().tcp()
    ip.src.value, ip.dst.value, udp.dst_port.value = "::1", "::2", 4789
    tunnel.vni.values = [1000, 1001, 1002]
    inner.src.value, inner.dst.value, tcp.src_port.value = "1.1.1.3", "1.1.1.4", 80


def gre_and_echo(packet: Any) -> None:
    _, _, tunnel, _, echo = packet.ethernet().ipv4().gre().ipv4().icmp()
    tunnel.checksum_present.value = 1
    echo.echo.sequence_number.increment.count = 100


PACKETS = (tcp_values, udp_increments, ipv6_udp, vxlan, gre_and_echo)


MACS = ("src", "dst")


def config_of_many(count: int) -> dict[str, Any]:
    """This number of flows of two frames each."""
    packet = [
        {"choice": "ethernet", "ethernet": {name: {"value": f"02:00:00:00:00:0{at}"} for at, name in enumerate(MACS)}},
        {"choice": "ipv4", "ipv4": {"src": {"choice": "value", "value": "10.0.0.1"}}},
        {"choice": "udp", "udp": {"src_port": {"choice": "values", "values": [1, 2, 3]}}},
    ]
    flow = {
        "tx_rx": {"port": {"tx_name": "p1", "rx_names": ["p2"]}},
        "packet": packet,
        "rate": {"choice": "pps", "pps": "20"},
        "duration": {"choice": "fixed_packets", "fixed_packets": {"packets": 2}},
        "metrics": {"enable": True},
    }
    ports = [{"name": "p1", "location": "t0"}, {"name": "p2", "location": "t1"}]
    return {"ports": ports, "flows": [{"name": f"f{number}", **flow} for number in range(count)]}


def wait_for_many(client: httpx.Client) -> list[dict[str, Any]]:
    """Starts all flows, and returns their metrics as soon as all have stopped; the client's classes take seconds."""
    start = {"choice": "traffic", "traffic": {"choice": "flow_transmit", "flow_transmit": {"state": "start"}}}
    assert client.post("/control/state", json=start).status_code == 200

    def stopped() -> Any:
        told = client.post("/monitor/metrics", json={"choice": "flow", "flow": {}}).json()["flow_metrics"]
        return told if all(metric["transmit"] == "stopped" for metric in told) else None

    return list(wait_until(stopped))
