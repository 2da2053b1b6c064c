"""Rows over connections: nicbench-connections beside wrk2 and h2load at one nginx, in transactions and CPU time.

    sudo .venv/bin/python benchmarks/run.py --only connections

Client and nginx are in two network namespaces, joined by a veth pair, each on a CPU of its own. A peer that is not
installed has no rows, which a line says. No distribution has wrk2 (https://github.com/giltene/wrk2): built, it belongs
into PATH as ``wrk2`` or ``wrk``.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from core_watch import CoreWatch, watching
from machine import Cpus, preferred
from nicbench.engine.binaries import find_binary
from pairs import CpuRow, Row

CLIENT, SERVER = (f"nb-bench-{end}-{os.getpid()}" for end in ("client", "server"))
ADDRESS, PORT, BYTES = "198.18.0.2", 8080, 1024
URL = f"http://{ADDRESS}:{PORT}/bytes/{BYTES}"
HIGH = 200_000
"""A rate that nobody reaches: what is complete is the most that the machine does."""
RATE, CONNECTION_RATE = 8000, 2000
"""Rates that all reach: requests and new connections a second."""
LEAST_S = 2
"""wrk2 and h2load take whole seconds, and connect in the first."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is asked of all alike: so many requests a second on so many connections, or each on a new one."""

    name: str
    connections: int
    rate: int
    is_new: bool = False


WORKS = (
    Work("requests, most, 16 connections", 16, HIGH),
    Work("requests, most, 1000 connections", 1000, HIGH),
    Work(f"{RATE} requests/s, 16 connections", 16, RATE),
    Work("new connections, most", 64, HIGH // 5, is_new=True),
    Work(f"{CONNECTION_RATE} new connections/s", 64, CONNECTION_RATE, is_new=True),
)


@dataclass(frozen=True, slots=True)
class Done:
    """What a client did: transactions a second within the time, all transactions, and the CPU time that it took."""

    per_s: float
    whole: float
    cpu_s: float


@dataclass
class Sampler:
    """One program at one work: a sample is its transactions a second; ``per_cpu_s`` is of the latest one."""

    take: Callable[[Work, int], Done]
    work: Work
    seconds: int
    watch: CoreWatch
    per_cpu_s: float = 0.0

    def sample(self) -> float:
        with self.watch.sample():
            done = self.take(self.work, self.seconds)
        self.per_cpu_s = done.whole / done.cpu_s
        return done.per_s


def children_cpu_s() -> float:
    """The CPU time of all processes that were waited for, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def ip(*words: str) -> None:
    """Runs a command of iproute2; it must succeed."""
    subprocess.run(("ip", *words), check=True)


@contextmanager
def nginx(cpu: int) -> Iterator[None]:
    """Two namespaces and nginx in one of them, with one worker; all of it is gone afterwards."""
    server = None
    try:
        for name in (CLIENT, SERVER):
            ip("netns", "add", name)
        ip("link", "add", "c0", "netns", CLIENT, "type", "veth", "peer", "name", "s0", "netns", SERVER)
        for name, device, address in ((CLIENT, "c0", "198.18.0.1"), (SERVER, "s0", ADDRESS)):
            ip("-n", name, "address", "add", f"{address}/24", "dev", device)
            ip("-n", name, "link", "set", device, "up")
        ours = str(find_binary("nicbench-connections"))
        command = (ours, "nginx", "--on", ADDRESS, "--port", str(PORT), "--object", str(BYTES))
        on_cpu = preferred("taskset", "-c", str(cpu), "ip", "netns", "exec", SERVER, *command)
        server = subprocess.Popen(on_cpu, stdout=subprocess.DEVNULL, start_new_session=True)
        wait_for_server(server)
        yield
    finally:
        if server is not None:
            server.terminate()
            server.wait()
        for name in (CLIENT, SERVER):
            subprocess.run(("ip", "netns", "delete", name), check=False)


def wait_for_server(server: subprocess.Popen[bytes], port: int = PORT, within_s: float = 10.0) -> None:
    """Returns when a socket listens there; RuntimeError where the server ends or is not ready in time."""
    end = time.monotonic() + within_s
    look, listens = ("ip", "netns", "exec", SERVER, "cat", "/proc/net/tcp"), f":{port:04X} 00000000:0000 0A"
    while listens not in subprocess.run(look, capture_output=True, text=True, check=True).stdout:
        if server.poll() is not None or time.monotonic() > end:
            raise RuntimeError("the server does not listen; its reason is above")
        time.sleep(0.05)


class Clients:
    """The programs that ask, each on the same CPU of the client's namespace."""

    def __init__(self, cpu: int) -> None:
        self._cpu = cpu
        self._wrk2 = find_wrk2()

    def peers(self) -> dict[str, Callable[[Work, int], Done]]:
        """What is installed, by name; a line says what is not."""
        found: dict[str, Callable[[Work, int], Done]] = {}
        if self._wrk2 is not None:
            found["wrk2"] = self.wrk2
        else:
            print("connections: wrk2 (github.com/giltene/wrk2) is not in PATH: its rows are left out", flush=True)
        if shutil.which("h2load"):
            found["h2load"] = self.h2load
        else:
            print("connections: h2load is not installed (nghttp2-client): its rows are left out", flush=True)
        return found

    def ours(self, work: Work, seconds: int) -> Done:
        """What nicbench-connections does."""
        task = ("--task", "connect" if work.is_new else "requests", "--connections", str(work.connections))
        asked = ("--rate", str(work.rate), "--seconds", str(seconds), "--answer-within", "1")
        target = ("--to", ADDRESS, "--port", str(PORT), "--object", str(BYTES))
        text, cpu_s = self._run(str(find_binary("nicbench-connections")), "client", *task, *asked, *target)
        completed = [each["completed"] for each in json.loads(text)["intervals"]]
        return Done(sum(completed[:seconds]) / seconds, sum(completed), cpu_s)

    def wrk2(self, work: Work, seconds: int) -> Done:
        """What wrk2 does."""
        header = ("-H", "Connection: close") if work.is_new else ()
        asked = ("-t1", f"-c{work.connections}", f"-d{seconds}s", f"-R{work.rate}")
        text, cpu_s = self._run(str(self._wrk2), *asked, *header, URL)
        return Done(found_in(r"Requests/sec:\s+([\d.]+)", text), found_in(r"(\d+) requests in", text), cpu_s)

    def h2load(self, work: Work, seconds: int) -> Done:
        """What h2load does, whose connections ask as soon as they were answered; it has no rate of requests."""
        text, cpu_s = self._run("h2load", "--h1", "-t1", f"-c{work.connections}", "-D", str(seconds), URL)
        return Done(found_in(r", ([\d.]+) req/s", text), found_in(r"(\d+) succeeded", text), cpu_s)

    def _run(self, *command: str) -> tuple[str, float]:
        """The output of a client, and the CPU seconds that it took."""
        inside = preferred("taskset", "-c", str(self._cpu), "ip", "netns", "exec", CLIENT, *command)
        before = children_cpu_s()
        done = subprocess.run(inside, capture_output=True, text=True, start_new_session=True, check=False)
        return done.stdout, children_cpu_s() - before


def find_wrk2() -> str | None:
    """Its path; None where there is none, or only wrk, which has no rate."""
    for name in ("wrk2", "wrk"):
        path = shutil.which(name)
        if path is None:
            continue
        usage = subprocess.run([path], capture_output=True, text=True, check=False)
        if "--rate" in usage.stdout + usage.stderr:
            return path
    return None


def found_in(pattern: str, text: str) -> float:
    """The number of the first group; RuntimeError where a client did not say it."""
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"a client does not say {pattern}: {text[-300:]}")
    return float(found[1])


