"""Finds what says how much the machines of a testbed draw, where a test asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import NotReadyError
from nicbench.core.machine import Controller, PowerFacts
from nicbench.core.trial import Trial
from nicbench.measure.power.meter import LiveMeter, Meter, MeteredMachine
from nicbench.measure.power.simulated import SimulatedMeter
from nicbench.testbed.labs.base import Testbed, TestHost

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
    shared: dict[str, list[TestHost]] = {}
    for each in testbed.test_hosts:
        shared.setdefault(str(each.host.machine.spec()), []).append(each)
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
    return next((controller for controller in found if controller is not None), None)


def _refuse_nothing(facts: PowerFacts, place: str) -> None:
    if facts.sources:
        return
    why = "".join(f"; {each}" for each in facts.unread)
    message = f"no machine of the testbed says how much it draws{why}"
    raise NotReadyError(message, place=place, next_step=_NEXT_STEP)
