"""Rows over whole connections, both ends on one core: nicbench in the driver's hook beside TCP of the kernel.

    sudo .venv/bin/python benchmarks/run.py --only hook

A sample is connections for a second of CPU time of both ends, the kernel's share included, so that neighbours on the
core change little. Peers make as many as they can, nicbench at the rate at which that is most. Two namespaces are
joined by a veth pair. A peer that is not installed has no row, which a line says.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from connections import (
    ADDRESS,
    BYTES,
    CLIENT,
    SERVER,
    URL,
    children_cpu_s,
    found_in,
    ip,
    nginx,
    wait_for_server,
)
from core_watch import CoreWatch, watching
from machine import Cpus, preferred
from nicbench.engine.binaries import find_binary
from pairs import Row
from veth_pair import compile_bpf

WORK = "whole connections, both ends on one core"
OWN_PORT, OWN_PORTS = 9000, 16
HOOK_RATES, KERNEL_RATE, ROOM = (200_000, 400_000, 600_000, 900_000, 1_200_000), 4000, 4_000_000
"""Rates in the hook, of which the best is kept, and one that the kernel keeps up; connections that a server has room
for.
"""
BESIDE_KERNEL, BESIDE_BARE = 20.0, 0.8
"""What is wanted beside the kernel's TCP, and beside a loop without records."""
LOOP = f"{CLIENT}-loop"


