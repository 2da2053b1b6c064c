"""Computes results from a round of instances: for each instance, and for all of them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from nicbench.core.frames import FrameFigures, FrameTimes
from nicbench.core.result import Result
from nicbench.core.result import ResultVerdict as Verdict
from nicbench.core.round import MachineCpu, Round
from nicbench.core.units import format_bits_per_s
from nicbench.methods._failures import failure_values, note_of_jobs
from nicbench.methods._frame_options import FramesOptions, Seat
from nicbench.methods._round_figures import cpu_values, mean, monitored_cpu
from nicbench.methods.base import RoundContext, Values
from nicbench.stats.frames import Instance, RunFigures, Target, figures_of_run
from nicbench.stats.frames_runs import INSTANCES, RUNS, SUM, FilmRun, group_by_point
from nicbench.stats.latency import add_histograms, percentiles_ns
from nicbench.stats.limits import MovedData, limit_of

_FASTER_THAN_LINK = 1.02
"""The factor of the link rate above which frames cannot have come over the link."""


def target_of(options: FramesOptions) -> Target | None:
    """Returns the target rate and its tolerance; None where there is no target."""
    frames_per_s = options.target_frames_per_s
    return None if frames_per_s is None else Target(frames_per_s, options.tolerance)


def figures_of(one: Round) -> list[FrameFigures | None]:
    """Returns the figures of each instance; None for an instance that failed."""
    return [None if outcome.figures is None else outcome.figures.frames for outcome in one.outcomes]


def believed_figures(one: Round, seats: Sequence[Seat], context: RoundContext) -> list[FrameFigures | None]:
    """Returns the figures of each instance; None also where its client moved more than its link carries.

    Frames came out of that client's memory, or stayed in it, and say nothing of the server.
    """
    beyond = {client for client, _, _ in _beyond_links(one, seats, context)}
    pairs = zip(seats, figures_of(one), strict=True)
    return [None if seat.client in beyond else figures for seat, figures in pairs]


def explain_beyond_links(one: Round, seats: Sequence[Seat], context: RoundContext) -> tuple[str, ...]:
    """Returns a sentence for each client that moved more than its link carries."""
    return tuple(
        f"{client} moved {format_bits_per_s(moved)} over a link of {format_bits_per_s(link)}: frames came out of its "
        "memory, or stayed in it (`direct: true`, or more `frames`, prevent that)"
        for client, moved, link in _beyond_links(one, seats, context)
    )


def _beyond_links(one: Round, seats: Sequence[Seat], context: RoundContext) -> Iterator[tuple[str, float, float]]:
    """Yields each client that moved more than its link carries: its name, and both rates in bits per second."""
    links = {client.name: client.link_bits_per_s for client in context.clients}
    for name in dict.fromkeys(seat.client for seat in seats):
        moved, link = _moved_bits_per_s(name, seats, figures_of(one)), links.get(name)
        if link is not None and moved > _FASTER_THAN_LINK * link:
            yield name, moved, link


def _moved_bits_per_s(client: str, seats: Sequence[Seat], figures: Sequence[FrameFigures | None]) -> float:
    pairs = zip(seats, figures, strict=True)
    return 8.0 * sum(each.bytes_per_s for seat, each in pairs if seat.client == client and each is not None)


def instance_values(figures: FrameFigures | None, target: Target | None) -> Values:
    """Returns the values of one instance."""
    rate = None if figures is None else figures.frames_per_s
    values: Values = {
        "frames_per_s": rate,
        "bytes_per_s": None if figures is None else figures.bytes_per_s,
        **_target_values(target, 1, met=target is not None and target.is_met(rate), known=rate is not None),
        "dropped_frames": None if figures is None else figures.dropped_frames,
        "due_frames": None if figures is None else figures.due_frames,
    }
    if figures is not None:
        values |= _time_values("completion", [figures.completion]) | _time_values("lateness", [figures.lateness])
        known = figures.cpu_ns is not None and figures.all_frames
        values["cpu_per_frame_ns"] = (figures.cpu_ns or 0) / (figures.all_frames or 1) if known else None
        values["engine"] = figures.engine
    return values


def run_values(
    one: Round, seats: Sequence[Seat], options: FramesOptions, context: RoundContext
) -> tuple[Values, RunFigures]:
    """Returns the values and figures of all instances together."""
    figures = believed_figures(one, seats, context)
    target = target_of(options)
    editors = [
        Instance(None) if each is None else Instance(each.frames_per_s, each.dropped_frames, each.due_frames)
        for each in figures
    ]
    run = figures_of_run(editors, target or Target())
    known = [each for each in figures if each is not None]
    values: Values = {
        "sum_frames_per_s": run.sum_frames_per_s,
        "average_frames_per_s": run.average_frames_per_s,
        "standard_deviation_frames_per_s": run.standard_deviation_frames_per_s,
        "minimum_frames_per_s": run.minimum_frames_per_s,
        "maximum_frames_per_s": run.maximum_frames_per_s,
        "fairness": run.fairness,
        **_target_values(target, len(seats), met=run.is_met, known=run.sum_frames_per_s is not None),
        "dropped_frames": run.dropped_frames,
        "due_frames": run.due_frames,
        "bytes_per_s": sum(each.bytes_per_s for each in known) if len(known) == len(figures) else None,
        **_time_values("completion", [each.completion for each in known]),
        **_time_values("lateness", [each.lateness for each in known]),
        **cpu_values([one], context.servers[0].machine, "server"),
        "client_cpu_own_percent": _clients_cpu(one, seats, context, lambda cpu: cpu.of_test),
        "client_cpu_mean_percent": _clients_cpu(one, seats, context, lambda cpu: cpu.mean),
        **_limit_values(one, seats, figures, run, options, context),
        **_bond_values(one, seats, figures),
        **failure_values([one]),
    }
    if target is not None:
        values["instances_met"] = run.instances_met
    return values, run


def _target_values(target: Target | None, instances: int, *, met: bool, known: bool) -> Values:
    if target is None:
        return {}
    return {
        "target_frames_per_s": target.for_instances(instances),
        "tolerance_percent": 100.0 * target.tolerance_ratio,
        "met": ("yes" if met else "no") if known else None,
    }


def _time_values(name: str, parts: Sequence[FrameTimes | None]) -> Values:
    """Returns percentiles over every frame of the instances; empty where one of them has no times."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return {}
    maximum_ns = max(part.maximum_ns for part in known)
    histogram = add_histograms([part.histogram for part in known])
    told = {} if histogram is None else percentiles_ns(histogram, maximum_ns=maximum_ns)
    return {
        f"{name}_p50_ns": told.get("50"),
        f"{name}_p99_ns": told.get("99"),
        f"{name}_maximum_ns": maximum_ns,
    }


