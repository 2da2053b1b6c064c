"""netperf (HewlettPackard/netperf), where a user has it: throughput and request-response by its omni test.

Its options and output selectors: its manual, "The Omni Tests", and ``doc/omni_output_list.txt``. Debian has it in
non-free: a user installs it. Where latency is of requests, it is of the whole round trip.
"""

from __future__ import annotations

import re
from typing import Any, Final

from nicbench.core.round import Figures, Flow, Job, JobSpec, RequestLatency
from nicbench.workloads.base import Command, End, NoOptions, Output, Workload, WorkloadError, last_words
from nicbench.workloads.tool_output import NANOSECONDS_PER_MICROSECOND, number_of

_STREAM: Final = (
    *("THROUGHPUT", "THROUGHPUT_UNITS", "ELAPSED_TIME", "LOCAL_SEND_THROUGHPUT", "LOCAL_RECV_THROUGHPUT"),
    *("REMOTE_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT", "LOCAL_BYTES_SENT", "LOCAL_BYTES_RECVD"),
    *("REMOTE_BYTES_SENT", "REMOTE_BYTES_RECVD", "TRANSPORT_MSS"),
)
_REQUESTS: Final = (
    *("THROUGHPUT", "THROUGHPUT_UNITS", "ELAPSED_TIME", "TRANSACTION_RATE", "RT_LATENCY", "MIN_LATENCY"),
    *("MEAN_LATENCY", "MAX_LATENCY", "STDDEV_LATENCY", "P50_LATENCY", "P90_LATENCY", "P99_LATENCY", "TRANSPORT_MSS"),
)
_CPU: Final = (
    *("LOCAL_CPU_UTIL", "LOCAL_SD", "REMOTE_CPU_UTIL", "REMOTE_SD", "SD_UNITS"),
    *("LOCAL_CPU_METHOD", "REMOTE_CPU_METHOD"),
)
"""Of the whole machine at either end, whoever used it; service demand is that time over what was moved."""
_DEMAND_UNITS: Final = "usec/KB"
_PERCENTILES: Final = {"50": "P50_LATENCY", "90": "P90_LATENCY", "99": "P99_LATENCY"}
_FIELD = re.compile(r"^([A-Z][A-Z0-9_]*)=(.*)$", re.MULTILINE)
_MEGABITS: Final = "10^6bits/s"
_ROUNDING_S: Final = 0.0051


class Netperf(Workload):
    """netperf, with a server (netserver) for each client, which SIGTERM ends."""

    kind = "netperf"
    Options = NoOptions
    package = "netperf"
    tried = ("2.7.0", "2.7.1")
    version_pattern = re.compile(r"Netperf version (\d+(?:\.\d+)+)")
    ports_per_job = 2
    server_ends = False

    def refusal(self, ask: JobSpec) -> str | None:
        if ask.operation == "memory" or ask.transport == "rdma":
            return "netperf measures TCP and UDP"
        if ask.duration_s is not None and (ask.duration_s != int(ask.duration_s) or ask.duration_s < 1):
            return f"netperf counts whole seconds, not {ask.duration_s:g}"
        if ask.direction == "both" or ask.streams != 1 or ask.rate_bits_per_s is not None:
            return "netperf has one connection, one way, as fast as it can"
        if ask.direction == "reverse" and (ask.transport == "udp" or ask.operation == "request-response"):
            return "netperf's reverse is of TCP streams alone"
        if ask.transport == "udp" and (ask.write_bytes or 1) > 65507:
            return f"a datagram has at most 65507 bytes, not {ask.write_bytes}"
        if ask.source_file or ask.sink_file or ask.zero_copy or ask.congestion_control:
            return "netperf is not asked for files, zero copy or a congestion control here; iperf3 is"
        return None

    def server_command(self, job: Job, client: End, server: End) -> Command:
        return ("netserver", "-D", "-L", server.address, "-p", str(job.port))

    def client_command(self, job: Job, client: End, server: End | None) -> Command:
        if server is None:
            raise WorkloadError("netperf needs a server")
        ask = job.ask
        asks = ask.operation == "request-response"
        size = ask.write_bytes
        amount = f"-{ask.total_bytes}" if ask.total_bytes is not None else f"{ask.duration_s or 10:.0f}"
        way = "rr" if asks else {"forward": "send", "reverse": "recv"}.get(ask.direction, "send")
        return (
            *("netperf", "-H", server.address, "-L", client.address, "-p", str(job.port), "-t", "omni", "-l", amount),
            *("-f", "m", "-P", "0", "-c", "-C", *(("-j",) if asks else ()), "--"),
            *("-T", ask.transport, "-d", way, "-P", f",{job.port + 1}"),
            *(("-r", f"{size},{size}") if size is not None and asks else ()),
            *(("-m", str(size), "-M", str(size)) if size is not None and not asks else ()),
            *(("-s", str(ask.window_bytes), "-S", str(ask.window_bytes)) if ask.window_bytes is not None else ()),
            *(("-D",) if ask.no_delay else ()),
            *("-k", ",".join((*(_REQUESTS if asks else _STREAM), *_CPU))),
        )

    def version_command(self, ask: JobSpec) -> Command:
        return ("netperf", "-V")

    def parse(self, job: Job, client: Output, server: Output | None) -> Figures:
        fields = {name: value.strip() for name, value in _FIELD.findall(client.stdout)}
        if "THROUGHPUT" not in fields:
            raise WorkloadError(f"the output of netperf has no THROUGHPUT; it ends: {last_words(client.stdout[-300:])}")
        if job.ask.operation == "request-response":
            return _requests(fields).replace(**_machine_cpu(fields, with_demand=False))
        if fields.get("THROUGHPUT_UNITS") != _MEGABITS:
            units = last_words(fields.get("THROUGHPUT_UNITS", "nothing"))
            raise WorkloadError(f"netperf gives its throughput in {units}, not in {_MEGABITS} as it was asked")
        found = Figures(flows=(_flow(job.ask, fields),), mss_bytes=_count(fields, "TRANSPORT_MSS"))
        return found.replace(**_machine_cpu(fields, with_demand=True))


