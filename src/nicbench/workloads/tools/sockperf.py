"""sockperf (Mellanox/sockperf): latency of requests over TCP and UDP, idle or under load, each sample kept.

Its options and output: ``sockperf SUBCOMMAND --help`` of 3.7. Latency is half of the round trip unless asked otherwise.
"""

from __future__ import annotations

import re
import signal
from typing import Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.round import Basis, Figures, Flow, Job, JobSpec, RequestLatency
from nicbench.workloads.base import (
    MEBIBYTE,
    Command,
    End,
    Listening,
    Output,
    Workload,
    WorkloadError,
    last_words,
    printed_error,
)
from nicbench.workloads.tool_output import NANOSECONDS_PER_MICROSECOND, latency_of, number_of

_LEAST_BYTES: Final = 14  # its header
_MOST_BYTES: Final = {"tcp": 1024 * 1024, "udp": 65507}
_SERVER_BYTES: Final = 65507
_DEFAULT_BYTES: Final = 64
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SAMPLE = re.compile(r"^\d+, \d+\.\d+, \d+\.\d+, (\d+\.\d+)$", re.MULTILINE)
_VALID = re.compile(r"\[Valid Duration\] RunTime=(\S{1,40}) sec; SentMessages=(\d+); ReceivedMessages=(\d+)")
_AVERAGE = re.compile(r"avg-(latency|lat|rtt)= ?(\S{1,40}) \(std-dev=([^\s),]{1,40})[,)]")  # 3.8 and later say more
_PERCENTILE = re.compile(r"percentile (\d+\.\d+) += +(\S+)")
_ENDS = re.compile(r"<(MIN|MAX)> observation += +(\S+)")
_DROPPED = re.compile(r"# dropped messages = (\d+)")
_SENT = re.compile(r"Total of (\d+) messages sent in (\S+) sec")
_RATE = re.compile(r"Message Rate is (\d+) \[msg/sec\]")
_ERROR = re.compile(r"(?:ERROR: |^sockperf: ')([^\n]*)|^(Option [^\n]*|No messages were received[^\n]*)", re.MULTILINE)


class SockperfOptions(Frozen):
    """Options of ``workload: {kind: sockperf, ..}``. sockperf counts whole seconds."""

    under_load: bool = False
    """Messages have a rate of their own (`under-load`) instead of following one another (`ping-pong`)."""
    messages_per_s: int | None = Field(default=None, ge=1)
    """Messages a second (`--mps`); without it 10,000 under load, else as many as possible."""
    reply_every: int = Field(default=1, ge=1, le=1_000_000)
    """Under load, one message in this number is answered and timed."""
    full_round_trip: bool = False
    """The latency of the whole round trip (`--full-rtt`)."""
    samples: bool = True
    """Keep every latency for the histogram (`--full-log`). `false`: read sockperf's own percentiles."""


