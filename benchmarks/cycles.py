"""Rows in cycles: the analyser alone, what each feature costs, and how the rate grows from one core to two."""

from __future__ import annotations

import json
import statistics
import subprocess
from typing import Any

from engine_process import Engine, engine, frames_per_s, port, stream
from machine import Cpus
from nicbench.engine.binaries import find_binary

HEADER = ["| work | TSC cycles each | core cycles each | ns each | target | |", "|---|---|---|---|---|---|"]


def analyse_lines() -> list[str]:
    """``nicbench-packets measure analyse``: packets in the cache, no port."""
    rows = {row["name"]: row for row in measured("analyse")["rows"]}
    library = rows["record one latency, hdrhistogram crate"]["core_cycles_each"]
    lines = list(HEADER)
    for name, row in rows.items():
        target, met = "", ""
        if name == "analyse, 8192 flows":
            target, met = "<= 60 core cycles", "met" if row["core_cycles_each"] <= 60 else "not reached"
        if name == "record one latency":
            target, met = "<= the library's", "met" if row["core_cycles_each"] <= library * 1.02 else "not reached"
        lines.append(line(row, target, met))
    return lines


def kernel_lines(what: str) -> list[str]:
    """``measure receive`` or ``measure generate``: what each feature of the kernel's tester costs a frame."""
    try:
        return [*HEADER, *(line(row) for row in measured(what)["rows"])]
    except subprocess.CalledProcessError as error:
        last = (error.stderr or error.stdout or "").strip().splitlines()[-1:]
        return [f"`nicbench-packets measure {what}` was not measured: {''.join(last) or error}"]


def measured(what: str) -> dict[str, Any]:
    """What the engine says of itself."""
    command = [str(find_binary("nicbench-packets")), "measure", what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def line(row: dict[str, Any], target: str = "", met: str = "") -> str:
    """A row of the table."""
    cells = f"{row['tsc_cycles_each']:.1f} | {row['core_cycles_each']:.1f} | {row['ns_each']:.2f}"
    return f"| {row['name']} | {cells} | {target} | {met} |"


def feature_lines(cpus: Cpus, huge_pages: bool, seconds: float, rounds: int) -> list[str]:
    """Core cycles a packet of the generator on ``net_null``, feature by feature."""
    ipv6: dict[str, Any] = {
        "ip": 6,
        "source_address": "2001:2::1",
        "destination_address": "2001:2:0:1::1",
        "frame_bytes": 82,
    }
    cases: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
        "1 flow, stamped": ([stream(1)], {}),
        "8192 flows": ([stream(8192)], {}),
        "a million flows": ([stream(1 << 20)], {}),
        "8192 flows, IPv6 with UDP checksum (82 bytes)": ([stream(8192, **ipv6)], {}),
        "8192 flows, 1518 bytes": ([stream(8192, frame_bytes=1518)], {}),
        "8192 flows, two streams in turn (constant bytes written anew)": ([stream(4096), stream(4096)], {}),
        "8192 flows, latency from the schedule": (
            [stream(8192, rate_frames_per_s=20e6)],
            {"latency_from": "scheduled"},
        ),
        "8192 flows, paced at 20 Mpps": ([stream(8192, rate_frames_per_s=20e6)], {}),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    with engine([port("null", "null")], worker_cpu=cpus.worker, huge_pages=huge_pages, memory_mib=192) as process:
        for _ in range(rounds):
            for name, (streams, start) in cases.items():
                taken[name].append(one(process, streams, seconds, start))
    lines = ["| the generator, one core, `net_null` | core cycles a packet | Mpps |", "|---|---|---|"]
    for name, samples in taken.items():
        cycles, rate = (statistics.median(column) for column in zip(*samples, strict=True))
        paced = " (the rate is given)" if "paced" in name or "schedule" in name else ""
        lines.append(f"| {name} | {'-' if paced else f'{cycles:.1f}'} | {rate / 1e6:.1f}{paced} |")
    return lines


def one(process: Engine, streams: list[dict[str, Any]], seconds: float, start: dict[str, Any]) -> tuple[float, float]:
    """Core cycles a packet, and frames a second."""
    reading = process.trial(streams, seconds, **start)
    process.request("settle", duration_s=0.0)
    rate = frames_per_s(reading)
    return sum(reading["health"]["core_clock_hz"]) / 2 / rate, rate


def scaling_lines(cpus: Cpus, huge_pages: bool, seconds: float, rounds: int) -> list[str]:
    """One worker and two, in turn."""
    both = [{"cpu": cpu, "transmit": [0], "receive": [0]} for cpu in (cpus.worker, cpus.other)]
    rates: dict[int, list[float]] = {1: [], 2: []}
    common: dict[str, Any] = {"worker_cpu": cpus.worker, "huge_pages": huge_pages, "memory_mib": 192}
    with (
        engine([port("null", "null")], **common) as single,
        engine([port("null", "null")], workers=both, **common) as double,
    ):
        for _ in range(rounds):
            for count, process in ((1, single), (2, double)):
                rates[count].append(one(process, [stream(8192)], seconds, {})[1])
    ratio = statistics.median(two / alone for alone, two in zip(rates[1], rates[2], strict=True))
    one_core, two_cores = (statistics.median(rates[count]) / 1e6 for count in (1, 2))
    return [
        f"One core to two, 8192 flows, `net_null`: {one_core:.1f} to {two_cores:.1f} Mpps, median ratio {ratio:.2f}."
    ]
