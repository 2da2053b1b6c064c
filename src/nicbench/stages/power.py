"""Finds what says how much the machines of a testbed draw, where a test asks for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import NotReadyError
from nicbench.core.power import PowerFacts
from nicbench.core.trial import Trial
from nicbench.hosts.base import Host
from nicbench.measure.power.meter import LiveMeter, Meter, MeteredMachine
from nicbench.measure.power.simulated import SimulatedMeter
from nicbench.testbed.labs.base import Testbed

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
    tests = [test.name for test in bench.tests if test.plugin.reads_power]
    if not tests:
        return None
    place = f"test {tests[0]}"
    if testbed.simulated:
        if testbed.power is None:
            message = "the simulated machine draws no power: its lab does not say how much"
            raise NotReadyError(message, place=place, next_step=_NEXT_STEP_OF_SIMULATION)
        ended_s = (each.at_s + each.window_s / 2.0 for trial in journaled for each in trial.reading.power)
        return SimulatedMeter(testbed.power, testbed.seed, max(ended_s, default=0.0))
    meter = _meter_of(bench, testbed)
    _refuse_nothing(await meter.find(), place)
    return meter


def _meter_of(bench: BenchFile, testbed: Testbed) -> LiveMeter:
    """One machine once: where tester and DUT share it, every figure is what both draw."""
    machines: dict[str, tuple[list[str], Host]] = {}
    controllers = {}
    for each in testbed.test_hosts:
        machine = each.host.machine
        names, _ = machines.setdefault(str(machine.spec()), ([], machine))
        names.append(_NAMES[each.role])
        controllers.setdefault(str(machine.spec()), bench.controller_of(each.role, each.name))
    found = tuple(
        MeteredMachine(" and ".join(names), host, controllers[spec]) for spec, (names, host) in machines.items()
    )
    shared = any(len(names) > 1 for names, _ in machines.values())
    return LiveMeter(found, is_one_machine=shared)


def _refuse_nothing(facts: PowerFacts, place: str) -> None:
    if facts.sources:
        return
    why = "".join(f"; {each}" for each in facts.unread)
    message = f"no machine of the testbed says how much it draws: no RAPL, hwmon, IPMI or Redfish{why}"
    raise NotReadyError(message, place=place, next_step=_NEXT_STEP)