def _bond_values(one: Round, seats: Sequence[Seat], figures: Sequence[FrameFigures | None]) -> Values:
    """Returns sentences on which instances shared a port of a bond."""
    names = {job: f"instance {seat.instance}" for job, seat in enumerate(seats, 1)}
    rates = {job: None if each is None else each.frames_per_s for job, each in enumerate(figures, 1)}
    return note_of_jobs(one, names, rates)


def _clients_cpu(
    one: Round, seats: Sequence[Seat], context: RoundContext, share_of: Callable[[MachineCpu], float | None]
) -> float | None:
    """Returns the mean of this share of the CPUs of the clients' machines, in percent.

    None where one of them was not monitored, or is also the server's machine.
    """
    used = {seat.client for seat in seats}
    machines = {client.machine for client in context.clients if client.name in used}
    if context.servers[0].machine in machines:
        return None
    share = mean(next((share_of(cpu) for cpu in one.cpu if cpu.machine == machine), None) for machine in machines)
    return None if share is None else 100.0 * share


def _limit_values(
    one: Round,
    seats: Sequence[Seat],
    figures: Sequence[FrameFigures | None],
    run: RunFigures,
    options: FramesOptions,
    context: RoundContext,
) -> Values:
    """Returns what limited the instances: their own rate limit, where all of them reached it, else what was found."""
    beyond = explain_beyond_links(one, seats, context)
    if beyond:
        return {"limited_by": "client's memory", "limit": "; ".join(beyond)}
    if run.sum_frames_per_s is None:
        return {"limited_by": None, "limit": None}
    limited = options.frames_per_s
    if limited is not None and (run.minimum_frames_per_s or 0.0) >= (1 - options.tolerance) * limited:
        return {"limited_by": "frame rate", "limit": f"every instance had the {limited:g} frames/s that it is held to"}
    clients = {client.name: client for client in context.clients}
    ports = {server.name: server for server in context.servers}
    moved = []
    for name in dict.fromkeys(seat.client for seat in seats):
        client = clients[name]
        port = ports.get(client.port or "")
        moved.append(
            MovedData(
                client=name,
                port=client.port or "",
                machine=client.machine,
                bits_per_s=_moved_bits_per_s(name, seats, figures),
                parts=sum(seat.client == name for seat in seats),
                link_bits_per_s=client.link_bits_per_s,
                port_link_bits_per_s=None if port is None else port.link_bits_per_s,
            )
        )
    found = limit_of(moved, context.servers[0].machine, monitored_cpu([one]))
    return {"limited_by": found.limit.value, "limit": found.text}


def parameters_of(seat: Seat, direction: str, instances: int) -> dict[str, Any]:
    """Returns the parameters of an instance's result."""
    return {
        "part": "instances",
        "direction": direction,
        "instances": instances,
        "instance": seat.instance,
        "client": seat.client,
        "directory": seat.directory,
    }


SCOPE: Final = "sum of the instances"


def sums_of_runs(results: Iterable[Result]) -> tuple[Result, ...]:
    """Returns a result for each run of each number of instances; its sum is unknown where an instance's rate is."""
    by_test: dict[str | None, list[Result]] = {}
    for result in results:
        if result.parameters.get("part") in (RUNS, INSTANCES):
            by_test.setdefault(result.test, []).append(result)
    return tuple(
        _result(test, point, ran)
        for test, members in by_test.items()
        for point, found in group_by_point(members).items()
        for ran in found.runs
    )


def _result(test: str | None, point: tuple[str, str | None, int], ran: FilmRun) -> Result:
    configuration, direction, instances = point
    values = {SUM: ran.figures.sum_frames_per_s}
    if ran.whole is not None:
        return ran.whole.replace(values={**ran.whole.values, **values}, scope=SCOPE)
    first = next(one for one in ran.instances if one is not None)
    place: dict[str, Any] = {"part": RUNS, **({"direction": direction} if direction else {}), "instances": instances}
    return Result(
        id=f"{first.id}/sum",
        test=test,
        method=first.method,
        configuration=configuration,
        run=first.run,
        scope=SCOPE,
        parameters=place if first.run is not None else {**place, "run": ran.run},
        values={**values},
        verdict=max((one.verdict for one in ran.instances if one is not None), key=list(Verdict).index),
    )
