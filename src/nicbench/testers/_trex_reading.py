"""What TRex's statistics say, as a reading. Pure: its dictionaries in, our counts out.

The keys are those of ``get_stats`` and ``get_pgid_stats`` of ``STLClient`` (trex-core, trex/stl/trex_stl_stats.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nicbench.model.analysis import SampleOrder
from nicbench.model.counts import Counts
from nicbench.model.trial import Health, Latency, PortReading, Reading, StreamReading
from nicbench.stats.latency import counted_in, histogram_of, merge, with_percentiles

RECEIVED_BY: Final = "TRex's receiving core, in software"
_MICROSECOND_NS: Final = 1000
# Below it a bin holds everything; above, bins are as wide as their first digit: 10, 20, .. 90, 100, 200 us, ..
_FIRST_BIN_US: Final = 10
# The share of the frames sent that must have arrived at all before a flow counter of zero is not believed.
_MISCOUNTED: Final = 0.5


class UnknownCountError(ValueError):
    """TRex gave no number where one is needed; its text says which, and why that may be."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of a trial: what TRex was given to send, by the numbers of its ports and of its packet groups."""

    name: str
    transmit: int
    receive: int
    intended: int
    group: int
    latency_group: int | None


@dataclass(frozen=True, slots=True)
class Told:
    """All that TRex told of one trial. ``links_lost`` are ports whose link was down before or after it."""

    ports: Mapping[Any, Any]
    groups: Mapping[str, Any]
    transmit_ns: int
    overtime_ns: int
    cpu_share: float | None
    links_lost: frozenset[int]


def reading_of(ways: Sequence[Way], told: Told, names: Mapping[int, str]) -> Reading:
    """The reading; ``names`` are those of the ports by TRex's numbers, in the order of the testbed."""
    streams = tuple(_stream(way, told.groups) for way in ways)
    total = Counts.sum_of(stream.counts for stream in streams)
    _believe(ways, total, told)
    ports = tuple(_port(number, name, told) for number, name in names.items())
    known = [port.foreign for port in ports if port.foreign is not None]
    latencies = [stream.latency for stream in streams if stream.latency]
    return Reading(
        transmit_ns=told.transmit_ns,
        counts=total.model_copy(update={"foreign": sum(known) if len(known) == len(ports) else None}),
        streams=streams,
        ports=ports,
        latency=merge(latencies),
        health=Health(
            cpu_share=told.cpu_share,
            queue_full=_number(told.ports.get("global", {}).get("queue_full")),
            overtime_ns=told.overtime_ns,
        ),
    )


def _stream(way: Way, groups: Mapping[str, Any]) -> StreamReading:
    """Both packet groups of a way are one stream of ours: the load and, where there is one, the sample within it."""
    numbers = [way.group] if way.latency_group is None else [way.group, way.latency_group]
    sent = sum(_flow_count(groups, number, "tx_pkts", way.transmit) for number in numbers)
    arrived = sum(_flow_count(groups, number, "rx_pkts", way.receive) for number in numbers)
    received = min(sent, arrived)  # more than were sent: copies, or frames that only look like ours (trex-core 650)
    counts = Counts(
        # TRex rounds the end of a transmission to a frame: one more than intended is no frame too many.
        intended=max(way.intended, sent),
        sent=sent,
        unsent_tester=max(0, way.intended - sent),
        received=received,
        lost=sent - received,
        late=None,
        duplicated=None,
        reordered=None,
        corrupted=None,
        unattributed=None,
        corrupted_unattributed=None,
        foreign=None,
    )
    if way.latency_group is None:
        return StreamReading(name=way.name, counts=counts)
    sampled = groups.get("latency", {}).get(way.latency_group, {})
    in_sample = _flow_count(groups, way.latency_group, "rx_pkts", way.receive)
    return StreamReading(
        name=way.name,
        counts=counts,
        latency=_latency(sampled.get("latency", {}), in_sample, received),
        sample=_order(
            sampled.get("err_cntrs", {}), _flow_count(groups, way.latency_group, "tx_pkts", way.transmit), in_sample
        ),
    )


def _order(errors: Mapping[str, Any], sent: int, received: int) -> SampleOrder | None:
    names = {
        "dropped": "dropped",
        "duplicated": "dup",
        "reordered": "out_of_order",
        "sequence_jumps": "seq_too_high",
        "sequence_falls": "seq_too_low",
    }
    counts = {ours: number for ours, theirs in names.items() if (number := _number(errors.get(theirs))) is not None}
    return SampleOrder(sent=sent, received=received, **counts) if len(counts) == len(names) else None


