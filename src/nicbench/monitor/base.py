"""What a run sees of its monitors (``Monitors``), which it informs when a sample begins and ends; and their placement.

``WatchedTester`` tells them of trials, off which they keep.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from nicbench.core.frozen import frozen
from nicbench.core.machine import MonitorPlan, cpu_list
from nicbench.core.pattern import Way
from nicbench.core.reading import LearntFlows, PathChanges
from nicbench.core.round import MachineCpu
from nicbench.core.trial import Reading, TrialRequest
from nicbench.hosts.base import Host
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.labs.base import Testbed, TestHost
from nicbench.testbed.testers.base import During, Tester, TesterFacts


class Monitors(ABC):
    """All monitors of one turn of a run. Their failures are reported, and never end a run."""

    @abstractmethod
    async def begin_trial(self, number: int, duration_s: float | None) -> None:
        """A trial begins that takes about ``duration_s``, None where nobody knows: samples that follow are of it."""

    @abstractmethod
    async def end_trial(self) -> None:
        """The trial is over: the monitors take samples again."""

    @abstractmethod
    async def watch(self) -> None:
        """From now on whatever others change on the path of frames is noted; what was noted before is forgotten."""

    @abstractmethod
    async def changes(self) -> PathChanges | None:
        """What changed since ``watch``; nothing is noted any more. None where a part of the path is not watched."""

    @abstractmethod
    async def begin_round(self, number: int) -> None:
        """A round of workloads begins: samples that follow are of it, and go on through it."""

    @abstractmethod
    async def end_round(self) -> tuple[MachineCpu, ...]:
        """The round is over; how busy each machine was that is watched."""

    @abstractmethod
    async def close(self) -> None:
        """Takes the last sample and ends the monitors; never raises."""

    @property
    @abstractmethod
    def plans(self) -> tuple[MonitorPlan, ...]:
        """How each host is watched; empty where none is."""


class WatchedTester(Tester):
    """A tester that announces its trials to the monitors, so that each of their samples has its trial."""

    def __init__(self, tester: Tester, monitors: Monitors) -> None:
        self._tester = tester
        self._monitors = monitors

    async def start(self) -> TesterFacts:
        return await self._tester.start()

    async def learn(self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...]) -> frozenset[Way]:
        return await self._tester.learn(number, request, addressing)

    async def teach(
        self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...], frames_per_flow: int
    ) -> tuple[LearntFlows, ...]:
        return await self._tester.teach(number, request, addressing, frames_per_flow)

    async def trial(
        self,
        number: int,
        request: TrialRequest,
        addressing: tuple[Addressing, ...],
        during: During | None = None,
    ) -> Reading:
        await self._monitors.begin_trial(number, request.duration_s + request.drain_s + 2 * request.settle_s)
        try:
            return await self._tester.trial(number, request, addressing, during)
        finally:
            await self._monitors.end_trial()

    async def complete(self, reading: Reading, request: TrialRequest, addressing: tuple[Addressing, ...]) -> Reading:
        return await self._tester.complete(reading, request, addressing)

    async def close(self) -> None:
        await self._tester.close()


# Where a monitor runs, and what it does during a trial: off the measuring CPUs, or silent where there are too few.


@frozen
class Place:
    """``cpus`` to run on, none for any; ``paused`` during trials, and why or how in words."""

    cpus: tuple[int, ...]
    paused: bool
    during_trials: str


BESIDE_ROUNDS = Place((), False, "goes on beside the workloads; its share of the CPUs is stated")
"""For rounds, in which tools of any number use whatever CPU the kernel gives them."""


def place(online: Collection[int] | None, measuring: Collection[int]) -> Place:
    """``measuring`` are the CPUs of the tester's workers and of the DUT; None: which CPUs there are is not known."""
    if not measuring or online is None:
        return Place((), True, "silent: it is not known which CPUs measure")
    free = tuple(sorted(set(online) - set(measuring)))
    if not free:
        busy = ", ".join(map(str, sorted(measuring)))
        return Place((), True, f"silent: every CPU measures ({busy})")
    words = f"on CPU {free[0]}" if len(free) == 1 else f"on CPUs {cpu_list(free)}"
    return Place(free, False, f"{words}, which do{'es' if len(free) == 1 else ''} not measure")


def measuring_cpus(testbed: Testbed, dut_cpus: Collection[int], tester: Mapping[str, Any]) -> tuple[int, ...]:
    """``tester`` is what the tester says of itself, with its ``options``."""
    workers = worker_cpus(testbed, tester)
    return tuple(sorted(workers | set(dut_cpus) | set(testbed.cores.dut))) if workers else ()


def worker_cpus(testbed: Testbed, tester: Mapping[str, Any]) -> set[int]:
    """The CPUs of the tester's workers; ``tester`` as for ``measuring_cpus``."""
    options = tester.get("options") or {}
    workers = {int(worker["cpu"]) for worker in options.get("workers") or ()}
    alone = options.get("worker_cpu")
    if not workers:
        alone = alone if alone is not None else testbed.cores.worker
        workers = {int(alone)} if alone is not None else set()
    return workers


@dataclass
class Machine:
    """A machine behind hosts, on which one monitor runs."""

    host: Host
    namespaces: dict[str, str] = field(default_factory=dict)
    """Network namespaces on it, with the path of each."""
    watched: dict[str | None, WatchedNetwork] = field(default_factory=dict)
    """Networks on the path of frames by path; None: the machine's own."""


@dataclass
class WatchedNetwork:
    """A network in which changes are noted: ``names`` of its hosts, and the interfaces that count, none for all."""

    names: list[str]
    devices: list[str]


def machines(hosts: Collection[TestHost]) -> dict[str, Machine]:
    """The machines behind hosts, by name.

    A namespace shares all but its interfaces with the machine that it is on, and a container all but what it may use
    of it: one monitor tells of all. A network that is a container's alone cannot be entered, and is not watched.
    """
    found: dict[str, Machine] = {}
    names: dict[str, str] = {}
    for each in hosts:
        spec, namespaces, path, is_entered = each.host.spec(), dict[str, str](), None, True
        while "inner" in spec:
            network = str(spec.get("network", "host"))
            if spec.get("kind") == "netns":
                path = f"/run/netns/{spec['namespace']}"
                namespaces[str(spec["namespace"])] = path
            elif network.startswith("ns:"):
                path = network.removeprefix("ns:")
                namespaces[network.rpartition("/")[2]] = path
            elif network != "host":
                is_entered = False
            spec = spec["inner"]
        key = repr(sorted(spec.items()))
        own = each.host.machine.name
        name = names.get(key) or (f"{own} ({len(names) + 1})" if own in names.values() else own)
        names[key] = name
        machine = found.setdefault(name, Machine(each.host.machine))
        machine.namespaces.update(namespaces)
        # In a network that others use, what becomes of their interfaces is theirs.
        is_shared = path is None and not machine.host.made_here
        if is_entered and (each.devices or not is_shared):
            watched = machine.watched.setdefault(path, WatchedNetwork([], []))
            watched.names.append(each.name)
            watched.devices += each.devices if is_shared else ()
    return found
