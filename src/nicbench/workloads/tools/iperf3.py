"""iperf3 (esnet/iperf): TCP and UDP throughput, one way, reverse or both at once; its JSON output, of 3.0 and later.

Its options and fields: iperf3(1), and ``iperf_api.c`` for what stands where in the JSON of which version.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.round import Direction, Figures, Flow, Job, JobSpec, RoundTrip, StreamFigures
from nicbench.workloads.base import (
    MEBIBYTE,
    Command,
    End,
    Output,
    Workload,
    WorkloadError,
    clean,
    last_words,
    version_numbers,
)
from nicbench.workloads.tool_output import Reading, json_object

_MOST_STREAMS: Final = 128  # MAX_STREAMS of iperf.h
_LONGEST_WRITE: Final = {"tcp": MEBIBYTE, "udp": 65507}  # MAX_BLOCKSIZE, and UDP's largest payload over IPv4
_LARGEST_WINDOW: Final = 512 * MEBIBYTE  # MAX_TCP_BUFFER
_AGREEMENT: Final = 0.01
_MISCOUNTED: Final = 1e-4
"""Share of the datagrams by which counts of an end may differ: some are on their way when it counts."""
_LATE_SHARE: Final = 0.02
"""How much of a test's time may be the rest of its last interval."""


class Iperf3Options(Frozen):
    """Options of ``workload: {kind: iperf3, ..}``. iperf3 counts whole seconds."""

    omit_s: int = Field(default=0, ge=0, le=60)
    """Seconds before the measured time that count in no figure (`-O`). What was sent in them may be received later:
    then more arrives than was sent.
    """
    mss_bytes: int | None = Field(default=None, ge=88, le=9216)
    """Maximum segment size (`-M`); without it the kernel's."""
    dscp: int | None = Field(default=None, ge=0, le=63)
    """The DSCP of the packets (`--dscp`)."""
    client_port: int | None = Field(default=None, ge=1, le=65535)
    """The first port of the client (`--cport`), for flows that are the same each time; without it any."""
    bind_device: bool = False
    """Sockets are also bound to the interface (`--bind-dev`, from 3.10)."""
    pacing: Literal["tool", "kernel"] = "tool"
    """What holds a rate: the `tool` (`-b`), or the `kernel` (`--fq-rate`)."""


