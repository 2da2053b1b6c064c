"""Witnesses of what tools say: the byte counters of ports, and the CPU time that the monitor saw."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from nicbench.core.frozen import frozen
from nicbench.core.judging import Finding, Reason
from nicbench.core.round import Figures, Flow, Job, JobOutcome, MachineCpu, RoundRequest
from nicbench.core.units import format_digits
from nicbench.testbed.labs.base import Endpoint

# The counters of ports as witnesses: what all tools of a port say together, against the bytes that passed through it.
#
# The check of one job's figures (``workloads/tool_output.py``) cannot see what two jobs of a port claim together, nor a
# tool that says too little at both ends.


SETTLE_S: Final = 2.0
"""Many cards bring their counters up to date once a second: one that contradicts is read again after this time."""
_MARGIN: Final = 0.01
_SLACK_BYTES: Final = 1024 * 1024
"""Neighbour discovery, control connections and the like; also what rounded figures of small transfers differ by."""
_SEND_BUFFER_BYTES: Final = 4 * 1024 * 1024
"""What a sender's socket may hold at the end (tcp_wmem), for tools that only count what was sent."""
_MOST_BEYOND: Final = 1.1
"""The factor above what payload and headers make from which others must have sent traffic."""
_MOST_BEYOND_UNTOLD: Final = 1.5
"""The same where a tool does not tell its retransmissions, or leaves out how much passed in its first seconds."""
_HEADER_BYTES: Final = 94
"""Ethernet with a VLAN tag, IPv6 without extensions, TCP with time stamps and selective acknowledgements."""
_SEGMENT_BYTES: Final = 1000
_LONGEST_SEGMENT_BYTES: Final = 9000

Way = Literal["tx", "rx"]


@frozen
class Interface:
    """The interface of an endpoint; endpoints may share one. ``link_bits_per_s`` is in one direction."""

    host: str
    device: str
    link_bits_per_s: float | None = None
    bucket_bytes: int = 0
    carrier: str | None = None
    """The interface that carries its frames, where it is that of a VLAN."""


@dataclass
class _Told:
    """What the tools of an interface say of one direction."""

    ends: list[str] = field(default_factory=list)
    payload_bytes: float = 0.0
    slack_bytes: float = 0.0
    explained_bytes: float = 0.0
    """Payload and headers of these jobs, and acknowledgements of those of the other direction."""
    retransmitted_bytes: float = 0.0
    """At most: retransmissions that the tools tell, each of a whole segment."""
    from_s: float = float("inf")
    to_s: float = 0.0
    tells_repeated: bool = True
    """Whether every tool tells how much it sent again, and counts from its first byte."""
    tells_all: bool = True
    """Whether every byte that the test moves is accounted for: no job failed, and none is of another kind."""


def interfaces_of(endpoints: Mapping[str, Endpoint]) -> dict[str, Interface]:
    """Returns the interface of each endpoint that has one, by the endpoint's name."""
    return {
        name: Interface(
            each.facts.host,
            each.facts.device,
            each.facts.link_bits_per_s,
            each.facts.bucket_bytes or 0,
            each.facts.vlan.device if each.facts.vlan else None,
        )
        for name, each in endpoints.items()
        if each.facts.device is not None
    }


def find_contradicted_ports(
    request: RoundRequest,
    outcomes: Sequence[JobOutcome],
    interfaces: Mapping[str, Interface],
    before: Mapping[str, Mapping[str, int]],
    after: Mapping[str, Mapping[str, int]],
) -> tuple[Finding, ...]:
    """Returns a finding for each direction of a port whose counter, or link, contradicts what its tools say together.

    ``before`` and ``after`` are cumulative counters by endpoint. RDMA passes by the counters of most interfaces, and
    ends on one host reach each other without any: such jobs are not compared.
    """
    told = _tell(request, outcomes, interfaces)
    findings: list[Finding] = []
    for (interface, way), said in told.items():
        findings += _exceeds_link(interface, way, said)
        passed = next((_risen(f"{way}_bytes", before.get(end, {}), after.get(end, {})) for end in said.ends), None)
        if passed is not None:
            findings += _compare(interface, way, said, passed)
    return tuple(findings)


def has_bytes(counters: Mapping[str, int]) -> bool:
    """Returns whether the counters of an endpoint say how much passed through its interface."""
    return "tx_bytes" in counters and "rx_bytes" in counters


