"""Connections that are made and answered in the driver's hook: known truths, other ends, and a path that loses.

The ends are tried with the kernel's TCP, nginx and curl as their peers, and through a router that drops packets.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.result import Bounded
from nicbench.engine.binaries import find_binary

from .lab_bench import make_folder, run_async

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.sampled(3, of="connections in the hook")]

HEAD = """
nicbench: 1
title: Connections in the hook
monitor: off
thresholds: {start_spread_share: 0.9, machine_steal_share: 0.9}
lab: {kind: clients, ports: 2}
"""
PROGRAM = "nicbench-connections"
CLIENT, SERVER = "198.18.0.10", "198.18.1.10"
CLIENT_6, SERVER_6 = "fd00:0::10", "fd00:0:0:1::10"
PORT = 8080
_numbers = itertools.count()


@dataclass
class RoutedPair:
    """A client, a router and a server in namespaces; each end's interface is named as its namespace ends."""

    client: str
    router: str
    server: str

    def start(self, where: str, *words: str) -> subprocess.Popen[str]:
        command = ["ip", "netns", "exec", where, *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, where: str, *words: str) -> str:
        return subprocess.run(
            ["ip", "netns", "exec", where, *words], check=True, capture_output=True, text=True, timeout=60
        ).stdout

    def connect(self, *words: str, in_hook: bool = True, to: str = SERVER) -> dict[str, Any]:
        hook = ("--xdp", "c0") if in_hook else ()
        common = ("client", "--to", to, "--port", str(PORT), "--ports", "2", *hook)
        found = json.loads(self.run(self.client, str(find_binary(PROGRAM)), *common, *words))
        return found

    def serve(self, mode: str, *words: str, on: str = SERVER) -> subprocess.Popen[str]:
        common = ("--on", on, "--port", str(PORT), "--ports", "2", *words)
        server = self.start(self.server, str(find_binary(PROGRAM)), mode, *common)
        until = time.monotonic() + 20.0
        while f":{PORT}" not in self.run(self.server, "ss", "-ltnH"):
            assert server.poll() is None, server.communicate()
            assert time.monotonic() < until
            time.sleep(0.05)
        return server

    def end(self, server: subprocess.Popen[str]) -> dict[str, Any]:
        # `ip netns exec` became the program itself.
        server.send_signal(signal.SIGINT)
        found = json.loads(server.communicate(timeout=20)[0])
        return found


@pytest.fixture
def path(request: pytest.FixtureRequest) -> Iterator[RoutedPair]:
    queues = f"numtxqueues {(number := getattr(request, 'param', 1))} numrxqueues {number}"
    of = f"{os.getpid()}-{next(_numbers)}"
    names = RoutedPair(f"nbt-c-{of}", f"nbt-r-{of}", f"nbt-s-{of}")
    each = (names.client, names.router, names.server)
    commands = [
        *(f"ip netns add {name}" for name in each),
        *(f"ip netns exec {name} sysctl -qw net.ipv6.conf.default.accept_dad=0" for name in each),
        f"ip -n {names.client} link add c0 {queues} type veth peer name s0 {queues} netns {names.router}",
        f"ip -n {names.server} link add c1 {queues} type veth peer name s1 {queues} netns {names.router}",
        f"ip -n {names.client} address add {CLIENT}/24 dev c0",
        f"ip -n {names.server} address add {SERVER}/24 dev c1",
        f"ip -n {names.router} address add 198.18.0.1/24 dev s0",
        f"ip -n {names.router} address add 198.18.1.1/24 dev s1",
        *(
            command
            for name, device in (
                (names.client, "c0"),
                (names.router, "s0"),
                (names.router, "s1"),
                (names.server, "c1"),
            )
            for command in (
                f"ip -n {name} link set {device} up",
                f"ip netns exec {name} ethtool -K {device} gro on",
            )
        ),
        f"ip netns exec {names.router} sysctl -qw net.ipv4.ip_forward=1",
        f"ip netns exec {names.router} sysctl -qw net.ipv6.conf.all.forwarding=1",
        f"ip -n {names.client} address add {CLIENT_6}/64 dev c0 nodad",
        f"ip -n {names.server} address add {SERVER_6}/64 dev c1 nodad",
        f"ip -n {names.router} address add fd00:0::1/64 dev s0 nodad",
        f"ip -n {names.router} address add fd00:0:0:1::1/64 dev s1 nodad",
        f"ip -n {names.client} route add fd00:0:0:1::/64 via fd00:0::1",
        f"ip -n {names.server} route add fd00:0::/64 via fd00:0:0:1::1",
        f"ip -n {names.client} route add 198.18.1.0/24 via 198.18.0.1",
        f"ip -n {names.server} route add 198.18.0.0/24 via 198.18.1.1",
    ]
    try:
        for command in commands:
            subprocess.run(command.split(), check=True, capture_output=True)
        yield names
    finally:
        for name in each:
            left = subprocess.run(["ip", "netns", "pids", name], check=False, capture_output=True, text=True).stdout
            for pid in left.split():
                os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def test_the_connections_a_second_that_a_firewall_lets_pass_are_found(tmp_path: Path) -> None:
    rate, burst = 2000, 40
    text = f"""
dut: {{kind: firewall, connection_rate: {rate}, burst: {burst}, over: reset}}
tests:
  - {{name: cps, method: connections-per-second, driver: xdp, through: true, maximum: {2 * rate}, duration: 1 s,
     ramp: 0 s, precision: 2 %, object_bytes: [1 B]}}
"""
    (result,) = asyncio.run(run_async(make_folder(tmp_path, HEAD + text))).results
    found, truth = result.values["connections_per_s"], rate + burst - 1
    assert isinstance(found, Bounded), result.disturbances
    assert found.lower is not None, result.values
    assert found.upper is not None, result.values
    assert found.lower <= truth <= found.upper
    assert "refused" in str(result.values["limit"])