class Iperf3(Workload):
    """iperf3, with a server of one connection (-s -1) for each client, both with JSON output (-J)."""

    kind = "iperf3"
    Options = Iperf3Options
    options: Iperf3Options
    package = "iperf3"
    tried = ("3.1", "3.22")
    version_pattern = re.compile(r"\biperf (\d+(?:\.\d+)+[\w.+-]*)")
    output_limit_bytes = 32 * MEBIBYTE

    def refusal(self, ask: JobSpec) -> str | None:
        if ask.operation != "stream" or ask.transport == "rdma":
            return "iperf3 sends streams over TCP or UDP, and nothing else"
        if ask.duration_s is not None and (ask.duration_s != int(ask.duration_s) or not 1 <= ask.duration_s <= 86400):
            return f"iperf3 counts whole seconds up to 86400, not {ask.duration_s:g}"
        if ask.streams > _MOST_STREAMS:
            return f"iperf3 has at most {_MOST_STREAMS} streams at once, not {ask.streams}"
        longest = _LONGEST_WRITE[ask.transport]
        if ask.write_bytes is not None and ask.write_bytes > longest:
            return f"iperf3 writes at most {longest} bytes at once over {ask.transport.upper()}, not {ask.write_bytes}"
        if ask.transport == "udp" and ask.write_bytes is not None and ask.write_bytes < 16:
            return f"iperf3 needs 16 bytes of a datagram for itself, not {ask.write_bytes}"
        if ask.window_bytes is not None and ask.window_bytes > _LARGEST_WINDOW:
            return f"iperf3 sets socket buffers of at most {_LARGEST_WINDOW} bytes, not {ask.window_bytes}"
        if ask.transport == "udp" and (ask.congestion_control or ask.no_delay):
            return "UDP has neither congestion control nor Nagle's algorithm"
        files = ask.source_file or ask.sink_file
        if files and (ask.direction == "both" or ask.streams > 1):
            return "iperf3 sends or writes a file in one stream and one direction only"
        return None

    def refusal_of_version(self, ask: JobSpec, version: str) -> str | None:
        known = version_numbers(version)
        if ask.direction == "both" and known < (3, 7):
            return f"iperf3 {version} cannot send both ways at once; 3.7 and later can"
        if self.options.bind_device and known < (3, 10):
            return f"iperf3 {version} cannot bind to a device; 3.10 and later can"
        if self.options.omit_s and ask.transport == "udp" and known < (3, 10):
            return f"iperf3 {version} counts the losses of omitted seconds; 3.10 and later say what arrived"
        return None

    def server_command(self, job: Job, client: End, server: End) -> Command:
        ask = job.ask
        file = ask.source_file if ask.direction == "reverse" else ask.sink_file
        return (
            *("iperf3", "-s", "-1", "-J", "-p", str(job.port), "-B", server.address),
            *(("-F", file) if file else ()),
        )

    def client_command(self, job: Job, client: End, server: End | None) -> Command:
        if server is None:
            raise WorkloadError("iperf3 needs a server")
        ask, options = job.ask, self.options
        file = ask.sink_file if ask.direction == "reverse" else ask.source_file
        amount = (
            ("-n", str(ask.total_bytes), "-i", "0.1")
            if ask.total_bytes is not None
            else ("-t", f"{ask.duration_s or 10:.0f}")
        )
        return (
            *("iperf3", "-c", server.address, "-p", str(job.port), "-J", "-B", client.address, *amount),
            *({"forward": (), "reverse": ("-R",), "both": ("--bidir",)}[ask.direction]),
            *(("-u",) if ask.transport == "udp" else ()),
            *self._rate(ask),
            *(("-l", str(ask.write_bytes)) if ask.write_bytes is not None else ()),
            *(("-P", str(ask.streams)) if ask.streams != 1 else ()),
            *(("-w", str(ask.window_bytes)) if ask.window_bytes is not None else ()),
            *(("-C", ask.congestion_control) if ask.congestion_control else ()),
            *(("-Z",) if ask.zero_copy else ()),
            *(("-N",) if ask.no_delay else ()),
            *(("-F", file) if file else ()),
            *(("-O", str(options.omit_s)) if options.omit_s else ()),
            *(("-M", str(options.mss_bytes)) if options.mss_bytes is not None else ()),
            *(("--dscp", str(options.dscp)) if options.dscp is not None else ()),
            *(("--cport", str(options.client_port)) if options.client_port is not None else ()),
            *(("--bind-dev", client.device) if options.bind_device and client.device else ()),
        )

    def _rate(self, ask: JobSpec) -> Command:
        """Builds the rate's options. Without them iperf3 would send 1 Mbit/s of UDP: rate 0 is as fast as it can."""
        if ask.rate_bits_per_s is None:
            return ("-b", "0") if ask.transport == "udp" else ()
        rate = f"{ask.rate_bits_per_s:.0f}"
        if self.options.pacing == "tool":
            return ("-b", rate)
        return ("--fq-rate", rate, *(("-b", "0") if ask.transport == "udp" else ()))

    def expected_s(self, job: Job) -> float | None:
        duration_s = job.ask.duration_s
        return None if duration_s is None else duration_s + self.options.omit_s

    def complaint(self, output: Output) -> str | None:
        """Returns the error in the JSON, which comes with exit status 0 (in 3.12 for instance)."""
        try:
            said = Reading(json_object(output.stdout, "iperf3"), "iperf3").text("error")
        except WorkloadError:
            return None
        return last_words(said) if said else None

    def parse(self, job: Job, client: Output, server: Output | None) -> Figures:
        said = self.complaint(client)
        if said is not None:
            raise WorkloadError(f"iperf3: {said}")
        whole = Reading(json_object(client.stdout, "iperf3"), "iperf3")
        end = whole.part("end")
        directions = _directions(job.ask.direction)
        notes: list[str] = []
        streams = _streams(end, job.ask.direction)
        start = whole.maybe("start")
        asked = None if start is None else start.maybe("test_start")
        is_omitting = bool(self.options.omit_s or (asked and asked.maybe_number("omit")))
        way_of = _udp if job.ask.transport == "udp" else _tcp
        flows = tuple(
            way_of(_Way(end, direction, suffix, streams[direction], is_omitting, notes))
            for direction, suffix in zip(directions, ("", _SECOND), strict=False)
        )
        if server is not None:
            _compare(flows, job, server)
        cpu = end.maybe("cpu_utilization_percent")
        _check_end(whole, flows)
        return Figures(
            flows=flows,
            intervals=tuple(_intervals(whole)),
            client_cpu_share=_share(cpu, "host_total"),
            server_cpu_share=_share(cpu, "remote_total"),
            congestion_control=end.text("sender_tcp_congestion") or end.text("receiver_tcp_congestion"),
            mss_bytes=None if start is None else start.maybe_count("tcp_mss") or start.maybe_count("tcp_mss_default"),
            path_mtu_bytes=_path_mtu_bytes(whole),
            notes=tuple(notes),
        )


