"""nicbench-connections beside wrk2 and h2load: what each gets from one nginx, and the CPU time that it takes.

    sudo python benchmarks/connections.py [--pairs 5] [--seconds 2]

Client and nginx are in two network namespaces, joined by a veth pair. Each sample of ours is followed by one of each
peer that is installed (`h2load` of nghttp2-client; `wrk` of https://github.com/giltene/wrk2, which no distribution
has). Printed is the median of each, with the least and the most.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

OURS = str(Path(__file__).resolve().parents[1] / "engine/target/release/nicbench-connections")
CLIENT, SERVER = (f"nb-bench-{end}-{os.getpid()}" for end in ("client", "server"))
ADDRESS, PORT, BYTES = "198.18.0.2", 8080, 1024
URL = f"http://{ADDRESS}:{PORT}/bytes/{BYTES}"
HIGH = 200_000
"""A rate that nobody reaches: what is complete is the most that the machine does."""


def ip(*words: str) -> None:
    """Runs a command of iproute2; it must succeed."""
    subprocess.run(("ip", *words), check=True)


@contextmanager
def nginx() -> Iterator[None]:
    """Two namespaces and nginx in one of them; all of it is gone afterwards."""
    server = None
    try:
        for name in (CLIENT, SERVER):
            ip("netns", "add", name)
        ip("link", "add", "c0", "netns", CLIENT, "type", "veth", "peer", "name", "s0", "netns", SERVER)
        for name, device, address in ((CLIENT, "c0", "198.18.0.1"), (SERVER, "s0", ADDRESS)):
            ip("-n", name, "address", "add", f"{address}/24", "dev", device)
            ip("-n", name, "link", "set", device, "up")
        command = (OURS, "nginx", "--on", ADDRESS, "--port", str(PORT), "--object", str(BYTES))
        server = subprocess.Popen(("ip", "netns", "exec", SERVER, *command), stdout=subprocess.DEVNULL)
        time.sleep(1.0)
        yield
    finally:
        if server is not None:
            server.terminate()
            server.wait()
        for name in (CLIENT, SERVER):
            subprocess.run(("ip", "netns", "delete", name), check=False)


def sample(*command: str) -> tuple[str, float]:
    """The output of a client, and the CPU seconds that it took."""
    before = os.times()
    done = subprocess.run(("ip", "netns", "exec", CLIENT, *command), check=False, capture_output=True, text=True)
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return done.stdout, cpu_s


def ours(task: str, connections: int, rate: int, seconds: float) -> tuple[float, float]:
    """Transactions a second of ours, and CPU microseconds of each."""
    asked = ("--task", task, "--connections", str(connections), "--rate", str(rate), "--seconds", str(seconds))
    target = ("--to", ADDRESS, "--port", str(PORT), "--object", str(BYTES), "--answer-within", "1")
    text, cpu_s = sample(OURS, "client", *asked, *target)
    said = json.loads(text)
    within = sum(second["completed"] for second in said["intervals"][: int(seconds)])
    whole = sum(second["completed"] for second in said["intervals"])
    return within / seconds, 1e6 * cpu_s / max(whole, 1)


def found_in(pattern: str, text: str) -> float:
    """The number of the first group; NaN where the pattern is not there."""
    found = re.search(pattern, text)
    return float(found[1]) if found else float("nan")


def wrk2(connections: int, rate: int, seconds: float, *, close: bool) -> tuple[float, float]:
    """The same of wrk2; its first requests a second calibrate and are among them."""
    header = ("-H", "Connection: close") if close else ()
    text, cpu_s = sample("wrk", "-t1", f"-c{connections}", f"-d{seconds:.0f}s", f"-R{rate}", *header, URL)
    whole = found_in(r"(\d+) requests in", text)
    return found_in(r"Requests/sec:\s+([\d.]+)", text), 1e6 * cpu_s / max(whole, 1.0)


def h2load(connections: int, seconds: float) -> tuple[float, float]:
    """The same of h2load, which has no rate: each connection asks as soon as it was answered."""
    text, cpu_s = sample("h2load", "--h1", "-t1", f"-c{connections}", "-D", f"{seconds:.0f}", URL)
    return found_in(r", ([\d.]+) req/s", text), 1e6 * cpu_s / max(found_in(r"(\d+) succeeded", text), 1.0)


def rows(seconds: float, rate: int) -> dict[str, Callable[[], tuple[float, float]]]:
    """What is measured, by name, in the order of one turn."""
    made: dict[str, Callable[[], tuple[float, float]]] = {}
    for connections in (16, 1000):
        made[f"ours, most, {connections} connections"] = partial(ours, "requests", connections, HIGH, seconds)
        if shutil.which("wrk"):
            made[f"wrk2, most, {connections} connections"] = partial(wrk2, connections, HIGH, seconds, close=False)
        if shutil.which("h2load"):
            made[f"h2load, most, {connections} connections"] = partial(h2load, connections, seconds)
    made[f"ours, {rate} requests/s"] = partial(ours, "requests", 16, rate, seconds)
    made["ours, most new connections"] = partial(ours, "connect", 1, HIGH // 10, seconds)
    made[f"ours, {rate // 4} new connections/s"] = partial(ours, "connect", 1, rate // 4, seconds)
    if shutil.which("wrk"):
        made[f"wrk2, {rate} requests/s"] = lambda: wrk2(16, rate, seconds, close=False)
        made["wrk2, most new connections"] = lambda: wrk2(64, HIGH // 10, seconds, close=True)
        made[f"wrk2, {rate // 4} new connections/s"] = lambda: wrk2(64, rate // 4, seconds, close=True)
    return made


def main() -> int:
    """Takes all samples in turn and prints a line for each row."""
    parser = argparse.ArgumentParser(description="nicbench-connections beside wrk2 and h2load")
    parser.add_argument("--pairs", type=int, default=5, help="turns of all rows")
    parser.add_argument("--seconds", type=float, default=2.0, help="whole seconds of a sample")
    parser.add_argument("--rate", type=int, default=8000, help="requests a second where all are asked for the same")
    options = parser.parse_args()
    with nginx():
        wanted = rows(options.seconds, options.rate)
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in wanted}
        for _ in range(options.pairs):
            for name, take in wanted.items():
                found[name].append(take())
    for name, taken in found.items():
        rates, costs = zip(*taken, strict=True)
        print(
            f"{name:36} {statistics.median(rates):9.0f}/s ({min(rates):.0f} to {max(rates):.0f}), "
            f"{statistics.median(costs):6.1f} us of CPU each ({min(costs):.1f} to {max(costs):.1f})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
