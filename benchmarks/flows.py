"""What a flow costs the engine: memory and CPU time of a trial with one flow to a million, on simulated ports."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from engine_process import RUN_KEY, Engine, port, stream
from machine import cpu_s
from nicbench.engine.binaries import find_binary

FLOWS = (1, 1_000, 10_000, 100_000, 1_000_000)
FRAMES_PER_S = 1e6
SOURCE_PORTS = 16


def growth_lines(frames: int) -> list[str]:
    """A row for each number of flows, and the slope between the least and the most."""
    lines = ["| flows | memory of the engine [MB] | CPU time of the trial [s] | received |", "|---|---|---|---|"]
    costs = []
    for flows in FLOWS:
        memory_bytes, cpu_s, received = cost(flows, frames)
        costs.append((memory_bytes, cpu_s))
        lines.append(f"| {flows} | {memory_bytes / 1e6:.1f} | {cpu_s:.2f} | {received} of {frames} |")
    more = FLOWS[-1] - FLOWS[0]
    slopes = [(last - first) / more for first, last in zip(costs[0], costs[-1], strict=True)]
    return [*lines, "", f"A flow: {slopes[0]:.0f} bytes, {slopes[1] * 1e9:.0f} ns of CPU time."]


def cost(flows: int, frames: int) -> tuple[int, float, int]:
    """The engine's largest memory, CPU seconds of the trial, and frames received. Time is computed: none is idle."""
    with closing(Engine([str(find_binary("nicbench-packets"))])) as process:
        process.request("hello", protocol="1.0")
        process.request("configure", run_key=RUN_KEY, clock="virtual", ports=[simulated("a", 1), simulated("b", 0)])
        before_s = cpu_s(process.pid)
        own = stream(
            flows, receive=1, rate_frames_per_s=FRAMES_PER_S, source_port_count=min(flows, SOURCE_PORTS),
            source_address_count=max(1, flows // SOURCE_PORTS),
        )  # fmt: skip
        (reading,) = process.trial([own], frames / FRAMES_PER_S, drain_s=0.1)["streams"]
        return largest_bytes(process.pid), cpu_s(process.pid) - before_s, int(reading["received"])


def simulated(name: str, sends_to: int) -> dict[str, Any]:
    """A port whose link is never the limit."""
    return port(name, "simulated", link_bits_per_s=1e11, sends_to=sends_to, dut={})


def largest_bytes(pid: int) -> int:
    """The most memory that the process had at once."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