def test_the_number_that_a_firewall_holds_is_found_to_the_last(tmp_path: Path) -> None:
    text = """
dut: {kind: firewall, connections: 317}
tests:
  - {name: held, method: concurrent-connections, driver: xdp, through: true, maximum: 700, rate: 2000, precision: 0,
     duration: 1 s}
"""
    (result,) = asyncio.run(run_async(make_folder(tmp_path, HEAD + text))).results
    found = result.values["concurrent_connections"]
    assert isinstance(found, Bounded), result.disturbances
    assert (found.lower, found.upper) == (317, 318), result.disturbances


def test_a_server_that_is_the_dut_answers_in_its_hook(tmp_path: Path) -> None:
    text = """
nicbench: 1
title: A server
monitor: off
thresholds: {start_spread_share: 0.9, machine_steal_share: 0.9}
lab: {kind: clients}
dut: {kind: server}
tests:
  - {name: http, method: http-latency, driver: xdp, client_threads: 2, rate: 1000, object_bytes: [1 KiB], duration: 1 s,
     ramp: 0 s}
"""
    (result,) = asyncio.run(run_async(make_folder(tmp_path, text))).results
    assert (result.values["transactions"], result.values["failures"]) == (1000, 0), result.values


@pytest.mark.parametrize("task", ["connect", "requests", "hold"])
def test_connections_between_hooks_over_ipv6_are_whole(task: str, path: RoutedPair) -> None:
    server = path.serve("serve", "--xdp", "c1", on=SERVER_6)
    asked = ("--task", task, "--rate", "2000", "--seconds", "1", "--connections", "100", "--object", "3000")
    found = path.connect(*asked, to=SERVER_6)
    due = 100 if task == "hold" else 2000
    assert found["sustain"] == {"due": due, "completed": due, "failed": {}}
    assert path.end(server)["accepted"] == found["opened"]


@pytest.mark.parametrize("task", ["connect", "requests", "hold"])
@pytest.mark.parametrize("mode", ["serve", "nginx"])
def test_connections_to_the_kernel_end_as_those_of_the_kernel(mode: str, task: str, path: RoutedPair) -> None:
    server = path.serve(mode, *(("--object", "5000") if mode == "nginx" else ()))
    asked = ("--task", task, "--rate", "500", "--seconds", "1", "--connections", "40", "--object", "5000")
    for in_hook in (True, False):
        found = path.connect(*asked, in_hook=in_hook)
        due = 40 if task == "hold" else 500
        assert found["sustain"] == {"due": due, "completed": due, "failed": {}}
        if task == "connect":
            assert found["intervals"][0]["bytes"] > 0
            assert sum(second["bytes"] for second in found["intervals"]) == 5000 * due
    path.end(server)