@dataclass
class OneCore:
    """Programs on one CPU, and the CPU time that they and the kernel take there."""

    cpu: int
    seconds: int
    watch: CoreWatch
    folder: Path

    def hook(self, body: int) -> float:
        """Opens connections in the driver's hook, each for an answer of ``body`` bytes."""
        return self._in_hook(self._best_rate, body)

    @functools.cached_property
    def _best_rate(self) -> int:
        return max(HOOK_RATES, key=lambda rate: self._in_hook(rate, BYTES))

    def _in_hook(self, rate: int, body: int) -> float:
        with self._serving("--xdp", "s0", "--room", str(ROOM)) as server:
            return self._ours(server, rate, body, "--xdp", "c0")

    def kernel(self) -> float:
        """Connections by our client and our server, over the kernel's sockets."""
        with self._serving() as server:
            return self._ours(server, KERNEL_RATE, BYTES)

    def wrk(self) -> float:
        """Connections of wrk to nginx."""
        asked = ("-t1", "-c64", f"-d{self.seconds}s", "-H", "Connection: close", URL)
        with self._nginx_counted() as done:
            done.append(found_in(r"(\d+) requests in", self._run(CLIENT, "wrk", *asked)))
        return done[-1]

    def h2load(self) -> float:
        """Connections of h2load to nginx, with one request each."""
        number = str(KERNEL_RATE * self.seconds)
        asked = ("--h1", "-t1", "-n", number, "-c", number, "-r", str(KERNEL_RATE), URL)
        with self._nginx_counted() as done:
            done.append(found_in(r"(\d+) succeeded", self._run(CLIENT, "h2load", *asked)))
        return done[-1]

    def bare(self) -> float:
        """Connections of the loop that records nothing."""
        arguments = (str(self.folder / "bare.o"), "l0", "l1", f"{self.seconds}")
        before = self._spent_s()
        text = self._run(LOOP, str(self.folder / "bare"), *arguments)
        return found_in(r"(\d+) of", text) / (self._spent_s() - before)

    def _ours(self, server: int, rate: int, body: int, *more: str) -> float:
        asked = ("--task", "connect", "--rate", str(rate), "--seconds", str(self.seconds), "--answer-within", "1")
        where = ("--to", ADDRESS, "--port", str(OWN_PORT), "--ports", str(OWN_PORTS), "--object", str(body))
        before = self._spent_s(server)
        text = self._run(CLIENT, str(find_binary("nicbench-connections")), "client", *where, *asked, *more)
        completed: int = json.loads(text)["sustain"]["completed"]
        return completed / (self._spent_s(server) - before)

    @contextmanager
    def _serving(self, *more: str) -> Iterator[int]:
        """Our server, on the CPU; its process."""
        where = ("--on", ADDRESS, "--port", str(OWN_PORT), "--ports", str(OWN_PORTS))
        command = (str(find_binary("nicbench-connections")), "serve", *where, *more)
        server = subprocess.Popen(self._inside(SERVER, *command), stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            wait_for_server(server, OWN_PORT)
            yield server.pid
        finally:
            server.terminate()
            server.wait()

    @contextmanager
    def _nginx_counted(self) -> Iterator[list[float]]:
        """Takes the number of connections that was appended, and appends what it is for a second of CPU time."""
        listed = subprocess.run(("ip", "netns", "pids", SERVER), capture_output=True, text=True, check=True).stdout
        processes = [int(word) for word in listed.split()]
        before, done = self._spent_s(*processes), list[float]()
        yield done
        done.append(done[-1] / (self._spent_s(*processes) - before))

    def _spent_s(self, *processes: int) -> float:
        """The CPU time of programs that have ended, of these processes, and of the kernel's thread for packets."""
        threads = (each for one in processes for each in Path(f"/proc/{one}/task").glob("*/schedstat"))
        spent_ns = (int(each.read_text().split()[0]) for each in (*threads, packet_thread(self.cpu) / "schedstat"))
        return children_cpu_s() + sum(spent_ns) / 1e9

    def _run(self, namespace: str, *command: str) -> str:
        with self.watch.sample():
            done = subprocess.run(self._inside(namespace, *command), capture_output=True, text=True, check=False)
        return done.stdout

    def _inside(self, namespace: str, *command: str) -> list[str]:
        return preferred("taskset", "-c", str(self.cpu), "ip", "netns", "exec", namespace, *command)


def packet_thread(cpu: int) -> Path:
    """The folder of the kernel's thread that handles packets of this CPU, where programs leave them to it."""
    return next(each.parent for each in Path("/proc").glob("[0-9]*/comm") if each.read_text() == f"ksoftirqd/{cpu}\n")


@contextmanager
def loop_pair(folder: Path) -> Iterator[None]:
    """The loop that records nothing, compiled, and a veth pair for it in a namespace of its own."""
    here = Path(__file__).parent
    compile_bpf(here / "bare_connections.bpf.c", folder / "bare.o")
    source = str(here / "bare_connections.c")
    subprocess.run(["gcc", "-O2", source, "-o", str(folder / "bare"), "-lbpf"], check=True)
    ip("netns", "add", LOOP)
    try:
        ip("-n", LOOP, "link", "add", "l0", "type", "veth", "peer", "name", "l1")
        for device in ("l0", "l1"):
            ip("-n", LOOP, "link", "set", device, "up")
            subprocess.run(("ip", "netns", "exec", LOOP, "ethtool", "-K", device, "gro", "on"), check=True)
        yield
    finally:
        ip("netns", "delete", LOOP)


def hook_rows(stack: ExitStack, cpus: Cpus, _pages: tuple[str, ...], seconds: float) -> list[Row]:
    """Connections in the hook beside each peer that is installed, and beside the loop that records nothing."""
    if shutil.which("nginx") is None:
        print("hook: nginx is not installed (nginx-light): the rows are left out", flush=True)
        return []
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    watch = stack.enter_context(watching([cpus.worker, cpus.other]))
    stack.enter_context(nginx(cpus.worker))
    stack.enter_context(loop_pair(folder))
    # The clients' ports are used again at once, as nginx's are.
    settings = ("net.ipv4.tcp_tw_reuse=1", "net.ipv4.ip_local_port_range=1024 65535")
    subprocess.run(("ip", "netns", "exec", CLIENT, "sysctl", "-qw", *settings), check=True)
    core = OneCore(cpus.worker, max(1, round(seconds)), watch, folder)
    peers: dict[str, Callable[[], float]] = {"our client and server, kernel": core.kernel}
    for name, peer, package in (("wrk", core.wrk, "wrk"), ("h2load", core.h2load, "nghttp2-client")):
        if shutil.which(name):
            peers[f"{name} to nginx"] = peer
        else:
            print(f"hook: {name} is not installed ({package}): its row is left out", flush=True)
    rows = [(name, peer, BESIDE_KERNEL, BYTES) for name, peer in peers.items()]
    rows.append(("bare loop, no records", core.bare, BESIDE_BARE, 1))
    unit = "thousand/CPU s"
    return [
        Row(WORK, name, wanted, functools.partial(core.hook, body), peer, watch, unit=unit, scale=1e-3)
        for name, peer, wanted, body in rows
    ]