def _latency(told: Mapping[str, Any], in_sample: int, received: int) -> Latency | None:
    """From the fine histogram where the server keeps one (``--hdrh``), else from its bins.

    ``average`` is not used: it is a running mean that halves the weight of what came before with each look at it.
    """
    exact = _fine(told.get("hdrh"), in_sample)
    bins = {int(low): int(frames) for low, frames in (told.get("histogram") or {}).items() if frames}
    if exact is None and not bins:
        return None
    if exact is not None:
        counted = [(value_us * _MICROSECOND_NS, frames) for value_us, frames in exact]
        minimum, maximum, resolution = counted[0][0], counted[-1][0], float(_MICROSECOND_NS)
        mean = sum(value * frames for value, frames in counted) / sum(frames for _, frames in counted)
    else:
        greatest_us = _number(told.get("total_max"))
        edges = [(low, _upper_us(low, greatest_us), frames) for low, frames in sorted(bins.items())]
        # A frame is taken for as slow as its bin allows: a percentile is at most what is said.
        counted = [(high * _MICROSECOND_NS, frames) for _, high, frames in edges]
        minimum, maximum = edges[0][0] * _MICROSECOND_NS, counted[-1][0]
        resolution = float(max(high - low for low, high, _ in edges) * _MICROSECOND_NS)
        frames_in_all = sum(frames for _, _, frames in edges)
        mean = sum((low + high) / 2 * frames for low, high, frames in edges) * _MICROSECOND_NS / frames_in_all
    return with_percentiles(
        Latency(
            source="software",
            received_by=RECEIVED_BY,
            resolution_ns=resolution,
            count=sum(frames for _, frames in counted),
            minimum_ns=minimum,
            mean_ns=mean,
            maximum_ns=maximum,
            histogram=histogram_of(counted),
            sample_of=received,
        )
    )


def _fine(histogram: object, in_sample: int) -> list[tuple[int, int]] | None:
    """Microseconds, each with its frames; None where it is not of this trial: clearing statistics does not clear it."""
    if not isinstance(histogram, str):
        return None
    try:
        counted = [(value, frames) for value, frames in counted_in(histogram) if frames]
    except ValueError:
        return None
    return counted if counted and sum(frames for _, frames in counted) == in_sample else None


def _upper_us(low_us: int, greatest_us: int | None) -> int:
    """The upper end of a bin; the last one ends at the greatest latency, which TRex knows to the microsecond."""
    width = _FIRST_BIN_US if low_us < _FIRST_BIN_US else 10 ** math.floor(math.log10(low_us))
    high = low_us + width
    return greatest_us if greatest_us is not None and low_us <= greatest_us < high else high


def _port(number: int, name: str, told: Told) -> PortReading:
    counters = {
        key: count
        for key in ("opackets", "ipackets", "oerrors", "ierrors")
        if (count := _number(told.ports.get(number, {}).get(key))) is not None
    }
    ours = 0
    for group in told.groups.get("flow_stats", {}).values():
        ours += _number(group.get("rx_pkts", {}).get(number)) or 0
    arrived = counters.get("ipackets")
    return PortReading(
        name=name,
        # Whatever arrived and belongs to no packet group, late frames among them.
        foreign=None if arrived is None else max(0, arrived - ours),
        receive_overrun=counters.get("ierrors"),
        counters=counters,
        link_changed=number in told.links_lost,
    )


def _believe(ways: Sequence[Way], total: Counts, told: Told) -> None:
    """Refuses flow counters that stand at zero while the port counted frames: some cards' filters do not work."""
    receivers = {way.receive for way in ways}
    arrived = sum(_number(told.ports.get(number, {}).get("ipackets")) or 0 for number in receivers)
    if total.sent and not total.received and arrived >= _MISCOUNTED * total.sent:
        raise UnknownCountError(
            f"TRex's flow counters stand at 0 while {arrived} frames arrived at its ports: this card's filters do not "
            "work, or the DUT changes the IP identification by which TRex knows its frames"
        )


def _flow_count(groups: Mapping[str, Any], group: int, key: str, port: int) -> int:
    value = groups.get("flow_stats", {}).get(group, {}).get(key, {}).get(port)
    number = _number(value)
    if number is None:
        raise UnknownCountError(f"TRex gives no {key} of packet group {group} at port {port} ({value!r})")
    return max(0, number)  # -1 where all frames of a latency stream were lost


def _number(value: object) -> int | None:
    """TRex writes N/A, or not a number, where it does not know."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value)