def _directions(asked: Direction) -> tuple[Literal["forward", "reverse"], ...]:
    return ("forward", "reverse") if asked == "both" else (asked,)


_SECOND: Final = "_bidir_reverse"
"""Ends the names of the sums of the second direction of ``--bidir``, from 3.11 on."""


@dataclass(frozen=True)
class _Way:
    """What the client's report says of one direction."""

    end: Reading
    direction: Literal["forward", "reverse"]
    suffix: str
    streams: tuple[Reading, ...]
    is_omitting: bool
    notes: list[str]

    def sums(self) -> tuple[Reading, Reading] | None:
        """Returns the sums sent and received. None where streams alone have both: UDP before 3.10, ``--bidir`` before
        3.11, whose sums of both directions have the same name.
        """
        sent, received = self.end.maybe(f"sum_sent{self.suffix}"), self.end.maybe(f"sum_received{self.suffix}")
        is_shared = not self.suffix and len(self.streams) < len(self.end.parts("streams"))
        if sent is None or received is None or (is_shared and not self.end.has(f"sum_sent{_SECOND}")):
            return None
        return sent, received


def _tcp(way: _Way) -> Flow:
    sums = way.sums()
    if sums is None:
        return _tcp_of_streams(way)
    sent, received = sums
    return Flow(
        direction=way.direction,
        sent_bytes=sent.maybe_count("bytes"),
        received_bytes=received.maybe_count("bytes"),
        sent_bits_per_s=sent.number("bits_per_second"),
        received_bits_per_s=received.number("bits_per_second"),
        duration_s=received.maybe_number("seconds"),
        retransmissions=_retransmissions(sent),
        streams=tuple(map(_stream, way.streams)),
    )


def _tcp_of_streams(way: _Way) -> Flow:
    ends = [(stream.part("sender"), stream.part("receiver")) for stream in way.streams]
    if not ends:
        raise WorkloadError(f"iperf3 reports no stream {way.direction}")
    retransmissions = [_retransmissions(sent) for sent, _ in ends]
    return Flow(
        direction=way.direction,
        sent_bytes=sum(int(sent.number("bytes")) for sent, _ in ends),
        received_bytes=sum(int(received.number("bytes")) for _, received in ends),
        sent_bits_per_s=sum(sent.number("bits_per_second") for sent, _ in ends),
        received_bits_per_s=sum(received.number("bits_per_second") for _, received in ends),
        duration_s=max(received.number("end") for _, received in ends),  # `seconds` is that of the sender
        retransmissions=None if None in retransmissions else sum(one or 0 for one in retransmissions),
        streams=tuple(map(_stream, way.streams)),
    )


def _udp(way: _Way) -> Flow:
    sums = way.sums()
    if sums is None:
        return _udp_of_streams(way)
    sent, received = sums
    flow = Flow(
        direction=way.direction,
        sent_bytes=sent.maybe_count("bytes"),
        received_bytes=received.maybe_count("bytes"),
        sent_bits_per_s=sent.number("bits_per_second"),
        received_bits_per_s=received.number("bits_per_second"),
        duration_s=received.maybe_number("seconds"),
        # 0 of a server before 3.13 that sends to a client of 3.17 or later, which has counted them by its own
        datagrams=sent.maybe_count("packets") or received.maybe_count("packets"),
        lost_datagrams=received.maybe_count("lost_packets"),
        jitter_s=_seconds(received.maybe_number("jitter_ms")),
        streams=tuple(map(_stream, way.streams)),
    )
    return _with_losses_of_bytes(flow, way)


