"""perftest (linux-rdma/perftest): RDMA throughput and latency. Its text table, of 4.5 and later.

Its options: ``ib_write_bw --help``. MB of its output are 2^20 bytes. Latency of write and send is half of the round
trip, of read the whole (``print_report_lat``); its own ``t_max`` leaves the longest sample out, so that the samples are
read instead (-U). Its JSON is not valid, and a rate of 0.00 with exit status 0 is what it says where it could not tell
its clock's frequency: refused.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.round import Basis, Figures, Flow, Job, JobSpec, RequestLatency
from nicbench.workloads.base import MEBIBYTE, Command, End, Listening, Output, Workload, WorkloadError, last_words
from nicbench.workloads.tool_output import NANOSECONDS_PER_MICROSECOND, count_of, latency_of, number_of

_MOST_PAIRS: Final = 16384  # MAX_QP_NUM
_LARGEST_MESSAGE: Final = 2**31 - 1
_SAMPLE = re.compile(r"^(\d+), (\S+)$", re.MULTILINE)
_HEADER = re.compile(r"^ ?#bytes +(.*)$")
_AVERAGE = re.compile(r"BW average\[Mi?B/sec\]")  # MiB from 24.07 on, of the same size
_ROW = re.compile(r"^ ?(\d+) +(\d+) +(.*)$")
_TROUBLE = re.compile(
    r"^ ?(.*(?:Unable to|Couldn't|not found|Failed to|Completion with error|Did not detect|no IB devices).*)$",
    re.MULTILINE | re.IGNORECASE,
)
_CLOCK = re.compile(r"Correlation coefficient r\^2: \S+ < \S+|Conflicting CPU frequency values detected[^\n]*")


class PerftestOptions(Frozen):
    """Options of ``workload: {kind: perftest, ..}``."""

    iterations: int | None = Field(default=10_000, ge=5)
    """Requests of a latency test, whose duration then depends on how fast they are. `null`: it runs for its duration
    and gives a mean alone.
    """
    connection: Literal["RC", "UC", "UD", "DC"] = "RC"
    """The type of connection."""
    gid_index: int | None = Field(default=None, ge=0, le=255)
    """The GID to use where nicbench finds none (`-x`)."""
    mtu_bytes: Literal[256, 512, 1024, 2048, 4096] | None = None
    """The MTU (`-m`); without it the port's."""
    transmit_depth: int | None = Field(default=None, ge=1)
    """Length of the send queue (`-t`); without it perftest's."""
    qp_timeout: int | None = Field(default=None, ge=0, le=31)
    """What is not acknowledged within 4.096 µs × 2^n is sent again (`-u`); without it perftest's 14, which is 67 ms."""
    inline_bytes: int | None = Field(default=None, ge=0)
    """Messages up to this size are sent inline (`-I`); without it perftest's."""
    post_list: int | None = Field(default=None, ge=1)
    """Requests that are posted at once (`-l`); without it perftest's."""
    service_level: int | None = Field(default=None, ge=0, le=15)
    """The service level (`-S`); without it perftest's."""
    traffic_class: int | None = Field(default=None, ge=0, le=255)
    """The traffic class (`--tclass`), for example 106 for DSCP 26 with ECN; without it perftest's."""


