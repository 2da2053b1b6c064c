"""What is built for one turn of a run, and what it measures with: ``FrameRig`` and ``RoundRig``, by the same stages.

``run.py`` calls the stages in their order and knows no difference between frames of a tester and workloads between
hosts; all that differs is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from types import MappingProxyType, TracebackType
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from nicbench.bench_file.frame_sizes import settle_captures, smallest_frame_bytes
from nicbench.bench_file.models import BenchFile
from nicbench.core.clocks import ClockOffset
from nicbench.core.errors import NotReadyError
from nicbench.core.events import Bus, Note, StageStarted, TestStarted
from nicbench.core.frozen import frozen
from nicbench.core.judging import Thresholds
from nicbench.core.lists import grouped
from nicbench.core.machine import Controller, NumaNode, PowerFacts
from nicbench.core.pattern import Ways
from nicbench.core.result import Result
from nicbench.core.trial import Trial
from nicbench.core.turn import Turn
from nicbench.hosts.asking import numa_nodes
from nicbench.hosts.kinds.local import LocalHost
from nicbench.measure.ceiling import Ceilings
from nicbench.measure.frame_context import LiveFrameContext, OfferedTraffic
from nicbench.measure.health.reader import HealthReader
from nicbench.measure.ledger.reader import LedgerReader
from nicbench.measure.power.meter import LiveMeter, Meter, MeteredMachine, SimulatedMeter
from nicbench.measure.queues import QueueReader
from nicbench.measure.rounds import LiveRoundContext, RoundMaker
from nicbench.measure.samples import SampleLog, TestSetting
from nicbench.measure.surroundings import TrialSetup
from nicbench.measure.trials import TrialMaker
from nicbench.measure.witnesses import interfaces_of
from nicbench.monitor.base import Monitors, WatchedTester, measuring_cpus
from nicbench.monitor.running import RunningMonitors
from nicbench.stages.hosts import make_hosts
from nicbench.stages.plan import cores_disclosure, statements_of, traffic_disclosure
from nicbench.stages.testbed import (
    PROOFS,
    clocks_of,
    hold_against_proofs,
    lay_out_ways,
    make_dut,
    make_endpoints,
    make_server,
    make_testbed,
)
from nicbench.stages.tester import calibrate, make_tester, settle_driver, start_tester
from nicbench.stats.activity import duration_s
from nicbench.store.folder import RunFolder
from nicbench.store.marks import end_where_asked
from nicbench.store.monitor_samples import MonitorLog
from nicbench.testbed.duts.base import Addressing, Dut, EndpointDut, FrameDut
from nicbench.testbed.labs.base import EndpointTestbed, FrameLab, Testbed, TestHost
from nicbench.testbed.testers.base import Tester, TesterFacts
from nicbench.tuning.stack import UndoStack

ContextT = TypeVar("ContextT", LiveFrameContext, LiveRoundContext)


@frozen
class TurnSetting:
    """What the stages of one turn work with; ``bench`` is the configuration whose turn it is, written out."""

    bench: BenchFile
    whole: BenchFile
    """The bench file with all of its configurations."""
    turn: Turn
    folder: RunFolder
    changes: UndoStack
    bus: Bus
    engine_folder: str | None
    """Where our engines are, if not where they are installed."""
    began: float
    """When the run did (monotonic)."""

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds that make a sample invalid."""
        return Thresholds(**self.bench.thresholds)