def _with_losses_of_bytes(flow: Flow, way: _Way) -> Flow:
    """Corrects the lost datagrams where the bytes that arrived say otherwise.

    A client of 3.17 to 3.21 counts none with a server before 3.13 (esnet/iperf 2055), and until 3.13 those lost in the
    omitted seconds are counted. More losses than bytes missing are right where the network doubled datagrams.
    """
    if not flow.datagrams or not flow.sent_bytes or flow.received_bytes is None or flow.lost_datagrams is None:
        return flow
    missing = flow.datagrams - round(flow.received_bytes * flow.datagrams / flow.sent_bytes)
    differ = missing - flow.lost_datagrams
    if abs(differ) <= max(1, flow.datagrams * _MISCOUNTED) or (differ < 0 and not way.is_omitting):
        return flow
    way.notes.append(f"iperf3 counts {flow.lost_datagrams} datagrams lost; by the bytes that arrived it is {missing}")
    return flow.replace(lost_datagrams=max(0, missing))


def _udp_of_streams(way: _Way) -> Flow:
    """Adds up streams that have the sender's bytes and seconds and the receiver's losses, and no bytes received."""
    streams = [stream.part("udp") for stream in way.streams] or [way.end.part("sum")]
    counts = [tuple(stream.maybe_count(name) for name in ("bytes", "packets", "lost_packets")) for stream in streams]
    sent_bytes, datagrams, lost = (None if None in column else sum(column) for column in zip(*counts, strict=True))
    if not datagrams or lost is None or way.is_omitting:
        why = "counts those of the omitted seconds too" if way.is_omitting else "counts none"
        raise WorkloadError(
            f"what arrived is unknown: this version of iperf3 says it by the datagrams lost alone, and {why}"
        )
    rate = sum(stream.number("bits_per_second") for stream in streams)
    arrived = max(0.0, 1 - lost / datagrams)
    way.notes.append("this version of iperf3 does not say how much arrived: computed from the datagrams it counts lost")
    jitters_ms = [jitter for stream in streams if (jitter := stream.maybe_number("jitter_ms")) is not None]
    return Flow(
        direction=way.direction,
        sent_bytes=sent_bytes,
        received_bytes=None if sent_bytes is None else round(sent_bytes * arrived),
        sent_bits_per_s=rate,
        received_bits_per_s=rate * arrived,
        duration_s=8 * sent_bytes / rate if sent_bytes and rate else streams[0].maybe_number("seconds"),
        datagrams=datagrams,
        lost_datagrams=lost,
        jitter_s=_seconds(fmean(jitters_ms) if jitters_ms else None),
        streams=tuple(map(_stream, way.streams)),
    )