class Perftest(Workload):
    """perftest, with a server for each client, which ends after it. Each verb has its own program (``ib_send_lat``)."""

    kind = "perftest"
    Options = PerftestOptions
    options: PerftestOptions
    package = "perftest"
    tried = ("4.5", "24.07")
    version_pattern = re.compile(r"Version: (\d+(?:\.\d+)+)")

    def program(self, ask: JobSpec) -> str:
        return f"ib_{ask.verb or 'write'}_{'lat' if ask.operation == 'request-response' else 'bw'}"

    def refusal(self, ask: JobSpec) -> str | None:
        latency = ask.operation == "request-response"
        if ask.operation == "memory" or ask.transport != "rdma":
            return "perftest measures RDMA, and nothing else"
        if ask.direction == "both":
            return "perftest tells the sum of both directions, not each of them"
        if latency and (ask.direction != "forward" or ask.streams != 1):
            return "perftest's latency is of one queue pair, from its client to its server"
        if not 1 <= ask.streams <= _MOST_PAIRS:
            return f"perftest has at most {_MOST_PAIRS} queue pairs, not {ask.streams}"
        if ask.write_bytes is not None and not 1 <= ask.write_bytes <= _LARGEST_MESSAGE:
            return f"perftest's messages have at most {_LARGEST_MESSAGE} bytes, not {ask.write_bytes}"
        timed = ask.total_bytes is None and not (latency and self.options.iterations is not None)
        if timed and (ask.duration_s is None or ask.duration_s != int(ask.duration_s) or ask.duration_s < 2):
            return "perftest measures for whole seconds, at least 2"
        if ask.source_file or ask.sink_file or ask.congestion_control or ask.window_bytes is not None:
            return "RDMA has neither socket buffers nor a congestion control to choose, and perftest no files"
        return None

    def refusal_of_ends(self, job: Job, client: End, server: End | None) -> str | None:
        lacking = [name for name, end in (("client", client), ("server", server)) if end and end.rdma_device is None]
        return f"no RDMA device at its {' and its '.join(lacking)}" if lacking else None

    def server_command(self, job: Job, client: End, server: End) -> Command:
        return self._command(job, server)

    def client_command(self, job: Job, client: End, server: End | None) -> Command:
        if server is None:
            raise WorkloadError("perftest needs a server")
        return (*self._command(job, client), server.address)

    def _command(self, job: Job, end: End) -> Command:
        """Builds the command line of one side; both sides have the same but for their devices."""
        ask, options = job.ask, self.options
        gid_index = end.gid_index if end.gid_index is not None else options.gid_index
        given = (
            ("-q", None if ask.streams == 1 else ask.streams),
            ("-s", ask.write_bytes),
            ("-x", gid_index),
            ("-m", options.mtu_bytes),
            ("-t", options.transmit_depth),
            ("-u", options.qp_timeout),
            ("-I", options.inline_bytes),
            ("-l", options.post_list),
            ("-S", options.service_level),
            ("--tclass=", options.traffic_class),
        )
        return (
            *(self.program(ask), "-d", end.rdma_device or "", "-i", str(end.rdma_port), "-p", str(job.port), "-F"),
            *("-c", options.connection, *self._amount(ask)),
            *(("--reversed",) if _is_reversed(ask) else ()),
            *self._rate(ask),
            *(
                part
                for name, value in given
                if value is not None
                for part in ((f"{name}{value}",) if name.endswith("=") else (name, str(value)))
            ),
        )

    def _amount(self, ask: JobSpec) -> Command:
        if ask.operation == "request-response" and self.options.iterations is not None:
            return ("-n", str(self.options.iterations), "-U")
        if ask.total_bytes is not None:
            each = (ask.write_bytes or 65536) * ask.streams
            return ("-n", str(max(5, -(-ask.total_bytes // each))))
        return ("-D", f"{ask.duration_s or 10:.0f}")

    def _rate(self, ask: JobSpec) -> Command:
        if ask.rate_bits_per_s is None:
            return ()
        return (f"--rate_limit={ask.rate_bits_per_s * ask.streams / 1e9:g}", "--rate_units=g")

    def expected_s(self, job: Job) -> float | None:
        return None if job.ask.operation == "request-response" else job.ask.duration_s

    def listens(self, job: Job, server: End) -> tuple[Listening, ...]:
        return (Listening("tcp", job.port),)

    def complaint(self, output: Output) -> str | None:
        if output.status == 0:
            return None
        found = _TROUBLE.findall(f"{output.stdout}\n{output.stderr}")
        return last_words(" / ".join(found[:3])) if found else None

    def parse(self, job: Job, client: Output, server: Output | None) -> Figures:
        notes = tuple(sorted(set(_CLOCK.findall(client.stderr))))
        try:
            return self._figures(job, client.stdout, notes)
        except WorkloadError as error:
            # Where it cannot determine the clock's frequency it prints 0.00 MB/s, or latencies of "inf".
            why = f" (it could not tell its clock's frequency: {notes[0]})" if notes else ""
            raise WorkloadError(f"{error.message}{why}") from error

    def _figures(self, job: Job, text: str, notes: tuple[str, ...]) -> Figures:
        header, size, iterations, rest = _table(text)
        values = [number_of(value, "perftest: its table") for value in rest.split()]
        if job.ask.operation == "request-response":
            return Figures(latency=_latency(job.ask, header, values, text), notes=notes)
        if _AVERAGE.search(header) is None or len(values) < 2:
            raise WorkloadError(f"the output of perftest has no average in MB/s: {last_words(header)}")
        average = values[1]
        if average <= 0:
            raise WorkloadError(f"perftest says 0.00 MB/s of {iterations} messages, which it does now and then")
        message_bytes = count_of(size, "perftest") * count_of(iterations, "perftest")
        return Figures(flows=(_flow(job.ask, average * MEBIBYTE * 8, message_bytes),), notes=notes)


def _is_reversed(ask: JobSpec) -> bool:
    """Returns whether the server moves the data. A client that reads fetches it, so that the server's reads send."""
    return ask.operation == "stream" and (ask.direction == "reverse") != (ask.verb == "read")


def _table(text: str) -> tuple[str, str, str, str]:
    """Parses the table; returns the header of the last row, its message size and count, and its other values."""
    header, row = "", None
    for line in text.splitlines():
        if (found := _HEADER.match(line)) is not None:
            header = found[1]
        elif header and (found := _ROW.match(line)) is not None:
            row = found
    if row is None:
        raise WorkloadError(f"the output of perftest has no table; it ends: {last_words(text[-300:])}")
    return header, row[1], row[2], row[3]


def _flow(ask: JobSpec, bits_per_s: float, message_bytes: int) -> Flow:
    """Makes the flow. perftest counts a message when it is acknowledged, so that bytes sent are bytes received."""
    known = ask.total_bytes is None or ask.streams == 1  # of a number of messages it counts those of one pair
    return Flow(
        direction="reverse" if ask.direction == "reverse" else "forward",
        sent_bytes=message_bytes if known else None,
        received_bytes=message_bytes if known else None,
        sent_bits_per_s=bits_per_s,
        received_bits_per_s=bits_per_s,
        duration_s=None if ask.total_bytes is None or not known else 8 * message_bytes / bits_per_s,
    )


def _latency(ask: JobSpec, header: str, values: list[float], text: str) -> RequestLatency:
    basis: Basis = "round trip" if ask.verb == "read" else "half round trip"
    samples = [number_of(value, "perftest: its samples") for _, value in _SAMPLE.findall(text)]
    if samples:
        return latency_of(samples, basis, "perftest")
    microseconds = [value * NANOSECONDS_PER_MICROSECOND for value in values]
    if "t_min[usec]" in header and len(microseconds) >= 5:
        names = ("99", "99.9")
        return RequestLatency(
            basis=basis,
            minimum_ns=microseconds[0],
            mean_ns=microseconds[3],
            maximum_ns=microseconds[1],
            stdev_ns=microseconds[4],
            percentiles_ns={"50": microseconds[2], **dict(zip(names, microseconds[5:], strict=False))},
        )
    if header.startswith("#iterations") and "t_avg[usec]" in header and microseconds:
        return RequestLatency(basis=basis, mean_ns=microseconds[0])
    raise WorkloadError(f"the output of perftest has no latency: {last_words(header)}")