class Rig(ABC, Generic[ContextT]):
    """The testbed of one turn with all that measures on it. Its methods are called in the order in which they stand."""

    dut: Dut

    def __init__(self, setting: TurnSetting) -> None:
        self.setting = setting

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @abstractmethod
    async def make_testbed(self) -> None:
        """Makes the hosts, their ports, and the lab."""

    @property
    @abstractmethod
    def test_hosts(self) -> tuple[TestHost, ...]:
        """The hosts that take part."""

    @abstractmethod
    async def make_dut(self) -> None:
        """Sets up what is measured."""

    @abstractmethod
    async def start_tester(self) -> None:
        """Starts what sends, as far as that is not started for each sample."""

    @property
    @abstractmethod
    def watched_hosts(self) -> tuple[TestHost, ...]:
        """The hosts on whose machines a monitor runs."""

    @property
    @abstractmethod
    def measuring_cpus(self) -> tuple[int, ...] | None:
        """The CPUs that monitors keep off during a sample; None where they go on beside it."""

    @abstractmethod
    def disclosure(self) -> dict[str, Any]:
        """Returns what the plan discloses of this rig in addition to what it discloses of every run."""

    @abstractmethod
    async def make_maker(self, monitors: Monitors) -> None:
        """Makes the maker of samples, which numbers them on behind those of the journal."""

    async def calibrate(self) -> None:
        """Finds the limits of what sends, without the DUT."""

    @abstractmethod
    def make_context(self, test: TestSetting) -> ContextT:
        """What the method of this test is given."""

    async def measure(self) -> None:
        """Runs every test in order; a later one is given the results of those before it.

        If the machines lack something for any of them, that is reported before the first begins.
        """
        by_test: dict[str, tuple[Result, ...]] = {}
        tests = []
        for test in self.setting.bench.tests:
            method = test.build()
            known = TestSetting(test.name, self.setting.bench.seed, method.estimate_s(), by_test)
            tests.append((test, method, self.make_context(known)))
        for test, method, context in tests:
            objection = method.objection(context)
            if objection is not None:
                raise NotReadyError(objection.message, place=f"test {test.name}", next_step=objection.next_step)
        for number, (test, method, context) in enumerate(tests):
            if number > 0:  # before the first there is no test after which it could end
                end_where_asked(self.setting.folder.path, f"test {test.name}")
            started = TestStarted(
                test=test.name,
                method=test.method_kind,
                points=method.points(),
                results=method.points() if method.gives_points else None,
                estimate_s=method.estimate_s(),
                kept=len(context.kept),
                kept_s=sum(map(duration_s, context.kept)),
            )
            self.setting.bus.publish(started)
            by_test[test.name] = tuple(map(context.complete, await method.run(context)))
            if not by_test[test.name]:
                text = f"{test.name}: gave no result: its options fit none of the ports"
                self.setting.bus.publish(Note(level="warning", text=text))

    async def close(self) -> None:
        """Ends what was started; never raises."""


class FrameRig(Rig[LiveFrameContext]):
    """A tester that sends frames through the DUT and counts those that come back."""

    dut: FrameDut
    _lab: FrameLab | None
    _testbed: Testbed
    _facts: TesterFacts
    _ways: Ways
    _addressing: tuple[Addressing, ...]
    _maker: TrialMaker
    _ceilings: Ceilings
    _tester: Tester | None = None
    _driver_because: str | None = None
    generates: ClassVar[bool] = False
    """Whether flows begin and end on their own."""

    async def make_testbed(self) -> None:
        setting = self.setting
        hosts = await make_hosts(setting.bench, setting.changes)
        bench, self._driver_because = await settle_driver(
            setting.bench, setting.whole, hosts, setting.folder, setting.bus, setting.engine_folder
        )
        self._lab, testbed = await make_testbed(bench, setting.changes, hosts)
        if self._lab is None:
            proofs, unproven = await hold_against_proofs(testbed)
            testbed = replace(testbed, statements=(*testbed.statements, *unproven))
            if proofs:
                setting.folder.write_json(PROOFS, list(proofs))
        self._testbed = testbed
        self.setting = replace(setting, bench=await settle_captures(bench, self._testbed.tester))

    @property
    def test_hosts(self) -> tuple[TestHost, ...]:
        return self._testbed.test_hosts

    async def make_dut(self) -> None:
        setting = self.setting
        self.dut = await make_dut(setting.bench, self._testbed, setting.changes)
        self._ways, self._addressing = lay_out_ways(setting.bench, self._testbed, self.dut, setting.bus)

    async def start_tester(self) -> None:
        setting, testbed = self.setting, self._testbed
        self._tester = make_tester(
            setting.bench,
            testbed,
            self.dut.cpus(testbed),
            setting.folder.run_id,
            setting.engine_folder,
            neighbours=self.dut.neighbours(testbed),
            run_folder=setting.folder.path,
            generates=self.generates,
        )
        setting.bus.publish(StageStarted(stage="tester", text="starting the tester"))
        self._facts, self._testbed = await start_tester(self._tester, setting.bench, testbed, setting.changes)

    @property
    def watched_hosts(self) -> tuple[TestHost, ...]:
        return () if self._testbed.simulated else self._testbed.test_hosts

    @property
    def measuring_cpus(self) -> tuple[int, ...]:
        tester = {"options": self.setting.bench.tester.options.model_dump(mode="json")}
        return measuring_cpus(self._testbed, self.dut.cpus(self._testbed), tester)

    def disclosure(self) -> dict[str, Any]:
        bench, testbed = self.setting.bench, self._testbed
        return {
            "cores": cores_disclosure(bench, testbed, self.dut),
            "link_bits_per_s": testbed.link_bits_per_s,
            "link_is_nominal": testbed.link_is_nominal,
            "simulated": testbed.simulated,
            "statements": (
                *testbed.statements,
                *bench.tester_kind().statements(),
                *self._traffic_statements(),
            ),
            "facts": testbed.facts,
            "tester": {
                **self._facts.description,
                "kind": bench.tester.kind,
                **({} if self._driver_because is None else {"driver_because": self._driver_because}),
                "options": bench.tester.options.model_dump(mode="json"),
            },
            "traffic": traffic_disclosure(bench),
            "addressing": tuple(asdict(way) for way in self._addressing),
        }

    def _traffic_statements(self) -> tuple[str, ...]:
        bench = self.setting.bench
        return statements_of(bench.traffic.pattern, self._ways, [test.plugin for test in bench.tests])

    async def make_maker(self, monitors: Monitors) -> None:
        setting, testbed = self.setting, self._testbed
        assert self._tester is not None  # noqa: S101 - start_tester() made it
        setup = TrialSetup(
            tester=WatchedTester(self._tester, monitors),
            dut=self.dut,
            addressing=self._addressing,
            dut_cpus=self.dut.cpus(testbed),
            hosts={"local": LocalHost("local"), "tester": testbed.tester, "dut": testbed.dut or testbed.tester},
            dut_links={port.name: port.device for port in testbed.dut_ports if testbed.dut and port.device},
            changes=setting.changes,
            ledger=await LedgerReader.of(testbed),
            health=await HealthReader.of(testbed),
            meter=await find_meter(setting.bench, testbed, setting.folder.journal.trials().values()),
            queues=QueueReader(testbed, setting.bench.traffic, self._addressing),
            monitors=monitors,
            programmed=testbed.programmed,
            port_names=tuple(port.name for port in testbed.tester_ports),
            smallest_frame_bytes=max(smallest_frame_bytes(setting.bench.traffic), self._facts.minimum_frame_bytes),
            learning=setting.bench.traffic.learning,
        )
        log = SampleLog(setting.folder.journal.trials(), setting.bus, setting.turn, setting.began)
        self._maker = TrialMaker(setup, setting.thresholds, log)
        self._ceilings = Ceilings(self._maker, self._lab, testbed, setting.changes, self._ways)

    async def calibrate(self) -> None:
        await calibrate(self.setting.bench, self._ceilings, self.setting.bus)

    def make_context(self, test: TestSetting) -> LiveFrameContext:
        offered = OfferedTraffic(
            self.setting.bench.traffic, self._ways, self._testbed.link_bits_per_s, self._testbed.link_is_nominal
        )
        return LiveFrameContext(test, self._maker, self._ceilings, offered)

    async def close(self) -> None:
        if self._tester is not None:
            await self._tester.close()


