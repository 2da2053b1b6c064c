"""Before the first sample of a turn: the plan, which is all that a report must disclose, and the inventory."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from nicbench import __version__
from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.overlays import list_differences
from nicbench.core.judging import Thresholds
from nicbench.core.machine import MonitorPlan, cpu_list
from nicbench.core.pattern import Pattern, Ways, share_of_load
from nicbench.core.plan import Plan, PlannedTest, PlannedTurn
from nicbench.core.trial import CALIBRATION
from nicbench.core.turn import Turn
from nicbench.hosts.kinds.local import LocalHost
from nicbench.methods.base import FrameMethod, Method
from nicbench.monitor.base import worker_cpus
from nicbench.stages.tester import estimate_s, plan_calibration
from nicbench.store.folder import RunFolder
from nicbench.system.inventory.base import collect, host_name
from nicbench.testbed.duts.base import Dut
from nicbench.testbed.labs.base import Testbed, TestHost


def describe(
    bench: BenchFile, run_id: str, dut: Dut, thresholds: Thresholds, monitors: tuple[MonitorPlan, ...], **of_rig: Any
) -> Plan:
    """The plan of one configuration; ``of_rig`` is what its rig discloses (``Rig.disclosure``)."""
    return Plan(
        run_id=run_id,
        title=bench.title,
        description=bench.description,
        nicbench_version=__version__,
        seed=bench.seed,
        command=tuple(sys.argv),
        lab=_lab_disclosure(bench),
        dut={"kind": bench.dut.kind, **bench.dut.options.model_dump(mode="json")},
        dut_disclosure=dut.disclosure(),
        tests=_plan_tests(bench),
        thresholds=thresholds.rows(),
        deviations=_deviations(bench),
        declared=bench.declared,
        hypervisors=bench.hypervisors,
        report=bench.report,
        monitors=monitors,
        configuration=bench.configuration,
        **of_rig,
    )


def _lab_disclosure(bench: BenchFile) -> dict[str, Any] | None:
    if bench.lab is None:
        return None
    on = {} if bench.lab.on is None else {"on": bench.lab.on}
    return {"kind": bench.lab.kind, **on, **bench.lab.options.model_dump(mode="json")}


def _plan_tests(bench: BenchFile) -> tuple[PlannedTest, ...]:
    methods = [(test, test.build()) for test in bench.tests]
    return tuple(
        PlannedTest(
            name=test.name,
            method=test.method_kind,
            description=" ".join((type(method).__doc__ or "").split()),
            procedure=type(method).procedure(options := test.options.model_dump(mode="json")),
            options=options,
            points=method.points(),
            estimate_s=method.estimate_s(),
        )
        for test, method in methods
    )


def _deviations(bench: BenchFile) -> tuple[str, ...]:
    return tuple(f"{test.name}: {deviation}" for test in bench.tests for deviation in test.build().deviations())


def plan_of_turns(bench: BenchFile, earlier: Plan | None, plan: Plan) -> Plan:
    """The plan of a run of several turns: of the first with those of the other configurations, and what differs."""
    points = {each.configuration: sum(test.build().points() for test in each.tests) for each in bench.configurations}
    took_s = {each.configuration: estimate_s(each) for each in bench.configurations}
    sure = len(bench.sure_turns)
    turns = tuple(
        PlannedTurn(
            configuration=turn.configuration,
            run=turn.run,
            points=points[turn.configuration],
            estimate_s=took_s[turn.configuration],
            warm_up=turn.warm_up,
            is_sure=turn.number <= sure,
        )
        for turn in bench.turns
    )
    names = tuple(each.configuration for each in bench.configurations)
    others = {other.configuration: other for other in (earlier.others if earlier else ())}
    if earlier is None or plan.configuration == earlier.configuration:
        first = plan
    else:
        first, others[plan.configuration] = earlier, plan
    return first.replace(
        others=tuple(others.values()),
        compared=names if len(names) > 1 else (),
        axes=bench.axes,
        differences=list_differences(bench),
        turns=turns,
        runs=bench.runs,
    )


def statements_of(pattern: Pattern, ways: Ways, methods: Iterable[type[Method]] = ()) -> tuple[str, ...]:
    """What rates and loss mean where more than one way carries traffic, and where methods choose ways themselves."""
    if len(ways.loaded) == 1:
        return ()
    choosing = [issubclass(method, FrameMethod) and method.chooses_ways for method in methods]
    if any(choosing):
        which = "The tests choose" if all(choosing) else "Some tests choose"
        chosen = f"{which} themselves which ports of {pattern.words} send to which, as their sections say."
        return (chosen,) if all(choosing) else (chosen, *statements_of(pattern, ways))
    directions = "both directions" if ways.bidirectional else "one direction"
    share = round(1.0 / share_of_load(ways.loaded))
    of_load = "the whole load" if share == 1 else f"1/{share} of the load"
    return (
        f"Traffic is {pattern.words}, {directions}: {len(ways.loaded)} ways at once, each with {of_load}.",
        f"Loads and rates are {ways.basis}; a line rate is that of one port. Loss is judged over all ways together.",
    )


def cores_disclosure(bench: BenchFile, testbed: Testbed, dut: Dut) -> dict[str, Any]:
    """Who has which CPUs, and the physical cores of which tester and DUT have a hyperthread each."""
    cores = testbed.cores if dut.is_set_up else replace(testbed.cores, dut=())
    of_dut = {*cores.dut, *dut.disclosure().get("core_cpus", ())} if dut.is_set_up else set()
    of_tester = worker_cpus(testbed, {"options": bench.tester.options.model_dump(mode="json")})
    told = asdict(cores)
    del told["physical_cores"]
    halved = [cpu_list(core) for core in cores.halved_cores(of_tester, of_dut)]
    return {**told, **({"halved_cores": halved} if halved else {})}


def traffic_disclosure(bench: BenchFile) -> dict[str, Any]:
    """Everything of the traffic that says something, and what is in each mix that is sent."""
    written = bench.traffic.model_dump(mode="json", exclude_none=True, exclude={"mixes", "streams"})
    sizes = (size for test in bench.tests for size in test.build().frame_sizes())
    mixes = {size: str(bench.traffic.mix(size)) for size in sizes if isinstance(size, str)}
    streams = {
        stream.name: stream.model_dump(mode="json", exclude_none=True, exclude={"name"}, exclude_unset=True)
        for stream in bench.traffic.streams
    }
    extra = {"mixes": mixes, "streams": streams}
    return {name: value for name, value in {**written, **extra}.items() if value != {}}


_INVENTORY = "inventory.json"
_HYPERVISOR = "hypervisor"


async def disclose(bench: BenchFile, turn: Turn, plan: Plan, hosts: tuple[TestHost, ...], folder: RunFolder) -> None:
    """Writes both, and keeps in them what earlier turns have told. ``bench`` is the whole bench file."""
    if folder.redactor is not None:
        for each in hosts:
            folder.redactor.learn_host_name(await host_name(each.host))
    known = await collect((*hosts, *_hypervisor(hosts)), bench.of_turn(turn).controller_of)
    if folder.redactor is not None:
        folder.redactor.learn(known)  # what the inventory names is then found in the plan as well
    folder.write_json("plan.json", plan if turn.of == 1 else plan_of_turns(bench, folder.plan(), plan))
    if len(bench.configurations) > 1:
        earlier: dict[str, Any] = folder.read_json(_INVENTORY) or {}
        known = {**earlier, **{f"{host}, {turn.configuration}": facts for host, facts in known.items()}}
    folder.write_json(_INVENTORY, known)


def _hypervisor(hosts: tuple[TestHost, ...]) -> tuple[TestHost, ...]:
    """This machine, where a host of the test is a guest that was started on it: it has a column of its own."""
    if not any(each.host.machine.made_here for each in hosts) or any(each.name == _HYPERVISOR for each in hosts):
        return ()
    return (TestHost(_HYPERVISOR, _HYPERVISOR, LocalHost(_HYPERVISOR), ()),)


# How long the parts of a run are estimated to take, in their order: what its time left is computed from.


def list_planned(bench: BenchFile) -> list[tuple[str, float]]:
    """Lists calibration and tests of every turn in order, by their keys in the run, with estimates in seconds."""
    return [
        (turn.key(name), estimate_s)
        for turn in bench.turns
        for each in (bench.of_turn(turn),)
        for name, estimate_s in (
            (CALIBRATION, plan_calibration(each).estimate_s),
            *((test.name, test.build().expected_s()) for test in each.tests),
        )
    ]


def ends(bench: BenchFile) -> list[int]:
    """Lists after how many planned items the run may end; with a fixed number of runs, only after all of them."""
    configurations = len(bench.configurations)
    turns = [
        turn
        for turn in bench.turns
        if turn.number % configurations == 0 and bench.runs.may_end(turn.run - bench.runs.warm_up, configurations)
    ]
    each = len(list_planned(bench)) // len(bench.turns)
    return [each * turn.number for turn in turns]