@pytest.mark.parametrize("path", [1, 2], indirect=True, ids=["one queue", "two queues"])
@pytest.mark.parametrize("task", ["connect", "requests", "hold"])
def test_threads_that_send_share_all_that_is_due(task: str, path: RoutedPair) -> None:
    server = path.serve("serve", "--xdp", "c1")
    asked = ("--task", task, "--rate", "2000", "--seconds", "1", "--connections", "101", "--object", "3000")
    found = path.connect(*asked, "--threads", "3")
    due = 101 if task == "hold" else 2000
    assert found["sustain"] == {"due": due, "completed": due, "failed": {}}
    assert path.end(server)["accepted"] == found["opened"] == (2000 if task == "connect" else 101)


def test_what_a_policer_refuses_after_a_pause_of_the_client_is_the_clients(path: RoutedPair) -> None:
    """Half as much again as is asked for passes, and what was due in the pause is sent at once."""
    passes = "tcp flags & (syn | ack) == syn limit rate 1500/second burst 30 packets counter accept"
    filter_forwarded(path, passes, "tcp flags & (syn | ack) == syn drop")
    server = path.serve("serve", "--xdp", "c1")
    hook = ("client", "--to", SERVER, "--port", str(PORT), "--ports", "2", "--xdp", "c0", "--task", "connect")
    client = path.start(path.client, str(find_binary(PROGRAM)), *hook, "--rate", "1000", "--seconds", "2")
    until = time.monotonic() + 20.0
    while int(path.run(path.router, "nft", "list", "ruleset").split("counter packets ")[1].split()[0]) < 300:
        assert time.monotonic() < until
    client.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    client.send_signal(signal.SIGCONT)
    failed = json.loads(client.communicate(timeout=20)[0])["sustain"]["failed"]
    path.end(server)
    assert failed.pop("late") > 0
    assert set(failed) <= {"not_begun"}


def test_curl_gets_every_byte_of_objects_of_any_size(path: RoutedPair, tmp_path: Path) -> None:
    server = path.serve("serve", "--xdp", "c1")
    sizes = (0, 1, 2, 1395, 1396, 1397, 1416, 1460, 5000, 65_536)
    body = tmp_path / "body"
    for size in sizes:
        for more in ((), ("-H", "Connection: close"), ("--http1.0",)):
            path.run(
                path.client, "curl", "-sf", "-m", "20", *more, "-o", str(body), f"http://{SERVER}:{PORT}/bytes/{size}"
            )
            assert body.read_bytes() == b"x" * size
    counted = path.end(server)
    assert counted["requests"] == counted["accepted"] == 3 * len(sizes)
    assert counted["segments"]["damaged"] == counted["full"] == 0


@pytest.mark.parametrize(("size", "one_of"), [(1, 20), (20_000, 50)])
def test_through_a_path_that_loses_packets_every_connection_is_whole(size: int, one_of: int, path: RoutedPair) -> None:
    """Of a large object more packets can be lost several times, each after twice the time."""
    filter_forwarded(path, f"numgen random mod {one_of} == 0 drop")
    server = path.serve("serve", "--xdp", "c1")
    patient = ("--connect-within", "30", "--answer-within", "30")
    found = path.connect("--task", "connect", "--rate", "200", "--seconds", "1", "--object", str(size), *patient)
    counted = path.end(server)
    assert found["sustain"] == {"due": 200, "completed": 200, "failed": {}}
    assert counted["accepted"] == counted["requests"] == found["opened"] == 200
    assert found["segments"]["resent"] + counted["segments"]["resent"] > 0


