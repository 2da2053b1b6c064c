"""Parses the output of dpdk-testpmd; the tests use recorded outputs of version 22.11. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_PORT = re.compile(r"-+ Forward statistics for port (\d+) ")
_END_OF_PORTS = "Accumulated forward statistics"
_COUNTER = re.compile(r"([RT]X-[a-z]+):\s*(\d+)")
_CYCLES = re.compile(r"\(total cycles=(\d+) / total \S+ packets=(\d+)\) at (\d+) MHz Clock")
_VERSION = re.compile(r"EAL: RTE Version: '([^']+)'")
_STREAM = re.compile(r"RX P=(\d+)/Q=(\d+) .*-> TX P=(\d+)/Q=(\d+)")
_LCORE = re.compile(r"Logical Core (\d+) ")
# rte_ethdev names them rx_q0_packets, mlx5 and others rx_q0packets, or rx_queue_0_packets.
_QUEUE_FRAMES = re.compile(r"rx_q(?:ueue_)?\d+_?(?:good_)?packets: (\d+)$")
_PROMPT = "testpmd> "


@dataclass(frozen=True, slots=True)
class ForwardStatistics:
    """The result of ``show fwd stats all``: counters by port and name, and core cycles where they are recorded."""

    ports: dict[int, dict[str, int]]
    cycles: int | None = None
    packets: int | None = None
    tsc_hz: float | None = None


def forward_statistics(lines: Iterable[str]) -> ForwardStatistics:
    """Parses ``show fwd stats all``, which has cycles only with --record-core-cycles and after the first packet."""
    ports: dict[int, dict[str, int]] = {}
    counters: dict[str, int] = {}
    cycles = packets = tsc_mhz = None
    for line in lines:
        if (port := _PORT.search(line)) is not None:
            counters = ports.setdefault(int(port[1]), {})
        elif _END_OF_PORTS in line:
            counters = {}
        elif (found := _CYCLES.search(line)) is not None:
            cycles, packets, tsc_mhz = (int(number) for number in found.groups())
        else:
            counters.update({name: int(value) for name, value in _COUNTER.findall(line)})
    return ForwardStatistics(ports, cycles, packets, None if tsc_mhz is None else tsc_mhz * 1e6)


def count_drops(statistics: ForwardStatistics) -> dict[str, int]:
    """Frames that testpmd itself dropped, by place."""
    return {f"testpmd d{port} RX-dropped": counters.get("RX-dropped", 0) for port, counters in statistics.ports.items()}


def count_overruns(statistics: ForwardStatistics) -> dict[int, int]:
    """Frames that it could not send, by port, because the ring towards the tester was full."""
    return {port: counters.get("TX-dropped", 0) for port, counters in statistics.ports.items()}


def list_streams(lines: Iterable[str]) -> tuple[str, ...]:
    """The map of ports, queues and cores from ``show config fwd``: "port 0 queue 0 to port 1 queue 0 on lcore 1"."""
    lcore, found = "?", []
    for line in lines:
        if (core := _LCORE.search(line)) is not None:
            lcore = core[1]
        if (stream := _STREAM.search(line)) is not None:
            here, queue, there, other = stream.groups()
            found.append(f"port {here} queue {queue} to port {there} queue {other} on lcore {lcore}")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Rings:
    """Lengths of the rings of each port's queues, as testpmd has them after the driver adjusted them."""

    receive_descriptors: int
    transmit_descriptors: int


def rings(lines: Iterable[str]) -> Rings | None:
    """Parses ``show config rxtx``, which prints those of the first queue of each port; None where it prints none."""
    text = "\n".join(lines)
    receive, transmit = (re.search(rf"{way} desc=(\d+)", text) for way in ("RX", "TX"))
    # 0: the driver chose.
    if receive is None or transmit is None or "0" in (receive[1], transmit[1]):
        return None
    return Rings(int(receive[1]), int(transmit[1]))


def queue_frames(lines: Iterable[str]) -> tuple[tuple[int, ...], ...]:
    """Frames received by port and queue, from ``show port xstats all``; a driver that counts none by queue has none."""
    ports: list[list[int]] = []
    for line in lines:
        if "NIC extended statistics for port" in line:
            ports.append([])
        elif (found := _QUEUE_FRAMES.match(line.strip())) is not None and ports:
            ports[-1].append(int(found[1]))
    return tuple(map(tuple, ports)) if all(ports) else ()


def version(stderr: str) -> str | None:
    """The version that the EAL prints with ``-v``; None where it is missing."""
    found = _VERSION.search(stderr)
    return found[1] if found else None


def refusal(lines: Iterable[str]) -> str | None:
    """The line by which testpmd refused a command; None where it did not."""
    words = ("Bad arguments", "Command not found", "Ambiguous command", "Invalid ")
    return next((line.removeprefix(_PROMPT) for line in lines if line.removeprefix(_PROMPT).startswith(words)), None)
