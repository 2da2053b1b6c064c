"""Emulated routers at veth pairs, in front of a router of Linux with a daemon of BGP: what it learns is what was
announced, flows go where its table says, and hostile peers change no count.
"""

from __future__ import annotations

import io
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import RawPcapReader
from tests.commands import run_tried

from nicbench.testbed.labs.veth import namespace_name

from .served import (
    Served,
    add_flow,
    capture,
    configured,
    flow_metrics,
    serving,
    transmit,
    wait_for_stop,
    wait_until,
)
from .test_serve_devices import control_protocols
from .test_serve_devices_veth import BENCH, DRIVERS, Router

OWN_AS = 65000
DAEMON = """router id 192.0.2.254;
log stderr all;
protocol device {}
protocol kernel { ipv4 { export all; }; }
protocol kernel { ipv6 { export all; }; }
"""
PEER = """protocol bgp p{port}v{version} {{ local {own} as 65000; neighbor {other} as {other_as}; connect delay time 1;
error wait time 1, 1; ipv{version} {{ import all; export all; }}; }}
"""
HOSTILE = """
import contextlib, random, socket, struct, sys, threading, time
own, other = sys.argv[1:]
draw, marker, end = random.Random(7), b"\\xff" * 16, time.monotonic() + 5
def message(kind, body, length=None):
    return marker + struct.pack("!HB", 19 + len(body) if length is None else length, kind) + body
opens = message(1, struct.pack("!BHH4sB", 4, 65000, 90, bytes(4), 0))
garbage = [draw.randbytes(1400), message(1, b"", 18), message(9, b"x" * 50), message(2, draw.randbytes(60)),
    opens + message(2, b"\\xff" * 40), message(3, draw.randbytes(4000)),
    opens + message(4, b"") + message(2, b"\\0\\0\\0\\x09x")]
def answer(peer):
    with contextlib.suppress(OSError), peer:
        peer.sendall(draw.choice(garbage))
        peer.settimeout(0.2)
        peer.recv(4096)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset ends it
server = socket.create_server((own, 179))
server.settimeout(0.1)
def listen():
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            answer(server.accept()[0])
threading.Thread(target=listen).start()
while time.monotonic() < end:
    with contextlib.suppress(OSError):
        answer(socket.create_connection((other, 179), 0.2, (own, 0)))
"""


@pytest.fixture(scope="module", params=DRIVERS)
def router(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Router]:
    with serving(tmp_path_factory.mktemp("serve"), text=BENCH.replace("DRIVER", request.param)) as served:
        yield prepared(served)


def prepared(served: Served) -> Router:
    """A session's DUT with the addresses of both its networks."""
    api = served.api()
    api.set_config(configured(api, captured=False))
    made = Router(served, namespace_name(served.run_folder().name, "dut"))
    made.run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
    for port in (1, 2):
        made.run("ip", "addr", "replace", f"10.{port}.0.1/16", "dev", f"d{port - 1}")
        made.run("sysctl", "-qw", f"net.ipv6.conf.d{port - 1}.disable_ipv6=0")
        made.run("ip", "-6", "addr", "replace", f"2001:db8:{port}::1/64", "dev", f"d{port - 1}", "nodad")
    return made


@contextmanager
def daemon(router: Router, folder: Path) -> Iterator[str]:
    """The DUT's own daemon, with a session to each emulated router for each version; the path of its socket."""
    sessions = [
        PEER.format(port=port, version=version, other_as=65000 + port, own=own, other=other)
        for port in (1, 2)
        for version, own, other in (
            (4, f"10.{port}.0.1", f"10.{port}.0.2"),
            (6, f"2001:db8:{port}::1", f"2001:db8:{port}::2"),
        )
    ]
    configuration, socket = folder / "dut.conf", folder / "dut.socket"
    configuration.write_text(DAEMON + "".join(sessions))
    command = ("ip", "netns", "exec", router.space, "bird", "-f", "-c", str(configuration), "-s", str(socket))
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield str(socket)
        finally:
            process.terminate()


def add_router(config: Any, port: int) -> dict[int, Any]:
    """An emulated router at a port, in front of which the DUT is; its peers by the version of IP."""
    device = config.devices.add(name=f"d{port}")
    ethernet = device.ethernets.add(name=f"e{port}", mac=f"02:00:00:00:{port:02x}:01")
    ethernet.connection.port_name = f"p{port}"
    ethernet.ipv4_addresses.add(name=f"i{port}", address=f"10.{port}.0.2", gateway=f"10.{port}.0.1", prefix=16)
    ethernet.ipv6_addresses.add(name=f"s{port}", address=f"2001:db8:{port}::2", gateway=f"2001:db8:{port}::1")
    device.bgp.router_id = f"192.0.2.{port}"
    peers = {}
    for version, interfaces, name in (
        (4, device.bgp.ipv4_interfaces, f"i{port}"),
        (6, device.bgp.ipv6_interfaces, f"s{port}"),
    ):
        interface = interfaces.add(**{f"ipv{version}_name": name})
        address = f"10.{port}.0.1" if version == 4 else f"2001:db8:{port}::1"
        peer = interface.peers.add(name=f"b{port}v{version}", as_number=65000 + port, peer_address=address)
        peer.as_type = "ebgp"
        peer.learned_information_filter.unicast_ipv4_prefix = version == 4
        peer.learned_information_filter.unicast_ipv6_prefix = version == 6
        peers[version] = peer
    return peers


