"""CPU time: by state, by the programs that used it, and the share of its physical core that a CPU had."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

from nicbench.core.frozen import frozen
from nicbench.core.round import CpuUser, ProcessShare

# CPU time by state, and the share of it that was work (docs/studies.md).
#
# The kernel counts CPU time in ticks (10 ms on most machines): a share of one interval of 100 ms is exact to 10 %, of
# 1 s to 1 %. Over many intervals the error is that of the first and the last tick.


BUSY = ("user", "nice", "system", "irq", "softirq", "guest")
"""States in which a CPU works (proc(5)). The others are idle, iowait and steal (the hypervisor had taken it away)."""


@frozen
class CpuStates:
    """The time of one CPU, or of several added up, over one interval: nanoseconds by state."""

    by_state: Mapping[str, int]

    @property
    def total_ns(self) -> int:
        """The time in all states: the interval times the number of CPUs, to within a tick."""
        return sum(self.by_state.values())

    @property
    def busy_ns(self) -> int:
        """The time in the states in which a CPU works."""
        return sum(self.by_state.get(state, 0) for state in BUSY)

    def share(self, *states: str) -> float | None:
        """Returns the share of time in these states, 0..1; None where no time has passed."""
        total = self.total_ns
        return sum(self.by_state.get(state, 0) for state in states) / total if total > 0 else None


@frozen
class Utilisation:
    """Shares of time, 0..1: least and greatest of any interval, and the mean over all.

    ``mean`` is weighted by time, so that longer intervals count for more.
    """

    minimum: float
    mean: float
    maximum: float
    samples: int


def add_times(parts: Iterable[CpuStates]) -> CpuStates:
    """Adds up several CPUs, or several intervals."""
    sums: dict[str, int] = {}
    for part in parts:
        for state, time_ns in part.by_state.items():
            sums[state] = sums.get(state, 0) + time_ns
    return CpuStates(MappingProxyType(sums))


def utilisation(intervals: Iterable[CpuStates], states: Sequence[str] = BUSY) -> Utilisation | None:
    """Computes the share of time in ``states``; None where no time has passed in any interval."""
    known = [each for each in intervals if each.total_ns > 0]
    if not known:
        return None
    shares = [share for each in known if (share := each.share(*states)) is not None]
    mean = add_times(known).share(*states)
    if mean is None:
        return None
    return Utilisation(min(shares), mean, max(shares), len(shares))


# Who used the CPUs of a machine between two counts of its processes (docs/verdicts.md): pure arithmetic.
#
# The test's own programs are known by a mark in their environment, which what they start inherits. What a process used
# is known also after it has ended: the kernel adds it to its parent's account of ended children, and to that of its
# control group. Interrupts come on top of whatever runs: on most kernels they are part of the time of the process that
# they interrupted, and only those of idle CPUs are left over here.


ENDED: Final = "ended programs of the test"
INTERRUPTS: Final = "interrupts"
UNSEEN: Final = "programs that nicbench does not see"
"""Busy time that no process accounts for: of other containers' processes, or of what ended unobserved."""
_OUR_BINARIES: Final = ("nicbench-monito", "nicbench-agent")
"""As the kernel has their names: 15 characters."""
_LOOKS: Final = ("sh", "ss")
"""Shells and lists of sockets by which nicbench looks at a machine: no tool of a test has such a name. A tool that a
shell runs has its own name while it lives, and is the test's when it has ended.
"""
_CARRIERS: Final = ("sshd", "conmon")
"""Programs that start processes on behalf of nicbench, and whose ended children these are."""
_LEAST_UNSEEN_NS: Final = 50_000_000
_LEAST_UNSEEN_SHARE: Final = 0.02
"""Less than this may be of the kernel's ticks, of 10 ms each, and of counting one process after another."""
_ROUNDED_NS: Final = 20_000_000
"""User and system time are rounded down to a tick each."""
_MOST_ROWS: Final = 10
_LEAST_SHARE: Final = 0.0005
_BUSY: Final = ("user", "nice", "system", "irq", "softirq")

Key = tuple[int, int]


class _Row(Protocol):
    """A line of a table of programs."""

    @property
    def user(self) -> CpuUser: ...
    @property
    def name(self) -> str: ...


RowT = TypeVar("RowT", bound=_Row)


