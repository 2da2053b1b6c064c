"""The verdict of a round: whether every tool did its work, and nothing took the machines away meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nicbench.core.bond import LinkFailureOutcome
from nicbench.core.judging import Finding, Reason, Thresholds, Verdict
from nicbench.core.machine import cpu_list
from nicbench.core.reading import PathChanges
from nicbench.core.round import JobOutcome, MachineCpu, RoundRequest
from nicbench.measure.trial_verdict import OF_A_LINK, find_changes, leave_out

CARRIER_CHANGES: Final = "carrier_changes of "
"""The name of a counter, followed by the interface that it is of (``host_readings.py``)."""
LINK_CHANGED: Final = "link_changed"
"""The threshold of a link that went down or came up by itself."""
_MEANT: Final = 2
_MOSTLY_IDLE: Final = 0.75
"""With less idle time than this on average, more than half of the CPUs are busy in many a moment: then hyperthreads
share cores, and soon tasks wait."""
_FEW_CPUS: Final = 2
"""Mostly the two hyperthreads of one core: whatever runs there disturbs the test."""
_MOST_NAMED: Final = 3


def judge_round(
    request: RoundRequest,
    outcomes: Sequence[JobOutcome],
    cpu: Sequence[MachineCpu],
    thresholds: Thresholds,
    counters: Mapping[str, Mapping[str, int]] | None = None,
    failure: LinkFailureOutcome | None = None,
    server_failure: str | None = None,
    machines: Mapping[str, str] | None = None,
    of_ports: Sequence[Finding] = (),
    changes: PathChanges | None = None,
) -> Verdict:
    """Never looks at how much was moved: a slow card does not make a round invalid.

    ``counters`` are what rose of each endpoint's, ``failure`` the link that was taken down on purpose,
    ``server_failure`` how a server of the DUT's own ended in the midst, ``machines`` the machine of each endpoint,
    ``of_ports`` the ports whose counters are gone, or do not agree with the tools (``witnesses.py``), ``changes`` what
    others changed on the path.
    """
    return Verdict(
        findings=(
            *_find_ended_servers(server_failure),
            *_find_failed_jobs(request, outcomes),
            *of_ports,
            *_late_starts(request, outcomes, thresholds),
            *_loads_that_ended_early(request, outcomes),
            *_find_stolen_cpu_time(cpu, thresholds),
            *_find_strangers(cpu, thresholds),
            *_find_strangers_beside(request, cpu, machines or {}, thresholds),
            *_link_changes(counters or {}, failure),
            *_missing_link_failure(request, failure),
            *find_changes(leave_out(changes, OF_A_LINK if request.failure is not None else ())),
        )
    )


def _find_ended_servers(server_failure: str | None) -> Iterator[Finding]:
    if server_failure is not None:
        yield Finding(
            reason=Reason.PEER_FAILED,
            threshold="the servers of the DUT go on",
            value=1.0,
            limit=0.0,
            text=f"in the midst of the round {server_failure}",
        )


def _find_failed_jobs(request: RoundRequest, outcomes: Sequence[JobOutcome]) -> Iterator[Finding]:
    for job, outcome in zip(request.jobs, outcomes, strict=True):
        if outcome.failure is not None:
            ends = job.client if job.server is None else f"{job.client} to {job.server}"
            yield Finding(
                reason=Reason.PEER_FAILED,
                threshold="every tool gives figures",
                value=1.0,
                limit=0.0,
                text=f"{job.workload}, {ends}: {outcome.failure}",
            )


def _late_starts(request: RoundRequest, outcomes: Sequence[JobOutcome], thresholds: Thresholds) -> Iterator[Finding]:
    """Jobs that did not run side by side: their sum is of no moment in which all of them ran."""
    starts = [
        outcome.began_s - job.begins_after_s
        for job, outcome in zip(request.jobs, outcomes, strict=True)
        if outcome.began_s is not None and outcome.failure is None
    ]
    if len(starts) < 2 or request.duration_s <= 0:
        return
    share = (max(starts) - min(starts)) / request.duration_s
    if share > thresholds.start_spread_share:
        yield Finding(
            reason=Reason.DISTURBED,
            threshold="start_spread_share",
            value=share,
            limit=thresholds.start_spread_share,
            text=f"the last client began {max(starts) - min(starts):.2f} s late of {request.duration_s:g} s",
        )


def _loads_that_ended_early(request: RoundRequest, outcomes: Sequence[JobOutcome]) -> Iterator[Finding]:
    """A probe next to a load that ended before the probe: a part of its samples is of an idle machine."""
    ends = [
        (job, outcome.began_s + outcome.took_s)
        for job, outcome in zip(request.jobs, outcomes, strict=True)
        if outcome.failure is None and outcome.began_s is not None and outcome.took_s is not None
    ]
    last_s = max((end_s for job, end_s in ends if job.role == "probe"), default=None)
    for job, end_s in ends:
        if last_s is not None and job.role == "load" and end_s < last_s:
            yield Finding(
                reason=Reason.DISTURBED,
                threshold="every load lasts as long as the probe beside it",
                value=last_s - end_s,
                limit=0.0,
                text=f"the load {job.workload} of {job.client} was over {last_s - end_s:.2f} s before the probe was",
            )


def _link_changes(counters: Mapping[str, Mapping[str, int]], failure: LinkFailureOutcome | None) -> Iterator[Finding]:
    """A link that went down or came up by itself; the one that was to fail goes down once and comes up once."""
    for endpoint, risen in counters.items():
        for name, changes in risen.items():
            if not name.startswith(CARRIER_CHANGES):
                continue
            device = name.removeprefix(CARRIER_CHANGES)
            left = changes - (_MEANT if failure is not None and device in _both_ends(failure) else 0)
            if left > 0:
                times = "once" if left == 1 else f"{left} times"
                yield Finding(
                    reason=Reason.LINK_CHANGED,
                    threshold=LINK_CHANGED,
                    value=float(left),
                    limit=0.0,
                    text=f"the link of {device} ({endpoint}) went down or came up by itself, {times}",
                )


def _both_ends(failure: LinkFailureOutcome) -> tuple[str, ...]:
    """The interfaces at both ends of the cable that was taken down on purpose."""
    return (failure.link, failure.taken_down.partition(" of ")[0])


def _missing_link_failure(request: RoundRequest, failure: LinkFailureOutcome | None) -> Iterator[Finding]:
    """A failure that was asked for and did not take place, or not for as long: the round is of something else."""
    if request.failure is None:
        return
    if failure is None or failure.down_at_s is None or failure.up_at_s is None:
        why = "the round was over before" if failure is None or failure.trouble is None else failure.trouble
        yield Finding(
            reason=Reason.LINK_CHANGED,
            threshold="the failure that is asked for takes place",
            value=1.0,
            limit=0.0,
            text=f"link {request.failure.link} of {request.failure.port} did not go down and come back as asked: {why}",
        )


def _find_stolen_cpu_time(cpu: Sequence[MachineCpu], thresholds: Thresholds) -> Iterator[Finding]:
    for each in cpu:
        if each.steal is not None and each.steal > thresholds.machine_steal_share:
            yield Finding(
                reason=Reason.DISTURBED,
                threshold="machine_steal_share",
                value=each.steal,
                limit=thresholds.machine_steal_share,
                text=f"the hypervisor gave {100 * each.steal:.1f} % of the CPU time of {each.machine} to somebody else",
            )


def _find_strangers(cpu: Sequence[MachineCpu], thresholds: Thresholds) -> Iterator[Finding]:
    """Programs that are not the test's and took CPU time of which there was not enough for everybody (verdicts.md)."""
    for each in cpu:
        if each.strangers is None or each.strangers <= thresholds.stranger_cpu_share:
            continue
        crowded = each.idle is None or each.idle < _MOSTLY_IDLE or (each.cpus or 0) <= _FEW_CPUS
        # A kernel that does not tell how long tasks waited leaves the idle time alone to say whether there was room.
        waited = each.pressure is not None and each.pressure > thresholds.stranger_pressure_share
        if crowded or waited:
            yield Finding(
                reason=Reason.DISTURBED,
                threshold="stranger_cpu_share",
                value=each.strangers,
                limit=thresholds.stranger_cpu_share,
                text=_strangers_words(each),
            )