def _flow(ask: JobSpec, fields: dict[str, str]) -> Flow:
    sender, receiver = ("REMOTE", "LOCAL") if ask.direction == "reverse" else ("LOCAL", "REMOTE")
    received = _rate(fields, f"{receiver}_RECV_THROUGHPUT")
    sent = _rate(fields, f"{sender}_SEND_THROUGHPUT")
    whole = _rate(fields, "THROUGHPUT")
    return Flow(
        direction="reverse" if ask.direction == "reverse" else "forward",
        sent_bytes=_count(fields, f"{sender}_BYTES_SENT"),
        received_bytes=_count(fields, f"{receiver}_BYTES_RECVD"),
        sent_bits_per_s=sent if sent is not None else whole,
        received_bits_per_s=received,
        duration_s=_duration_s(_number(fields, "ELAPSED_TIME"), _count(fields, f"{receiver}_BYTES_RECVD"), received),
    )


def _duration_s(printed_s: float | None, received_bytes: int | None, received_bits_per_s: float | None) -> float | None:
    """Computes the duration from bytes and rate where it agrees with the printed one, which has two decimals only."""
    if printed_s is None or not received_bytes or not received_bits_per_s:
        return printed_s
    computed_s = received_bytes * 8 / received_bits_per_s
    return computed_s if abs(computed_s - printed_s) <= _ROUNDING_S else printed_s


def _requests(fields: dict[str, str]) -> Figures:
    rate = _number(fields, "TRANSACTION_RATE")
    mean = _latency_ns(fields, "MEAN_LATENCY")
    percentiles = {name: _latency_ns(fields, field) for name, field in _PERCENTILES.items()}
    return Figures(
        transactions_per_s=rate if rate is not None else _number(fields, "THROUGHPUT"),
        latency=RequestLatency(
            basis="round trip",
            minimum_ns=_latency_ns(fields, "MIN_LATENCY"),
            mean_ns=mean if mean is not None else _latency_ns(fields, "RT_LATENCY"),
            maximum_ns=_latency_ns(fields, "MAX_LATENCY"),
            stdev_ns=_latency_ns(fields, "STDDEV_LATENCY"),
            percentiles_ns={name: value for name, value in percentiles.items() if value is not None},
        ),
        mss_bytes=_count(fields, "TRANSPORT_MSS"),
    )


def _machine_cpu(fields: dict[str, str], *, with_demand: bool) -> dict[str, Any]:
    """Parses the CPU use of the machines at both ends; empty where netperf could not measure it.

    Its KB are 1024 bytes. Of requests its service demand is of their bytes, which says little.
    """
    found = {}
    for side, prefix in (("client", "LOCAL"), ("server", "REMOTE")):
        percent, demand = _number(fields, f"{prefix}_CPU_UTIL"), _number(fields, f"{prefix}_SD")
        found[f"{side}_machine_cpu_share"] = None if percent is None else percent / 100.0
        if with_demand and demand is not None and fields.get("SD_UNITS") == _DEMAND_UNITS:
            found[f"{side}_service_demand_ns_per_byte"] = demand * NANOSECONDS_PER_MICROSECOND / 1024
    return {name: value for name, value in found.items() if value is not None}


def _number(fields: dict[str, str], name: str) -> float | None:
    """Parses a field; None where it is empty or -1, which netperf prints for unknown."""
    value = number_of(fields[name], f"netperf: {name}") if fields.get(name) else None
    return None if value is None or value == -1 else value


def _rate(fields: dict[str, str], name: str) -> float | None:
    value = _number(fields, name)
    return None if value is None else value * 1e6


def _count(fields: dict[str, str], name: str) -> int | None:
    value = _number(fields, name)
    return None if value is None else int(value)


def _latency_ns(fields: dict[str, str], name: str) -> float | None:
    value = _number(fields, name)
    return None if value is None else value * NANOSECONDS_PER_MICROSECOND
