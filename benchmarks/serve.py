"""What `nicbench serve` takes on its own side to set a configuration and to tell the metrics of all its flows.

The flows send meanwhile, on simulated ports; what is measured is the server in this process, with the engine's answer
and the text or message for the client. Beside each telling of metrics stands the same answer encoded and decoded by
Python's json: the floor of any server that is written in Python and keeps nothing but plain data.

    .venv/bin/python benchmarks/serve.py [--rounds 12]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from pydantic_core import to_json
from snappi import otg_pb2 as messages

from nicbench.bench_file import load
from nicbench.otg.api import Api
from nicbench.otg.sessions import Sessions
from pairs import median_with_interval

BENCH = """\
nicbench: 1
title: Many flows
lab: {kind: simulated}
dut: {kind: simulated}
"""
COUNTS = (64, 512, 4096)
LIMITS_S = {"set_config": 5.0, "get_metrics, HTTP": 0.05, "get_metrics, gRPC": 0.05}
"""What is wanted of 4096 flows."""
ALL_FLOWS = {"choice": "flow", "flow": {}}
START, STOP = (
    {"choice": "traffic", "traffic": {"choice": "flow_transmit", "flow_transmit": {"state": state}}}
    for state in ("start", "stop")
)
SECONDS_OF_SENDING = 0.6


def main() -> int:
    """Status 1 where 4096 flows take longer than is wanted."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=12)
    return 0 if of_many_flows(options.parse_args().rounds) else 1


def of_many_flows(rounds: int = 12) -> bool:
    """Measures in so many rounds, prints a table, and says whether the limits are kept."""
    rows = asyncio.run(_measure(rounds))
    print("| flows | request | median (range) [ms] | CPU time [ms] | json, CPU time [ms] | ratio [95 %] | wanted |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(row.line())
    return all(row.is_met() for row in rows)


@dataclass
class Row:
    """Samples of one request at one number of flows, in seconds."""

    flows: int
    request: str
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    floor: list[float] = field(default_factory=list)

    def limit_s(self) -> float | None:
        """What is wanted, of most flows alone."""
        return LIMITS_S[self.request] if self.flows == max(COUNTS) else None

    def is_met(self) -> bool:
        """By CPU time, which the machine's other work does not lengthen."""
        limit_s = self.limit_s()
        return limit_s is None or median(self.cpu) < limit_s

    def line(self) -> str:
        """As printed."""
        limit_s = self.limit_s()
        ratio = ""
        if self.floor:
            middle, lower, upper = median_with_interval(
                [ours / floor for ours, floor in zip(self.cpu, self.floor, strict=True)], seed=1
            )
            ratio = f"{middle:.2f} [{lower:.2f}, {upper:.2f}]"
        wanted = "" if limit_s is None else f"< {1e3 * limit_s:g}: {'met' if self.is_met() else '**not reached**'}"
        columns = [self.flows, self.request, _range(self.wall), _range(self.cpu), _range(self.floor), ratio, wanted]
        return f"| {' | '.join(map(str, columns))} |"


def _range(seconds: list[float]) -> str:
    if not seconds:
        return ""
    low, middle, high = (1e3 * value for value in (min(seconds), median(seconds), max(seconds)))
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"


async def _measure(rounds: int) -> list[Row]:
    rows = {(count, request): Row(count, request) for count in COUNTS for request in LIMITS_S}
    with tempfile.TemporaryDirectory() as temporary:
        bench = Path(temporary) / "bench.yaml"
        bench.write_text(BENCH)
        sessions = Sessions(load(bench, serves=True), Path(temporary) / "runs", lambda _: None, idle_s=600.0)
        api = Api(sessions)
        await api.set_config(config_of(1))  # the session begins: a testbed is made
        for _ in range(rounds):
            for count in COUNTS:
                await _one_round(sessions, api, count, rows)
        await sessions.end()
    return list(rows.values())


async def _one_round(sessions: Sessions, api: Api, count: int, rows: dict[tuple[int, str], Row]) -> None:
    config = config_of(count)
    row = rows[count, "set_config"]
    await _sample(row, lambda: api.set_config(config))
    await api.set_control_state(START)
    await asyncio.sleep(SECONDS_OF_SENDING)

    async def told_as_text() -> bytes:
        return to_json(await api.get_metrics(ALL_FLOWS))

    async def told_as_message() -> bytes:
        told: bytes = messages.MetricsResponse(**await api.get_metrics(ALL_FLOWS)).SerializeToString()
        return told

    text, message = rows[count, "get_metrics, HTTP"], rows[count, "get_metrics, gRPC"]
    answer = json.loads(await told_as_text())
    assert len(answer["flow_metrics"]) == count
    for row, tell in ((text, told_as_text), (message, told_as_message)):
        await _sample(row, tell)
        began = time.process_time()
        json.loads(json.dumps(answer))
        row.floor.append(time.process_time() - began)
    await api.set_control_state(STOP)
    while sessions.current is not None and sessions.current.is_transmitting:  # noqa: ASYNC110 - until it is written down
        await asyncio.sleep(0.05)


async def _sample(row: Row, ask: Callable[[], Awaitable[Any]]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    await ask()
    row.wall.append(time.perf_counter() - wall)
    row.cpu.append(time.process_time() - cpu)


def config_of(count: int) -> dict[str, Any]:
    """So many flows with lists and increments, which together send 20,000 frames a second until they are stopped."""
    packet = [
        {"choice": "ethernet", "ethernet": {}},
        {"choice": "ipv4", "ipv4": {"dst": {"choice": "increment", "increment": {"start": "10.0.0.1", "count": 100}}}},
        {"choice": "udp", "udp": {"src_port": {"choice": "values", "values": [1, 2, 3]}}},
    ]
    flow = {
        "tx_rx": {"port": {"tx_name": "p1", "rx_names": ["p2"]}},
        "packet": packet,
        "rate": {"choice": "pps", "pps": str(max(1, 20_000 // count))},
        "duration": {"choice": "continuous"},
        "metrics": {"enable": True, "loss": True, "latency": {"enable": True}},
        "size": {"choice": "fixed", "fixed": 128},
    }
    ports = [{"name": "p1", "location": "t0"}, {"name": "p2", "location": "t1"}]
    return {"ports": ports, "flows": [{"name": f"flow {number}", **flow} for number in range(count)]}


if __name__ == "__main__":
    sys.exit(main())