def _streams(end: Reading, asked: Direction) -> dict[str, tuple[Reading, ...]]:
    """Sorts streams by direction: those that say that the client is not the sender are in reverse."""
    every = end.parts("streams")
    if asked != "both":
        return {asked: every}
    is_reverse = [sender is False for sender in _senders(every)]
    if not any(is_reverse):  # no such field: the client's streams come first, then as many of the server
        is_reverse = [number >= len(every) // 2 for number in range(len(every))]
    return {
        "forward": tuple(stream for stream, other in zip(every, is_reverse, strict=True) if not other),
        "reverse": tuple(stream for stream, other in zip(every, is_reverse, strict=True) if other),
    }


def _senders(streams: Sequence[Reading]) -> list[bool | None]:
    """Returns for each stream whether the client is its sender; None where the version does not say."""
    return [(stream.maybe("sender") or stream.maybe("udp") or stream).flag("sender") for stream in streams]


def is_both_ways(end: Reading) -> bool:
    """Whether the report is of a test with ``--bidir``."""
    return end.has(f"sum_received{_SECOND}") or {True, False} <= set(_senders(end.parts("streams")))


def _check_end(whole: Reading, flows: tuple[Flow, ...]) -> None:
    """Refuses a test of a number of bytes that is too short. WorkloadError says how long it must last.

    From 3.16 on it ends at the end of an interval, however early its bytes were through (esnet/iperf 1768).
    """
    start = whole.maybe("start")
    asked = None if start is None else start.maybe("test_start")
    version = None if start is None else start.text("version")
    if asked is None or version is None or version_numbers(version) < (3, 16):
        return
    if not (asked.maybe_number("bytes") or asked.maybe_number("blocks")):
        return
    seen_s = [one.maybe_number("seconds") or 0.0 for each in whole.parts("intervals") if (one := each.maybe("sum"))]
    least_s = (asked.maybe_number("interval") or max(seen_s, default=1.0)) / _LATE_SHARE  # 3.16 does not say it
    shortest_s = min((flow.duration_s for flow in flows if flow.duration_s is not None), default=0.0)
    if shortest_s < least_s:
        raise WorkloadError(
            f"{clean(version)} ends a test of bytes up to an interval late: in {shortest_s:.3g} s its rate is unknown; "
            f"send for {least_s:.3g} s at least, ask for a duration, or take another tool"
        )


def _stream(stream: Reading) -> StreamFigures:
    datagrams = stream.maybe("udp")
    if datagrams is not None:
        return StreamFigures(sent_bits_per_s=datagrams.maybe_number("bits_per_second"))
    sent, received = stream.maybe("sender"), stream.maybe("receiver")
    return StreamFigures(
        sent_bits_per_s=None if sent is None else sent.maybe_number("bits_per_second"),
        received_bits_per_s=None if received is None else received.maybe_number("bits_per_second"),
        retransmissions=None if sent is None else _retransmissions(sent),
        round_trip=None if sent is None else _round_trip(sent),
    )


def _round_trip(sent: Reading) -> RoundTrip | None:
    """Returns the times, in microseconds; None without them (they are 0 if the server sends)."""
    times_us = [sent.maybe_number(name) for name in ("min_rtt", "mean_rtt", "max_rtt")]
    minimum, mean, maximum = (1e3 * time_us if time_us else None for time_us in times_us)
    if minimum is None or mean is None or maximum is None:
        return None
    return RoundTrip(minimum_ns=minimum, mean_ns=mean, maximum_ns=maximum)


def _path_mtu_bytes(whole: Reading) -> int | None:
    """Returns the path MTU of the first connection in the last interval that has one; None where none has."""
    streams = [stream for interval in whole.parts("intervals") for stream in interval.parts("streams")[:1]]
    return next((found for stream in reversed(streams) if (found := stream.maybe_count("pmtu"))), None)


def _retransmissions(sent: Reading) -> int | None:
    """Returns the retransmissions; None where the sender does not know, and prints nothing or a negative count."""
    counted = sent.maybe_count("retransmits")
    return None if counted is None or counted < 0 else counted


def _intervals(whole: Reading) -> list[tuple[float, float]]:
    """Returns the intervals that count, each with its end since the start: iperf3 counts anew after those omitted."""
    found, omitted_s = [], 0.0
    for interval in whole.parts("intervals"):
        sums = [one for one in (interval.maybe("sum"), interval.maybe("sum_bidir_reverse")) if one is not None]
        if not sums:
            continue
        end_s = sums[0].number("end")
        if sums[0].flag("omitted"):
            omitted_s = end_s
        else:
            found.append((omitted_s + end_s, sum(one.number("bits_per_second") for one in sums)))
    return found


def _compare(flows: tuple[Flow, ...], job: Job, server: Output) -> None:
    """Compares what arrived as client and server report it. WorkloadError where they disagree.

    A server that reports nothing is accepted, and one whose sums of both directions have the same name.
    """
    try:
        end = Reading(json_object(server.stdout, "iperf3's server"), "iperf3's server").part("end")
        own = end.maybe("sum_received")
        counted = None if own is None else own.maybe_count("bytes")
        lost = None if own is None else own.maybe_count("lost_packets")
    except WorkloadError:
        return
    client, datagrams, client_lost = flows[0].received_bytes, flows[0].datagrams, flows[0].lost_datagrams
    is_shared = job.ask.direction == "both" and not end.has(f"sum_received{_SECOND}")
    if job.ask.direction == "reverse" or is_shared or not counted or client is None:
        return
    if datagrams and client_lost is not None and lost is not None and abs(client_lost - lost) > _AGREEMENT * datagrams:
        raise WorkloadError(
            f"the two ends of iperf3 disagree: by the client {client_lost} of {datagrams} datagrams are lost, by the "
            f"server {lost}"
        )
    if abs(counted - client) > _AGREEMENT * max(counted, client):
        raise WorkloadError(
            f"the two ends of iperf3 disagree: the client says that {client} bytes arrived, the server that it got "
            f"{counted}"
        )


def _share(cpu: Reading | None, name: str) -> float | None:
    percent = None if cpu is None else cpu.maybe_number(name)
    return None if percent is None else percent / 100


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
