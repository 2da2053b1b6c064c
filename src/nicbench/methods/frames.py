"""Frames: how many editors can one server feed? (docs/studies.md).

The study of a published report (2022), which compared one 100 Gb/s port with a bond of four of 25 Gb/s. Steps, for each
direction and each number of instances: what was written before is removed, the commands of the bench file are run, the
servers of the DUT's shares restarted, the caches dropped; a pause; then the instances at once, processes of which each
writes or reads frames of film in a directory of its own, one file a frame, held to a number of frames a second. The
frames that are read are written beforehand. Verified: a read compares the stamp of every 4096 bytes; a frame that is
not complete when it is due is a dropped one, and counts from when it was due; a server that ends during a round makes
it invalid. Deviation from the published study: its limiter let through 5 % too much, this one is exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from nicbench.core.base import WorkloadChoice
from nicbench.core.lists import grouped, without_none
from nicbench.core.reading import Times
from nicbench.core.result import Result
from nicbench.core.result import ResultVerdict as Verdict
from nicbench.core.round import FrameFigures, JobSpec, MachineCpu, Round
from nicbench.core.table import Column, ImportColumn, ImportShare, ImportStatistics, ImportTable, ResultTable
from nicbench.core.units import count_of, format_bits_per_s
from nicbench.methods._media import (
    WORKLOAD,
    Doing,
    FramesOptions,
    Seat,
    assign_seats,
    can_restart,
    job_spec_of,
    preparation_of,
    round_request,
    round_s,
    task_of,
)
from nicbench.methods._round_figures import (
    CLIENT_OWN_CPU,
    SERVER_OWN_CPU,
    SILENT,
    PlayedRounds,
    bond_failure_misfits,
    cpu_values,
    failure_misfits,
    failure_objection,
    failure_values,
    mean,
    monitored_cpu,
    note_of_jobs,
    port_of_job,
    silence_of_job,
)
from nicbench.methods._tail import time_values
from nicbench.methods.base import Misfit, Objection, RoundContext, RoundMethod, Values
from nicbench.stats.frames import (
    BYTES,
    INSTANCES,
    RATE,
    RUNS,
    SUM,
    SUMMARY,
    TARGET,
    FilmRun,
    Instance,
    RunFigures,
    Target,
    figures_of_run,
    group_by_point,
)
from nicbench.stats.limits import MovedData, limit_of

# Computes results from a round of instances: for each instance, and for all of them together.


_FASTER_THAN_LINK = 1.02
"""The factor of the link rate above which frames cannot have come over the link."""


def target_of(options: FramesOptions) -> Target | None:
    """Returns the target rate and its tolerance; None without a target."""
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
        moved, link = _moved_bits_per_s(name, seats, figures_of(one), one), links.get(name)
        if link is not None and moved > _FASTER_THAN_LINK * link:
            yield name, moved, link


def _moved_bits_per_s(client: str, seats: Sequence[Seat], figures: Sequence[FrameFigures | None], one: Round) -> float:
    """Returns what a client read or wrote, whichever is more: a link carries as much each way."""
    of_task = defaultdict[str, float](float)
    for seat, each, job in zip(seats, figures, one.request.jobs, strict=True):
        if seat.client == client and each is not None and job.ask.frames is not None:
            of_task[job.ask.frames.task] += each.bytes_per_s
    return 8.0 * max(of_task.values(), default=0.0)


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
    known = without_none(figures)
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


def _time_values(name: str, parts: Sequence[Times | None]) -> Values:
    """Returns percentiles over every frame of the instances; empty where one of them has no times."""
    known = without_none(parts)
    return time_values(name, known) if known and len(known) == len(parts) else {}


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
                bits_per_s=_moved_bits_per_s(name, seats, figures, one),
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
    by_test = grouped((result.test, result) for result in results if result.parameters.get("part") in (RUNS, INSTANCES))
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


# Tables and imported columns of media frames, for instances and for their sums.


_DIRECTION: Final = Column("direction", "Direction", form="text")
_INSTANCES: Final = Column("instances", "Instances", form="whole")
_UNIT: Final = "fps"
_DROPPED: Final = (
    Column("dropped_frames", "Frames dropped", form="whole"),
    Column("due_frames", "of frames due", form="whole"),
)


def _rate(value: str, head: str, *, is_main: bool = False) -> Column:
    return Column(value, head, unit=_UNIT, form="trimmed", is_main=is_main, better="higher", adjective="fast")


def _time(value: str, head: str) -> Column:
    return Column(f"{value}_ns", head, unit="ms", form="milliseconds")


_COMPLETION: Final = (
    _time("completion_p50", "Completion, median"),
    _time("completion_p99", "p99"),
    _time("completion_maximum", "greatest"),
    _time("lateness_p99", "Lateness, p99"),
    _time("lateness_maximum", "greatest"),
)
_BYTES: Final = Column(BYTES, "Bytes", unit="MB/s", form="megabytes")

TABLES: Final = (
    ResultTable(
        part=RUNS,
        editors=True,
        has_basis=False,
        title="Frames: all instances of a run together",
        caption=(
            "Completion is the time to open, move and close a frame; lateness is how long after its time a frame was "
            "complete. MB/s are 10⁶ bytes. Of several runs: the median, with the lowest and the highest beneath it."
        ),
        columns=(
            _DIRECTION,
            _INSTANCES,
            _rate(SUM, "Sum", is_main=True),
            *_COMPLETION,
            SERVER_OWN_CPU,
            Column("server_cpu_mean_percent", "Server's CPU, mean", unit="%", form="number"),
            CLIENT_OWN_CPU,
            Column("client_cpu_mean_percent", "Clients' CPU, mean", unit="%", form="number"),
            Column("limited_by", "Limited by", form="text"),
            _rate("average_frames_per_s", "Average of an instance"),
            _rate("standard_deviation_frames_per_s", "Std. Deviation (population)"),
            _rate("minimum_frames_per_s", "Least"),
            _rate("maximum_frames_per_s", "Greatest"),
            _BYTES,
            *_DROPPED,
        ),
    ),
    ResultTable(
        part=INSTANCES,
        editors=True,
        has_basis=False,
        title="Frames: each instance",
        caption="As in the table before, of one instance. CPU of a frame is that of its process and the kernel for it.",
        columns=(
            _DIRECTION,
            _INSTANCES,
            Column("instance", "Instance", form="whole"),
            Column("client", "Client", form="text"),
            Column("directory", "Folder", form="text"),
            _rate(RATE, "Rate", is_main=True),
            _BYTES,
            *_DROPPED,
            *_COMPLETION,
            Column("cpu_per_frame_ns", "CPU of a frame"),
            Column("task", "Task", form="text", is_optional=True),
            Column("engine", "Engine", form="text"),
            Column("bond_port", "Port of the bond", form="text", is_optional=True),
            SILENT,
        ),
    ),
    ResultTable(
        part="summary",
        has_basis=False,
        title="Frames: what the source prints over its runs",
        caption="Over all runs, of the sums of their instances.",
        columns=(
            _DIRECTION,
            _INSTANCES,
            _rate("average_frames_per_s", "Average", is_main=True),
            _rate("median_frames_per_s", "Median", is_main=True),
            _rate(TARGET, "Target"),
            _rate("standard_deviation_frames_per_s", "Std. Deviation"),
        ),
    ),
)


MOST_INSTANCES: Final = 100_000
"""The largest plausible number of instances, more than any server has; a greater number is a mistake of the file."""

_STATISTICS: Final = {
    "average_frames_per_s": ("average", "mean"),
    "median_frames_per_s": ("median",),
    "standard_deviation_frames_per_s": ("standard deviation", "std deviation", "stdev", "deviation"),
    "minimum_frames_per_s": ("minimum", "min", "least"),
    "maximum_frames_per_s": ("maximum", "max", "greatest"),
}


def _place(value: str, *, most: int | None = None, is_required: bool = False) -> ImportColumn:
    return ImportColumn(
        value,
        value,
        "count",
        tells_apart=True,
        is_required=is_required,
        may_be_empty=not is_required,
        is_above_zero=True,
        most=most,
    )


_ROLES: Final = {
    "average": "average_frames_per_s",
    "median": "median_frames_per_s",
    "deviation": "standard_deviation_frames_per_s",
    "minimum": "minimum_frames_per_s",
    "maximum": "maximum_frames_per_s",
}
_OF_INSTANCES: Final = {"parts": "instances", "place": "instance", "number": "instances", "of": "run"}

IMPORTS: Final = ImportTable(
    columns=(
        ImportColumn(RATE, "rate", "media_rate", also=("fps", "instance rate")),
        ImportColumn(SUM, "sum", "media_rate", also=("fps sum", "sum of rates")),
        *(ImportColumn(value, names[0], "media_rate", also=names[1:]) for value, names in _STATISTICS.items()),
        ImportColumn(TARGET, "target", "media_rate", is_above_zero=True),
        ImportColumn("dropped_frames", "dropped frames", "count", also=("dropped", "frames dropped")),
        ImportColumn("due_frames", "due frames", "count", also=("due", "frames due")),
        ImportColumn("direction", "direction", "text", tells_apart=True, words=("read", "write")),
        _place("instances", most=MOST_INSTANCES, is_required=True),
        _place("run"),
        _place("instance", most=MOST_INSTANCES),
    ),
    any_of=(RATE, SUM, TARGET, *_STATISTICS),
    rising=(
        ("dropped_frames", "due_frames"),
        ("instance", "instances"),
        *((_ROLES["minimum"], _ROLES[middle], _ROLES["maximum"]) for middle in ("average", "median")),
    ),
    statistics=(
        ImportStatistics(part=RATE, total=SUM, **_OF_INSTANCES, **_ROLES),
        ImportStatistics(part=SUM, parts="runs", place="run", below=("instance",), **_ROLES),
        ImportStatistics(part="dropped_frames", total="dropped_frames", **_OF_INSTANCES),
        ImportStatistics(part="due_frames", total="due_frames", **_OF_INSTANCES),
    ),
    same_shares=(
        ImportShare(
            value=TARGET,
            place="instance",
            number="instances",
            among=("direction",),
            hint=(
                "a target is of all instances of its row together, on the row of an instance of that one; studies of "
                "several targets are told apart by --configuration COLUMN or chosen by --where COLUMN=VALUE"
            ),
        ),
    ),
    caption="Frames of film each second: of an instance, of all instances of a run, or over the runs.",
)


def frames_of_import(parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
    """Adds the ``part`` that an imported row belongs to: an instance, a run, or the summary of runs."""
    of_a_run = "run" in parameters or values.get(SUM) is not None
    part = INSTANCES if "instance" in parameters else RUNS if of_a_run else SUMMARY
    return {**parameters, "part": part}, values


_DOING: Final = {"read": "reading", "write": "writing", "both": "reading and writing"}


class Frames(RoundMethod):
    """Frames of film that instances read or write at once, each in a directory of its own, against a target rate."""

    kind = "frames"
    question = "How many editors or recorders does {subject} serve at once, each at its frame rate?"
    runs_servers = False
    Options = FramesOptions
    options: FramesOptions

    def points(self) -> int:
        return len(self.options.direction) * len(self.options.instances)

    def estimate_s(self) -> float:
        """Returns an estimate without the time to write the frames that are read, which is not known in advance."""
        every = sum(round_s(self.options, instances) for instances in self.options.instances)
        return len(self.options.direction) * every

    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        choice = WorkloadChoice(kind=WORKLOAD)
        tasks = dict.fromkeys(task_of(doing, number) for doing in self.options.direction for number in (1, 2))
        return tuple((choice, job_spec_of(self.options, task, "/", 1)) for task in tasks)

    def find_misfits(self, clients: Mapping[str, Sequence[str]], hosts: Sequence[str]) -> Iterator[Misfit]:
        """Yields misfits for clients and hosts that do not exist."""
        names = [name for of_port in clients.values() for name in of_port]
        for place in self.options.directories or ():
            if place.client is not None and place.client not in names:
                step = f"write one of {', '.join(f'`{name}`' for name in names)}"
                message = f"there is no port of a client called `{place.client}`"
                yield Misfit(option=("directories",), message=message, next_step=step)
        for command in self.options.before_each:
            if command.host not in hosts:
                step = f"write one of {', '.join(f'`{name}`' for name in hosts)}"
                message = f"there is no host `{command.host}`"
                yield Misfit(option=("before_each",), message=message, next_step=step)
        yield from failure_misfits(self.options.failure, clients)

    def find_bond_misfits(self, links: Mapping[str, int | None]) -> Iterator[Misfit]:
        yield from bond_failure_misfits(self.options.failure, links)

    def share_count(self) -> int:
        return 0 if self.options.directories is not None else max(self.options.instances)

    def objection(self, context: RoundContext) -> Objection | None:
        if self.options.restart_servers and not can_restart(context):
            kinds = ", ".join(sorted({mount.kind for mount in context.mounts}))
            why = f"mounts of {kinds} do not survive it" if kinds else "the DUT serves none of them"
            return Objection(
                message=f"the servers of the shares cannot be restarted before each round: {why}",
                next_step="leave `restart_servers` out, or write what restarts them into `before_each`",
            )
        wanted, there = self.share_count(), len(context.mounts)
        if wanted <= there:
            return failure_objection(self.options.failure, context)
        if not there:
            return Objection(
                message="nobody says where frames are to be: the DUT serves no shares, and `directories` is not given",
                next_step="write `directories: /mnt/d{instance}`, or `dut: {kind: file-server, shares: N}`",
            )
        return Objection(
            message=f"{wanted} instances are asked for, and the DUT serves {there} shares",
            next_step=f"write `shares: {wanted}` under `dut`, or fewer `instances`",
        )

    async def results(self, context: RoundContext) -> AsyncIterator[Result]:
        everyone = assign_seats(self.options.directories, max(self.options.instances), context)
        context.prepare(preparation_of(self.options, self.name, everyone, context))
        for direction in self.options.direction:
            for instances in self.options.instances:
                for result in await self._play(context, direction, everyone[:instances]):
                    yield result

    async def _play(self, context: RoundContext, direction: Doing, working: Sequence[Seat]) -> tuple[Result, ...]:
        point = {"part": "runs", "direction": direction, "instances": len(working)}
        played = PlayedRounds()
        asked = round_request(self.options, self.name, direction, working, context)
        played.add(await context.play({"direction": direction, "instances": len(working)}, asked))
        (one,) = played.rounds
        values, run = run_values(one, working, self.options, context)
        figures = believed_figures(one, working, context)
        beyond = explain_beyond_links(one, working, context)
        whole = self._result(played, point, values, beyond, is_known=run.sum_frames_per_s is not None)
        return (whole, *self._instances(played, figures, beyond, direction, working))

    def _instances(
        self,
        played: PlayedRounds,
        every: Sequence[FrameFigures | None],
        beyond: Sequence[str],
        direction: Doing,
        working: Sequence[Seat],
    ) -> Iterator[Result]:
        target, (one,) = target_of(self.options), played.rounds
        for job, (seat, figures) in enumerate(zip(working, every, strict=True), 1):
            where: Values = {"file_system": one.outcomes[job - 1].file_system}
            if direction == "both":
                where["task"] = _DOING[task_of(direction, seat.instance)]
            yield self._result(
                played,
                parameters_of(seat, direction, len(working)),
                {**instance_values(figures, target), **where, **port_of_job(one, job), **silence_of_job(one, job)},
                beyond if figures is None else (),
                is_known=figures is not None,
            )

    def _result(
        self, played: PlayedRounds, point: dict[str, Any], values: Values, beyond: Sequence[str], *, is_known: bool
    ) -> Result:
        place = (
            self.name,
            point["direction"],
            point["instances"],
            *([point["instance"]] if "instance" in point else []),
        )
        return played.result(
            self,
            "/".join(map(str, place)),
            f"instance {point['instance']}" if "instance" in point else SCOPE,
            point,
            values,
            failed=not is_known,
            contradictions=beyond,
        )

    @classmethod
    def main_values(cls, result: Result) -> tuple[str, ...]:
        """Returns the values that runs are repeated for: those of all instances together."""
        return ("sum_frames_per_s",) if result.parameters.get("part") == "runs" else ()

    @classmethod
    def add_run_results(cls, results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Adds the sum of a run where a source prints only the rates of instances."""
        return (*(result for result in results if result.parameters.get("part") != RUNS), *sums_of_runs(results))

    @classmethod
    def describe_circumstances(cls, parameters: Mapping[str, Any]) -> str:
        """Describes the circumstances, such as "reading, with 10 instances"."""
        doing = _DOING.get(str(parameters.get("direction")))
        instances = parameters.get("instances")
        many = None if instances is None else f"with {count_of(instances, 'instance')}"
        one = f"instance {parameters['instance']}" if "instance" in parameters else None
        return ", ".join(text for text in (doing, many, one) if text)

    @classmethod
    def tables(cls) -> tuple[ResultTable, ...]:
        return TABLES

    @classmethod
    def imports(cls) -> ImportTable:
        return IMPORTS

    @classmethod
    def from_import(cls, parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
        return frames_of_import(parameters, values)
