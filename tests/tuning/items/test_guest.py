"""A guest that is there: what libvirt 9.0 printed of it, pinned, lent functions, verified, and put back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.core.plan import Outcome, TunedSetting
from nicbench.tuning.items.guest import LibvirtGuest, LibvirtGuestOptions
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.tune import Part, TuningRequest, place_requests, tune

DEFINITION = """\
<domain type='kvm' id='1'>
  <name>dut</name>
  <memory unit='KiB'>65536</memory>
  {backing}
  <vcpu placement='static'>2</vcpu>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    {devices}
  </devices>
</domain>
"""
DEVICE = """\
<hostdev mode='subsystem' type='pci' managed='yes'>
  <driver name='vfio'/>
  <source><address domain='0x0000' bus='0x{}' slot='0x02' function='0x0'/></source>
  <alias name='hostdev0'/>
</hostdev>"""
HUGE = "<memoryBacking><hugepages><page size='1048576' unit='KiB'/></hugepages></memoryBacking>"


class Hypervisor(FakeHost):
    """A host with libvirt and one guest, that remembers what virsh was asked."""

    def __init__(self, *, lets_go: bool = True) -> None:
        super().__init__("hypervisor")
        self.pins = ["0-1", "0-1"]
        self.emulator = "0-1"
        self.devices = ["06"]
        self.backing = ""
        virsh = ("virsh", "--quiet", "--connect", "qemu:///system")
        self.answer((*virsh, "dumpxml", "dut"), lambda _: self._definition())
        self.answer((*virsh, "vcpupin", "dut"), self._pin)
        self.answer((*virsh, "emulatorpin", "dut"), self._pin_emulator)
        self.answer(("sh", "-c"), self._lend if lets_go else "")
        self.fail(("test", "-e", "/sys/bus/pci/devices/0000:03:00.0/physfn"), "")
        self.fail((*virsh, "dumpxml", "nobody"), "error: failed to get domain 'nobody'")

    def state(self) -> tuple[Any, ...]:
        return (list(self.pins), self.emulator, list(self.devices))

    def _definition(self) -> str:
        devices = "".join(DEVICE.format(bus) for bus in self.devices)
        return DEFINITION.format(backing=self.backing, devices=devices)

    def _pin(self, command: tuple[str, ...]) -> str:
        match command[6:]:
            case (number, cpus, "--live"):
                self.pins[int(number)] = cpus
                return ""
        return "".join(f" {number}      {cpus}\n" for number, cpus in enumerate(self.pins))

    def _pin_emulator(self, command: tuple[str, ...]) -> str:
        match command[6:]:
            case (cpus, "--live"):
                self.emulator = cpus
                return ""
        return f" {self.emulator}\n"

    def _lend(self, command: tuple[str, ...]) -> str:
        (bus,) = re.findall(r"bus=\W*0x(\w+)", command[2])
        assert command[2].endswith("dut /dev/stdin --live")
        (self.devices.append if "attach-device" in command[2] else self.devices.remove)(bus)
        return ""


def wish(**options: Any) -> TuningRequest:
    return TuningRequest("hypervisor", LibvirtGuest, LibvirtGuestOptions.model_validate({"guest": "dut", **options}))


async def tuned(host: Hypervisor, stack: UndoStack, **options: Any) -> TunedSetting:
    (row,) = await tune(stack, place_requests([wish(**options)], [Part("hypervisor", host, ())]))
    return row


async def test_a_guest_is_pinned_and_lent_functions_and_put_back(tmp_path: Path) -> None:
    host, stack = Hypervisor(), UndoStack("run", None, tmp_path)
    before = host.state()
    row = await tuned(host, stack, pin=[4, 5], emulator="2,3", functions=["0000:65:02.0"])
    assert row.outcome is Outcome.CHANGED
    assert host.state() == (["4", "5"], "2-3", ["06", "65"])
    assert row.before is not None
    assert row.asked == {"vcpu 0": "4", "vcpu 1": "5", "emulator": "2-3", "functions": "0000:06:02.0 0000:65:02.0"}
    assert {key: row.before[key] for key in row.asked} == {
        "vcpu 0": "0-1",
        "vcpu 1": "0-1",
        "emulator": "0-1",
        "functions": "0000:06:02.0",
    }
    assert await stack.undo_all() == []
    assert host.state() == before


async def test_pages_are_those_that_the_guest_started_with(tmp_path: Path) -> None:
    host = Hypervisor()
    host.backing = HUGE
    assert (await tuned(host, UndoStack("run", None, tmp_path), huge_pages="1 GiB")).outcome is Outcome.ALREADY


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"pin": [4]}, "the guest dut has 2 vCPUs, and `pin` 1 CPUs"),
        ({"huge_pages": "1 GiB"}, "of pages that are ordinary, not huge, 1 GiB: shut it down"),
        ({"guest": "nobody", "pin": [4, 5]}, "failed to get domain 'nobody'"),
        ({"functions": ["0000:03:00.0"]}, "0000:03:00.0 is not a virtual function of this machine"),
    ],
)
async def test_what_cannot_be_is_refused_before_anything_is_changed(
    tmp_path: Path, options: dict[str, Any], why: str
) -> None:
    host, stack = Hypervisor(), UndoStack("run", None, tmp_path)
    with pytest.raises(NotReadyError, match=re.escape(why)):
        await tuned(host, stack, **options)
    assert stack.entries == ()


async def test_a_function_that_the_guest_does_not_get_refuses_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nicbench.tuning.items.guest._STEP_S", 0.0)
    with pytest.raises(NotReadyError, match="functions"):
        await tuned(Hypervisor(lets_go=False), UndoStack("run", None, tmp_path), functions=["0000:65:02.0"])