class RoundRig(Rig[LiveRoundContext]):
    """Hosts between which tools move bytes, in rounds of workloads."""

    dut: EndpointDut
    _testbed: EndpointTestbed
    _clocks: tuple[ClockOffset, ...]
    _nodes: tuple[NumaNode, ...]
    _maker: RoundMaker

    async def make_testbed(self) -> None:
        self._testbed = await make_endpoints(self.setting.bench, self.setting.changes)

    @property
    def test_hosts(self) -> tuple[TestHost, ...]:
        return self._testbed.test_hosts

    async def make_dut(self) -> None:
        self.dut = await make_server(self.setting.bench, self._testbed, self.setting.changes)

    async def start_tester(self) -> None:
        """Tools are started in each round; their hosts' clocks are compared now."""
        self._clocks = await clocks_of(self._testbed, self.setting.bus)

    @property
    def watched_hosts(self) -> tuple[TestHost, ...]:
        return self._testbed.test_hosts

    @property
    def measuring_cpus(self) -> None:
        return None

    def disclosure(self) -> dict[str, Any]:
        testbed = self._testbed
        speeds = [end.facts.link_bits_per_s for end in testbed.servers if end.facts.link_bits_per_s is not None]
        return {
            "link_bits_per_s": min(speeds, default=None),
            "link_is_nominal": testbed.link_is_nominal,
            "statements": testbed.statements,
            "facts": {
                **testbed.facts,
                "endpoints": {
                    name: end.facts.model_dump(mode="json", exclude={"name"}, exclude_none=True)
                    for name, end in testbed.endpoints.items()
                },
                "clocks": {offset.host: offset.in_words.removeprefix(f"{offset.host}: ") for offset in self._clocks},
            },
        }

    async def make_maker(self, monitors: Monitors) -> None:
        setting, folder = self.setting, self.setting.folder
        from nicbench.measure.host_player import HostPlayer  # imported here, as runs of frames play no workloads

        player = HostPlayer(
            self._testbed, folder.path, setting.changes, folder.redactor, setting.engine_folder, self.dut
        )
        await player.require_tools(each for test in setting.bench.tests for each in test.build().job_specs())
        log = SampleLog(folder.journal.rounds(), setting.bus, setting.turn, setting.began)
        machines = {name: end.facts.machine for name, end in self._testbed.endpoints.items()}
        interfaces = interfaces_of(self._testbed.endpoints)
        self._maker = RoundMaker(player, monitors, setting.thresholds, log, machines, interfaces)
        self._nodes = await numa_nodes(self._testbed.server)

    def make_context(self, test: TestSetting) -> LiveRoundContext:
        return LiveRoundContext(test, self._maker, self._testbed, self._nodes, self.dut.mounts())


