"""Our own tester over a veth without a DUT, in the kernel (`xdp`) and by net_af_xdp: rates of one core and of two, and
the delay that it adds.

Each engine has a pair of its own, whose ends it both owns, in one namespace. All are kept open; who is not measured
stands still.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from core_watch import CoreWatch, watching
from engine_process import Engine, engine, port, stream
from machine import Cpus
from nicbench.stats.latency import percentiles_ns
from pairs import Row, held
from veth_pair import PREFIX, remove_leftovers, run

FLOWS = 256
WANTED_FRAMES_PER_S = 2e6
DRAIN_S = 0.05
LOADS_FRAMES_PER_S = (10e3, 100e3, 500e3, 1e6)
FRAME_SIZES = (64, 1518)
# A sender that fell short of the load by more than this is named beside its delay.
SHORT_SHARE = 0.01


@contextmanager
def namespace() -> Iterator[str]:
    """One of its own, without addresses and routes."""
    remove_leftovers()
    name = f"{PREFIX}{os.getpid()}-cable"
    run("ip", "netns", "add", name)
    try:
        run("ip", "netns", "exec", name, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6")
        yield name
    finally:
        run("ip", "netns", "delete", name)


@contextmanager
def tester(inside: str, number: int, kind: str, workers: list[dict[str, Any]], cpu: int) -> Iterator[Engine]:
    """An engine at both ends of pair ``number``; without ``workers``, one on ``cpu`` does everything."""
    devices = [f"c{number}{end}" for end in "ab"]
    run("ip", "link", "add", devices[0], "netns", inside, "type", "veth", "peer", "name", devices[1], "netns", inside)
    for device in devices:
        run("ip", "-n", inside, "link", "set", device, "up")
    own = {"queue": 0} if kind == "af_xdp" else {}
    ports = [port(device, kind, device=device, **own) for device in devices]
    command = ["ip", "netns", "exec", inside]
    with engine(ports, worker_cpu=cpu, workers=workers, inside=command, memory_mib=128, huge_pages=False) as process:
        yield process


class Cable:
    """Engines by driver and number of cores."""

    def __init__(self, stack: ExitStack, cpus: Cpus, cores: tuple[int, ...]) -> None:
        self.watch: CoreWatch = stack.enter_context(watching([cpus.worker, cpus.other]))
        inside = stack.enter_context(namespace())
        apart = [
            {"cpu": cpus.worker, "transmit": [0, 1], "receive": []},
            {"cpu": cpus.other, "transmit": [], "receive": [0, 1]},
        ]
        kinds = [(kind, count) for kind in ("xdp", "af_xdp") for count in cores]
        self._engines = {
            key: stack.enter_context(tester(inside, number, key[0], apart if key[1] == 2 else [], cpus.worker))
            for number, key in enumerate(kinds)
        }
        self.lost: dict[tuple[str, int], list[float]] = {key: [] for key in kinds}

    def trial(self, key: tuple[str, int], seconds: float, **fields: Any) -> dict[str, Any]:
        """One transmission from the first end to the second, with the totals of its one stream."""
        rest = [each.pid for other, each in self._engines.items() if other != key]
        process = self._engines[key]
        with held(*rest), self.watch.sample():
            reading = process.trial([stream(FLOWS, transmit=0, receive=1, **fields)], seconds, drain_s=DRAIN_S)
            process.request("settle", duration_s=0.0)
        return reading

    def analysed(self, key: tuple[str, int], seconds: float) -> Callable[[], float]:
        """A sample: frames analysed a second, as fast as they are sent."""

        def sample() -> float:
            reading = self.trial(key, seconds)
            (one,) = reading["streams"]
            self.lost[key].append(one["lost"] / max(1, one["sent"]))
            return float(one["received"] / reading["transmit_ns"] * 1e9)

        return sample

    def note(self, cores: int) -> Callable[[], str]:
        """What was lost of what was sent, by both drivers."""

        def text() -> str:
            shares = (100 * statistics.median(self.lost[kind, cores]) for kind in ("xdp", "af_xdp"))
            most = (100 * max(self.lost[kind, cores]) for kind in ("xdp", "af_xdp"))
            return "lost: " + ", ".join(
                f"{each:.3f} % (at most {top:.3f})" for each, top in zip(shares, most, strict=True)
            )

        return text


def cable_rows(stack: ExitStack, cpus: Cpus, pages: tuple[str, ...], seconds: float) -> list[Row]:
    """Every frame is made, sent, received and analysed: by one core, or sent by one and analysed by the other."""
    del pages
    cable = Cable(stack, cpus, (1, 2))
    names = {1: "one core does everything", 2: "one core sends, the other analyses"}
    return [
        Row(
            f"{name}, {FLOWS} flows, veth, `xdp`", "the same, `net_af_xdp`", None,
            cable.analysed(("xdp", cores), seconds), cable.analysed(("af_xdp", cores), seconds), cable.watch,
            wanted_rate=WANTED_FRAMES_PER_S if cores == 2 else None, note=cable.note(cores),
        )
        for cores, name in names.items()
    ]  # fmt: skip


def delay_lines(cpus: Cpus, seconds: float, rounds: int) -> list[str]:
    """Median and 99.9 % of the time from a frame's stamp to its analysis, one core, by load and frame size, in turn."""
    cases = [(size, load) for size in FRAME_SIZES for load in LOADS_FRAMES_PER_S]
    taken: dict[tuple[int, float, str], list[tuple[float | None, float | None, float]]] = {}
    with ExitStack() as stack:
        cable = Cable(stack, cpus, (1,))
        for number in range(rounds):
            for size, load in cases:
                kinds = ("xdp", "af_xdp") if number % 2 == 0 else ("af_xdp", "xdp")
                for kind in kinds:
                    reading = cable.trial((kind, 1), seconds, frame_bytes=size, rate_frames_per_s=load)
                    taken.setdefault((size, load, kind), []).append(delays(reading, load * seconds))
    lines = [
        "| bytes | load [kpps] | `xdp`: median [µs] | 99.9 % | `net_af_xdp`: median [µs] | 99.9 % | sent of the load |",
        "|---|---|---|---|---|---|---|",
    ]
    for size, load in cases:
        cells, short = [], []
        for kind in ("xdp", "af_xdp"):
            medians, tails, shares = zip(*taken[size, load, kind], strict=True)
            cells += [spread(medians), spread(tails)]
            if statistics.median(shares) < 1 - SHORT_SHARE:
                short.append(f"`{kind}` {100 * statistics.median(shares):.0f} %")
        lines.append(f"| {size} | {load / 1e3:g} | {' | '.join(cells)} | {', '.join(short) or 'all'} |")
    return lines


def delays(reading: dict[str, Any], wanted: float) -> tuple[float | None, float | None, float]:
    """Median, 99.9 % [ns], which too few frames do not show, and the share of the load that was sent."""
    (one,) = reading["streams"]
    known = percentiles_ns(one["latency"]["histogram"])
    return known.get("50"), known.get("99.9"), one["sent"] / wanted


def spread(values_ns: tuple[float | None, ...]) -> str:
    """The median and the range of what is known, in microseconds."""
    known_ns = [value for value in values_ns if value is not None]
    if not known_ns:
        return "-"
    median, least, most = statistics.median(known_ns), min(known_ns), max(known_ns)
    return f"{median / 1e3:.1f} ({least / 1e3:.1f} to {most / 1e3:.1f})"
