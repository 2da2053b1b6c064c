"""NUMA placement: another method of workloads, with the server near to the adapter and far from it (docs/studies.md).

The measurement of the published report on an adapter that is shared by two sockets (2020): latency and bandwidth with
the process on the adapter's own socket (local), on the other (remote), and on both (balanced), without and with STREAM
memory loads that keep the link between the sockets busy. Steps, for each number of loads: the inner test with
everything remote, then the other places; its figures with their change against remote. Verified: where the server
process was, by its own ``/proc`` in the middle of each round (allowed CPUs, pages by node); a round in which it was
elsewhere is disturbed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, Final, Literal, Self

from pydantic import ValidationError, ValidationInfo, field_validator, model_validator

from nicbench.core.base import Distinct, Frozen, WorkloadChoice, why_of
from nicbench.core.frozen import frozen
from nicbench.core.judging import Verdict
from nicbench.core.machine import NumaNode, cpu_list
from nicbench.core.registry import find
from nicbench.core.result import Bounded, Result, ResultVerdict, Spread
from nicbench.core.round import EndpointFacts, Job, JobOutcome, JobSpec, Placement, Preparation, Round, RoundRequest
from nicbench.core.table import Bars, Column, ResultTable
from nicbench.methods._round_figures import FIRST_PORT, PORTS_A_JOB, SERVER_OWN_CPU
from nicbench.methods.base import Method, Misfit, Objection, RoundContext, RoundMethod, Values, tables_of

# A context that places the rounds of another method: servers on a NUMA node, with memory loads beside them.


Where = Literal["local", "remote", "balanced"]
_MOST_ASTRAY: Final = 0.05
"""The share of a process's pages that may be on another node: those allocated before its memory was bound."""


@frozen
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
        """Returns why a balanced round is impossible: a port with fewer processes than nodes cannot use all nodes."""
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
    """Returns what an inner method gets in place of a round; the journal does not have it, nor its id."""
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
    was = outcome.server_ran_on
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


REMOTE: Final = "remote"
_RATE: Final = "throughput_bits_per_s"
_LATENCIES: Final = (
    *("latency_mean_ns", "latency_p50_ns", "latency_p90_ns", "latency_p99_ns", "latency_p99_9_ns"),
    "latency_maximum_ns",
)
_REQUESTS: Final = "transactions_per_s"
_FIGURES: Final = (_RATE, _REQUESTS, *_LATENCIES)
_CPU_FIGURES: Final = ("server_cpu_own_percent", "server_cpu_mean_percent", "server_cpu_busiest_core_percent")
_CHANGE_HEAD: Final = "Change against remote"
_LATENCY: Final = Column("latency_mean_ns", "Latency, mean", is_optional=True)
_BASIS: Final = Column("latency_basis", "Latency of", form="text", is_optional=True)
_TRAFFIC: Final = Column("traffic", "Traffic", form="text", is_optional=True)