def find_lost_ports(
    request: RoundRequest,
    interfaces: Mapping[str, Interface],
    readable: Collection[str],
    after: Mapping[str, Mapping[str, int]],
) -> tuple[Finding, ...]:
    """Returns a finding for each endpoint of the jobs whose counters were ``readable`` once and now cannot be read.

    Such an interface is gone, or its host does not answer: whatever the tools say, nothing witnesses it.
    """
    names = dict.fromkeys(name for job in request.jobs for name in (job.client, job.server) if name is not None)
    return tuple(
        Finding(
            reason=Reason.PEER_FAILED,
            threshold="the counters of a port can be read",
            value=1.0,
            limit=0.0,
            text=f"{interfaces[name].device} ({name}) can no longer be read: the interface is gone, or its host does "
            "not answer",
        )
        for name in names
        if name in interfaces and name in readable and not has_bytes(after.get(name, {}))
    )


def _tell(
    request: RoundRequest, outcomes: Sequence[JobOutcome], interfaces: Mapping[str, Interface]
) -> dict[tuple[Interface, Way], _Told]:
    told: dict[tuple[Interface, Way], _Told] = defaultdict(_Told)
    for job, outcome in zip(request.jobs, outcomes, strict=True):
        if job.server is None and job.ask.operation == "memory":
            continue
        ends = [name for name in (job.client, job.server) if name is not None and name in interfaces]
        is_local = job.server is not None and len({interfaces[name].host for name in ends}) < len(ends)
        is_stream = job.ask.operation == "stream" and job.ask.transport != "rdma" and not is_local
        for name in ends:
            ways: tuple[Way, ...] = ("tx", "rx")
            for way in ways:
                said = told[interfaces[name], way]
                said.ends.append(name)
                said.tells_all &= is_stream and outcome.figures is not None
                if not is_stream or outcome.figures is None:
                    continue
                began_s = outcome.began_s or 0.0
                said.from_s = min(said.from_s, began_s)
                said.to_s = max(said.to_s, began_s + (outcome.took_s or request.duration_s))
                for flow in outcome.figures.flows:
                    leaves = (flow.direction == "forward") == (name == job.client)
                    _add(said, job, flow, outcome.figures.mss_bytes, is_data=leaves == (way == "tx"))
    return told


def _add(said: _Told, job: Job, flow: Flow, mss_bytes: int | None, *, is_data: bool) -> None:
    payload = _payload_bytes(flow, job.ask.duration_s)
    if payload is None or (job.ask.transport == "udp" and flow.received_bytes is None and not flow.received_bits_per_s):
        said.tells_all = False  # nor may it be held against the port: a sender's host drops what its link does not take
        return
    unit = min(job.ask.write_bytes or _SEGMENT_BYTES, mss_bytes or _SEGMENT_BYTES)
    if not is_data:
        said.explained_bytes += payload * _HEADER_BYTES / unit
        return
    said.payload_bytes += payload
    if flow.received_bytes is None and flow.received_bits_per_s is None:
        said.slack_bytes += job.ask.streams * max(job.ask.window_bytes or 0, _SEND_BUFFER_BYTES)
    crossed = max(payload, flow.sent_bytes or 0.0)
    if job.ask.transport == "udp" and flow.sent_bytes is None and flow.lost_datagrams:
        crossed += flow.lost_datagrams * (job.ask.write_bytes or _LONGEST_SEGMENT_BYTES)
    omitted_s = float(job.options.get("omit_s") or 0.0)
    said.tells_repeated &= not omitted_s and (job.ask.transport == "udp" or flow.retransmissions is not None)
    duration_s = flow.duration_s or job.ask.duration_s
    if omitted_s:
        said.tells_all &= bool(duration_s)
        crossed *= 1 + omitted_s / (duration_s or omitted_s)
    said.explained_bytes += crossed * (1 + _HEADER_BYTES / unit)
    segment_bytes = mss_bytes + _HEADER_BYTES if mss_bytes else _LONGEST_SEGMENT_BYTES
    said.retransmitted_bytes += (flow.retransmissions or 0) * segment_bytes


def _payload_bytes(flow: Flow, asked_s: float | None) -> float | None:
    """Returns the bytes that arrived; those that were sent where only they are known."""
    duration_s = flow.duration_s or asked_s
    for count, rate in ((flow.received_bytes, flow.received_bits_per_s), (flow.sent_bytes, flow.sent_bits_per_s)):
        if count is not None:
            return float(count)
        if rate is not None and duration_s:
            return rate * duration_s / 8
    return None


def _risen(name: str, before: Mapping[str, int], after: Mapping[str, int]) -> int | None:
    """Returns None where it is not known at both times, or ran backwards (it was reset, or has wrapped)."""
    if name not in before or name not in after or after[name] < before[name]:
        return None
    return after[name] - before[name]


def _exceeds_link(interface: Interface, way: Way, said: _Told) -> Iterator[Finding]:
    window_s = said.to_s - said.from_s
    if interface.link_bits_per_s is None or window_s <= 0:
        return
    most = interface.link_bits_per_s * window_s / 8 * (1 + _MARGIN) + interface.bucket_bytes + said.slack_bytes
    if said.payload_bytes > most + _SLACK_BYTES:
        yield _finding(
            said.payload_bytes,
            most,
            f"{_name(interface, way, said)}: the tools say {_megabytes(said.payload_bytes)} together, and its link of "
            f"{interface.link_bits_per_s / 1e6:g} Mb/s carries {_megabytes(most)} in {format_digits(window_s)} s",
        )


