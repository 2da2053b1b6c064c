"""nuttcp, ttcp's heir: TCP and UDP throughput one way, and transfers of a number of buffers.

Its options: nuttcp(8); its output with ``-fparse -vv``, of 6.1 and later. Its MB are 2^20 bytes, its Mbps
10^6 bits/s.
"""

from __future__ import annotations

import re
import shlex
from typing import Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.round import Figures, Flow, Job, JobSpec
from nicbench.workloads.base import MEBIBYTE, Command, End, Listening, Output, Workload, WorkloadError, printed_error
from nicbench.workloads.tool_output import number_of

_MOST_STREAMS: Final = 128  # MAXSTREAM of nuttcp.c
_DEFAULT_BUFFER: Final = {"tcp": 65536, "udp": 1024}
_BLOCK = re.compile(r"^nuttcp-([tr]): ?(.*)$", re.MULTILINE)
_FIELD = re.compile(r"(?<!\w)(\w{1,40})=(\S{1,80})")
_ERROR = re.compile(
    r"(?:^|\s)Error: (.*)|^(nuttcp(?:-[tr])?: [^\n=]*(?:refused|denied|unreachable|timed out)[^\n]*)", re.M
)
# Rounding error of a duration that is printed with two decimals.
_ROUNDING_S: Final = 0.011


class NuttcpOptions(Frozen):
    """Options of ``workload: {kind: nuttcp, ..}``."""

    mss_bytes: int | None = Field(default=None, ge=88, le=9216)
    """Maximum segment size (`-M`); without it the kernel's."""
    dscp: int | None = Field(default=None, ge=0, le=63)
    """The DSCP of the packets (`-c`)."""


class Nuttcp(Workload):
    """nuttcp, with a server of one test (-1) for each client. The client prints the figures of both ends."""

    kind = "nuttcp"
    Options = NuttcpOptions
    options: NuttcpOptions
    package = "nuttcp"
    tried = ("6.1.2", "8.2.2")
    version_pattern = re.compile(r"\bnuttcp-(\d+(?:\.\d+)+)")
    ports_per_job = 1 + _MOST_STREAMS

    def refusal(self, ask: JobSpec) -> str | None:
        if ask.operation != "stream":
            return "nuttcp sends streams; it has no request-response"
        if ask.transport == "rdma":
            return "nuttcp sends over TCP or UDP"
        if ask.direction == "both":
            return "nuttcp sends one way or the other, not both at once"
        if ask.streams > (_MOST_STREAMS if ask.transport == "tcp" else 1):
            return f"nuttcp has at most {_MOST_STREAMS} streams of TCP and one of UDP, not {ask.streams}"
        if ask.congestion_control or ask.zero_copy:
            return "nuttcp chooses no congestion control and has no zero copy"
        if ask.window_bytes is not None and ask.window_bytes % 1024:
            return f"nuttcp sets socket buffers of whole KiB, not {ask.window_bytes} bytes"
        if ask.transport == "udp" and ask.write_bytes is not None and not 32 <= ask.write_bytes <= 65507:
            return f"nuttcp's datagrams have 32 to 65507 bytes, not {ask.write_bytes}"
        if (ask.direction == "forward" and ask.sink_file) or (ask.direction == "reverse" and ask.source_file):
            return "nuttcp's server has no files, only its client: source of what it sends, sink of what it receives"
        if (ask.source_file or ask.sink_file) and ask.streams > 1:
            return "nuttcp sends or writes a file in one stream only"
        return None

    def server_command(self, job: Job, client: End, server: End) -> Command:
        return ("nuttcp", "-1", "--nofork", "-P", str(job.port))

    def client_command(self, job: Job, client: End, server: End | None) -> Command:
        if server is None:
            raise WorkloadError("nuttcp needs a server")
        ask, options = job.ask, self.options
        write_bytes = ask.write_bytes or _DEFAULT_BUFFER[ask.transport]
        source = ask.source_file if ask.direction == "forward" else None
        sink = ask.sink_file if ask.direction == "reverse" else None
        command = (
            *("nuttcp", "-fparse", "-vv", "-r" if ask.direction == "reverse" else "-t"),
            *("-P", str(job.port), "-p", str(job.port + 1)),
            *(("-u",) if ask.transport == "udp" else ()),
            f"-l{write_bytes}",
            *_amount(ask, write_bytes),
            *self._rate(ask),
            *((f"-N{ask.streams}",) if ask.streams != 1 else ()),
            *((f"-w{ask.window_bytes // 1024}", f"-ws{ask.window_bytes // 1024}") if ask.window_bytes else ()),
            *(("-D",) if ask.no_delay else ()),
            *((f"-M{options.mss_bytes}",) if options.mss_bytes is not None else ()),
            *((f"-c{options.dscp}",) if options.dscp is not None else ()),
            *(("-s",) if source or sink else ()),
            server.address,
        )
        if source or sink:
            redirected = f"< {shlex.quote(source)}" if source else f"> {shlex.quote(sink or '')}"
            return ("sh", "-c", f'exec "$@" {redirected}', "sh", *command)
        return command

    def _rate(self, ask: JobSpec) -> Command:
        """Builds the option for the rate of all streams together. Without it nuttcp would send 1 Mbit/s of UDP."""
        if ask.rate_bits_per_s is None:
            return ("-Ru",) if ask.transport == "udp" else ()
        return (f"-R{max(1, round(ask.rate_bits_per_s * ask.streams / 1000))}",)

    def listens(self, job: Job, server: End) -> tuple[Listening, ...]:
        return (Listening("tcp", job.port),)

    def version_command(self, ask: JobSpec) -> Command:
        return ("nuttcp", "-V")

    def complaint(self, output: Output) -> str | None:
        return printed_error(_ERROR, output.stderr, output.stdout)

    def parse(self, job: Job, client: Output, server: Output | None) -> Figures:
        said = self.complaint(client)
        if said is not None:
            raise WorkloadError(f"nuttcp: {said}")
        # Where its stdout is a file, or takes what it received, it prints everything on stderr.
        text = f"{client.stdout}\n{client.stderr}"
        sender, receiver = _end(text, "t"), _end(text, "r")
        direction: Literal["forward", "reverse"] = "reverse" if job.ask.direction == "reverse" else "forward"
        sent_bytes, sent_rate, _ = _throughput(sender, "sender")
        received_bytes, received_rate, duration_s = _throughput(receiver, "receiver")
        shares = (_share(sender), _share(receiver))
        return Figures(
            flows=(
                Flow(
                    direction=direction,
                    sent_bytes=sent_bytes,
                    received_bytes=received_bytes,
                    sent_bits_per_s=sent_rate,
                    received_bits_per_s=received_rate,
                    duration_s=duration_s,
                    retransmissions=_count(sender, "retrans"),
                    datagrams=_count(receiver, "pkt"),
                    lost_datagrams=_count(receiver, "drop"),
                ),
            ),
            client_cpu_share=shares[0 if direction == "forward" else 1],
            server_cpu_share=shares[1 if direction == "forward" else 0],
            mss_bytes=_count(sender, "mss"),
        )


