"""Cards of the machine that a guest is given: bound, with an address, and as before afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fakes import FakeHost, NotedChanges

from nicbench.core.errors import NotReadyError
from nicbench.hosts.base import Completed
from nicbench.hosts.options import VmOptions
from nicbench.testbed.vm.command import give_cards
from nicbench.tuning.undo.adapters import RestoreDriver, RestoreFunctionMac
from nicbench.tuning.undo.base import undo_one

CARD = "0000:65:02.1"
FOLDER = f"/sys/bus/pci/devices/{CARD}"
OLD, NEW = "02:00:00:00:00:0a", "02:00:00:00:01:00"


class _Machine(FakeHost):
    """With the virtual function 1 of e0, or with a whole card, at ``CARD``; iavf has it."""

    def __init__(self, *, function: bool = True) -> None:
        super().__init__("local", {f"{FOLDER}/modalias": "pci:v00008086d0000154C\n"})
        self.driver = "iavf"
        self.mac = OLD
        self.answer(f"ls {FOLDER}/iommu_group/devices", f"{CARD}\n")
        self.answer(f"readlink {FOLDER}/driver", lambda _: f"../../{self.driver}\n")
        self.answer("ip -d -j link show", json.dumps([{"ifname": "e0", "flags": []}, {"ifname": "e0v1", "flags": []}]))
        self.answer("ip -d -j link show dev e0", lambda _: json.dumps([self._link()]))
        self.answer("ip link set dev e0 vf 1 mac", self._set)
        self.answer(f"find {FOLDER}/", f"{FOLDER}/net/e0v1\n")
        self.answer("sh -c", lambda command: self._shell(command, function=function))

    async def write_file(self, path: str, text: str) -> None:
        if path == "/sys/bus/pci/drivers_probe":
            self.driver = self.files[f"{FOLDER}/driver_override"].strip() or "iavf"
        if path.endswith("/bind"):
            self.driver = path.split("/")[5]
        await super().write_file(path, text)

    def _link(self) -> dict[str, Any]:
        return {
            "ifname": "e0",
            "vfinfo_list": [{"vf": 0, "address": "02:00:00:00:00:09"}, {"vf": 1, "address": self.mac}],
        }

    def _set(self, command: tuple[str, ...]) -> str:
        self.mac = command[-1]
        return ""

    def _shell(self, command: tuple[str, ...], *, function: bool) -> Completed:
        if "net/*/address" in command[2]:
            return Completed(command, 0, f"{OLD}\n", "")
        owner = f"e0\nvirtfn0 ../0000:65:02.0\nvirtfn1 ../{CARD}\n" if function else ""
        return Completed(command, 0, owner, "")


def _options(**card: str) -> VmOptions:
    return VmOptions.model_validate({"cards": {"n0": {"network": "a"}, "f0": {"pci": CARD, **card}}})


async def test_a_function_gets_its_address_on_the_port_and_vfio_takes_it() -> None:
    machine, changes = _Machine(), NotedChanges()
    macs, aliases = await give_cards(changes, machine, _options(mac=NEW), "guest")
    assert (macs, aliases) == ({"f0": NEW}, ("pci:v00008086d0000154C",))
    assert (machine.mac, machine.driver) == (NEW, "vfio-pci")
    for undo in reversed(changes.undos):
        assert await undo_one(machine, undo) is None
    assert [type(undo) for undo in changes.undos] == [RestoreFunctionMac, RestoreDriver]
    assert (machine.mac, machine.driver) == (OLD, "iavf")


async def test_an_address_that_somebody_gave_since_is_left() -> None:
    machine = _Machine()
    machine.mac = "02:00:00:00:00:ff"
    undo = RestoreFunctionMac(device="e0", number=1, mac=OLD, asked=NEW)
    assert "was left with the address 02:00:00:00:00:ff" in str(await undo_one(machine, undo))


async def test_a_whole_card_keeps_its_address() -> None:
    machine, changes = _Machine(function=False), NotedChanges()
    macs, _ = await give_cards(changes, machine, _options(), "guest")
    assert macs == {"f0": OLD}
    with pytest.raises(NotReadyError, match="is not a virtual function"):
        await give_cards(changes, _Machine(function=False), _options(mac=NEW), "guest")


async def test_a_card_that_shares_its_group_is_refused() -> None:
    machine = _Machine()
    machine.answer(f"ls {FOLDER}/iommu_group/devices", f"{CARD}\n0000:65:00.0\n")
    machine.answer("readlink /sys/bus/pci/devices/0000:65:00.0/driver", "../../ixgbe\n")
    with pytest.raises(NotReadyError, match=r"shares its IOMMU group with 0000:65:00\.0, which ixgbe uses") as refused:
        await give_cards(NotedChanges(), machine, _options(), "guest")
    assert refused.value.place == "guest, card f0"
