"""Checks the figures of tools: a rate above what the link carries, a contradiction, or no number is implausible.

The figures of a tool that miscounts, or was disturbed so that they make no sense, are refused with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from nicbench.core.round import Figures, Flow, Job, JobSpec, RequestLatency
from nicbench.store.reading import LARGEST_WHOLE_NUMBER
from nicbench.workloads.base import has_control_characters

CEILING_BITS_PER_S: Final = 10e12
"""Limit where the link's rate is unknown: more than any machine moves."""
MEMORY_CEILING_BYTES_PER_S: Final = 100e12
_MARGIN: Final = 0.01
# A receiver's clock may start this much after the first bytes have arrived, which matters in a short test.
_START_S: Final = 0.01
# What a sender's socket may still hold when it ends (tcp_wmem), for tools that count only what was sent.
_SEND_BUFFER_BYTES: Final = 4 * 1024 * 1024
_IN_FLIGHT_BYTES: Final = 16 * 1024 * 1024
_SHORTEST, _LONGEST = 0.95, 1.05
_SHORTER_S, _LONGER_S = 0.2, 2.0
_LONGEST_LATENCY_NS: Final = 1e12
_ROUNDED: Final = 0.999
"""Share of the requested bytes that suffices, because some tools print rounded megabytes."""


def find_implausible(job: Job, figures: Figures, link_bits_per_s: float | None = None) -> tuple[str, ...]:
    """Lists what is implausible in the figures, one sentence each; empty where they can be trusted.

    ``link_bits_per_s`` is the rate in one direction of the slower link of the two ends.
    """
    ask = job.ask
    texts = list(_check_values(figures.model_dump(mode="python")))
    if texts:  # without valid numbers the other checks cannot be computed
        return tuple(texts)
    if ask.operation == "stream":
        texts += _check_streams(job, figures, link_bits_per_s)
    elif ask.operation == "request-response":
        texts += _check_requests(figures)
    elif ask.operation == "frames":
        texts += _check_frames(ask, figures)
    elif ask.operation == "connections":
        texts += _check_connections(figures)
    elif figures.memory_bytes_per_s is None:
        texts += [] if job.role == "memory" else ["nothing is said of the memory's throughput"]  # a load may be short
    elif not 0 < figures.memory_bytes_per_s <= MEMORY_CEILING_BYTES_PER_S:
        texts.append(f"a memory throughput of {figures.memory_bytes_per_s:g} bytes/s")
    for name, share in (("client", figures.client_cpu_share), ("server", figures.server_cpu_share)):
        if share is not None and share > 4096:
            texts.append(f"{share:g} CPUs busy with the {name}")
    return tuple(texts)


