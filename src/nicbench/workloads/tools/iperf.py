"""iperf 2: TCP and UDP throughput, one way, reverse or both at once; its enhanced output (-e), of 2.1 and later.

Its options and columns: iperf(1). With ``-f b`` bytes and bits/s are printed whole, and times to 0.1 ms. It says
nothing of CPUs: what they did is nicbench's own account, as with every tool.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from typing import Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frozen import frozen
from nicbench.core.lists import without_none
from nicbench.core.round import Figures, Flow, Job, JobSpec, StreamFigures
from nicbench.workloads.base import Command, End, Listening, Output, Workload, WorkloadError, printed_error
from nicbench.workloads.tool_output import count_of, number_of

_FIRST_VERSION: Final = (2, 1)  # --full-duplex, and -R of UDP
_MOST_STREAMS: Final = 128
_LONGEST_DATAGRAM: Final = 65507  # UDP's largest payload over IPv4
_SHORTEST_DATAGRAM: Final = 64  # its header of numbers, times and settings
_AS_FAST_AS_IT_GOES: Final = "1000g"  # -b 0 is refused, and without -b UDP has 1 Mbit/s
# A report of one stream. The asterisk marks what the server sends; sums (SUM, FD1) are computed here.
_REPORT = re.compile(
    r"^\[ {0,4}(\*?)(\d{1,6})\] {1,4}(\d{1,9}\.\d{1,6})-(\d{1,9}\.\d{1,6}) sec +(\d{1,20}) Bytes +(\d{1,20}) bits/sec"
    r"([^\n]{0,400})$",
    re.MULTILINE,
)
_PORTS = re.compile(r"^\[ {0,4}(\d{1,6})\] local \S{1,80} port (\d{1,5}) connected with \S{1,80} port (\d{1,5})", re.M)
_SENT_TCP = re.compile(r"^ +\d+/\d+ +(\d+) ")
_SENT_UDP = re.compile(r"^ +\d+/\d+ +\d+ pps")
_RECEIVED_TCP = re.compile(r"^ +\d+=\d+:")
_RECEIVED_UDP = re.compile(r"^ +(\d+\.\d+) ms +(\d+)/ *(\d+) ")
_MSS = re.compile(r"icwnd/mss/irtt=\d{1,9}/(\d{1,9})/")
_ERROR = re.compile(r"^(?:ERROR: ([^\n]*)|((?:tcp )?\w+ failed: [^\n]*))$", re.MULTILINE)
_WAY = Literal["forward", "reverse"]


class IperfOptions(Frozen):
    """Options of ``workload: {kind: iperf, ..}``."""

    mss_bytes: int | None = Field(default=None, ge=88, le=9216)
    """Maximum segment size (`-M`); without it the kernel's."""
    dscp: int | None = Field(default=None, ge=0, le=63)
    """The DSCP of the packets (`-S`, four times as much)."""


@frozen
class _Report:
    """What one end printed of one stream in one direction: bytes, bits/s, seconds, and the columns that follow."""

    port: int | None
    """The client's port, by which the reports of both ends are one stream."""
    way: _WAY
    amount_bytes: int
    rate_bits_per_s: float
    begin_s: float
    end_s: float
    rest: str


