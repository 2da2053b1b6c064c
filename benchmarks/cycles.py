"""Rows in cycles: the analyser alone, what each feature costs, and how the rate grows from one core to two."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable
from typing import Any, TypeVar

from core_watch import SHARED_SHARE, CoreWatch, watching
from engine_process import Engine, engine, frames_per_s, port, stream
from machine import Cpus
from nicbench.engine.binaries import find_binary
from pairs import BUDGET

Sampled = TypeVar("Sampled")

HEADER = [
    "| work | TSC cycles each | core cycles each | ns each | quiet runs | target | |",
    "|---|---|---|---|---|---|---|",
]
COSTS = ("tsc_cycles_each", "core_cycles_each", "ns_each")


def quiet_samples(take: Callable[[], Sampled], watch: CoreWatch, wanted: int) -> tuple[list[Sampled], int]:
    """Returns the quiet samples, or all of them if fewer than ``wanted`` were quiet, and how many were quiet."""
    quiet: list[Sampled] = []
    taken: list[Sampled] = []
    while len(quiet) < wanted and len(taken) < BUDGET * wanted:
        watch.shares.clear()
        with watch.sample():
            taken.append(take())
        if max(watch.shares) <= SHARED_SHARE:
            quiet.append(taken[-1])
    return (quiet if len(quiet) >= wanted else taken), len(quiet)


def analyse_lines(cpu: int, runs: int) -> list[str]:
    """``nicbench-packets measure analyse``: packets in the cache, no port."""
    rows, quiet = measured("analyse", cpu, runs)
    library = rows["record one latency, hdrhistogram crate"]["core_cycles_each"]
    wanted = {
        "analyse, 8192 flows": ("<= 60 core cycles", 60.0),
        "record one latency": ("<= the library's", library * 1.02),
    }
    lines = list(HEADER)
    for name, row in rows.items():
        target, most = wanted.get(name, ("", None))
        verdict = "" if most is None else verdict_of(row["core_cycles_each"] <= most, quiet >= runs)
        lines.append(line(name, row, f"{quiet} of {runs}", target, verdict))
    return lines


def verdict_of(is_met: bool, is_quiet: bool) -> str:
    """A miss on a core that was shared says nothing of the engine."""
    if is_met:
        return "met"
    return "not reached" if is_quiet else "not shown: the core was shared"


def kernel_lines(what: str, cpu: int, runs: int) -> list[str]:
    """``measure receive`` or ``measure generate``: what each feature of the kernel's tester costs a frame."""
    try:
        rows, quiet = measured(what, cpu, runs)
    except subprocess.CalledProcessError as error:
        last = (error.stderr or error.stdout or "").strip().splitlines()[-1:]
        return [f"`nicbench-packets measure {what}` was not measured: {''.join(last) or error}"]
    return [*HEADER, *(line(name, row, f"{quiet} of {runs}") for name, row in rows.items())]


def measured(what: str, cpu: int, runs: int) -> tuple[dict[str, dict[str, float]], int]:
    """What the engine says of itself on this CPU: the median costs over quiet runs, and how many these are."""
    command = ["taskset", "-c", str(cpu), str(find_binary("nicbench-packets")), "measure", what]

    def take() -> list[dict[str, Any]]:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
        return rows

    with watching([cpu]) as watch:
        reports, quiet = quiet_samples(take, watch, runs)
    costs = {
        rows[0]["name"]: {cost: statistics.median(row[cost] for row in rows) for cost in COSTS}
        for rows in zip(*reports, strict=True)
    }
    return costs, quiet


def line(name: str, row: dict[str, float], quiet: str, target: str = "", met: str = "") -> str:
    """A row of the table."""
    cells = f"{row['tsc_cycles_each']:.1f} | {row['core_cycles_each']:.1f} | {row['ns_each']:.2f}"
    return f"| {name} | {cells} | {quiet} | {target} | {met} |"


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
    lines = ["| the generator, one core, `net_null` | core cycles a packet | Mpps | quiet |", "|---|---|---|---|"]
    with (
        watching([cpus.worker]) as watch,
        engine([port("null", "null")], worker_cpu=cpus.worker, huge_pages=huge_pages, memory_mib=192) as process,
    ):
        for name, (streams, start) in cases.items():

            def take(streams: list[dict[str, Any]] = streams, start: dict[str, Any] = start) -> tuple[float, float]:
                return one(process, streams, seconds, start)

            samples, quiet = quiet_samples(take, watch, rounds)
            cycles, rate = (statistics.median(column) for column in zip(*samples, strict=True))
            paced = " (the rate is given)" if "paced" in name or "schedule" in name else ""
            shown = "-" if paced else f"{cycles:.1f}"
            lines.append(f"| {name} | {shown} | {rate / 1e6:.1f}{paced} | {quiet} of {rounds} |")
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
    common: dict[str, Any] = {"worker_cpu": cpus.worker, "huge_pages": huge_pages, "memory_mib": 192}
    with (
        watching([cpus.worker, cpus.other]) as watch,
        engine([port("null", "null")], **common) as single,
        engine([port("null", "null")], workers=both, **common) as double,
    ):

        def take() -> tuple[float, float]:
            alone, together = (one(process, [stream(8192)], seconds, {})[1] for process in (single, double))
            return alone, together

        samples, quiet = quiet_samples(take, watch, rounds)
    alone, together = zip(*samples, strict=True)
    ratio = statistics.median(two / one for one, two in samples)
    one_core, two_cores = (statistics.median(rates) / 1e6 for rates in (alone, together))
    rates = f"{one_core:.1f} to {two_cores:.1f} Mpps, median ratio {ratio:.2f}"
    return [f"One core to two, 8192 flows, `net_null`: {rates}, {quiet} of {rounds} pairs quiet."]
