"""A context that places the rounds of another method: servers on a NUMA node, with memory loads beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Final, Literal

from nicbench.core.cpus import NumaNode, RanOn, cpu_list
from nicbench.core.endpoint import EndpointFacts
from nicbench.core.result import Result
from nicbench.core.round import Job, JobOutcome, JobSpec, Placement, Preparation, Round, RoundRequest
from nicbench.core.verdict import Verdict
from nicbench.methods._round_figures import FIRST_PORT, PORTS_A_JOB
from nicbench.methods.base import RoundContext

Where = Literal["local", "remote", "balanced"]
_MOST_ASTRAY: Final = 0.05
"""The share of a process's pages that may be on another node: those allocated before its memory was bound."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The NUMA nodes of the measured machine, and the node of each of its ports."""

    nodes: tuple[NumaNode, ...]
    node_of_port: dict[str, int]

    def nodes_for(self, where: Where, port: str) -> tuple[NumaNode, ...]:
        """Returns the nodes for the processes of a port, in turn: its own, the others, or all of them.

        Balanced placement is over all nodes where all ports are on one node; otherwise, each port is served by its own.
        """
        own = tuple(node for node in self.nodes if node.number == self.node_of_port[port])
        others = tuple(node for node in self.nodes if node.number != self.node_of_port[port])
        if where == "remote":
            return others
        several = len(set(self.node_of_port.values())) > 1
        return own if where == "local" or several else (*own, *others)


class PlacedContext:
    """The context of the inner method; ``published`` are its results, ``pinning`` the check of each placement.

    ``unplaced`` has the rounds that were not played, as they have too few processes for all nodes, with the reason.
    """

    def __init__(self, outer: RoundContext, layout: Layout, where: Where, memory_loads: int) -> None:
        self.seed, self.servers, self.clients, self.nodes = outer.seed, outer.servers, outer.clients, outer.nodes
        self.mounts = outer.mounts
        self.own_folder = outer.own_folder
        self.published: list[Result] = []
        self.pinning: dict[str, tuple[bool, str]] = {}
        self.unplaced: dict[str, str] = {}
        self._outer = outer
        self._layout = layout
        self._where: Where = where
        self._memory_loads = memory_loads

    async def play(self, point: dict[str, Any], request: RoundRequest) -> tuple[Round, bool]:
        """Plays the round with placement and memory loads; it counts as disturbed where a process ran elsewhere.

        A round whose placement is impossible is not played: each of its jobs fails with the reason.
        """
        if (why := self._why_not_on_all(request)) is not None:
            one = _not_played(point, request, len(self.unplaced), why)
            self.unplaced[one.id] = why
            return one, False
        placed = request.replace(jobs=self._place_jobs(request))
        told = {**point, "nodes": self._where, "memory_loads": self._memory_loads}
        one, marked = await self._outer.play(told, placed)
        kept, text = pinning_of(one, self._layout.nodes)
        self.pinning[one.id] = (kept, text)
        return one, marked or not kept

    def publish(self, result: Result) -> None:
        self.published.append(result)

    def results_of(self, test: str) -> tuple[Result, ...]:
        return self._outer.results_of(test)

    def prepare(self, preparation: Preparation) -> None:
        self._outer.prepare(preparation)

    async def steer_interrupts(self, endpoint: str, cpus: tuple[int, ...] | None) -> None:
        await self._outer.steer_interrupts(endpoint, cpus)

    async def make_file(self, endpoint: str, folder: str, purpose: str, size_bytes: int, *, filled: bool) -> str:
        return await self._outer.make_file(endpoint, folder, purpose, size_bytes, filled=filled)

    async def remove_file(self, endpoint: str, path: str) -> None:
        await self._outer.remove_file(endpoint, path)

    def _place_jobs(self, request: RoundRequest) -> tuple[Job, ...]:
        turns = {port: cycle(self._layout.nodes_for(self._where, port)) for port in self._layout.node_of_port}
        jobs = tuple(
            job.replace(server_placement=_placement_at(next(turns[job.server]))) if job.server in turns else job
            for job in request.jobs
        )
        return (*jobs, *self._load_memory(request))

    def _why_not_on_all(self, request: RoundRequest) -> str | None:
        """Returns why a balanced round is none: a port with fewer processes than nodes does not use all of them."""
        if self._where != "balanced":
            return None
        for port in self._layout.node_of_port:
            nodes = len(self._layout.nodes_for(self._where, port))
            jobs = sum(job.server == port for job in request.jobs)
            if 0 < jobs < nodes:
                return (
                    f"balanced needs as many clients of a port at once as there are nodes: {port} has {jobs} for "
                    f"{nodes} nodes"
                )
        return None

    def _load_memory(self, request: RoundRequest) -> tuple[Job, ...]:
        """Returns jobs of STREAM on one node's CPUs with another node's memory, to keep the link between sockets busy.

        They use no CPUs of a local or remote process. For a balanced placement, each node has its share of them.
        """
        ports = tuple(self._layout.node_of_port)
        port = ports[0]
        used = {node.number for each in ports for node in self._layout.nodes_for(self._where, each)}
        free = [node for node in self._layout.nodes if node.number not in used] or list(self._layout.nodes)
        each = [
            self._memory_loads // len(free) + (number < self._memory_loads % len(free)) for number in range(len(free))
        ]
        duration_s = math.ceil(request.duration_s)
        return tuple(
            Job(
                workload="stress-ng",
                client=port,
                server=None,
                ask=JobSpec(operation="memory", duration_s=float(duration_s), streams=streams),
                port=FIRST_PORT + PORTS_A_JOB * (len(request.jobs) + number),
                role="memory",
                client_placement=Placement(cpus=node.cpus, memory_node=self._far_from(node).number),
            )
            for number, (node, streams) in enumerate(zip(free, each, strict=True))
            if streams
        )

    def _far_from(self, node: NumaNode) -> NumaNode:
        return next(other for other in self._layout.nodes if other != node)