def add_routes(peer: Any, version: int, name: str, address: str, prefix: int, count: int) -> list[str]:
    """A range of a peer, with attributes; its networks."""
    ranges = peer.v4_routes if version == 4 else peer.v6_routes
    made = ranges.add(name=name)
    made.addresses.add(address=address, prefix=prefix, count=count)
    made.communities.add(type="manual_as_number", as_number=65000, as_custom=7)
    made.as_path.as_set_mode = "include_as_seq"
    made.as_path.segments.add(type="as_seq", as_numbers=[65500])
    first, gap = ip_address(address), 1 << (32 if version == 4 else 128) - prefix
    return [f"{first + place * gap}/{prefix}" for place in range(count)]


def control_routes(api: Any, state: str, *names: str) -> None:
    control = api.control_state()
    control.protocol.route.state = state
    control.protocol.route.names = list(names)
    api.set_control_state(control)


def bgp_metrics(api: Any, version: int = 4) -> dict[str, Any]:
    request = api.metrics_request()
    chosen = request.bgpv4 if version == 4 else request.bgpv6
    chosen.peer_names = []
    told = api.get_metrics(request)
    return {each.name: each for each in (told.bgpv4_metrics if version == 4 else told.bgpv6_metrics)}


def wait_for_sessions(api: Any) -> None:
    wait_until(
        lambda: all(each.session_state == "up" for version in (4, 6) for each in bgp_metrics(api, version).values())
    )


def networks_of(router: Router, version: int) -> set[str]:
    """The networks in the kernel's table of the DUT that its daemon put there."""
    told = json.loads(router.run("ip", "-j", f"-{version}", "route", "show", "proto", "bird") or "[]")
    full = "/32" if version == 4 else "/128"
    return {each["dst"] if "/" in each["dst"] else each["dst"] + full for each in told}


def longest_gap(api: Any, port: str, to: str) -> tuple[float, int]:
    """The longest time between frames that a port captured and that went to a network, in milliseconds, and how many
    frames of the sequence that their identification counts are missing there.
    """
    request = api.capture_request()
    request.port_name = port
    inside = ip_network(to)
    frames = [
        (about.sec * 1e3 + about.usec / (1e6 if reader_is_nano else 1e3), int.from_bytes(frame[18:20], "big"))
        for reader in (RawPcapReader(io.BytesIO(api.get_capture(request).read())),)
        for reader_is_nano in (getattr(reader, "nano", False),)
        for frame, about in reader
        if frame[12:14] == b"\x08\x00" and ip_address(bytes(frame[30:34])) in inside
    ]
    gaps = [
        (after - before, (last - first) % 2**16 - 1) for (before, first), (after, last) in itertools.pairwise(frames)
    ]
    return max(gaps)