def connection_rows(stack: ExitStack, cpus: Cpus, _pages: tuple[str, ...], seconds: float) -> list[Row]:
    """Each work beside each peer that can do it: transactions a second where they are the most, and CPU time."""
    clients = Clients(cpus.worker)
    peers = clients.peers()
    if not peers:
        return []
    if shutil.which("nginx") is None:
        print("connections: nginx is not installed (nginx-light): the rows are left out", flush=True)
        return []
    watch = stack.enter_context(watching([cpus.worker, cpus.other]))
    stack.enter_context(nginx(cpus.other))
    rows: list[Row] = []
    for work in WORKS:
        for name, peer in peers.items():
            if name == "h2load" and (work.rate != HIGH or work.is_new):
                continue
            ours, theirs = (Sampler(take, work, max(LEAST_S, round(seconds)), watch) for take in (clients.ours, peer))
            unit = "connections" if work.is_new else "requests"
            rate = Row(work.name, name, None, ours.sample, theirs.sample, watch, unit=f"{unit}/s", scale=1.0)
            rows += [rate, cpu_row(rate, ours, theirs, unit)]
    return rows


def cpu_row(rate: Row, ours: Sampler, theirs: Sampler, unit: str) -> Row:
    """CPU time of the pairs of a row: transactions for a second of CPU time, so that higher is better."""
    both = (lambda: ours.per_cpu_s), (lambda: theirs.per_cpu_s)
    return CpuRow(f"{rate.work}: CPU", rate.peer_name, None, *both, rate.watch, f"{unit}/CPU s", 1.0, rates=rate)