class Sockperf(Workload):
    """sockperf, with a server for each client, which SIGINT ends. Its exit status is 0 even where it failed."""

    kind = "sockperf"
    Options = SockperfOptions
    options: SockperfOptions
    package = "sockperf"
    tried = ("3.6", "3.8")
    version_pattern = re.compile(r"sockperf, version (\d+(?:\.\d+)+)")
    server_ends = False
    stop_signal = signal.SIGINT
    output_limit_bytes = 192 * MEBIBYTE

    def refusal(self, ask: JobSpec) -> str | None:
        if ask.operation == "memory" or ask.transport == "rdma":
            return "sockperf sends messages over TCP or UDP, and nothing else"
        if ask.operation == "stream" and ask.transport == "udp":
            return "sockperf says what was sent and not what arrived, which over UDP is no throughput"
        if ask.duration_s is None or ask.duration_s != int(ask.duration_s) or ask.duration_s < 1:
            return "sockperf measures for whole seconds, at least 1"
        size, most = ask.write_bytes or _DEFAULT_BYTES, _MOST_BYTES[ask.transport]
        if not _LEAST_BYTES <= size <= most:
            return f"sockperf's messages have {_LEAST_BYTES} to {most} bytes over {ask.transport.upper()}, not {size}"
        if ask.direction != "forward" or ask.streams != 1:
            return "sockperf has one connection, from its client to its server"
        if ask.source_file or ask.sink_file or ask.congestion_control or ask.zero_copy:
            return "sockperf has neither files nor zero copy, and chooses no congestion control"
        return None

    def server_command(self, job: Job, client: End, server: End) -> Command:
        size = job.ask.write_bytes or _DEFAULT_BYTES
        return (
            *("sockperf", "server", "-i", server.address, "-p", str(job.port)),
            # Without it, a port that was in use a minute ago is refused.
            *(("--tcp", "--uc-reuseaddr") if job.ask.transport == "tcp" else ()),
            *(("-m", str(size)) if size > _SERVER_BYTES else ()),
        )

    def client_command(self, job: Job, client: End, server: End | None) -> Command:
        if server is None:
            raise WorkloadError("sockperf needs a server")
        ask, options = job.ask, self.options
        asks = ask.operation == "request-response"
        size = ask.write_bytes or _DEFAULT_BYTES
        rate = options.messages_per_s
        if rate is None and ask.rate_bits_per_s is not None:
            rate = max(1, round(ask.rate_bits_per_s / (8 * size)))
        mode = ("under-load" if options.under_load else "ping-pong") if asks else "throughput"
        command = (
            *("sockperf", mode, "-i", server.address, "-p", str(job.port), "--client_ip", client.address),
            *(("--tcp",) if ask.transport == "tcp" else ()),
            *("-m", str(size), "-t", f"{ask.duration_s or 1:.0f}"),
            *(("--mps", str(rate)) if rate is not None else ()),
            *(("--reply-every", str(options.reply_every)) if mode == "under-load" else ()),
            *(("--buffer-size", str(ask.window_bytes)) if ask.window_bytes is not None else ()),
            *(("--full-rtt",) if asks and options.full_round_trip else ()),
        )
        if not asks or not options.samples:
            return command
        # /dev/stdout cannot be opened where it is a socket, as in a remote shell: make it a pipe.
        return ("bash", "-c", 'exec "$@" --full-log /dev/stdout > >(cat)', "bash", *command)

    def listens(self, job: Job, server: End) -> tuple[Listening, ...]:
        return (Listening("udp" if job.ask.transport == "udp" else "tcp", job.port, server.address),)

    def complaint(self, output: Output) -> str | None:
        return printed_error(_ERROR, _COLOUR.sub("", f"{output.stderr}\n{output.stdout[:65536]}"))

    def parse(self, job: Job, client: Output, server: Output | None) -> Figures:
        said = self.complaint(client)
        if said is not None:
            raise WorkloadError(f"sockperf: {said}")
        text = _COLOUR.sub("", client.stdout)
        if job.ask.operation == "request-response":
            return _requests(text)
        return _stream(text, job.ask.write_bytes or _DEFAULT_BYTES)


def _requests(text: str) -> Figures:
    valid, average = _VALID.search(text), _AVERAGE.search(text)
    if valid is None or average is None:
        raise WorkloadError(f"the output of sockperf has no latency; it ends: {last_words(text[-300:])}")
    basis: Basis = "round trip" if average[1] == "rtt" else "half round trip"
    duration_s, received = number_of(valid[1], "sockperf: RunTime"), _whole(valid[3])
    samples = [number_of(one, "sockperf: its log") for one in _SAMPLE.findall(text)]
    dropped = _DROPPED.search(text)
    return Figures(
        transactions_per_s=received / duration_s if duration_s > 0 else None,
        latency=latency_of(samples, basis, "sockperf") if samples else _summary(text, average, basis, received),
        notes=(f"{_whole(dropped[1])} messages were not answered",) if dropped and _whole(dropped[1]) else (),
    )


def _summary(text: str, average: re.Match[str], basis: Basis, count: int) -> RequestLatency:
    """Parses the summary that sockperf computed itself, for when the samples were not kept."""
    ends = {name: _nanoseconds(value) for name, value in _ENDS.findall(text)}
    return RequestLatency(
        basis=basis,
        count=count,
        minimum_ns=ends.get("MIN"),
        mean_ns=_nanoseconds(average[2]),
        maximum_ns=ends.get("MAX"),
        stdev_ns=_nanoseconds(average[3]),
        percentiles_ns={
            f"{number_of(name, 'sockperf: a percentile'):g}": _nanoseconds(value)
            for name, value in _PERCENTILE.findall(text)
        },
    )


def _stream(text: str, message_bytes: int) -> Figures:
    """Computes the throughput from messages per second; sockperf's MB are 2^20 bytes, before version 3 with headers."""
    sent, rate = _SENT.search(text), _RATE.search(text)
    if sent is None or rate is None:
        raise WorkloadError(f"the output of sockperf has no throughput; it ends: {last_words(text[-300:])}")
    flow = Flow(
        direction="forward",
        sent_bytes=_whole(sent[1]) * message_bytes,
        sent_bits_per_s=float(_whole(rate[1]) * message_bytes * 8),
        duration_s=number_of(sent[2], "sockperf: seconds"),
    )
    return Figures(flows=(flow,), notes=("sockperf says what was sent, and not what arrived",))


def _nanoseconds(microseconds: str) -> float:
    return number_of(microseconds, "sockperf: a latency") * NANOSECONDS_PER_MICROSECOND


def _whole(text: str) -> int:
    return int(number_of(text, "sockperf: a count"))
