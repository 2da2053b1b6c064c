"""qperf (linux-rdma/qperf): throughput and latency over TCP, UDP and RDMA. Its output with ``-uu -vvs``, of 0.4.11.

Its options: ``qperf --help options`` and ``qperf --help tests``. Its latency is half of the round trip.
"""

from __future__ import annotations

import re
from typing import Final

from nicbench.core.round import Figures, Flow, Job, JobSpec, RequestLatency
from nicbench.workloads.base import Command, End, Listening, NoOptions, Output, Workload, WorkloadError, last_words
from nicbench.workloads.tool_output import number_of

_LINE = re.compile(r"^[ \t]{1,20}(\w{1,40})[ \t]{1,40}=[ \t]{1,40}(\S{1,80})(?: ([\w/]{1,20}))?[ \t]*$", re.MULTILINE)
_UNITS: Final = {"bits/sec": 1.0, "ns": 1.0, "bytes": 1.0, "/sec": 1.0, "": 1.0}
_RDMA: Final = {"send": "rc", "write": "rc_rdma_write", "read": "rc_rdma_read"}
_ERROR = re.compile(r"^(.*(?:failed to|bad option|unable to|cannot |must be |no such|refused).*)$", re.MULTILINE)
_DIGITS: Final = 12


class Qperf(Workload):
    """qperf, with a server for each client, which SIGTERM ends."""

    kind = "qperf"
    Options = NoOptions
    package = "qperf"
    tried = ("0.4.11", "0.4.11")
    version_pattern = re.compile(r"\bqperf (\d+(?:\.\d+)+)")
    ports_per_job = 2
    server_ends = False

    def refusal(self, ask: JobSpec) -> str | None:
        if ask.operation == "memory":
            return "qperf measures networks"
        if ask.total_bytes is not None:
            return "qperf measures for a time, not for so many bytes"
        if ask.duration_s is None or ask.duration_s != int(ask.duration_s) or ask.duration_s < 1:
            return "qperf measures for whole seconds, at least 1"  # with a part of one it never ends
        if ask.direction != "forward":
            return "qperf sends from its client to its server; let the other end be the client"
        if ask.streams != 1 or ask.rate_bits_per_s is not None:
            return "qperf has one connection, as fast as it can"
        if ask.transport == "udp" and (ask.write_bytes or 1) > 65507:
            return f"a datagram has at most 65507 bytes, not {ask.write_bytes}"
        if ask.source_file or ask.sink_file or ask.congestion_control or ask.zero_copy:
            return "qperf has neither files nor zero copy, and chooses no congestion control"
        return None

    def refusal_of_ends(self, job: Job, client: End, server: End | None) -> str | None:
        if job.ask.transport != "rdma":
            return None
        lacking = [name for name, end in (("client", client), ("server", server)) if end and end.rdma_device is None]
        return f"no RDMA device at its {' and its '.join(lacking)}" if lacking else None

    def server_command(self, job: Job, client: End, server: End) -> Command:
        return ("qperf", "-lp", str(job.port))

    def client_command(self, job: Job, client: End, server: End | None) -> Command:
        if server is None:
            raise WorkloadError("qperf needs a server")
        ask = job.ask
        rdma = ask.transport == "rdma"
        return (
            *("qperf", server.address, "-lp", str(job.port)),
            *(() if rdma else ("-ip", str(job.port + 1))),
            *("-t", f"{ask.duration_s or 1:.0f}", "-uu", "-ub", "-vvs", "-e", str(_DIGITS)),
            *(("-m", str(ask.write_bytes)) if ask.write_bytes is not None else ()),
            *(("-sb", str(ask.window_bytes)) if ask.window_bytes is not None and not rdma else ()),
            *(("-li", f"{client.rdma_device}:{client.rdma_port}") if rdma else ()),
            *(("-ri", f"{server.rdma_device}:{server.rdma_port}") if rdma else ()),
            # qperf can use RoCE addresses only through the connection manager.
            *(("-cm1",) if rdma and client.gid_index is not None else ()),
            _test(ask),
        )

    def listens(self, job: Job, server: End) -> tuple[Listening, ...]:
        return (Listening("tcp", job.port),)

    def complaint(self, output: Output) -> str | None:
        if output.status == 0:  # on a machine without InfiniBand it complains even where none is needed
            return None
        found = _ERROR.findall(f"{output.stdout}\n{output.stderr}")
        return last_words(found[-1]) if found else None

    def parse(self, job: Job, client: Output, server: Output | None) -> Figures:
        values = _values(client.stdout)
        if job.ask.operation == "request-response":
            return _requests(values)
        received = values.get("recv_bw", values.get("bw"))
        if received is None:
            raise WorkloadError(f"the output of qperf has no throughput; it ends: {last_words(client.stdout[-300:])}")
        flow = Flow(
            direction="forward",
            sent_bytes=_whole(values, "send_bytes"),
            received_bytes=_whole(values, "recv_bytes"),
            sent_bits_per_s=values.get("send_bw"),
            received_bits_per_s=received,
            datagrams=_whole(values, "send_msgs") if job.ask.transport == "udp" else None,
        )
        return Figures(flows=(flow,), notes=_troubles(values))


def _test(ask: JobSpec) -> str:
    what = "lat" if ask.operation == "request-response" else "bw"
    return f"{ask.transport if ask.transport != 'rdma' else _RDMA[ask.verb or 'send']}_{what}"


def _values(text: str) -> dict[str, float]:
    """Parses all values; with ``-uu`` their units are nanoseconds, bytes, and bits per second."""
    values = {}
    for name, value, unit in _LINE.findall(text):
        if unit not in _UNITS:
            raise WorkloadError(f"qperf says {name} in {last_words(unit[:40])}, which is not what it was asked for")
        if re.fullmatch(r"[\d.,eE+-]+", value):
            values[name] = number_of(value.replace(",", ""), f"qperf: {name}") * _UNITS[unit]
        elif name in ("latency", "bw", "send_bw", "recv_bw", "msg_rate"):
            raise WorkloadError(f"qperf says that its {name} is {last_words(value[:40])}")
    return values


def _requests(values: dict[str, float]) -> Figures:
    if "latency" not in values:
        raise WorkloadError("the output of qperf has no latency")
    rate = values.get("msg_rate")
    return Figures(
        # qperf counts the messages of both directions.
        transactions_per_s=None if rate is None else rate / 2,
        latency=RequestLatency(
            basis="half round trip", mean_ns=values["latency"], count=_whole(values, "loc_recv_msgs")
        ),
        notes=_troubles(values),
    )


def _troubles(values: dict[str, float]) -> tuple[str, ...]:
    return tuple(
        f"qperf counted {values[name]:.0f} {name.replace('_', ' ')}" for name in sorted(values) if "errors" in name
    )


def _whole(values: dict[str, float], name: str) -> int | None:
    return None if name not in values else int(values[name])