@pytest.mark.parametrize("task", ["connect", "requests", "hold"])
def test_through_a_load_balancer_every_connection_is_whole(task: str, path: RoutedPair) -> None:
    """The router's own address is that of the service, and its connections go to the server's ports in turn."""
    service = "198.18.0.1"
    in_turn = f"numgen inc mod 2 map {{ 0 : {PORT}, 1 : {PORT + 1} }}"
    balance = f"ip daddr {service} tcp dport {PORT}-{PORT + 1} dnat to {SERVER} : {in_turn}"
    rules = f"table ip balance {{\nchain b {{\ntype nat hook prerouting priority dstnat;\n{balance}\n}}\n}}\n"
    subprocess.run(["ip", "netns", "exec", path.router, "nft", "-f", "-"], input=rules, text=True, check=True)
    server = path.serve("serve", "--xdp", "c1")
    asked = ("--task", task, "--rate", "500", "--seconds", "1", "--connections", "40", "--object", "3000")
    found = path.connect(*asked, to=service)
    due = 40 if task == "hold" else 500
    assert found["sustain"] == {"due": due, "completed": due, "failed": {}}
    assert path.end(server)["accepted"] == found["opened"]


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed")
@pytest.mark.parametrize("task", ["connect", "requests", "hold"])
def test_through_a_proxy_that_ends_connections_every_exchange_is_whole(
    task: str, path: RoutedPair, tmp_path: Path
) -> None:
    """HAProxy ends each connection by the kernel's TCP and opens another one, to the server's ports in turn."""
    times = "timeout connect 5s\ntimeout client 20s\ntimeout server 20s"
    servers = "\n".join(f"server s{port} {SERVER}:{port}" for port in (PORT, PORT + 1))
    settings = tmp_path / "haproxy.cfg"
    settings.write_text(f"defaults\nmode tcp\n{times}\nlisten all\nbind 198.18.0.1:{PORT}-{PORT + 1}\n{servers}\n")
    server = path.serve("serve", "--xdp", "c1")
    proxy = path.start(path.router, "haproxy", "-db", "-f", str(settings))
    try:
        while f":{PORT + 1}" not in path.run(path.router, "ss", "-ltnH"):
            assert proxy.poll() is None, proxy.communicate()
            time.sleep(0.05)
        asked = ("--task", task, "--rate", "300", "--seconds", "1", "--connections", "40", "--object", "3000")
        found = path.connect(*asked, to="198.18.0.1")
    finally:
        proxy.kill()
        proxy.communicate()
    due = 40 if task == "hold" else 300
    assert found["sustain"] == {"due": due, "completed": due, "failed": {}}
    assert path.end(server)["accepted"] == found["opened"]


def test_a_delay_of_the_path_is_in_the_time_to_connect(path: RoutedPair) -> None:
    """The SYN is held on its way; the SYN/ACK is not."""
    path.run(path.router, "sysctl", "-qw", "net.ipv4.conf.s0.forwarding=0")
    mac = json.loads(path.run(path.server, "ip", "-j", "link", "show", "dev", "c1"))[0]["address"]
    held = path.start(
        path.router, sys.executable, str(Path(__file__).with_name("delaying_forwarder.py")), "s0", "s1", mac, "3000000"
    )
    assert held.stdout is not None
    assert held.stdout.readline() == "ready\n"
    server = path.serve("serve", "--xdp", "c1")
    found = path.connect("--task", "connect", "--rate", "50", "--seconds", "2")
    path.end(server)
    held.send_signal(signal.SIGINT)
    truth_ns = float(held.communicate(timeout=20)[0])
    assert found["sustain"] == {"due": 100, "completed": 100, "failed": {}}
    assert truth_ns >= 3_000_000
    # The least of each: whoever else used the CPUs added to the others.
    assert truth_ns <= found["connect"]["minimum_ns"] <= truth_ns + 100_000


def filter_forwarded(path: RoutedPair, *rules: str) -> None:
    text = "".join(f"{rule}\n" for rule in rules)
    text = f"table inet rules {{\nchain f {{\ntype filter hook forward priority 0;\n{text}}}\n}}\n"
    subprocess.run(["ip", "netns", "exec", path.router, "nft", "-f", "-"], input=text, text=True, check=True)


@pytest.mark.parametrize("mss", [88, 500, 1000])
def test_no_segment_is_longer_than_its_receiver_says(mss: int, path: RoutedPair, tmp_path: Path) -> None:
    path.run(path.client, *f"ip route replace 198.18.1.0/24 via 198.18.0.1 advmss {mss}".split())
    server = path.serve("serve", "--xdp", "c1")
    body, size = tmp_path / "body", 65_536
    path.run(path.client, "curl", "-sf", "-m", "20", "-o", str(body), f"http://{SERVER}:{PORT}/bytes/{size}")
    assert body.read_bytes() == b"x" * size
    segments = path.end(server)["segments"]
    assert segments["resent"] == 0
    assert segments["sent"] >= size / mss


