"""What a watched machine transferred over time, from monitor.parquet: bytes through its interfaces and its drives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from nicbench.core.lists import grouped
from nicbench.core.machine import MonitorCost, MonitorPlan
from nicbench.core.plan import Plan
from nicbench.core.round import CpuUser, MachineCpu, Round
from nicbench.stats.cpu import BUSY, CpuStates, Utilisation, add_times, greatest, utilisation
from nicbench.store import monitor_samples

_MOST: Final = 6
"""The most interfaces, and the most drives, that are drawn and described: those that transferred most."""


class Kind(NamedTuple):
    """A kind of transfer. ``of`` is the word for what it goes through; ``ways`` maps the metric of each direction to
    the word for that direction.
    """

    name: str
    of: str
    ways: Mapping[str, str]


KINDS: Final = (
    Kind("Network", "interface", {"receive_bytes": "received", "transmit_bytes": "sent"}),
    Kind("Drives", "drive", {"disk_read_bytes": "read", "disk_written_bytes": "written"}),
)
MOVED: Final = tuple(metric for kind in KINDS for metric in kind.ways)


class Step(NamedTuple):
    """Bytes within one interval, whose begin and end are seconds since the recording began."""

    begin_s: float
    end_s: float
    moved_bytes: int

    @property
    def bytes_per_s(self) -> float:
        """The mean rate over the interval."""
        return self.moved_bytes / (self.end_s - self.begin_s)


class Flow(NamedTuple):
    """One direction through one interface or drive; rates are bytes/s."""

    name: str
    steps: tuple[Step, ...]

    @property
    def mean_bytes_per_s(self) -> float:
        """The mean rate over all intervals."""
        return sum(each.moved_bytes for each in self.steps) / sum(each.end_s - each.begin_s for each in self.steps)

    @property
    def greatest_bytes_per_s(self) -> float:
        """The rate of the interval with the highest rate."""
        return max(each.bytes_per_s for each in self.steps)

    @property
    def moved_bytes(self) -> int:
        """The bytes of all intervals."""
        return sum(each.moved_bytes for each in self.steps)


class MovedData(NamedTuple):
    """All transfers of one kind on one machine. ``others`` is the number of interfaces or drives that are left out,
    ``idle`` has the names of those that transferred nothing.
    """

    kind: Kind
    flows: tuple[Flow, ...]
    others: int = 0
    idle: tuple[str, ...] = ()


def moved_data(columns: Mapping[str, Sequence[object]], host: str) -> tuple[MovedData, ...]:
    """Returns what one machine transferred, of each kind that was recorded; ``columns`` are those of
    monitor.parquet.
    """
    names = ("host", "metric", "of", "at_s", "interval_ns", "value")
    steps = grouped(
        ((str(metric), str(of)), Step(float(str(at_s)) - int(str(width_ns)) / 1e9, float(str(at_s)), int(str(value))))
        for of_host, metric, of, at_s, width_ns, value in zip(*(columns[name] for name in names), strict=True)
        if of_host == host and value is not None and int(str(width_ns)) > 0
    )
    return tuple(_of_kind(kind, steps) for kind in KINDS if any(metric in kind.ways for metric, _ in steps))


def _of_kind(kind: Kind, steps: Mapping[tuple[str, str], Sequence[Step]]) -> MovedData:
    amounts: Counter[str] = Counter()
    for (metric, of), each in steps.items():
        if metric in kind.ways:
            amounts[of] += sum(step.moved_bytes for step in each)
    busy = sorted((of for of, amount in amounts.items() if amount), key=lambda of: (-amounts[of], of))
    flows = (
        Flow(f"{of}, {way}", tuple(steps[metric, of]))
        for of in busy[:_MOST]
        for metric, way in kind.ways.items()
        if (metric, of) in steps
    )
    idle = sorted(of for of, amount in amounts.items() if not amount)
    return MovedData(kind, tuple(flows), max(0, len(busy) - _MOST), tuple(idle))


_SENT, _USED, _POSSIBLE = "link_transmit_bytes", "link_used_flits", "link_possible_flits"
LINKS: Final = (_SENT, _USED, _POSSIBLE)


class MeanAndGreatest(NamedTuple):
    """The mean over a phase, and the greatest value of one sample."""

    mean: float
    greatest: float


class SocketLinks(NamedTuple):
    """All links of one socket during one phase, in the direction away from it.

    ``sent_bytes_per_s`` is data alone. ``used`` is the share, 0 to 1, of the flits that the links could have carried,
    of data and of all else; None where the processor does not tell it.
    """

    phase: str
    socket: str
    sent_bytes_per_s: MeanAndGreatest
    used: MeanAndGreatest | None


def socket_links(
    columns: Mapping[str, Sequence[object]], host: str, phase_of: Callable[[str | None], str]
) -> tuple[SocketLinks, ...]:
    """Returns a row for each phase and socket, in the order of the recording, the time between trials last.

    ``columns`` are those of monitor.parquet. ``phase_of`` returns the phase to which the id of a trial belongs, None
    being the time between trials.
    """
    samples: dict[tuple[str, str], dict[tuple[object, object], dict[str, float]]] = {}
    names = ("host", "session", "at_s", "interval_ns", "trial", "of", "metric", "value")
    for of_host, session, at_s, interval_ns, trial, of, metric, value in zip(
        *(columns[name] for name in names), strict=True
    ):
        if of_host == host and value is not None:
            place = phase_of(None if trial is None else str(trial)), str(of)
            sample = samples.setdefault(place, {}).setdefault((session, at_s), {_DURATION: int(str(interval_ns)) / 1e9})
            sample[str(metric)] = float(str(value))
    rows = [
        SocketLinks(phase, socket, sent, _ratio(at.values(), _USED, _POSSIBLE))
        for (phase, socket), at in samples.items()
        if (sent := _ratio(at.values(), _SENT, _DURATION))
    ]
    return tuple(sorted(rows, key=lambda row: row.phase == phase_of(None)))


_DURATION: Final = "duration_s"


def _ratio(samples: Iterable[Mapping[str, float]], part: str, whole: str) -> MeanAndGreatest | None:
    known = [(each[part], each[whole]) for each in samples if part in each and each.get(whole)]
    if not known:
        return None
    mean = sum(one for one, _ in known) / sum(of for _, of in known)
    return MeanAndGreatest(mean, max(one / of for one, of in known))


USERS: Final = MappingProxyType(
    {"own": "the test", "kernel": "the kernel", "nicbench": "nicbench", "stranger": "a stranger"}
)


class ProgramRow(NamedTuple):
    """A program of a machine: its mean share over all rounds and its greatest in one; 0..1 of all CPUs."""

    name: str
    user: CpuUser
    mean: float
    greatest: float


class CpuUsers(NamedTuple):
    """One machine: means over all rounds, weighted by their time, as shares 0..1 of all CPUs; None is unknown."""

    machine: str
    shares: Mapping[str, float | None]
    """By what used them (``SHARES``); ``pressure`` is the share of the time in which tasks waited."""
    programs: tuple[ProgramRow, ...]


SHARES: Final = ("own", "kernel", "nicbench", "strangers", "idle", "steal", "pressure")


def list_cpu_users(rounds: Iterable[Round]) -> tuple[CpuUsers, ...]:
    """Returns a row for each machine whose programs were distinguished in any round; warm-ups do not count."""
    seen = grouped(
        (cpu.machine, (max(one.measured_s, 1e-9), cpu))
        for one in rounds
        for cpu in one.cpu
        if cpu.own is not None and not one.warm_up
    )
    return tuple(_machine(machine, parts) for machine, parts in seen.items())


def _machine(machine: str, parts: Sequence[tuple[float, MachineCpu]]) -> CpuUsers:
    def mean_of(share: str) -> float | None:
        known = [(weight, value) for weight, cpu in parts if (value := getattr(cpu, share)) is not None]
        return sum(weight * value for weight, value in known) / sum(weight for weight, _ in known) if known else None

    # A round in which a program is not among the ten greatest counts as none.
    seen = grouped(((row.user, row.name), (weight, row.share)) for weight, cpu in parts for row in cpu.processes)
    whole = sum(weight for weight, _ in parts)
    programs = [
        ProgramRow(name, user, sum(weight * share for weight, share in each) / whole, max(share for _, share in each))
        for (user, name), each in seen.items()
    ]
    shares = {share: mean_of(share) for share in SHARES}
    return CpuUsers(machine, shares, greatest(programs, lambda row: row.mean))


METRICS = {f"cpu_{state}_ns": state for state in (*BUSY, "idle", "iowait", "steal")}
BETWEEN = "between trials"
RECORDING = "recording"
_UNFINISHED = "a trial that was not finished"
_SHORTEST_NS = 100_000_000
"""Ten ticks of the kernel; the share of a shorter sample is too coarse to be a minimum or maximum."""
_MOST_ALONE = 4
"""The most CPUs that are shown one by one; of more, those that measure are shown, and the others together."""


class Slice(NamedTuple):
    """One sample of one CPU, or of several together, from ``begin_s`` to ``end_s`` of the run."""

    begin_s: float
    end_s: float
    trial: str | None
    spent: CpuStates


class CpuRow(NamedTuple):
    """One CPU, or several together, over one phase."""

    name: str
    busy: Utilisation
    softirq: Utilisation | None
    steal: Utilisation | None
    """None where the recording does not have it."""


class PhaseTable(NamedTuple):
    """One phase: the trials of a test, those of the calibration, or the time between trials."""

    name: str
    duration_s: float
    rows: tuple[CpuRow, ...]


class Span(NamedTuple):
    """Consecutive trials of one phase, in the time of the run."""

    name: str
    begin_s: float
    end_s: float


class WatchedMachine(NamedTuple):
    """One machine, and what its monitor recorded."""

    host: str
    plan: MonitorPlan | None
    cost: MonitorCost | None
    series: Mapping[str, Sequence[Slice]]
    """The samples that are drawn, by the name of a CPU, or of several together."""
    spans: tuple[Span, ...]
    phases: tuple[PhaseTable, ...]
    samples: int
    what: str = "trials"
    """What the monitor watched: trials, rounds, or a recording that an import brought."""
    moved: tuple[MovedData, ...] = ()
    """For a recording: what went through interfaces and drives."""
    links: tuple[SocketLinks, ...] = ()
    """What sockets sent each other, where the processor counts it."""


def watched_machines(
    folder: Path, plan: Plan | None, phases: Mapping[str, str], what: str = "trials"
) -> tuple[WatchedMachine, ...]:
    """Returns what the monitors recorded of each machine; nothing where no monitor recorded anything. ``phases`` maps
    the id of each trial to the name of its phase. ``what`` is what the run consists of: trials, or rounds.
    """
    plans = {each.host: each for each in (plan.monitors if plan else ())}
    recorded = {host for host, each in plans.items() if each.recorder is not None}
    monitored = monitor_samples.read(folder, (*METRICS, *LINKS, *(MOVED if recorded else ())))
    if monitored is None:
        return ()
    import pyarrow as pa  # imported here, as few tables are watched
    import pyarrow.compute as pc

    rows = monitored.table

    def columns_of(metrics: Iterable[str]) -> dict[str, list[object]]:
        columns: dict[str, list[object]] = rows.filter(pc.is_in(rows["metric"], pa.array(list(metrics)))).to_pydict()
        return columns

    by_host, links, moved = _slices(columns_of(METRICS)), columns_of(LINKS), columns_of(MOVED)

    def phase_of(trial: str | None) -> str:
        return _in_words(_phase(trial, phases), what)

    return tuple(
        _view(
            host,
            by_host.get(host, {}),
            plans.get(host),
            monitored.costs.get(host),
            plan,
            phases,
            RECORDING if host in recorded else what,
            moved_data(moved, host) if host in recorded else (),
            socket_links(links, host, phase_of),
        )
        for host in dict.fromkeys([*by_host, *recorded])
    )


Cpus = dict[str, list[Slice]]


def _slices(columns: Mapping[str, list[object]]) -> dict[str, Cpus]:
    """Returns the samples of each CPU of each host, in order. Sessions follow one another without the time between
    them.
    """
    hosts: dict[str, Cpus] = {}
    offset_s, last_s, last_session = 0.0, 0.0, None
    names = ("session", "host", "of", "at_s", "interval_ns", "trial", "metric", "value")
    rows = zip(*(columns[name] for name in names), strict=True)
    for (session, host, at_s, interval_ns, trial), members in groupby(
        rows, key=lambda row: (row[0], row[1], *row[3:6])
    ):
        if session != last_session:
            offset_s, last_session = last_s, session
        by_cpu: dict[str, dict[str, int]] = {}
        for _, _, of, _, _, _, metric, value in members:
            if value is not None:
                by_cpu.setdefault(str(of), {})[METRICS[str(metric)]] = int(str(value))
        end_s = offset_s + float(str(at_s))
        last_s = max(last_s, end_s)
        begin_s = end_s - int(str(interval_ns)) / 1e9
        for cpu, spent in by_cpu.items():
            one = Slice(begin_s, end_s, None if trial is None else str(trial), CpuStates(spent))
            hosts.setdefault(str(host), {}).setdefault(cpu, []).append(one)
    return hosts


def _view(
    host: str,
    cpus: Cpus,
    monitor: MonitorPlan | None,
    cost: MonitorCost | None,
    plan: Plan | None,
    phases: Mapping[str, str],
    what: str,
    moved: tuple[MovedData, ...],
    links: tuple[SocketLinks, ...],
) -> WatchedMachine:
    named = _name_cpus(cpus, plan)
    first = next(iter(named.values()), [])
    order = list(dict.fromkeys(_phase(each.trial, phases) for each in first))
    order.sort(key=lambda phase: phase == BETWEEN)
    tables = tuple(_table(phase, _in_words(phase, what), named, phases) for phase in order)
    return WatchedMachine(
        host, monitor, cost, named, _spans(first, phases), tables, len(first), what, moved=moved, links=links
    )


def _name_cpus(cpus: Cpus, plan: Plan | None) -> dict[str, list[Slice]]:
    """Returns the CPUs by name, with their roles; where there are many, those without a role in
    measuring are combined.
    """
    cores = plan.cores if plan else {}
    roles = {f"cpu{cores['worker']}": "tester"} if cores.get("worker") is not None else {}
    for number in cores.get("dut") or ():
        name = f"cpu{number}"
        roles[name] = f"{roles[name]} and DUT" if name in roles else "DUT"
    ordered = sorted(cpus, key=lambda name: (len(name), name))
    alone = ordered if len(ordered) <= _MOST_ALONE else [name for name in ordered if name in roles][:_MOST_ALONE]
    others = [name for name in ordered if name not in alone]
    found = {_title(name, roles): cpus[name] for name in alone}
    if others:
        together = zip(*(cpus[name] for name in others), strict=False)
        found[f"the other {len(others)} CPUs"] = [
            Slice(each[0].begin_s, each[0].end_s, each[0].trial, add_times(one.spent for one in each))
            for each in together
        ]
    return found


def _in_words(phase: str, what: str) -> str:
    """Returns the name of a phase in words that suit a run of trials, a run of rounds or a recording."""
    if what == RECORDING:
        return "the whole recording"
    said = {BETWEEN: "between rounds", _UNFINISHED: "a round that was not finished"}
    return said.get(phase, phase) if what == "rounds" else phase


def _title(name: str, roles: Mapping[str, str]) -> str:
    if name == "all":  # where the recording does not tell CPUs apart
        return "all CPUs"
    title = f"CPU {name.removeprefix('cpu')}"
    return f"{title}, {roles[name]}" if name in roles else title


def _phase(trial: str | None, phases: Mapping[str, str]) -> str:
    return BETWEEN if trial is None else phases.get(trial, _UNFINISHED)


def _table(phase: str, title: str, named: Mapping[str, list[Slice]], phases: Mapping[str, str]) -> PhaseTable:
    rows, duration_s = [], 0.0
    for name, slices in named.items():
        own = [each for each in slices if _phase(each.trial, phases) == phase]
        duration_s = max(duration_s, sum(each.end_s - each.begin_s for each in own))
        rows += [row] if (row := _row(name, own)) else []
    return PhaseTable(title, duration_s, tuple(rows))


def _row(name: str, slices: Sequence[Slice]) -> CpuRow | None:
    spent = [each.spent for each in slices]
    long = [each.spent for each in slices if each.end_s - each.begin_s >= _SHORTEST_NS / 1e9] or spent
    told = {state for each in spent for state in each.by_state}
    busy, softirq, steal = (
        _utilisation_over(spent, long, states) if told & set(states) else None
        for states in (BUSY, ("softirq",), ("steal",))
    )
    return CpuRow(name, busy, softirq, steal) if busy else None


def _utilisation_over(every: list[CpuStates], long: list[CpuStates], states: tuple[str, ...]) -> Utilisation | None:
    """Returns the mean of all samples, and the extremes of those that are long enough to have one."""
    whole, extremes = utilisation(every, states), utilisation(long, states)
    if whole is None or extremes is None:
        return None
    return Utilisation(extremes.minimum, whole.mean, extremes.maximum, extremes.samples)


def _spans(slices: Iterable[Slice], phases: Mapping[str, str]) -> tuple[Span, ...]:
    """Returns the spans in which trials were made, one for each trial."""
    found = []
    for trial, members in groupby(slices, key=lambda each: each.trial):
        own = list(members)
        if trial is not None:
            found.append(Span(phases.get(trial, _UNFINISHED), own[0].begin_s, own[-1].end_s))
    return tuple(found)