def _not_played(point: dict[str, Any], request: RoundRequest, number: int, why: str) -> Round:
    """Returns what an inner method gets in place of a round; it is in no journal, and its id is no round's."""
    return Round(
        id=f"not-played-{number}", key="", test="", configuration="", parameters=point, repeat=0, request=request,
        verdict=Verdict(), outcomes=tuple(JobOutcome(failure=why, repeatable=False) for _ in request.jobs),
    )  # fmt: skip


def layout_of(servers: Sequence[EndpointFacts], nodes: tuple[NumaNode, ...]) -> Layout:
    """Returns the layout of the ports whose node is known; the method refuses the others."""
    return Layout(nodes, {end.name: end.numa_node for end in servers if end.numa_node is not None})


def pinning_of(one: Round, nodes: Sequence[NumaNode]) -> tuple[bool, str]:
    """Returns whether every server process ran in its place by its own /proc, and a description.

    A placement that is not known counts as not met.
    """
    told: dict[str, bool] = {}
    for job, outcome in zip(one.request.jobs, one.outcomes, strict=True):
        if job.server_placement != Placement() and outcome.failure is None:
            kept, text = _check_placement(job.server_placement, outcome)
            told[text] = told.get(text, True) and kept
    if not told:
        return True, "no server process was placed"
    return all(told.values()), "; ".join(told)


def _check_placement(asked: Placement, outcome: JobOutcome) -> tuple[bool, str]:
    was: RanOn | None = outcome.server_ran_on
    if was is None:
        return False, "where the server ran could not be read from /proc"
    place = f"CPUs {cpu_list(was.cpus)}"
    if asked.cpus is not None and not set(was.cpus) <= set(asked.cpus):
        return False, f"the server was allowed on {place}, not on {cpu_list(asked.cpus)} alone"
    if was.pages is None or not sum(was.pages.values()):
        return True, f"{place}, memory by its binding (no pages are told)"
    total = sum(was.pages.values())
    share = was.pages.get(asked.memory_node, 0) / total if asked.memory_node is not None else 1.0
    text = f"{place}, {100 * share:.0f} % of its memory on node {asked.memory_node}"
    return share >= 1 - _MOST_ASTRAY, text


def _placement_at(node: NumaNode) -> Placement:
    return Placement(cpus=node.cpus, memory_node=node.number)