@frozen
class CountedProcess:
    """One process, as the monitor counted it. ``started`` tells it from a later process of the same number."""

    pid: int
    parent: int
    started: int
    name: str
    own_ns: int
    ended_ns: int = 0
    kernel: bool = False
    marked: bool = False
    group: str | None = None
    zombie: bool = False
    """Whether it has ended, and its parent has not waited for it yet; it has lost its environment, and so its mark."""
    cpu: int | None = None
    """The CPU that it last ran on."""

    @property
    def key(self) -> Key:
        return self.pid, self.started


@frozen
class Census:
    """Every process of a machine at one moment, with what each has used since it began; ``states`` is since boot."""

    taken_ns: int
    monitor: int
    parent: int
    cpus: int
    states: Mapping[str, int]
    processes: Mapping[Key, CountedProcess]
    groups: Mapping[str, int]
    pressure_some_ns: int | None = None


@frozen
class CpuUse:
    """Shares 0..1 of the time of all CPUs; they add up to 1, but for ticks, and for time that the kernel lost."""

    counted_s: float
    own: float
    kernel: float
    nicbench: float
    strangers: float
    idle: float
    steal: float
    pressure: float | None
    rows: tuple[ProcessShare, ...]


def parse_census(reply: Mapping[str, Any]) -> Census:
    """Parses the monitor's reply (protocol/monitor.md). KeyError, TypeError or ValueError for any other text."""
    counted = [
        CountedProcess(
            pid=int(each["pid"]),
            parent=int(each["parent"]),
            started=int(each["started"]),
            name=str(each["name"]),
            own_ns=int(each["own_ns"]),
            ended_ns=int(each["ended_ns"]),
            kernel=bool(each["kernel"]),
            marked=bool(each["marked"]),
            group=each.get("group"),
            zombie=bool(each["zombie"]),
            cpu=None if each.get("cpu") is None else int(each["cpu"]),
        )
        for each in reply["processes"]
    ]
    pressure = reply.get("pressure_some_ns")
    return Census(
        taken_ns=int(reply["taken_ns"]),
        monitor=int(reply["monitor"]),
        parent=int(reply["parent"]),
        cpus=int(reply["cpus"]),
        states={str(name): int(value) for name, value in reply["states"]},
        processes={each.key: each for each in counted},
        groups={str(each["path"]): int(each["usage_ns"]) for each in reply["groups"]},
        pressure_some_ns=None if pressure is None else int(pressure),
    )


def with_exact_children(census: Census, pid: int, ended_ns: int) -> Census:
    """The same count with the account of a process of ours, which the kernel tells itself without rounding it to ticks.

    Clients of this machine are children of the controller, and mostly have ended when processes are counted.
    """
    ours = next((one for one in census.processes.values() if one.pid == pid), None)
    if ours is None:
        return census
    exact = replace(ours, ended_ns=min(max(ended_ns, ours.ended_ns), ours.ended_ns + _ROUNDED_NS))
    return replace(census, processes={**census.processes, ours.key: exact})


@dataclass(slots=True)
class _Used:
    """What one process used between the counts: itself, and children that ended meanwhile."""

    process: CountedProcess
    user: CpuUser
    own_ns: int
    ended_ns: int
    ended_user: CpuUser
    cpu: int | None = None
    """The CPU on which it was at both counts, or since it began."""