class Iperf(Workload):
    """iperf 2, with a server for each client, which SIGINT ends: one of a single client (-1) takes no second stream."""

    kind = "iperf"
    Options = IperfOptions
    options: IperfOptions
    package = "iperf"
    tried = ("2.1.8", "2.2.1")
    version_pattern = re.compile(r"\biperf version (\d+(?:\.\d+)+)")
    server_ends = False
    stop_signal = signal.SIGINT

    def refusal(self, ask: JobSpec) -> str | None:
        if ask.operation != "stream" or ask.transport == "rdma":
            return "iperf sends streams over TCP or UDP, and nothing else"
        if ask.streams > _MOST_STREAMS:
            return f"iperf is asked for at most {_MOST_STREAMS} streams at once, not {ask.streams}"
        if ask.transport == "udp" and not _SHORTEST_DATAGRAM <= (ask.write_bytes or 1470) <= _LONGEST_DATAGRAM:
            return f"iperf's datagrams have {_SHORTEST_DATAGRAM} to {_LONGEST_DATAGRAM} bytes, not {ask.write_bytes}"
        if ask.transport == "udp" and (ask.congestion_control or ask.no_delay):
            return "UDP has neither congestion control nor Nagle's algorithm"
        if ask.congestion_control and ask.direction != "forward":
            return "iperf chooses the congestion control of what its client sends alone"
        if ask.zero_copy or ask.source_file or ask.sink_file:
            return "iperf sends from memory to memory, and has no zero copy"
        return None

    def refusal_of_version(self, ask: JobSpec, version: str) -> str | None:
        numbers = tuple(int(part) for part in re.findall(r"\d{1,9}", version)[:2])
        if numbers < _FIRST_VERSION:
            return f"iperf {version} prints reports that are not read here; 2.1 and later do"
        return None

    def server_command(self, job: Job, client: End, server: End) -> Command:
        return ("iperf", "-s", "-B", server.address, "-p", str(job.port), *self._both_ends(job.ask))

    def client_command(self, job: Job, client: End, server: End | None) -> Command:
        if server is None:
            raise WorkloadError("iperf needs a server")
        ask = job.ask
        return (
            *("iperf", "-c", server.address, "-B", client.address, "-p", str(job.port), *self._both_ends(ask)),
            *_amount(ask),
            *{"forward": (), "reverse": ("-R",), "both": ("--full-duplex",)}[ask.direction],
            *_rate(ask),
            *(("-P", str(ask.streams)) if ask.streams != 1 else ()),
            *(("-Z", ask.congestion_control) if ask.congestion_control else ()),
            *(("-M", str(self.options.mss_bytes)) if self.options.mss_bytes is not None else ()),
        )

    def _both_ends(self, ask: JobSpec) -> Command:
        """Builds the arguments that client and server share."""
        return (
            *("-e", "-f", "b"),
            *(("-u",) if ask.transport == "udp" else ()),
            *(("-l", str(ask.write_bytes)) if ask.write_bytes is not None else ()),
            *(("-w", str(ask.window_bytes)) if ask.window_bytes is not None else ()),
            *(("-N",) if ask.no_delay else ()),
            *(("-S", str(4 * self.options.dscp)) if self.options.dscp is not None else ()),
        )

    def listens(self, job: Job, server: End) -> tuple[Listening, ...]:
        return (Listening("udp" if job.ask.transport == "udp" else "tcp", job.port, server.address),)

    def complaint(self, output: Output) -> str | None:
        """Returns the error that it printed; its exit status is 0 where nobody listens, for instance."""
        return printed_error(_ERROR, output.stderr, output.stdout)

    def parse(self, job: Job, client: Output, server: Output | None) -> Figures:
        said = self.complaint(client)
        if said is not None:
            raise WorkloadError(f"iperf: {said}")
        ask = job.ask
        ends = {
            "client": tuple(_reports(client.stdout, "client", ask)),
            "server": () if server is None else tuple(_reports(server.stdout, "server", ask)),
        }
        ways: tuple[_WAY, ...] = ("forward", "reverse") if ask.direction == "both" else (ask.direction,)
        mss = _MSS.search(client.stdout)
        return Figures(
            flows=tuple(_flow(way, ask, ends) for way in ways),
            mss_bytes=None if mss is None else count_of(mss[1], "iperf"),
        )


