"""Fourth stage: the plan, which is everything a report must disclose and is known before the first trial."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from nicbench import __version__
from nicbench.bench_file.differences import differences
from nicbench.bench_file.models import BenchFile
from nicbench.duts.base import Addressing, Dut, EndpointDut, FrameDut
from nicbench.judge.thresholds import Thresholds
from nicbench.labs.base import EndpointTestbed, Testbed
from nicbench.model.clock import ClockOffset
from nicbench.model.monitor import MonitorPlan
from nicbench.model.pattern import Pattern, Ways, share_of_load
from nicbench.model.plan import Plan, PlannedTest, PlannedTurn
from nicbench.stages.calibrate import estimate_s
from nicbench.testers.base import TesterFacts


def describe(
    bench: BenchFile,
    run_id: str,
    testbed: Testbed,
    dut: FrameDut,
    facts: TesterFacts,
    ways: Ways,
    addressing: tuple[Addressing, ...],
    thresholds: Thresholds,
    monitors: tuple[MonitorPlan, ...] = (),
) -> Plan:
    """The plan of one configuration."""
    return Plan(
        **_of_both(bench, run_id, dut, thresholds, monitors),
        cores=asdict(testbed.cores),
        link_bits_per_s=testbed.link_bits_per_s,
        link_is_nominal=testbed.link_is_nominal,
        simulated=testbed.simulated,
        statements=(
            *testbed.statements,
            *bench.tester_kind().statements(),
            *statements_of(bench.traffic.pattern, ways),
        ),
        facts=testbed.facts,
        tester={
            **facts.description,
            "kind": bench.tester.kind,
            "options": bench.tester.options.model_dump(mode="json"),
        },
        traffic=_disclosed_traffic(bench),
        addressing=tuple(asdict(way) for way in addressing),
    )


def describe_rounds(
    bench: BenchFile,
    run_id: str,
    testbed: EndpointTestbed,
    dut: EndpointDut,
    thresholds: Thresholds,
    monitors: tuple[MonitorPlan, ...],
    clocks: tuple[ClockOffset, ...],
) -> Plan:
    """The plan of one configuration that is measured by rounds of workloads."""
    compared = [offset.in_words.removeprefix(f"{offset.host}: ") for offset in clocks]
    speeds = [end.facts.link_bits_per_s for end in testbed.servers if end.facts.link_bits_per_s is not None]
    return Plan(
        **_of_both(bench, run_id, dut, thresholds, monitors),
        link_bits_per_s=min(speeds, default=None),
        link_is_nominal=testbed.link_is_nominal,
        statements=testbed.statements,
        facts={
            **testbed.facts,
            "endpoints": {
                name: end.facts.model_dump(mode="json", exclude={"name"}, exclude_none=True)
                for name, end in testbed.endpoints.items()
            },
            "clocks": {offset.host: words for offset, words in zip(clocks, compared, strict=True)},
        },
    )


def _of_both(
    bench: BenchFile, run_id: str, dut: Dut, thresholds: Thresholds, monitors: tuple[MonitorPlan, ...]
) -> dict[str, Any]:
    """What a plan says whether frames or rounds are measured."""
    return {
        "run_id": run_id,
        "title": bench.title,
        "description": bench.description,
        "nicbench_version": __version__,
        "seed": bench.seed,
        "command": tuple(sys.argv),
        "lab": _disclosed_lab(bench),
        "dut": {"kind": bench.dut.kind, **bench.dut.options.model_dump(mode="json")},
        "dut_disclosure": dut.disclosure(),
        "tests": _planned_tests(bench),
        "thresholds": thresholds.rows(),
        "deviations": _deviations(bench),
        "declared": bench.declared,
        "report": bench.report,
        "monitors": monitors,
        "configuration": bench.configuration,
    }


def _disclosed_lab(bench: BenchFile) -> dict[str, Any] | None:
    if bench.lab is None:
        return None
    on = {} if bench.lab.on is None else {"on": bench.lab.on}
    return {"kind": bench.lab.kind, **on, **bench.lab.options.model_dump(mode="json")}


def _planned_tests(bench: BenchFile) -> tuple[PlannedTest, ...]:
    methods = [(test, test.build()) for test in bench.tests]
    return tuple(
        PlannedTest(
            name=test.name,
            method=test.method_kind,
            description=" ".join((type(method).__doc__ or "").split()),
            procedure=type(method).procedure(),
            options=test.options.model_dump(mode="json"),
            points=method.points(),
            estimate_s=method.estimate_s(),
        )
        for test, method in methods
    )


def _deviations(bench: BenchFile) -> tuple[str, ...]:
    return tuple(f"{test.name}: {deviation}" for test in bench.tests for deviation in test.build().deviations())


def compared(bench: BenchFile, earlier: Plan | None, plan: Plan) -> Plan:
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
    shared = {
        "compared": names if len(names) > 1 else (),
        "differences": differences(bench),
        "turns": turns,
        "runs": bench.runs,
    }
    return first.model_copy(update={"others": tuple(others.values()), **shared})


def statements_of(pattern: Pattern, ways: Ways) -> tuple[str, ...]:
    """What rates and loss mean where more than one way carries traffic."""
    if len(ways.loaded) == 1:
        return ()
    directions = "both directions" if ways.bidirectional else "one direction"
    share = round(1.0 / share_of_load(ways.loaded))
    of_load = "the whole load" if share == 1 else f"1/{share} of the load"
    return (
        f"Traffic is {pattern.words}, {directions}: {len(ways.loaded)} ways at once, each with {of_load}.",
        f"Loads and rates are {ways.basis}; a line rate is that of one port. Loss is judged over all ways together.",
    )


def _disclosed_traffic(bench: BenchFile) -> dict[str, Any]:
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