def tell_apart(before: Census, after: Census) -> CpuUse | None:
    """Tells apart who used the CPUs between two counts; None where no time has passed between them."""
    took_ns = after.taken_ns - before.taken_ns
    whole_ns = took_ns * after.cpus
    if whole_ns <= 0:
        return None
    spent = {state: max(0, after.states[state] - before.states.get(state, 0)) for state in after.states}
    steal_ns = spent.get("steal", 0)
    # Idle time is exact, busy time is counted by ticks, in which whatever runs at a tick had all of it.
    idle_ns = min(whole_ns, spent.get("idle", 0) + spent.get("iowait", 0))
    busy_ns = max(0, whole_ns - idle_ns - steal_ns)
    used = _used(before, after)
    hidden_ns = _hidden_in_groups(before, after, used)
    interrupts_ns = spent.get("irq", 0) + spent.get("softirq", 0)
    known_ns = hidden_ns + sum(one.own_ns + one.ended_ns for one in used)
    left_ns = max(0, busy_ns - known_ns)
    interrupts_ns = min(left_ns, interrupts_ns)
    # The kernel must have counted it as work, too: on an emulated machine some of the time is in no state at all.
    ticks_ns = sum(spent.get(state, 0) for state in _BUSY)
    unseen_ns = max(0, min(left_ns, ticks_ns - known_ns) - interrupts_ns)
    if unseen_ns < max(_LEAST_UNSEEN_NS, _LEAST_UNSEEN_SHARE * whole_ns):
        unseen_ns = 0
    sums = _sum_up(used, hidden_ns)
    sums["kernel", INTERRUPTS] = (interrupts_ns, 1)
    sums["stranger", UNSEEN] = (unseen_ns, 1)
    on_cpus = _strangers_on_cpus(used)
    rows = [
        ProcessShare(
            user=user,
            name=name,
            share=ns / whole_ns,
            processes=count,
            on_cpus={
                cpu: cpu_ns / whole_ns
                for cpu, cpu_ns in sorted(on_cpus.get(name, {}).items())
                if user == "stranger" and cpu_ns >= _LEAST_SHARE * whole_ns
            },
        )
        for (user, name), (ns, count) in sums.items()
    ]
    some = None
    if before.pressure_some_ns is not None and after.pressure_some_ns is not None:
        some = max(0.0, (after.pressure_some_ns - before.pressure_some_ns) / took_ns)

    def share_of(user: CpuUser) -> float:
        return sum(row.share for row in rows if row.user == user)

    return CpuUse(
        counted_s=took_ns / 1e9,
        own=share_of("own"),
        kernel=share_of("kernel"),
        nicbench=share_of("nicbench"),
        strangers=share_of("stranger"),
        idle=idle_ns / whole_ns,
        steal=steal_ns / whole_ns,
        pressure=some,
        rows=greatest((row for row in rows if row.share >= _LEAST_SHARE), lambda row: row.share),
    )


def greatest(rows: Iterable[RowT], share_of: Callable[[RowT], float]) -> tuple[RowT, ...]:
    """The ten greatest, among them one of each user, so that many strangers do not hide the test."""
    known = sorted(rows, key=lambda row: (-share_of(row), row.name))
    firsts = [next(row for row in known if row.user == user) for user in dict.fromkeys(row.user for row in known)]
    others = [row for row in known if row not in firsts]
    chosen = (*firsts, *others[: _MOST_ROWS - len(firsts)])
    return tuple(sorted(chosen, key=lambda row: (-share_of(row), row.name)))


def _used(before: Census, after: Census) -> list[_Used]:
    """What each living process used, with children that ended; what these had used before is not of this time."""
    gone = {key: one for key, one in before.processes.items() if key not in after.processes}
    earlier_ns: dict[Key, int] = {}
    for one in gone.values():
        heir = _heir(one, before, after)
        if heir is not None:
            earlier_ns[heir] = earlier_ns.get(heir, 0) + one.own_ns + one.ended_ns
    users = _users(_with_known_marks(before, after), before)
    found = []
    for key, one in after.processes.items():
        was = before.processes.get(key)
        own_ns = one.own_ns - (was.own_ns if was else 0)
        ended_ns = one.ended_ns - (was.ended_ns if was else 0) - earlier_ns.get(key, 0)
        user, ended_user = users[key]
        stayed = one.cpu if was is None or was.cpu == one.cpu else None
        found.append(_Used(one, user, max(0, own_ns), max(0, ended_ns), ended_user, stayed))
    return found


def _with_known_marks(before: Census, after: Census) -> Census:
    """A process that ends has lost its mark, already before it is a zombie; it may have had it when processes were
    counted before.
    """
    known = {
        key: replace(one, marked=True)
        for key, one in after.processes.items()
        if not one.marked and key in before.processes and before.processes[key].marked
    }
    return replace(after, processes={**after.processes, **known}) if known else after


def _heir(one: CountedProcess, before: Census, after: Census) -> Key | None:
    """The nearest ancestor that still lives, to whom the account of an ended process went."""
    by_pid = {each.pid: each for each in before.processes.values()}
    seen = {one.pid}
    parent = by_pid.get(one.parent)
    while parent is not None and parent.pid not in seen:
        if parent.key in after.processes:
            return parent.key
        seen.add(parent.pid)
        parent = by_pid.get(parent.parent)
    return None