SLOW_READER = """
import socket, sys, time
peer = socket.socket()
peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(sys.argv[3]))
peer.connect((sys.argv[1], int(sys.argv[2])))
peer.sendall(b"GET /bytes/65536 HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
time.sleep(float(sys.argv[4]))
print(len(peer.makefile("rb").read()))
"""


@pytest.mark.parametrize("room", [2304, 9000, 40_000])
def test_a_reader_that_waits_gets_every_byte_and_none_beyond_its_window(room: int, path: RoutedPair) -> None:
    server = path.serve("serve", "--xdp", "c1")
    words = (sys.executable, "-c", SLOW_READER, SERVER, str(PORT), str(room), "2.5")
    assert int(path.run(path.client, *words)) == 65_536 + 64
    dropped = path.run(path.client, "nstat", "-az", "TcpExtTCPZeroWindowDrop")
    assert {line.split()[1] for line in dropped.splitlines() if line.startswith("Tcp")} == {"0"}
    path.end(server)


def test_a_synproxy_is_asked_for_its_window(path: RoutedPair) -> None:
    """Its SYN/ACK has a window of 0, until the server has accepted the connection."""
    for sysctl in ("tcp_syncookies=1", "tcp_timestamps=1", "ip_forward=1"):
        path.run(path.router, "sysctl", "-qw", f"net.ipv4.{sysctl}")
    path.run(path.router, "sysctl", "-qw", "net.netfilter.nf_conntrack_tcp_loose=0")
    text = """table ip proxy {
chain raw { type filter hook prerouting priority raw; iifname s0 tcp flags syn notrack; }
chain f { type filter hook forward priority 0; iifname s0 ct state invalid,untracked synproxy mss 1460; }
}
"""
    subprocess.run(["ip", "netns", "exec", path.router, "nft", "-f", "-"], input=text, text=True, check=True)
    server = path.serve("serve", "--xdp", "c1")
    asked = ("--task", "connect", "--rate", "200", "--seconds", "1", "--object", "5000")
    found = path.connect(*asked)
    assert found["sustain"] == {"due": 200, "completed": 200, "failed": {}}
    assert path.end(server)["accepted"] == 200


@pytest.mark.parametrize("hop", [4, 6])
def test_connections_of_a_vlan_carry_its_tag(hop: int, path: RoutedPair) -> None:
    """A bridge in the router's place; the ends' kernels know no VLAN, and find each other without one."""
    # A tag that a kernel leaves to the card is not in the frame that a program sees.
    path.run(path.router, "ip", "link", "add", "bridge", "type", "bridge")
    for device in ("s0", "s1"):
        path.run(path.router, "ethtool", "-K", device, "txvlan", "off")
        path.run(path.router, "ip", "link", "set", device, "master", "bridge")
    path.run(path.router, "ip", "link", "set", "bridge", "up")
    own, peer = ("198.18.9.1", "198.18.9.2") if hop == 4 else ("fd00:9::1", "fd00:9::2")
    bits = "24" if hop == 4 else "64"
    for name, device, address in ((path.client, "c0", own), (path.server, "c1", peer)):
        path.run(name, "ip", "address", "add", f"{address}/{bits}", "dev", device)
    rules = 'iifname "s0" vlan id 100 counter accept; iifname "s0" meta l4proto tcp counter'
    text = f"table bridge counts {{ chain c {{ type filter hook prerouting priority 0; {rules}; }}; }};"
    path.run(path.router, "nft", text)
    server = path.serve("serve", "--xdp", "c1", "--vlan", "100", on=peer)
    asked = ("--vlan", "100", "--task", "connect", "--rate", "500", "--seconds", "1", "--object", "20000")
    found = path.connect(*asked, to=peer)
    assert found["sustain"] == {"due": 500, "completed": 500, "failed": {}}
    assert path.end(server)["accepted"] == 500
    ruleset = path.run(path.router, "nft", "list", "ruleset")
    tagged, plain = (int(count) for count in re.findall(r"counter packets (\d+)", ruleset))
    assert tagged > 5000
    assert plain == 0


