"""Frames as bytes for TRex, and TRex's statistics as a ``Reading``. Pure; when frames were sent is in ``_trex_time``.

The keys are those of ``get_stats`` and ``get_pgid_stats`` of ``STLClient`` (trex-core, trex/stl/trex_stl_stats.py).
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address
from typing import Any, Final

from nicbench.core.frozen import frozen
from nicbench.core.reading import Counts, SampleOrder, sum_of_known
from nicbench.core.traffic import Frames
from nicbench.core.trial import Health, Latency, PortReading, Reading, StreamReading
from nicbench.stats.latency import add_percentiles, histogram_of, merge, value_counts
from nicbench.testbed.duts.base import Addressing, Refusal

# For how long TRex's ports sent, from readings of their counters. Pure.
#
# TRex does not say when a transmission began or ended: the call that starts it takes milliseconds to tenths of a
# second, the event of its end comes later still, and a server that is held up sends every frame all the same, only
# later. So the counters of sent frames are read around both moments (``trex_process.watch``).


_NEAR: Final = 5
"""The number of readings that say where an end lies: a delayed server sends later than the earlier ones foretell."""

Counted = Sequence[float]
"""A reading of a counter: when it was asked for and when it was there, in seconds, and the frames sent by then."""


@frozen
class SendingTime:
    """For how long a port sent, by how much that is more than it was asked for, and how exactly it is known."""

    taken_ns: int
    overtime_ns: int
    uncertainty_ns: int


@frozen
class _Moment:
    at_s: float
    uncertainty_s: float


def sending_time(readings: Mapping[str, Any], frames_per_s: float, asked_s: float) -> SendingTime:
    """That of one port which was asked to send at this rate for so long.

    ``readings`` are those of ``trex_process.watch.Readings``. A port that has sent nothing took the time that it was
    given.
    """
    last, beginning = readings["last"], readings["beginning"]
    if last is None:
        return SendingTime(round(1e9 * asked_s), 0, 0)
    none = readings["none"] or beginning[0]
    begun = _beginning(none, beginning, last, frames_per_s)
    ended = _end(readings["ending"] or [none], last, frames_per_s)
    taken_s = max(0.0, ended.at_s - begun.at_s)
    return SendingTime(
        taken_ns=round(1e9 * taken_s),
        overtime_ns=round(1e9 * (taken_s - asked_s)),
        uncertainty_ns=round(1e9 * (begun.uncertainty_s + ended.uncertainty_s)),
    )


def _beginning(none: Counted, beginning: Sequence[Counted], last: Counted, frames_per_s: float) -> _Moment:
    """When the first frame left: of the readings with frames, those that the server answered soonest say it best.

    It is held up while it starts a transmission, so that the readings before and after may be far apart.
    """
    # A reading with all frames does not say when the last of them left, and so not when the first did.
    known = [one for one in beginning if one[2] < last[2]] or beginning[:1]
    earliest = max([none[0], *(one[0] - one[2] / frames_per_s for one in known[:_NEAR])])
    latest = min([beginning[0][1], *(one[1] - one[2] / frames_per_s for one in known)])
    if earliest <= latest:
        return _middle(earliest, latest)
    return _middle(none[0], beginning[0][1])  # frames came faster than at the rate, or were held up


def _end(ending: Sequence[Counted], last: Counted, frames_per_s: float) -> _Moment:
    """When the last frame left. After any reading a server that is held up may have sent the rest later."""
    left = [(one, (last[2] - one[2]) / frames_per_s) for one in ending]
    earliest = max(one[0] + rest_s for one, rest_s in left)
    latest = last[1]
    if earliest > latest:
        return _middle(ending[-1][0], latest)  # frames came faster than at the rate
    likely = min([latest, *(one[1] + rest_s for one, rest_s in left[-_NEAR:])])
    at_s = (earliest + max(earliest, likely)) / 2
    return _Moment(at_s, max(at_s - earliest, latest - at_s))


def _middle(earliest_s: float, latest_s: float) -> _Moment:
    return _Moment((earliest_s + latest_s) / 2, (latest_s - earliest_s) / 2)


def worst(times: Sequence[SendingTime]) -> SendingTime:
    """That of the port which missed its time most, with the uncertainty of the port whose time is known worst."""
    missed = max(times, key=lambda time: (abs(time.overtime_ns), time.uncertainty_ns))
    return replace(missed, uncertainty_ns=max(time.uncertainty_ns for time in times))


IP_OFFSET: Final = 14  # behind the Ethernet header
_SOURCE_OFFSET, _DESTINATION_OFFSET = IP_OFFSET + 12, IP_OFFSET + 16
_IP_BYTES: Final = 20
_FCS_BYTES: Final = 4
_UDP: Final = 17


def udp_frame(frames: Frames, way: Addressing, frame_bytes: int) -> bytes:
    """A frame of Ethernet, IPv4 (RFC 791), UDP (RFC 768, no checksum) and zeros, without the FCS, which TRex adds."""
    link = bytes.fromhex((way.destination_mac + way.source_mac).replace(":", "")) + b"\x08\x00"
    length = frame_bytes - _FCS_BYTES - IP_OFFSET
    ends = IPv4Address(way.source_address).packed + IPv4Address(way.destination_address).packed
    header = struct.pack("!BBHHHBBH", 0x45, 0, length, 0, 0, frames.hop_limit, _UDP, 0) + ends
    header = header[:10] + struct.pack("!H", _checksum(header)) + header[12:]
    transport = struct.pack("!HHHH", frames.source_port, frames.destination_port, length - _IP_BYTES, 0)
    return (link + header + transport).ljust(frame_bytes - _FCS_BYTES, b"\0")


def flow_program(frames: Frames, way: Addressing) -> tuple[tuple[int, int, int], ...]:
    """The addresses that differ between flows: offset in the frame, first value, and number of consecutive values.

    They are the digits of the flow's number, the first one the fastest. It has the most values, so that cores of TRex
    that share its values pass its end one step at a time. UnfitFlowsError where no digits make exactly these flows.
    """
    way = way.with_addresses(frames.addresses)
    numbers = _numbers_of_addresses(frames.flows, way.source_address_count, way.destination_address_count)
    if numbers is None:
        raise UnfitFlowsError(_explain_misfit(frames, way))
    sources, destinations = numbers
    digits = (
        (_SOURCE_OFFSET, int(IPv4Address(way.source_address)), sources),
        (_DESTINATION_OFFSET, int(IPv4Address(way.destination_address)), destinations),
    )
    varied = tuple(digit for digit in digits if digit[2] > 1) or digits[:1]
    return tuple(sorted(varied, key=lambda digit: -digit[2]))


class UnfitFlowsError(ValueError):
    """TRex cannot make these numbers of flows and addresses; the message says why."""


def refuse_flows(frames: Frames, ways: Iterable[Addressing]) -> Refusal | None:
    """Why TRex cannot make the flows on one of these ways, with a number of flows that it can."""
    for way in ways:
        try:
            flow_program(frames, way)
        except UnfitFlowsError as error:
            return Refusal(str(error), f"write `flows: {_largest_fitting(frames, way)}`, or allow more addresses")
    return None


def _numbers_of_addresses(flows: int, most_sources: int, most_destinations: int) -> tuple[int, int] | None:
    """The numbers of sources and destinations that make exactly this number of flows; None where these do not exist."""
    for destinations in range(1, min(flows, most_destinations) + 1):
        if flows % destinations == 0 and flows // destinations <= most_sources:
            return flows // destinations, destinations
    return None


def _explain_misfit(frames: Frames, way: Addressing) -> str:
    sources, destinations = way.source_address_count, way.destination_address_count
    there_are = f"and there are {sources} source and {destinations} destination addresses"
    if frames.flows > sources * destinations:
        return f"the flows of TRex differ in their addresses alone, {there_are}: too few for {frames.flows} flows"
    return (
        f"TRex pairs each of its source addresses with each of its destination addresses, {there_are}: "
        f"no numbers of them make {frames.flows} flows"
    )


def _largest_fitting(frames: Frames, way: Addressing) -> int:
    """The largest number of flows, up to the one that was asked for, that TRex can make."""
    way = way.with_addresses(frames.addresses)
    sources, destinations = way.source_address_count, way.destination_address_count
    flows = min(frames.flows, sources * destinations)
    while _numbers_of_addresses(flows, sources, destinations) is None:
        flows -= 1
    return flows


def _checksum(header: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


RECEIVED_BY: Final = "TRex's receiving core, in software"
_MICROSECOND_NS: Final = 1000
# The first bin is everything below it; above, bins begin at 10, 20, .. 90, 100, 200 us, ..
_FIRST_BIN_US: Final = 10
# Where this share of the frames sent has arrived at the port, a flow counter of zero must be wrong.
_MISCOUNTED: Final = 0.5


class UnknownCountError(ValueError):
    """TRex gave no number where one is needed; the message says which one and the likely cause."""


@frozen
class Way:
    """One way of a trial: the frames that TRex is to send, with the numbers of its ports and packet groups."""

    name: str
    transmit: int
    receive: int
    intended: int
    group: int
    latency_group: int | None


@frozen
class TrexStatistics:
    """The statistics of one trial. ``later`` are the groups once more after the settle time, where they are known.

    ``links_changed`` are ports whose link was down before or after it, or changed.
    """

    ports: Mapping[Any, Any]
    groups: Mapping[str, Any]
    later: Mapping[str, Any] | None
    time: SendingTime
    cpu_share: float | None
    links_changed: frozenset[int]


def reading_of(ways: Sequence[Way], statistics: TrexStatistics, names: Mapping[int, str]) -> Reading:
    """The reading of a trial; ``names`` are the names of the ports by TRex's numbers, in the testbed's order.

    ValueError where TRex's counts contradict themselves, UnknownCountError where one is missing.
    """
    streams = tuple(_stream(way, statistics, share) for way, share in _with_shares(ways, statistics))
    total = Counts.sum_of(stream.counts for stream in streams)
    for number in dict.fromkeys(way.receive for way in ways):
        _require_plausible(number, names[number], ways, statistics)
    ports = tuple(_port(number, name, ways, statistics) for number, name in names.items())
    latencies = [stream.latency for stream in streams if stream.latency]
    return Reading(
        transmit_ns=statistics.time.taken_ns,
        counts=total.replace(
            foreign=sum_of_known(port.foreign for port in ports),
            misdirected=sum_of_known(port.misdirected for port in ports),
        ),
        streams=streams,
        ports=ports,
        latency=merge(latencies),
        health=Health(
            cpu_share=statistics.cpu_share,
            queue_full=_number(statistics.ports.get("global", {}).get("queue_full")),
            overtime_ns=statistics.time.overtime_ns,
            time_uncertainty_ns=statistics.time.uncertainty_ns,
        ),
    )


def _with_shares(ways: Sequence[Way], statistics: TrexStatistics) -> Iterator[tuple[Way, float]]:
    """Each way with the share of its frames that left the port: groups also count what a full queue threw away."""
    for way in ways:
        beside = [one for one in ways if one.transmit == way.transmit]
        grouped = sum(_sent(one, statistics.groups) for one in beside)
        left = _number(statistics.ports.get(way.transmit, {}).get("opackets"))
        yield way, 1.0 if left is None or left >= grouped else left / grouped


def _sent(way: Way, groups: Mapping[str, Any]) -> int:
    """The frames of a way that TRex handed to its port."""
    return sum(_flow_count(groups, number, "tx_pkts", way.transmit) for number in _groups_of(way))


def _groups_of(way: Way) -> tuple[int, ...]:
    return (way.group,) if way.latency_group is None else (way.group, way.latency_group)


def _received(way: Way, groups: Mapping[str, Any], sent: int) -> int:
    """The frames of a way that arrived: more than sent are copies, or frames that look like these (trex-core 650)."""
    return min(sent, sum(_flow_count(groups, number, "rx_pkts", way.receive) for number in _groups_of(way)))


def _stream(way: Way, statistics: TrexStatistics, share_that_left: float) -> StreamReading:
    """The reading of a way from its packet groups: the load and, where there is one, the latency sample within it."""
    groups, later = statistics.groups, statistics.later
    sent = round(_sent(way, groups) * share_that_left)
    received = _received(way, groups, sent)
    late = None if later is None else max(0, _received(way, later, sent) - received)
    counts = Counts(
        # TRex rounds the end of a transmission to a whole frame, so that it may send one more than intended.
        intended=max(way.intended, sent),
        sent=sent,
        unsent_tester=max(0, way.intended - sent),
        received=received,
        lost=sent - received - (late or 0),
        late=late,
        duplicated=None,
        reordered=None,
        corrupted=None,
        corrupted_copies=None,
        unattributed=None,
        corrupted_unattributed=None,
        foreign=None,
        stale=None,
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


def _latency(statistics: Mapping[str, Any], in_sample: int, received: int) -> Latency | None:
    """The latency, from the fine histogram where the server has one (``--hdrh``), else from its coarse bins.

    ``average`` is not used: it is a running mean in which each reading halves the weight of all earlier values.
    """
    exact = _fine(statistics.get("hdrh"), in_sample)
    bins = {int(low): int(frames) for low, frames in (statistics.get("histogram") or {}).items() if frames}
    if exact is None and not bins:
        return None
    if exact is not None:
        counted = [(value_us * _MICROSECOND_NS, frames) for value_us, frames in exact]
        minimum, maximum, resolution = counted[0][0], counted[-1][0], float(_MICROSECOND_NS)
        mean = sum(value * frames for value, frames in counted) / sum(frames for _, frames in counted)
    else:
        greatest_us = _number(statistics.get("total_max"))
        edges = [(low, _upper_us(low, greatest_us), frames) for low, frames in sorted(bins.items())]
        # Each frame counts with the upper end of its bin, so that a percentile is never too low.
        counted = [(high * _MICROSECOND_NS, frames) for _, high, frames in edges]
        minimum, maximum = edges[0][0] * _MICROSECOND_NS, counted[-1][0]
        resolution = float(max(high - low for low, high, _ in edges) * _MICROSECOND_NS)
        frames_in_all = sum(frames for _, _, frames in edges)
        mean = sum((low + high) / 2 * frames for low, high, frames in edges) * _MICROSECOND_NS / frames_in_all
    return add_percentiles(
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
    """Pairs of microseconds and frames; None where the histogram has other frames too, for TRex does not clear it."""
    if not isinstance(histogram, str):
        return None
    try:
        counted = [(value, frames) for value, frames in value_counts(histogram) if frames]
    except ValueError:
        return None
    return counted if counted and sum(frames for _, frames in counted) == in_sample else None


def _upper_us(low_us: int, greatest_us: int | None) -> int:
    """The upper end of a bin in us; the last bin ends at the greatest latency, which TRex reports exactly."""
    width = _FIRST_BIN_US if low_us < _FIRST_BIN_US else 10 ** math.floor(math.log10(low_us))
    high = low_us + width
    return greatest_us if greatest_us is not None and low_us <= greatest_us < high else high


def _port(number: int, name: str, ways: Sequence[Way], statistics: TrexStatistics) -> PortReading:
    counters = {
        key: count
        for key in ("opackets", "ipackets", "oerrors", "ierrors")
        if (count := _number(statistics.ports.get(number, {}).get(key))) is not None
    }
    expected = {group for way in ways if way.receive == number for group in _groups_of(way)}
    of_groups = statistics.groups.get("flow_stats", {}).items()
    return PortReading(
        name=name,
        # Late frames of earlier trials are among them.
        foreign=_arrived_in_no_group(number, statistics.ports, statistics.groups),
        misdirected=sum_of_known(_arrived_at(number, group) for one, group in of_groups if one not in expected),
        receive_overrun=counters.get("ierrors"),
        counters=counters,
        link_changed=number in statistics.links_changed,
    )


def _require_plausible(number: int, name: str, ways: Sequence[Way], statistics: TrexStatistics) -> None:
    """Raises UnknownCountError where flow counters at a port are zero although their frames arrived there.

    Some cards' filters fail, for all groups or only for those of one port or of latency streams. Frames that a group
    counted are not held against another: of a latency stream the DUT may have lost every frame.
    """
    silent = [
        (group, share * _flow_count(statistics.groups, group, "tx_pkts", way.transmit))
        for way, share in _with_shares(ways, statistics)
        for group in _groups_of(way)
        if way.receive == number and not _flow_count(statistics.groups, group, "rx_pkts", number)
    ]
    missing = sum(sent for _, sent in silent)
    arrived = _arrived_in_no_group(number, statistics.ports, statistics.groups) or 0
    if not missing or arrived < _MISCOUNTED * missing:
        return
    latency_groups = {way.latency_group for way in ways}
    which = " of latency streams" if all(group in latency_groups for group, _ in silent) else ""
    raise UnknownCountError(
        f"TRex's flow counters{which} are 0 although {arrived} frames arrived at port {name}: this card's filters do "
        "not work, or the DUT changes the IP identification by which TRex recognizes its frames"
    )


def silent_ways(
    ways: Sequence[Way], ports: Mapping[Any, Any], groups: Mapping[str, Any]
) -> tuple[frozenset[Way], frozenset[Way]]:
    """The ways of whose learning frames no group counted any, and those among them that may not be silent all the same.

    They end at a port at which enough frames arrived in no group to be these: see ``_require_plausible``.
    """
    flows = groups.get("flow_stats", {})
    # A count that TRex does not give says nothing.
    silent = [way for way in ways if _number(flows.get(way.group, {}).get("rx_pkts", {}).get(way.receive)) == 0]
    missing = Counter[int]()
    for way in silent:
        missing[way.receive] += way.intended
    unclear = {
        number
        for number, frames in missing.items()
        if (_arrived_in_no_group(number, ports, groups) or 0) >= _MISCOUNTED * frames
    }
    return frozenset(silent), frozenset(way for way in silent if way.receive in unclear)


def _arrived_in_no_group(number: int, ports: Mapping[Any, Any], groups: Mapping[str, Any]) -> int | None:
    """The frames that arrived at a port and belong to no packet group; None where arrivals are unknown."""
    arrived = _number(ports.get(number, {}).get("ipackets"))
    if arrived is None:
        return None
    in_groups = sum_of_known(_arrived_at(number, group) for group in groups.get("flow_stats", {}).values())
    return None if in_groups is None else max(0, arrived - in_groups)


def _arrived_at(number: int, group: Mapping[str, Any]) -> int | None:
    """The frames of a packet group that arrived at a port; None where TRex writes no number."""
    return _number(group.get("rx_pkts", {}).get(number, 0))


def _flow_count(groups: Mapping[str, Any], group: int, key: str, port: int) -> int:
    value = groups.get("flow_stats", {}).get(group, {}).get(key, {}).get(port)
    number = _number(value)
    if number is None:
        raise UnknownCountError(f"TRex gives no {key} of packet group {group} at port {port} ({value!r})")
    return max(0, number)  # -1 where all frames of a latency stream were lost


def _number(value: object) -> int | None:
    """The value as an integer; None where TRex writes N/A or NaN for an unknown value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value)
