"""The simulated lab: two joined ports of the engine, no root, no change."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost

from nicbench.core.registry import find
from nicbench.testbed.labs.base import Lab
from nicbench.testbed.labs.simulated import SimulatedLab, SimulatedOptions
from nicbench.tuning.stack import UndoStack


async def test_two_ports_send_to_each_other_through_the_dut(tmp_path: Path) -> None:
    lab = SimulatedLab(SimulatedOptions(capacity="500 kpps", delay="10 us", loss="0.1 %", seed=7))
    host = FakeHost()
    stack = UndoStack("run", None, tmp_path)
    testbed = await lab.up(stack, host)

    assert testbed.simulated
    assert [port.engine["sends_to"] for port in testbed.tester_ports] == [1, 0]
    dut = testbed.tester_ports[0].engine["dut"]
    assert (dut["capacity_frames_per_s"], dut["delay_ns"], dut["loss"]) == (500_000.0, 10_000, 0.001)
    assert dut["seed"] != testbed.tester_ports[1].engine["dut"]["seed"], "each direction draws for itself"
    assert (host.commands, stack.entries) == ([], ())


async def test_a_card_s_clock_is_there_where_it_is_asked_for(tmp_path: Path) -> None:
    stack = UndoStack("run", None, tmp_path)
    without = await SimulatedLab(SimulatedOptions()).up(stack, FakeHost())
    assert all("card_clock" not in port.engine for port in without.tester_ports)
    clocked = await SimulatedLab(SimulatedOptions(card_clock_ppm=-3.5)).up(stack, FakeHost())
    clocks = [port.engine["card_clock"] for port in clocked.tester_ports]
    assert [clock["ppm"] for clock in clocks] == [-3.5, -3.5]
    assert clocks[0]["offset"] != clocks[1]["offset"]


async def test_it_has_neither_a_sink_nor_a_cable(tmp_path: Path) -> None:
    lab = SimulatedLab(SimulatedOptions())
    stack = UndoStack("run", None, tmp_path)
    testbed = await lab.up(stack, FakeHost())

    async with lab.without_dut(testbed, stack) as there_is_a_sink, lab.cable(testbed, stack) as there_is_a_cable:
        assert (there_is_a_sink, there_is_a_cable) == (lab.has_sink, lab.has_cable) == (False, False)


def test_it_asks_for_no_root() -> None:
    assert not SimulatedLab.touches_machine


def test_a_fault_is_a_probability() -> None:
    with pytest.raises(ValidationError):
        SimulatedOptions(loss=1.5)


def test_the_kinds_of_labs_are_found() -> None:
    assert list(find("nicbench.testbed.labs", Lab)) == ["clients", "memif", "simulated", "veth"]