@pytest.mark.sampled(1)
@pytest.mark.lab
@pytest.mark.alone
def test_the_duts_table_has_what_is_announced_and_flows_follow_it(router: Router, tmp_path: Path) -> None:
    api = router.served.api()
    config = configured(api)
    left, right = add_router(config, 1), add_router(config, 2)
    networks = {
        4: add_routes(right[4], 4, "r4", "100.64.0.0", 24, 100)
        + add_routes(right[4], 4, "o4", "100.96.0.0", 24, 1)
        + add_routes(left[4], 4, "l4", "100.127.0.0", 20, 2),
        6: add_routes(right[6], 6, "r6", "2001:db8:100::", 64, 50),
    }
    config.options.flow_options.packet_loss_duration = True
    there = add_flow(config, "there", frames=5000)
    there.tx_rx.device.tx_names, there.tx_rx.device.rx_names = ["l4"], ["r4"]
    there.packet.ethernet().ipv4().udp()
    six = add_flow(config, "six", frames=500)
    six.tx_rx.device.tx_names, six.tx_rx.device.rx_names = ["s1"], ["r6"]
    six.packet.ethernet().ipv6().udp()
    outage = add_flow(config, "outage")
    outage.tx_rx.device.tx_names, outage.tx_rx.device.rx_names = ["i1"], ["o4"]
    outage.packet.ethernet().ipv4().udp()
    outage.packet[1].identification.increment.count = 2**16
    outage.duration.choice, outage.rate.pps = "continuous", 5000
    api.set_config(config)
    control_protocols(api, "start")
    with daemon(router, tmp_path):
        wait_for_sessions(api)
        for version in (4, 6):
            wait_until(lambda v=version: networks_of(router, v) == set(networks[v]))
        metric = bgp_metrics(api)["b2v4"]
        assert (metric.routes_advertised, metric.session_flap_count, metric.fsm_state) == (101, 0, "established")
        assert (metric.opens_sent >= 1, metric.keepalives_received >= 1) == (True, True)
        request = api.states_request()
        request.bgp_prefixes.bgp_peer_names = ["b1v4"]
        wait_until(lambda: len(api.get_states(request).bgp_prefixes[0].ipv4_unicast_prefixes) == 101)
        learned = api.get_states(request).bgp_prefixes[0].ipv4_unicast_prefixes[0]
        assert learned.as_path.segments[0].as_numbers == [OWN_AS, 65002, 65500]
        assert [(each.as_number, each.as_custom) for each in learned.communities] == [(65000, 7)]
        assert learned.ipv4_next_hop == "10.1.0.1"

        capture(api, "start")
        transmit(api, "start")
        wait_until(lambda: flow_metrics(api)["outage"].frames_rx > 1000)
        control_routes(api, "withdraw", "o4")
        wait_until(lambda: "100.96.0.0/24" not in networks_of(router, 4))
        at = flow_metrics(api)["outage"]
        wait_until(lambda: flow_metrics(api)["outage"].frames_tx > at.frames_tx + 1000)
        control_routes(api, "advertise", "o4")
        wait_until(lambda: flow_metrics(api)["outage"].frames_rx > at.frames_rx + 2000)
        transmit(api, "stop")
        capture(api, "stop")
        metrics = wait_for_stop(api)
        for name in ("there", "six"):
            assert metrics[name].frames_rx == metrics[name].frames_tx > 0
        lost = metrics["outage"]
        lost_ms = (lost.frames_tx - lost.frames_rx) / 5.0
        assert lost_ms > 200, "frames came that had no route"
        assert lost.packet_loss_duration.value == pytest.approx(lost_ms, abs=1.0)
        gap_ms, missing = longest_gap(api, "p2", "100.96.0.0/24")
        assert lost.packet_loss_duration.value == pytest.approx(missing / 5.0, abs=1.0)
        # Frames beside the gap came as late as they did.
        assert gap_ms - 0.2 == pytest.approx(missing / 5.0, abs=1.0 + lost.latency.maximum_ns / 1e6)
    wait_until(lambda: bgp_metrics(api)["b2v4"].session_state == "down")
    control_protocols(api, "stop")
    assert not run_tried(("pgrep", "-f", "nicbench-.*router-1.conf")).stdout


@pytest.mark.lab
@pytest.mark.alone
@pytest.mark.acceptance
def test_a_hundred_thousand_routes_are_in_the_duts_table(router: Router, tmp_path: Path) -> None:
    api = router.served.api()
    config = configured(api, captured=False)
    add_router(config, 1)
    networks = add_routes(add_router(config, 2)[4], 4, "r", "100.64.0.0", 28, 100_000)
    flow = add_flow(config, "f", frames=100_000)
    flow.tx_rx.device.tx_names, flow.tx_rx.device.rx_names = ["i1"], ["r"]
    flow.packet.ethernet().ipv4().udp()
    flow.rate.pps = 20_000
    api.set_config(config)
    control_protocols(api, "start")
    with daemon(router, tmp_path):
        wait_for_sessions(api)
        # To read the table takes a second: it is looked at when all went round.
        wait_until(lambda: bgp_metrics(api)["b1v4"].routes_received == 100_000)
        wait_until(lambda: networks_of(router, 4) == set(networks))
        assert bgp_metrics(api)["b2v4"].routes_advertised == 100_000
        transmit(api, "start")
        metric = wait_for_stop(api)["f"]
        assert (metric.frames_tx, metric.frames_rx) == (100_000, 100_000)
        control_routes(api, "withdraw")
        wait_until(lambda: not networks_of(router, 4))
    control_protocols(api, "stop")


@pytest.mark.sampled(1)
@pytest.mark.lab
def test_a_hostile_peer_beside_a_flow_changes_none_of_its_counts(router: Router, tmp_path: Path) -> None:
    api = router.served.api()
    config = configured(api, captured=False)
    for port in (1, 2):
        add_routes(add_router(config, port)[4], 4, f"r{port}", f"100.{63 + port}.0.0", 24, 10)
    flow = add_flow(config, "f", frames=20_000)
    flow.tx_rx.device.tx_names, flow.tx_rx.device.rx_names = ["i1"], ["i2"]
    flow.packet.ethernet().ipv4().udp()
    flow.rate.pps = 5000
    api.set_config(config)
    control_protocols(api, "start")
    command = ("ip", "netns", "exec", router.space, sys.executable, "-c", HOSTILE, "10.2.0.1", "10.2.0.2")
    with subprocess.Popen(command) as hostile:
        transmit(api, "start")
        metric = wait_for_stop(api)["f"]
        assert hostile.wait(timeout=60) == 0
    assert (metric.frames_tx, metric.frames_rx, metric.loss) == (20_000, 20_000, 0)
    told = bgp_metrics(api)["b2v4"]
    assert told.notifications_sent > 0, "nothing hostile was heard"
    with daemon(router, tmp_path):  # and who behaves is served
        wait_for_sessions(api)
        wait_until(lambda: "100.64.0.0/24" in networks_of(router, 4))
    control_protocols(api, "stop")