class PlacementMethod(RoundMethod):
    """The figures of another test, with the server's processes local to the adapter, remote from it, and on both."""

    kind = "placement"
    question = "What does it change for {subject} on which NUMA node its processes run?"

    class Options(Frozen):
        """Options of the bench file. ``of`` is the inner test, written as on its own, but without a name.

        ``memory_loads`` are the numbers of STREAM processes on the server. ``interrupts``: the interrupts of the ports
        follow the processes, or stay in place.
        """

        of: dict[str, Any]
        """The test, without a name: `{method: stream, duration: 10 s}`."""
        nodes: Distinct[Where] = ("local", "remote", "balanced")
        """Placements of the server's processes and their memory. `remote` is measured first. `balanced` is not played
        where a port has fewer clients at once than there are nodes, unless the ports are on several nodes.
        """
        memory_loads: Distinct[int] = (0, 5)
        """STREAM processes (stress-ng) on the server, on CPUs of one node with memory of another."""
        interrupts: Literal["stay", "follow"] = "stay"
        """`follow`: interrupts of the ports' queues go to the CPUs of the processes, and back after the test."""

        @field_validator("of", mode="after")
        @classmethod
        def _inner_is_a_test(cls, given: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
            kinds = _inner_kinds()
            method = given.get("method")
            if isinstance(method, str) and method in _ports_without_servers():
                raise ValueError(
                    f"`{method}` runs no process of a tool on the measured host that could be placed; "
                    f"write one of: {', '.join(kinds)}"
                )
            if not isinstance(method, str) or method not in kinds:
                raise ValueError(f"`of` needs a `method`, one of: {', '.join(kinds)}")
            rest = {key: value for key, value in given.items() if key != "method"}
            try:
                options = kinds[method].Options.model_validate_json(json.dumps(rest), strict=True, context=info.context)
            except ValidationError as error:
                first = error.errors()[0]
                place = ".".join(str(step) for step in first["loc"])
                raise ValueError(f"`of.{place}`: {why_of(first)}") from None
            return {"method": method, **options.model_dump(mode="json")}

        @model_validator(mode="after")
        def _loads_are_counts(self) -> Self:
            if not all(0 <= loads <= 256 for loads in self.memory_loads):
                raise ValueError("`memory_loads` are 0 to 256 processes")
            return self

    options: Options

    def points(self) -> int:
        return self._placements() * self._inner().points()

    def estimate_s(self) -> float:
        return self._placements() * self._inner().estimate_s()

    def _placements(self) -> int:
        """Returns the number of placements that are played with a number of loads, as far as the bench file tells."""
        is_short = len(self.planned_clients) == 1 and bool(self.not_measured())
        return (len(self.options.nodes) - is_short) * len(self.options.memory_loads)

    def needs(self) -> str | None:
        return self._inner().needs()

    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        load = JobSpec(operation="memory", duration_s=10.0)
        loaded = any(self.options.memory_loads)
        return (*self._inner().job_specs(), *(((WorkloadChoice(kind="stress-ng"), load),) if loaded else ()))

    def not_measured(self) -> tuple[str, ...]:
        at_once = max(map(self._inner().clients_at_once, self.planned_clients), default=2)
        if "balanced" not in self.options.nodes or at_once >= 2:
            return ()
        unless = ", unless the ports are on several NUMA nodes" if len(self.planned_clients) > 1 else ""
        few = f"`{self.options.of['method']}` has {at_once} of a port at once, and a machine two nodes or more"
        return (f"the placement `balanced`{unless}: it needs as many clients as NUMA nodes; {few}",)

    def find_misfits(self, clients: Mapping[str, Sequence[str]], hosts: Sequence[str]) -> Iterator[Misfit]:
        """Yields the misfits of the inner test."""
        for one in self._inner().find_misfits(clients, hosts):
            yield one.replace(option=("of", *one.option))

    def find_bond_misfits(self, links: Mapping[str, int | None]) -> Iterator[Misfit]:
        for one in self._inner().find_bond_misfits(links):
            yield one.replace(option=("of", *one.option))

    def objection(self, context: RoundContext) -> Objection | None:
        nodes = context.nodes
        if len(nodes) < 2:
            return Objection(
                message=f"the server has {'one NUMA node' if nodes else 'no NUMA nodes that its kernel tells of'}: "
                "nothing can be remote from its adapter",
                next_step="run it on a machine with two sockets (`numactl --hardware` shows its nodes), or remove it",
            )
        lost = [end.name for end in context.servers if end.numa_node not in {node.number for node in nodes}]
        if lost:
            return Objection(
                message=f"it is not known to which NUMA node these ports belong: {', '.join(lost)}",
                next_step="use ports of real adapters: /sys/class/net/DEVICE/device/numa_node must tell",
            )
        return self._inner().objection(context)

    async def run(self, context: RoundContext) -> tuple[Result, ...]:
        layout = layout_of(context.servers, context.nodes)
        # The placement that the others are compared with comes first.
        order = sorted(self.options.nodes, key=lambda where: where != REMOTE)
        results = []
        try:
            for memory_loads in self.options.memory_loads:
                remote: dict[str, Result] = {}
                for where in order:
                    await self._steer(context, layout, where)
                    placed = PlacedContext(context, layout, where, memory_loads)
                    await self._inner().run(placed)
                    for found in filter(_has_figures, placed.published):
                        result = self._result(found, placed, where, memory_loads, remote)
                        context.publish(result)
                        results.append(result)
        finally:
            if self.options.interrupts == "follow":
                for port in layout.node_of_port:
                    await context.steer_interrupts(port, None)
        return tuple(results)

    def _inner(self) -> RoundMethod:
        """The inner method, with the options that were validated."""
        given = dict(self.options.of)
        kind = _inner_kinds()[given.pop("method")]
        inner = kind(self.name, kind.Options.model_validate_json(json.dumps(given)))
        inner.planned_ports, inner.planned_clients = self.planned_ports, self.planned_clients
        return inner

    async def _steer(self, context: RoundContext, layout: Layout, where: Where) -> None:
        if self.options.interrupts == "follow":
            for port in layout.node_of_port:
                cpus = sorted(cpu for node in layout.nodes_for(where, port) for cpu in node.cpus)
                await context.steer_interrupts(port, tuple(cpus))

    def _result(
        self, found: Result, placed: PlacedContext, where: Where, memory_loads: int, remote: dict[str, Result]
    ) -> Result:
        """Returns the inner result with its placement, and its change against the remote one with the same loads."""
        what = found.id.removeprefix(f"{self.name}/")
        if where == REMOTE:
            remote[what] = found
        pinning = [placed.pinning[one] for one in found.trials if one in placed.pinning]
        astray = tuple(dict.fromkeys(text for kept, text in pinning if not kept))
        values: Values = {
            **{name: found.values[name] for name in (*_FIGURES, *_CPU_FIGURES) if name in found.values},
            _BASIS.value: found.values.get("latency_basis", found.values.get("basis")),
            **_changes(found, remote.get(what)),
            "pinning": "; ".join(dict.fromkeys(text for _, text in pinning)) or None,
        }
        verdict = found.verdict
        unplaced = tuple(dict.fromkeys(placed.unplaced[one] for one in found.trials if one in placed.unplaced))
        if unplaced:
            nothing = Bounded(value=None, reason_null=unplaced[0])
            values = {
                **{name: nothing for name in _FIGURES if name in found.values},
                "pinning": values["pinning"],
            }
            verdict = ResultVerdict.INCOMPLETE
        if astray and verdict is ResultVerdict.VALID:
            verdict = ResultVerdict.DISTURBED
        return Result(
            id=f"{self.name}/{memory_loads}/{where}/{what}",
            method=self.kind,
            scope=found.scope,
            parameters={
                **{name: value for name, value in found.parameters.items() if name != "part"},
                "inner_method": found.method,
                "what": what,
                "measured": _place_in_words(found),
                "traffic": _traffic_in_words(found),
                "nodes": where,
                "memory_loads": memory_loads,
                "interrupts": self.options.interrupts,
            },
            values=values,
            verdict=verdict,
            disturbances=(*found.disturbances, *astray, *unplaced),
            trials=tuple(one for one in found.trials if one not in placed.unplaced),
        )

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="NUMA placement",
            caption=(
                "The same test with the server's processes and their memory on the adapter's own NUMA node (local), on "
                "another (remote), and on all (balanced), beside so many STREAM loads whose memory is across the link "
                "between the sockets. Change is against remote with as many loads."
            ),
            columns=(
                Column("measured", "Measured", form="text"),
                _TRAFFIC,
                Column("memory_loads", "STREAM loads", form="text"),
                Column("nodes", "Processes", form="text"),
                Column(
                    _RATE,
                    "Throughput",
                    unit="Gb/s",
                    form="gigabits",
                    is_main=True,
                    is_optional=True,
                    better="higher",
                    adjective="fast",
                ),
                _change_of(_RATE),
                Column(_REQUESTS, "Requests/s", form="whole", is_optional=True, better="higher"),
                _change_of(_REQUESTS),
                _BASIS,
                _LATENCY,
                _change_of("latency_mean_ns"),
                Column("latency_p50_ns", "median", is_optional=True),
                _change_of("latency_p50_ns"),
                Column("latency_p90_ns", "p90", is_optional=True),
                Column("latency_p99_ns", "p99", is_optional=True),
                Column("latency_p99_9_ns", "p99.9", is_optional=True),
                Column("latency_maximum_ns", "greatest", is_optional=True),
                SERVER_OWN_CPU,
                Column("server_cpu_mean_percent", "Server's CPU", unit="%", form="number"),
            ),
            sentences=(
                (
                    f"moves {{{_RATE}}} with its processes {{nodes}}, a change of {{{_RATE}_change_percent}} against "
                    "remote ({measured})"
                ),
                (
                    "takes {latency_mean_ns} on average ({latency_basis}) with its processes {nodes}, a change of "
                    "{latency_mean_ns_change_percent} against remote ({measured})"
                ),
                f"moves {{{_RATE}}} with its processes {{nodes}} ({{measured}})",
                "takes {latency_mean_ns} on average ({latency_basis}) with its processes {nodes} ({measured})",
                f"answers {{{_REQUESTS}}} with its processes {{nodes}} ({{measured}})",
            ),
            notes=(("pinning", "Where the server ran"),),
            bars=Bars(
                x=Column("nodes", "Processes", form="text"),
                y=_LATENCY,
                lines=(
                    Column("measured", "Measured", form="text"),
                    _TRAFFIC,
                    Column("memory_loads", "STREAM loads", unit="STREAM loads", form="text"),
                ),
                caption="Local to the adapter, remote from it, and on all nodes, by the number of STREAM loads.",
            ),
        )

    @classmethod
    def table_for(cls, table: ResultTable, results: Sequence[Result], options: Mapping[str, Any]) -> ResultTable:
        """Returns the table with bars of what was measured, in which traffic that is the same in all rows is stated
        once. Of one run no change is claimed, as it has no interval.
        """
        bars = table.bars
        if bars is not None and any(_RATE in result.values for result in results):
            rate = next(column for column in table.columns if column.value == _RATE)
            bars = bars.replace(y=rate)
        columns, caption = table.columns, table.caption
        every = {result.parameters.get(_TRAFFIC.value) for result in results}
        if len(every) == 1 and bars is not None:
            columns = tuple(column for column in columns if column != _TRAFFIC)
            bars = bars.replace(lines=tuple(line for line in bars.lines if line != _TRAFFIC))
            caption = f"{caption} Traffic: {said}." if (said := every.pop()) else caption
        changes = tuple(text for text in table.sentences if "change_percent" in text)
        if any(isinstance(value, Spread) for result in results for value in result.values.values()):
            # The answer is what the place changes, wherever that is known of one.
            known = any(name.endswith("_change_percent") for result in results for name in result.values)
            sentences = changes if known else table.sentences
        else:
            columns = tuple(column for column in columns if column.head != _CHANGE_HEAD)
            caption = f"{caption} Of one run no change in percent is printed: several (`runs`) give intervals."
            sentences = tuple(text for text in table.sentences if text not in changes)
        return table.replace(columns=columns, caption=caption, sentences=sentences, bars=bars)