def _check_values(value: Any, name: str = "") -> Iterator[str]:
    """Finds numbers that are not finite or negative, and texts with control characters."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _check_values(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _check_values(part, name)
    elif isinstance(value, bool):
        return
    elif isinstance(value, int) and abs(value) > LARGEST_WHOLE_NUMBER:
        yield f"{name} has more digits than any count"
    elif isinstance(value, int | float):
        if not math.isfinite(value) or value < 0:
            yield f"{name} is {value}"
    elif isinstance(value, str) and has_control_characters(value):
        yield f"{name} holds control characters"


def _check_frames(ask: JobSpec, figures: Figures) -> Iterator[str]:
    said = figures.frames
    if said is None:
        yield "nothing is said of frames"
        return
    if said.frames and said.measured_ns:
        rate = said.frames * 1e9 / said.measured_ns
        if not math.isclose(rate, said.frames_per_s, rel_tol=_MARGIN):
            yield f"{said.frames} frames in {said.measured_ns * 1e-9:g} s and {said.frames_per_s:g} frames/s"
    if said.dropped_frames is not None and said.due_frames is not None and said.dropped_frames > said.due_frames:
        yield f"{said.dropped_frames} dropped frames of {said.due_frames} that were due"
    if said.bytes_per_s > MEMORY_CEILING_BYTES_PER_S:
        yield f"{said.bytes_per_s:g} bytes/s"
    duration_s, measured_s = ask.duration_s, said.measured_ns * 1e-9
    if duration_s is not None and measured_s > duration_s * _LONGEST + _LONGER_S:
        yield f"{measured_s:g} s were measured, and {duration_s:g} s asked for"


def _check_connections(figures: Figures) -> Iterator[str]:
    said = figures.connections
    if said is None:
        yield "nothing is said of connections"
        return
    for name, counts in (("ramp", said.ramp), ("sustain phase", said.sustain)):
        if counts.completed + counts.failures != counts.due:
            yield f"{name}: {counts.completed} completed and {counts.failures} failed of {counts.due} that were due"


def _check_streams(job: Job, figures: Figures, link_bits_per_s: float | None) -> Iterator[str]:
    ask = job.ask
    directions = {"forward", "reverse"} if ask.direction == "both" else {ask.direction}
    missing = directions - {flow.direction for flow in figures.flows}
    if missing:
        yield f"nothing is said of the direction {' and '.join(sorted(missing))}"
    # Where the beginning is omitted (iperf3's -O), bytes sent in it may arrive after it.
    in_flight = ask.streams * max(ask.window_bytes or 0, _IN_FLIGHT_BYTES) if job.options.get("omit_s") else 0
    for flow in figures.flows:
        texts = (*_check_flow(ask, flow, link_bits_per_s), *_check_surplus(ask, flow, in_flight))
        yield from (f"{flow.direction}: {text}" for text in texts)
    yield from (
        f"an interval with {rate:g} bit/s, more than anything carries"
        for _, rate in figures.intervals
        if rate > CEILING_BITS_PER_S
    )


def _check_flow(ask: JobSpec, flow: Flow, link_bits_per_s: float | None) -> Iterator[str]:
    if not flow.bits_per_s:
        yield "nothing arrived"
        return
    yield from _check_speed(ask, flow, link_bits_per_s)
    yield from _check_duration(ask, flow)
    yield from _check_rates(flow)
    if flow.datagrams is not None and flow.lost_datagrams is not None and flow.lost_datagrams > flow.datagrams:
        yield f"{flow.lost_datagrams} datagrams lost of {flow.datagrams}"
    asked = ask.total_bytes
    if (
        asked is not None
        and ask.source_file is None
        and flow.sent_bytes is not None
        and flow.sent_bytes < asked * _ROUNDED
    ):
        yield f"{flow.sent_bytes} bytes were sent of {asked} that were asked for"


def _check_surplus(ask: JobSpec, flow: Flow, in_flight: int) -> Iterator[str]:
    """Finds more bytes received than sent."""
    sent, received = flow.sent_bytes, flow.received_bytes
    if ask.transport == "udp" or sent is None or received is None:  # a network may double a datagram
        return
    if received > sent * (1 + _MARGIN) + in_flight:
        yield f"{received} bytes arrived of {sent} that were sent"


def _check_speed(ask: JobSpec, flow: Flow, link_bits_per_s: float | None) -> Iterator[str]:
    for name, rate in (("sent", flow.sent_bits_per_s), ("received", flow.received_bits_per_s)):
        if rate is not None and rate > CEILING_BITS_PER_S:
            yield f"{rate:g} bit/s {name}, more than anything carries"
            return
    rate = flow.bits_per_s
    if link_bits_per_s is None or rate is None:
        return
    duration_s = flow.duration_s or ask.duration_s
    most = link_bits_per_s * (1 + _MARGIN + (_START_S / duration_s if duration_s else 0))
    if flow.received_bits_per_s is None:
        if ask.transport == "udp" or not duration_s:  # a sender's host drops what its link does not take
            return
        most += 8 * ask.streams * max(ask.window_bytes or 0, _SEND_BUFFER_BYTES) / duration_s
    if rate > most:
        yield f"{rate:g} bit/s of payload over a link of {link_bits_per_s:g} bit/s"


def _check_duration(ask: JobSpec, flow: Flow) -> Iterator[str]:
    asked_s, took_s = ask.duration_s, flow.duration_s
    if took_s is not None and took_s == 0:
        yield "it says that it took no time"
    if asked_s is None or took_s is None or ask.total_bytes is not None:
        return
    too_short = took_s < asked_s * _SHORTEST - _SHORTER_S and ask.source_file is None  # a file may end before
    if too_short or took_s > asked_s * _LONGEST + _LONGER_S:
        yield f"it took {took_s:g} s, and {asked_s:g} s were asked for"


def _check_rates(flow: Flow) -> Iterator[str]:
    """Compares bytes over time with the rate, and the sum of the streams with the total."""
    if flow.received_bytes is not None and flow.duration_s and flow.received_bits_per_s is not None:
        computed = flow.received_bytes * 8 / flow.duration_s
        if abs(computed - flow.received_bits_per_s) > 0.05 * max(computed, flow.received_bits_per_s):
            yield f"{flow.received_bits_per_s:g} bit/s, where its bytes and seconds make {computed:g}"
    for name in ("sent_bits_per_s", "received_bits_per_s"):
        whole = getattr(flow, name)
        parts = [getattr(stream, name) for stream in flow.streams]
        if whole is None or not parts or any(part is None for part in parts):
            continue
        total = sum(parts)
        if math.isinf(total) or abs(total - whole) > _MARGIN * max(total, whole):
            yield f"its {len(parts)} streams make {total:g} bit/s together, and it says {whole:g}"


def _check_requests(figures: Figures) -> Iterator[str]:
    if figures.latency is None and not figures.transactions_per_s:
        yield "nothing is said of any request"
    if figures.transactions_per_s is not None and not 0 < figures.transactions_per_s < 1e10:
        yield f"{figures.transactions_per_s:g} transactions a second"
    if figures.latency is not None:
        yield from _check_latency(figures.latency)


def _check_latency(latency: RequestLatency) -> Iterator[str]:
    if latency.count == 0:
        yield "not one request was answered"
    if all(one is None for one in (latency.minimum_ns, latency.mean_ns, latency.maximum_ns)) and not (
        latency.percentiles_ns
    ):
        yield "no latency is said"
    known = [one for one in (latency.minimum_ns, latency.mean_ns, latency.maximum_ns) if one is not None]
    # Tools print two or three decimals of a microsecond.
    if any(later < earlier - 10 for earlier, later in pairwise(known)):
        yield f"least, mean and greatest latency do not rise: {', '.join(f'{one:g}' for one in known)} ns"
    for name, value in (("mean", latency.mean_ns), ("greatest", latency.maximum_ns)):
        if value is not None and not 0 < value <= _LONGEST_LATENCY_NS:
            yield f"a {name} latency of {value:g} ns"
    for name, value in latency.percentiles_ns.items():
        if latency.maximum_ns is not None and value > latency.maximum_ns * (1 + _MARGIN) + 10:
            yield f"{name} % within {value:g} ns, more than the greatest, {latency.maximum_ns:g}"
    ordered = [value for _, value in sorted((float(name), value) for name, value in latency.percentiles_ns.items())]
    if any(later < earlier for earlier, later in pairwise(ordered)):
        yield "its percentiles do not rise"