def _amount(ask: JobSpec, write_bytes: int) -> Command:
    """Builds the option for the amount: a number of buffers, rounded up, or a time."""
    if ask.total_bytes is not None:
        return (f"-n{-(-ask.total_bytes // write_bytes)}",)
    return (f"-T{ask.duration_s or 10:g}",)


def _end(text: str, side: Literal["t", "r"]) -> dict[str, str]:
    """Parses the fields of one end; of a field that is printed twice, the first counts."""
    fields: dict[str, str] = {}
    for found in _BLOCK.finditer(text):
        if found[1] == side:
            for name, value in _FIELD.findall(found[2]):
                fields.setdefault(name, value)
    return fields


def _throughput(fields: dict[str, str], side: str) -> tuple[int, float, float]:
    """Returns bytes, bits per second, and the seconds computed from these, which are finer than the printed ones."""
    missing = {"megabytes", "real_seconds", "rate_Mbps"} - fields.keys()
    if missing:
        raise WorkloadError(f"the output of nuttcp has no {', '.join(sorted(missing))} of its {side}")
    megabytes, printed_s, rate_mbps = (
        number_of(fields[name], f"nuttcp: {name}") for name in ("megabytes", "real_seconds", "rate_Mbps")
    )
    if megabytes <= 0 or rate_mbps <= 0:
        raise WorkloadError(f"nuttcp says that its {side} had {megabytes:g} MB at {rate_mbps:g} Mbit/s")
    duration_s = megabytes * MEBIBYTE * 8 / (rate_mbps * 1e6)
    if abs(duration_s - printed_s) > _ROUNDING_S + 0.01 * max(duration_s, printed_s):
        raise WorkloadError(
            f"nuttcp says that its {side} took {printed_s:g} s, where {megabytes:g} MB at {rate_mbps:g} Mbit/s take "
            f"{duration_s:g}"
        )
    return round(megabytes * MEBIBYTE), rate_mbps * 1e6, duration_s


def _count(fields: dict[str, str], name: str) -> int | None:
    return None if name not in fields else int(number_of(fields[name], f"nuttcp: {name}"))


def _share(fields: dict[str, str]) -> float | None:
    """Parses the CPU share, ``cpu=21%`` of one CPU; None where it is missing."""
    text = fields.get("cpu", "")
    return number_of(text[:-1], "nuttcp: cpu") / 100 if text.endswith("%") else None