def _amount(ask: JobSpec) -> Command:
    """Builds the option for the time, or for the bytes of each stream, rounded up."""
    if ask.total_bytes is not None:
        return ("-n", str(-(-ask.total_bytes // ask.streams)))
    return ("-t", f"{ask.duration_s or 10:g}")


def _rate(ask: JobSpec) -> Command:
    """Builds the option for the rate of each stream."""
    if ask.rate_bits_per_s is None:
        return ("-b", _AS_FAST_AS_IT_GOES) if ask.transport == "udp" else ()
    return ("-b", f"{ask.rate_bits_per_s:.0f}")


def _reports(text: str, end: Literal["client", "server"], ask: JobSpec) -> Iterator[_Report]:
    """Yields what one end printed of each stream. The client's port is its own, or the other one at the server."""
    ports = {found[1]: count_of(found[2 if end == "client" else 3], "iperf") for found in _PORTS.finditer(text)}
    for found in _REPORT.finditer(text):
        way: _WAY = "reverse" if found[1] or ask.direction == "reverse" else "forward"
        begin_s, end_s, rate = (number_of(found[number], "iperf") for number in (3, 4, 6))
        yield _Report(ports.get(found[2]), way, count_of(found[5], "iperf"), rate, begin_s, end_s, found[7])


def _flow(way: _WAY, ask: JobSpec, ends: dict[str, tuple[_Report, ...]]) -> Flow:
    """Returns the figures of one direction: what its sender says was sent, and its receiver received."""
    is_udp = ask.transport == "udp"
    sending, receiving = ("client", "server") if way == "forward" else ("server", "client")
    sent_form, received_form = (_SENT_UDP, _RECEIVED_UDP) if is_udp else (_SENT_TCP, _RECEIVED_TCP)
    sent = _of_streams(ends[sending], way, sent_form, ask)
    received = _of_streams(ends[receiving], way, received_form, ask)
    if not received:  # over UDP the server's report is also sent to the client, which prints it
        received = _of_streams(ends[sending], way, received_form, ask)
    if not sent and not received:
        raise WorkloadError(f"iperf reports nothing of what was sent {way}")
    received_by_port = {each.port: each for each in received}
    losses = [found for each in received if (found := _RECEIVED_UDP.match(each.rest))]
    return Flow(
        direction=way,
        sent_bytes=sum(each.amount_bytes for each in sent) if sent else None,
        received_bytes=sum(each.amount_bytes for each in received) if received else None,
        sent_bits_per_s=_rate_of(sent),
        received_bits_per_s=_rate_of(received),
        duration_s=_duration_s(received or sent),
        retransmissions=None if is_udp or not sent else sum(_retransmissions(each) for each in sent),
        datagrams=sum(count_of(found[3], "iperf") for found in losses) if losses else None,
        lost_datagrams=sum(count_of(found[2], "iperf") for found in losses) if losses else None,
        jitter_s=sum(number_of(found[1], "iperf") for found in losses) / len(losses) / 1000 if losses else None,
        streams=tuple(
            StreamFigures(
                sent_bits_per_s=_rate_among(each, sent),
                received_bits_per_s=_rate_among(received_by_port.get(each.port), received),
                retransmissions=None if is_udp else _retransmissions(each),
            )
            for each in sent
        ),
    )


def _of_streams(reports: tuple[_Report, ...], way: _WAY, form: re.Pattern[str], ask: JobSpec) -> tuple[_Report, ...]:
    """Returns the reports of this direction and form; WorkloadError where some streams have one and some have none."""
    found = tuple(each for each in reports if each.way == way and form.match(each.rest))
    if found and len(found) != ask.streams:
        raise WorkloadError(f"iperf reports {len(found)} of {ask.streams} streams {way}")
    return found


def _duration_s(reports: tuple[_Report, ...]) -> float:
    return max(each.end_s for each in reports) - min(each.begin_s for each in reports)


def _rate_of(reports: tuple[_Report, ...]) -> float | None:
    """Returns iperf's own rate of one stream; of several their bytes in the time from the first to the last."""
    rates = [_rate_among(each, reports) for each in reports]
    return sum(without_none(rates)) if any(rate is not None for rate in rates) else None


def _rate_among(report: _Report | None, reports: tuple[_Report, ...]) -> float | None:
    """Returns the rate of a stream in the time of all, so that the rates make their sum; None where that is unknown."""
    if report is None or len(reports) == 1:
        return None if report is None else report.rate_bits_per_s
    duration_s = _duration_s(reports)
    return report.amount_bytes * 8 / duration_s if duration_s > 0 else None


def _retransmissions(report: _Report) -> int:
    found = _SENT_TCP.match(report.rest)
    return count_of(found[1], "iperf") if found else 0