def _find_strangers_beside(
    request: RoundRequest, cpu: Sequence[MachineCpu], machines: Mapping[str, str], thresholds: Thresholds
) -> Iterator[Finding]:
    """Strangers on CPUs to which one side is bound: it cannot give way, however much room the machine has."""
    for each in cpu:
        for side, bound in _bound_cpus(request, each.machine, machines).items():
            shares = {
                row.name: (each.cpus or 0) / len(bound) * sum(row.on_cpus.get(number, 0.0) for number in bound)
                for row in each.processes
                if row.user == "stranger"
            }
            share = sum(shares.values())
            if share > thresholds.stranger_cpu_share:
                names = [name for name in sorted(shares, key=shares.__getitem__, reverse=True) if shares[name] > 0]
                more = ", ..." if len(names) > _MOST_NAMED else ""
                cpus = f"CPU{'s' if len(bound) > 1 else ''} {cpu_list(bound)}"
                yield Finding(
                    reason=Reason.DISTURBED,
                    threshold="stranger_cpu_share",
                    value=share,
                    limit=thresholds.stranger_cpu_share,
                    text=f"{', '.join(names[:_MOST_NAMED])}{more} took {100 * share:.1f} % of the time of {cpus} of "
                    f"{each.machine}, to which the {side} is bound",
                )


def _bound_cpus(request: RoundRequest, machine: str, machines: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    """The CPUs of this machine to which clients or servers are bound, by side."""
    found: dict[str, set[int]] = {}
    for job in request.jobs:
        if job.role == "memory":
            continue
        for side, end, placed in (
            ("client", job.client, job.client_placement),
            ("server", job.server, job.server_placement),
        ):
            if end is not None and placed.cpus and machines.get(end) == machine:
                found.setdefault(side, set()).update(placed.cpus)
    return {side: tuple(sorted(cpus)) for side, cpus in found.items()}


def _strangers_words(cpu: MachineCpu) -> str:
    """``stress-ng took 48.0 % of the CPU time of local``; several are added up, the greatest named."""
    strangers = [row for row in cpu.processes if row.user == "stranger"]
    share = f"{100 * (cpu.strangers or 0.0):.1f} % of the CPU time of {cpu.machine}"
    if not strangers:
        return f"programs outside the test took {share}"
    if len(strangers) == 1:
        return f"{strangers[0].name} took {share}"
    named = [f"{row.name} {100 * row.share:.1f} %" for row in strangers[:_MOST_NAMED]]
    more = ", ..." if len(strangers) > _MOST_NAMED else ""
    return f"programs outside the test took {share} ({', '.join(named)}{more})"