def _compare(interface: Interface, way: Way, said: _Told, passed: int) -> Iterator[Finding]:
    fewest = said.payload_bytes * (1 - _MARGIN) - said.slack_bytes - _SLACK_BYTES
    beyond = _MOST_BEYOND if said.tells_repeated else _MOST_BEYOND_UNTOLD
    most = said.explained_bytes * beyond + said.retransmitted_bytes + _SLACK_BYTES
    what = f"{_name(interface, way, said)}: the tools say {_megabytes(said.payload_bytes)}"
    if passed < fewest:
        text = f"{what} together, and only {_megabytes(passed)} passed through it"
        yield _finding(said.payload_bytes, float(passed), text)
    elif said.tells_all and said.payload_bytes > 0 and passed > most:
        text = (
            f"{what}, and {_megabytes(passed)} passed through it: more than headers and retransmissions explain; "
            "a tool says too little, or somebody else uses the port"
        )
        yield _finding(float(passed), most, text)


def _name(interface: Interface, way: Way, said: _Told) -> str:
    names = "/".join(dict.fromkeys(said.ends))
    return f"{interface.device} ({names}) {'sending' if way == 'tx' else 'receiving'}"


def _megabytes(count: float) -> str:
    return f"{format_digits(count / 1e6, 4)} MB"


def _finding(value: float, limit: float, text: str) -> Finding:
    return Finding(
        reason=Reason.CONTRADICTED,
        threshold="the tools and the counters of a port agree",
        value=value,
        limit=limit,
        text=text,
    )


# What a tool says of the CPU time of whole machines, held against what the monitor says of them (netperf -c -C).


_AGREES: Final = 0.05
_BYTES_A_KB: Final = 1024
"""As netperf counts for its service demand."""


def add_cpu_notes(
    request: RoundRequest,
    outcomes: Sequence[JobOutcome],
    cpu: Sequence[MachineCpu],
    machines: Mapping[str, str],
) -> tuple[JobOutcome, ...]:
    """Adds to figures whether tool and monitor agree. ``machines`` has the machine of each endpoint."""
    by_machine = {each.machine: each for each in cpu}
    told = []
    for job, outcome in zip(request.jobs, outcomes, strict=True):
        figures = outcome.figures
        notes = () if figures is None else tuple(_notes(job, figures, by_machine, machines))
        if figures is not None and notes:
            figures = figures.replace(notes=(*figures.notes, *notes))
            outcome = outcome.replace(figures=figures)
        told.append(outcome)
    return tuple(told)


def _notes(job: Job, figures: Figures, cpu: Mapping[str, MachineCpu], machines: Mapping[str, str]) -> Iterator[str]:
    sides = (
        (job.client, "client", figures.client_machine_cpu_share, figures.client_service_demand_ns_per_byte),
        (job.server, "server", figures.server_machine_cpu_share, figures.server_service_demand_ns_per_byte),
    )
    for endpoint, side, said, demand in sides:
        ours = cpu.get(machines.get(endpoint or "", ""))
        if said is not None:
            yield _busy_words(job.workload, side, said, None if ours is None else ours.mean)
        if demand is not None:
            yield _demand_words(job.workload, side, demand, figures, ours)


def _busy_words(tool: str, side: str, said: float, ours: float | None) -> str:
    told = f"{tool} says that the {side}'s machine was {100 * said:.1f} % busy"
    if ours is None:
        return f"{told}; no monitor watched it"
    apart = abs(said - ours) / ours if ours else float(said > 0)
    words = "they agree within 5 %" if apart <= _AGREES else f"{100 * apart:.0f} % apart, over times of their own"
    return f"{told}, the monitor {100 * ours:.1f} %: {words}"


def _demand_words(tool: str, side: str, demand: float, figures: Figures, ours: MachineCpu | None) -> str:
    """The tool divides the time of all programs by what it moved; beside it the time of the test alone."""
    told = f"{tool}'s service demand on the {side}'s machine is {_per_kb(demand)} of all programs' CPU time"
    moved = sum(flow.received_bytes or flow.sent_bytes or 0 for flow in figures.flows)
    if ours is None or ours.of_test is None or not moved or not ours.cpus or not ours.counted_s:
        return told
    return f"{told}, {_per_kb(ours.of_test * ours.cpus * ours.counted_s * 1e9 / moved)} of the test's own"


def _per_kb(ns_per_byte: float) -> str:
    return f"{format_digits(ns_per_byte * _BYTES_A_KB / 1e3, 4)} µs/KB"
