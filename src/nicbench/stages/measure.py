"""Sixth stage: every test of a configuration, in order; each result is journaled as soon as it is known."""

from __future__ import annotations

from nicbench.bench_file.models import BenchFile
from nicbench.errors import NotReadyError
from nicbench.events import Bus, TestStarted
from nicbench.hosts._numa import numa_nodes
from nicbench.judge.repeats import Repeats
from nicbench.labs.base import EndpointTestbed
from nicbench.model.pattern import Ways
from nicbench.model.result import Result
from nicbench.model.share import Mount
from nicbench.rounds.context import TestRoundContext
from nicbench.rounds.maker import RoundMaker
from nicbench.trials.ceiling import Ceilings
from nicbench.trials.context import TestContext
from nicbench.trials.maker import TrialMaker


async def measure(
    bench: BenchFile, link_bits_per_s: float, ways: Ways, maker: TrialMaker, ceilings: Ceilings, bus: Bus
) -> None:
    """All tests; a later one is given the results of those before it."""
    by_test: dict[str, tuple[Result, ...]] = {}
    for test in bench.tests:
        method = test.build()
        estimate_s = method.estimate_s()
        bus.publish(TestStarted(test=test.name, method=test.method_kind, points=method.points(), estimate_s=estimate_s))
        context = TestContext(
            test=test.name,
            seed=bench.seed,
            link_bits_per_s=link_bits_per_s,
            traffic=bench.traffic,
            ways=ways,
            maker=maker,
            ceilings=ceilings,
            repeats=Repeats(time_budget_s=estimate_s),
            earlier=by_test,
            bus=bus,
        )
        by_test[test.name] = tuple(map(context.completed, await method.run(context)))


async def measure_rounds(
    bench: BenchFile, testbed: EndpointTestbed, maker: RoundMaker, bus: Bus, mounts: tuple[Mount, ...] = ()
) -> None:
    """The same of methods of workloads. What the machines lack for any of them is said before the first begins."""
    by_test: dict[str, tuple[Result, ...]] = {}
    tests = [(test, test.build()) for test in bench.tests]
    nodes = await numa_nodes(testbed.server)
    contexts = [
        TestRoundContext(test.name, bench.seed, testbed, maker, method.estimate_s(), by_test, bus, nodes, mounts)
        for test, method in tests
    ]
    for (test, method), context in zip(tests, contexts, strict=True):
        objection = method.objection(context)
        if objection is not None:
            raise NotReadyError(objection.message, place=f"test {test.name}", next_step=objection.next_step)
    for (test, method), context in zip(tests, contexts, strict=True):
        estimate_s = method.estimate_s()
        bus.publish(TestStarted(test=test.name, method=test.method_kind, points=method.points(), estimate_s=estimate_s))
        by_test[test.name] = tuple(map(context.completed, await method.run(context)))