def test_each_connection_ends_in_one_way(path: RoutedPair) -> None:
    asked = ("--task", "connect", "--rate", "500", "--seconds", "1", "--answer-within", "1")
    assert path.connect(*asked)["sustain"] == {"due": 500, "completed": 0, "failed": {"refused": 500}}
    filter_forwarded(path, "tcp flags syn drop")
    assert path.connect(*asked)["sustain"] == {"due": 500, "completed": 0, "failed": {"connect_timeout": 500}}
    path.run(path.router, "nft", "flush", "ruleset")
    server = path.serve("serve", "--reset-every", "5", "--status-every", "7", "--corrupt-every", "11")
    found = path.connect(*asked, "--object", "3000")["sustain"]
    path.end(server)
    assert found["due"] == found["completed"] + sum(found["failed"].values()) == 500
    assert {"reset", "status", "content"} <= found["failed"].keys()


SYNS = ("tcp flags & (syn | ack) == syn", "tcp flags & (syn | ack) == (syn | ack)", "tcp flags & rst == rst")


def count_by_router(path: RoutedPair) -> None:
    """Has the router keep the connections of which it saw a SYN, a SYN/ACK, and a RST of the server."""
    sets, rules = "", ""
    for name, flags, end in zip(("asked", "answered", "ended"), SYNS, ("sport", "dport", "dport"), strict=True):
        other = "dport" if end == "sport" else "sport"
        side = "s0" if end == "sport" else "s1"
        sets += f"set {name} {{ type inet_service . inet_service; size 65535; flags dynamic; }}\n"
        rules += f"iifname {side} {flags} add @{name} {{ tcp {end} . tcp {other} }}\n"
    text = f"table ip seen {{\n{sets}chain f {{\ntype filter hook forward priority 0;\n{rules}}}\n}}\n"
    subprocess.run(["ip", "netns", "exec", path.router, "nft", "-f", "-"], input=text, text=True, check=True)


def seen_by_router(path: RoutedPair, name: str) -> set[tuple[int, int]]:
    """The connections in one of these sets, by their ports."""
    said = json.loads(path.run(path.router, "nft", "-j", "list", "set", "ip", "seen", name))
    (found,) = (each["set"] for each in said["nftables"] if "set" in each)
    return {tuple(each["concat"]) for each in found.get("elem", ())}


@pytest.mark.parametrize("aborts", [False, True])
def test_what_a_full_queue_of_the_server_does_to_a_connection_is_its_outcome(aborts: bool, path: RoutedPair) -> None:
    """The kernel drops SYNs then, and the last ACK of a handshake, or answers it by a RST, if it sent no cookie."""
    path.run(path.server, "sysctl", "-qw", f"net.ipv4.tcp_abort_on_overflow={int(aborts)}")
    count_by_router(path)
    server = path.serve("serve", "--accept-rate", "400", "--accept-queue", "20")
    asked = ("--task", "connect", "--rate", "20000", "--seconds", "0.2", "--connect-within", "0.8")
    found = path.connect(*asked)
    counted = path.end(server)
    completed, failed = found["sustain"]["completed"], Counter(found["sustain"]["failed"])
    assert found["sustain"]["due"] == completed + failed.total() == 4000
    seen = {name: seen_by_router(path, name) for name in ("asked", "answered", "ended")}
    # Of those that were not connected, a busy machine's client takes some for its own (`late`).
    assert failed["connect_timeout"] + failed["late"] == len(seen["asked"] - seen["answered"]) > 0
    assert completed + failed["response_timeout"] + failed["reset"] == len(seen["answered"])
    assert failed["reset"] == len(seen["ended"])
    assert aborts or not failed["reset"]
    assert completed == counted["accepted"] == counted["requests"]


def test_a_client_that_waits_gets_every_connection_from_a_server_whose_queue_is_full(path: RoutedPair) -> None:
    server = path.serve("serve", "--accept-rate", "400", "--accept-queue", "20")
    patient = ("--connect-within", "30", "--answer-within", "30")
    found = path.connect("--task", "connect", "--rate", "1000", "--seconds", "1", *patient)
    counted = path.end(server)
    assert found["sustain"] == {"due": 1000, "completed": 1000, "failed": {}}
    assert counted["accepted"] == counted["requests"] == 1000
    assert found["segments"]["resent"] > 0


def test_two_programs_do_not_take_one_interface(path: RoutedPair) -> None:
    server = path.serve("serve", "--xdp", "c1")
    again = path.start(path.server, str(find_binary(PROGRAM)), "serve", "--on", SERVER, "--port", "9000", "--xdp", "c1")
    assert "has an XDP program already" in again.communicate(timeout=20)[1]
    path.end(server)