def _change_of(value: str) -> Column:
    return Column(f"{value}_change_percent", _CHANGE_HEAD, unit="%", form="number", is_optional=True)


def _inner_kinds() -> dict[str, type[RoundMethod]]:
    """Returns every other method of rounds whose servers are processes on the measured host, and whose main figure is
    one of those that are compared here.
    """
    without = (*_ports_without_servers(), PlacementMethod.kind)
    compared = {kind: method for kind, method in _methods().items() if kind not in without}
    return {kind: method for kind, method in compared.items() if _main_figures(method) & {_RATE, _REQUESTS}}


def _main_figures(method: type[RoundMethod]) -> set[str]:
    return {column.value for table in tables_of(method) for column in table.columns if column.is_main}


def _has_figures(found: Result) -> bool:
    """Whether a result of the inner test has a figure to compare: bins of a distribution and verdicts have none."""
    return any(name in found.values for name in _FIGURES)


def _ports_without_servers() -> tuple[str, ...]:
    return tuple(kind for kind, method in _methods().items() if method.through_dut or not method.runs_servers)


def _methods() -> dict[str, type[RoundMethod]]:
    found = find("nicbench.methods", Method).items()
    return {kind: method for kind, method in found if issubclass(method, RoundMethod)}


def _place_in_words(found: Result) -> str:
    """Says of which ports and client a result of the inner test is: "s0, client c0, all ports at once"."""
    given = found.parameters
    client = f"client {given['client']}" if "client" in given else None
    return _listed(given.get("port") or given.get("at_once"), client, given.get("beside"))


def _traffic_in_words(found: Result) -> str:
    """Says what was sent for a result of the inner test: "TCP, 64 B, no load"."""
    given = found.parameters
    return _listed(given.get("mode") or given.get("transport"), given.get("message"), given.get("load"))


def _listed(*texts: object) -> str:
    return ", ".join(str(each) for each in texts if each)


def _changes(found: Result, remote: Result | None) -> Values:
    """Returns changes in percent of the remote value; None where one is unknown, empty for the remote result."""
    if remote is None or remote is found:
        return {}
    changes: Values = {}
    for name in _FIGURES:
        if name not in found.values:
            continue
        now, then = found.values[name], remote.values.get(name)
        known = isinstance(now, int | float) and isinstance(then, int | float) and then > 0
        changes[f"{name}_change_percent"] = 100.0 * (float(now) / float(then) - 1.0) if known else None  # type: ignore[arg-type]
    return changes