def _users(census: Census, before: Census) -> dict[Key, tuple[CpuUser, CpuUser]]:
    """Whom each process serves, and whom its ended children served."""
    by_pid = {one.pid: one for one in census.processes.values()}
    of_marked = {one.parent for one in census.processes.values() if one.marked}
    carriers = {census.parent} | {
        one.pid
        for one in census.processes.values()
        if one.pid in of_marked and not one.marked and one.name.startswith(_CARRIERS)
    }
    found: dict[Key, tuple[CpuUser, CpuUser]] = {}
    for one in census.processes.values():
        if one.kernel:
            found[one.key] = "kernel", "kernel"
        elif one.pid == census.monitor or (_is_own(one, by_pid) and one.name.startswith(_OUR_BINARIES)):
            found[one.key] = "nicbench", "nicbench"
        elif one.pid in carriers:
            found[one.key] = "nicbench", "own"
        elif one.name in _LOOKS and (_is_own(one, by_pid) or one.parent == census.parent):
            # Whatever the monitor's parent starts is ours, also while it ends and its mark cannot be read.
            found[one.key] = "nicbench", "nicbench" if _only_looks(one, before, census) else "own"
        elif _is_own(one, by_pid) or (one.zombie and one.parent in carriers):
            found[one.key] = "own", "own"
        else:
            found[one.key] = "stranger", "stranger"
    return found


def _only_looks(one: CountedProcess, before: Census, after: Census) -> bool:
    """Whether a shell started looks only: it has children that were counted, and each of them is a look."""
    counted = (*before.processes.values(), *after.processes.values())
    names = {each.name for each in counted if each.parent == one.pid}
    return bool(names) and names <= {*_LOOKS, "sleep"}


def _is_own(one: CountedProcess, by_pid: Mapping[int, CountedProcess]) -> bool:
    """Whether it or an ancestor is marked: a program may clear the environment of what it starts."""
    seen: set[int] = set()
    here: CountedProcess | None = one
    while here is not None and here.pid not in seen:
        if here.marked:
            return True
        seen.add(here.pid)
        here = by_pid.get(here.parent)
    return False


def _hidden_in_groups(before: Census, after: Census, used: Iterable[_Used]) -> int:
    """What ended in the test's containers: their groups know it. It is taken off whoever reaped it outside."""
    hidden_ns = 0
    for path, usage_ns in after.groups.items():
        members = [one for one in used if one.process.group == path]
        grown_ns = usage_ns - before.groups.get(path, usage_ns)
        hidden_ns += max(0, grown_ns - sum(one.own_ns + one.ended_ns for one in members))
    # The engine's own process of a container inherits it, or else the first process of the machine.
    reapers = [one for one in used if not one.process.marked and one.process.group is None and one.ended_ns]
    reapers.sort(key=lambda one: (not one.process.name.startswith(_CARRIERS), one.process.pid != 1, -one.ended_ns))
    left_ns = hidden_ns
    for one in reapers:
        taken_ns = min(left_ns, one.ended_ns)
        one.ended_ns -= taken_ns
        left_ns -= taken_ns
    return hidden_ns


def _strangers_on_cpus(used: Iterable[_Used]) -> dict[str, dict[int, int]]:
    """Time by name and CPU of strangers that stayed on one; where children ran that have ended is not known."""
    sums: dict[str, dict[int, int]] = {}
    for one in used:
        if one.user == "stranger" and one.cpu is not None and one.own_ns:
            by_cpu = sums.setdefault(one.process.name, {})
            by_cpu[one.cpu] = by_cpu.get(one.cpu, 0) + one.own_ns
    return sums


def _sum_up(used: Iterable[_Used], hidden_ns: int) -> dict[tuple[CpuUser, str], tuple[int, int]]:
    """Time and number of processes by user and name; what ended has the name of its parent, unless it is the test's."""
    sums: dict[tuple[CpuUser, str], tuple[int, int]] = {}

    def add(user: CpuUser, name: str, ns: int, count: int) -> None:
        before_ns, before_count = sums.get((user, name), (0, 0))
        sums[user, name] = before_ns + ns, before_count + count

    for one in used:
        add(one.user, one.process.name, one.own_ns, 1)
        if one.ended_ns:
            add(one.ended_user, ENDED if one.ended_user == "own" else one.process.name, one.ended_ns, 0)
    if hidden_ns:
        add("own", ENDED, hidden_ns, 0)
    return sums


# How much of its physical core a CPU had, look by look over a trial.
