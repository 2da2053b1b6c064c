"""The CPUs that measure stay awake, and may sleep again afterwards."""

from __future__ import annotations

from pathlib import Path

from tests.fakes import FakeHost

from nicbench.tuning.preparation import keep_awake
from nicbench.tuning.stack import UndoStack

CPU_0 = "/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us"
CPU_1 = "/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us"
DRIVER = "/sys/devices/system/cpu/cpuidle/current_driver"


async def test_it_is_asked_for_these_cpus_and_put_back(tmp_path: Path) -> None:
    host = FakeHost(files={DRIVER: "haltpoll\n", CPU_0: "0\n", CPU_1: "20\n"})
    changes = UndoStack("run", tmp_path / "folder", tmp_path / "runtime")
    assert await keep_awake(changes, host, (1,)) == (1,)
    assert (host.files[CPU_0].strip(), host.files[CPU_1].strip()) == ("0", "n/a")
    assert await changes.undo_all() == []
    assert host.files[CPU_1].strip() == "20"


async def test_without_idle_states_nothing_is_said_to_be_awake(tmp_path: Path) -> None:
    for driver in ({}, {DRIVER: "none\n"}):
        host = FakeHost(files={CPU_1: "0\n", **driver})
        assert await keep_awake(UndoStack("run", None, tmp_path), host, (1,)) == ()
        assert host.files[CPU_1] == "0\n"


async def test_a_cpu_that_cannot_be_asked_is_left_alone(tmp_path: Path) -> None:
    host = FakeHost(files={DRIVER: "intel_idle\n", CPU_0: "0\n"})
    assert await keep_awake(UndoStack("run", None, tmp_path), host, (0, 1)) == (0,)