_RIGS: Final[Mapping[str, type[Rig[Any]]]] = MappingProxyType({"frames": FrameRig, "rounds": RoundRig})


def rig_of(setting: TurnSetting) -> Rig[Any]:
    """The rig for what the bench file measures: frames, or rounds of workloads."""
    return _RIGS[setting.bench.measures](setting)


# Finds what says how much the machines of a testbed draw, where a test asks for it.

_NAMES: Final = {"tester": "tester", "dut": "DUT"}
_NEXT_STEP: Final = (
    "run as root where the processors have RAPL, install ipmitool where the machine has a management controller, or "
    "name that under `redfish`; a virtual machine seldom has a meter"
)
_NEXT_STEP_OF_SIMULATION: Final = "write `power: {idle_watts: 100}` under `lab`"


async def find_meter(bench: BenchFile, testbed: Testbed, journaled: Iterable[Trial]) -> Meter | None:
    """The meter of all machines of the testbed; None where no test reads power.

    NotReadyError where no machine has a source: nothing could be measured.
    """
    wishes = [(test.name, wish) for test in bench.tests if (wish := test.build().power_wish()) is not None]
    if not wishes:
        return None
    place = f"test {wishes[0][0]}"
    if testbed.simulated:
        if testbed.power is None:
            message = "the simulated machine draws no power: its lab does not say how much"
            raise NotReadyError(message, place=place, next_step=_NEXT_STEP_OF_SIMULATION)
        ended_s = (each.at_s + each.window_s / 2.0 for trial in journaled for each in trial.reading.power)
        return SimulatedMeter(testbed.power, testbed.seed, max(ended_s, default=0.0))
    methods = frozenset(method for _, wish in wishes for method in wish.methods)
    meter = _meter_of(bench, testbed, methods, max(wish.averaging_s for _, wish in wishes))
    _refuse_nothing(await meter.find(), place)
    return meter


def _meter_of(bench: BenchFile, testbed: Testbed, methods: frozenset[str], averaging_s: float) -> LiveMeter:
    """One machine once: where tester and DUT share it, every figure is what both draw."""
    shared = grouped((str(each.host.machine.spec()), each) for each in testbed.test_hosts)
    machines = tuple(
        MeteredMachine(
            name=" and ".join(_NAMES[each.role] for each in of_machine),
            host=of_machine[0].host.machine,
            controller=_controller(bench, of_machine),
            has_dut=any(each.role == "dut" for each in of_machine),
        )
        for of_machine in shared.values()
    )
    return LiveMeter(
        machines,
        methods=methods,
        assumed_s=averaging_s,
        is_one_machine=any(len(of_machine) > 1 for of_machine in shared.values()),
    )


def _controller(bench: BenchFile, of_machine: Sequence[TestHost]) -> Controller | None:
    found = (bench.controller_of(each.role, each.name) for each in of_machine)
    return next((one for one in found if one is not None), None)


def _refuse_nothing(facts: PowerFacts, place: str) -> None:
    if facts.sources:
        return
    why = "".join(f"; {each}" for each in facts.unread)
    message = f"no machine of the testbed says how much it draws{why}"
    raise NotReadyError(message, place=place, next_step=_NEXT_STEP)


# Beside the samples: a monitor on every machine of the turn, which keeps off trials and goes on through rounds.


@asynccontextmanager
async def run_monitors(setting: TurnSetting, rig: Rig[Any]) -> AsyncIterator[Monitors]:
    """A simulated testbed, which has no hosts, has no monitors. ``off`` leaves out the samples alone.

    They end before the testbed is taken down: they hold its namespaces open.
    """
    settings, folder = setting.bench.monitor, setting.folder
    log = MonitorLog(folder.path, int(setting.began * 1e9), folder.redactor)
    monitors = RunningMonitors(log, setting.bus)
    try:
        if rig.watched_hosts:
            await monitors.start(settings, rig.watched_hosts, rig.measuring_cpus, setting.engine_folder)
        yield monitors
    finally:
        await monitors.close()
        log.close()
