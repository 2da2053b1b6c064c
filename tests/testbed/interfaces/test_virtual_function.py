"""Virtual functions that nicbench makes: in which order, what is refused, and that they are gone afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost, NotedChanges

from nicbench.core.errors import NotReadyError
from nicbench.hosts.base import Completed
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.interfaces.base import Making, Port, VirtualFunctionOptions, set_command
from nicbench.testbed.interfaces.cards import bind_cards, make_virtual_functions
from nicbench.tuning.undo.adapters import RestoreDriver
from nicbench.tuning.undo.base import undo_one
from nicbench.tuning.undo.files import RestoreSetting
from nicbench.tuning.undo.network import SetLinkDown

DEVICE = "/sys/class/net/e0/device"
NUMBER, PROBING = f"{DEVICE}/sriov_numvfs", f"{DEVICE}/sriov_drivers_autoprobe"
MAC, MADE_UP = "02:00:00:00:00:07", "fe:55:0d:4a:75:f0"


class _Machine(FakeHost):
    """With the adapter e0, which has up to four functions at 0000:65:10.N, each in an IOMMU group of its own."""

    def __init__(self, *, there: int = 0, iommu: bool = True, up: bool = True, most: int = 4) -> None:
        super().__init__("local", {NUMBER: str(there), f"{DEVICE}/sriov_totalvfs": str(most), PROBING: "1"})
        self.functions: dict[int, dict[str, Any]] = {}
        self.drivers: dict[str, str] = {}
        self.written: Callable[[str, str], None] = lambda _path, _text: None
        self.deaf = False
        self.iommu = iommu
        flags = ["UP", "LOWER_UP"] if up else []
        links = [{"ifname": "e0", "flags": flags}, {"ifname": "eth0", "flags": flags}]
        self.answer("ip -d -j link show", json.dumps(links))
        self.answer("ip -d -j link show dev e0", lambda _: json.dumps([{**links[0], "vfinfo_list": self._told()}]))
        self.answer("ip -j link show", json.dumps([{"ifname": "e0", "flags": ["UP", "LOWER_UP"]}]))
        self.answer("ip -j address show", "[]")
        self.answer("ip -j -4 route show table all", json.dumps([{"dst": "default", "dev": "eth0"}]))
        self.answer("ip link set dev e0 vf", self._set)
        self.answer("ip -j link show dev e0v1", lambda _: json.dumps([{"address": MAC}]))
        for number in range(4):
            address = f"0000:65:10.{number}"
            self.answer(f"readlink {DEVICE}/virtfn{number}", f"../{address}\n")
            self.answer(f"readlink /sys/bus/pci/devices/{address}/driver", self._driver)
            self.answer(f"ls /sys/bus/pci/devices/{address}/net", self._net)
            self.answer(f"ls /sys/bus/pci/devices/{address}/iommu_group/devices", self._group)

    async def write_file(self, path: str, text: str) -> None:
        if path == NUMBER:
            self.functions = {number: {"vf": number} for number in range(int(text))}
            self.drivers.clear()
        if path == "/sys/bus/pci/drivers_probe" and not self.deaf:
            chosen = self.files.get(f"/sys/bus/pci/devices/{text}/driver_override", "").strip()
            if chosen or self.files[PROBING] == "1":
                self.drivers[text] = chosen or "igbvf"
        self.written(path, text)
        await super().write_file(path, text)

    def _told(self) -> list[dict[str, Any]]:
        return list(self.functions.values())

    def _set(self, command: tuple[str, ...]) -> str:
        words = dict(zip(command[7::2], command[8::2], strict=True))
        function = self.functions[int(command[6])]
        function.update(address=words["mac"], vlan_list=[{"vlan": int(words.get("vlan", 0))}])
        function.update(spoofchk=words.get("spoofchk", "on") == "on", trust=words.get("trust") == "on")
        return ""

    def _driver(self, command: tuple[str, ...]) -> Completed:
        driver = self.drivers.get(command[1].split("/")[5])
        return Completed(command, 0 if driver else 1, f"../../{driver}\n" if driver else "", "")

    def _net(self, command: tuple[str, ...]) -> str:
        return "eth7\n" if self.drivers.get(command[1].split("/")[5]) == "igbvf" else ""

    def _group(self, command: tuple[str, ...]) -> Completed:
        return Completed(command, 0 if self.iommu else 2, f"{command[1].split('/')[5]}\n", "")


def _making(machine: FakeHost, **function: Any) -> tuple[Making, NotedChanges]:
    changes = NotedChanges()
    bind = {"bind": function.pop("bind")} if "bind" in function else {}
    given = {"of": "e0", "number": 1, "mac": MAC, **function}
    port = Port.model_validate({"host": "server", "virtual_function": given, **bind})
    return Making({"server": machine}, {"s0": port}, changes), changes


async def _make(making: Making) -> None:
    await make_virtual_functions(making)
    await bind_cards(making)


async def test_a_function_has_its_address_before_the_kernel_takes_it_and_its_name_after() -> None:
    machine = _Machine(up=False)
    making, changes = _making(machine, trust=True, vlan=7)
    await make_virtual_functions(making)
    assert making.ports["s0"].device == "e0v1"
    (down, gone) = changes.undos
    assert down == SetLinkDown(device="e0")
    assert isinstance(gone, RestoreSetting)
    assert (gone.item, gone.device, gone.before) == ("virtual_functions", "e0", {"virtual_functions": 0})
    assert [text for path, text in machine.writes if path == PROBING] == ["0", "1"]
    order = [path for path, _ in machine.writes]
    assert order.index(NUMBER) < order.index("/sys/bus/pci/drivers_probe")
    assert machine.files[NUMBER] == "2"  # as many as the number 1 needs
    words = [" ".join(command) for command in machine.commands]
    assert f"ip link set dev e0 vf 1 mac {MAC} vlan 7 trust on" in words
    assert "ip link set dev eth7 name e0v1" in words
    assert making.facts["virtual_functions"]["s0"] == {
        "of": "e0",
        "number": 1,
        "address": "0000:65:10.1",
        "mac": MAC,
        "vlan": 7,
        "trust": True,
        "device": "e0v1",
        "driver": "igbvf",
    }

    assert await undo_one(machine, gone) is None
    assert machine.files[NUMBER] == "0"
    assert not machine.functions


async def test_a_driver_that_made_up_an_address_during_a_reset_is_bound_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nicbench.testbed.interfaces.cards._RESET_S", 0.0)
    machine = _Machine()
    addresses = iter((MADE_UP, MAC))

    def probe(path: str, address: str) -> None:
        if path == "/sys/bus/pci/drivers_probe":
            machine.files["/sys/class/net/eth7/address"] = next(addresses)
        elif path.endswith("/driver/unbind"):
            machine.drivers.pop(address)

    machine.written = probe
    making, _ = _making(machine)
    await make_virtual_functions(making)
    assert making.facts["virtual_functions"]["s0"]["mac"] == MAC
    assert ("/sys/bus/pci/devices/0000:65:10.1/driver/unbind", "0000:65:10.1") in machine.writes


async def test_for_dpdk_it_is_bound_to_vfio_and_has_no_interface() -> None:
    machine = _Machine()
    making, changes = _making(machine, bind="vfio-pci")
    await make_virtual_functions(making)
    await bind_cards(making)
    port = making.ports["s0"]
    assert (port.device, port.address, port.mac) == (None, "0000:65:10.1", MAC)
    assert machine.drivers == {"0000:65:10.1": "vfio-pci"}
    undo = changes.undos[-1]
    assert undo == RestoreDriver(address="0000:65:10.1", driver="", override="", asked="vfio-pci")


async def test_a_port_in_a_new_namespace_is_made_outside_of_it() -> None:
    machine = _Machine()
    space = NetnsHost(machine, "space", "server")
    making, _ = _making(machine)
    making.hosts, making.created = {"server": space}, (space,)
    await make_virtual_functions(making)
    assert machine.files[NUMBER] == "2"


@pytest.mark.parametrize(
    ("machine", "function", "message"),
    [
        (_Machine(there=2), {}, "it has 2 virtual functions already"),
        (_Machine(most=1), {}, "2 are more than the adapter's 1"),
        (_Machine(), {"of": "e9"}, "there is no interface e9"),
        (_Machine(), {"of": "eth0"}, "carries the default route"),
        (_Machine(iommu=False), {"bind": "vfio-pci"}, "no IOMMU isolates 0000:65:10.1"),
    ],
)
async def test_what_cannot_be_made_is_refused(machine: _Machine, function: dict[str, Any], message: str) -> None:
    making, _ = _making(machine, **function)
    with pytest.raises(NotReadyError, match=message) as refused:
        await _make(making)
    assert refused.value.place == "server, port s0"


async def test_an_adapter_that_is_in_use_is_not_reset() -> None:
    machine = _Machine()
    address = {"local": "192.0.2.1", "prefixlen": 24, "scope": "global"}
    machine.answer("ip -j address show", json.dumps([{"ifname": "e0", "addr_info": [address]}]))
    making, changes = _making(machine)
    with pytest.raises(NotReadyError, match=r"it has the address 192\.0\.2\.1/24"):
        await make_virtual_functions(making)
    assert not changes.undos


async def test_what_the_adapter_does_not_do_is_told() -> None:
    machine = _Machine()
    machine.fail("ip link set dev e0 vf", "RTNETLINK answers: Operation not supported", 2)
    making, _ = _making(machine)
    with pytest.raises(NotReadyError, match=r"cannot be set: RTNETLINK answers: Operation not supported"):
        await make_virtual_functions(making)


async def test_a_function_without_a_driver_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nicbench.tuning.drivers._TRIES", 1)
    machine = _Machine()
    machine.deaf = True
    making, _ = _making(machine)
    with pytest.raises(NotReadyError, match=r"no kernel driver took the virtual function 0000:65:10\.1"):
        await make_virtual_functions(making)


async def test_a_device_that_somebody_took_since_is_left_with_him() -> None:
    machine = _Machine()
    machine.drivers["0000:65:10.1"] = "uio_pci_generic"
    undo = RestoreDriver(address="0000:65:10.1", driver="igbvf", override="", asked="vfio-pci")
    assert "was left with the driver uio_pci_generic" in str(await undo_one(machine, undo))


def test_the_address_is_the_same_in_every_run() -> None:
    one, other = (VirtualFunctionOptions(of="e0", number=number) for number in (0, 1))
    assert one.given_mac == VirtualFunctionOptions(of="e0", number=0).given_mac != other.given_mac
    assert int(one.given_mac[:2], 16) & 3 == 2  # locally administered, of one card
    assert set_command(one) == ("ip", "link", "set", "dev", "e0", "vf", "0", "mac", one.given_mac)


def test_no_group_address_is_an_address_of_a_card() -> None:
    with pytest.raises(ValidationError, match="not a unicast MAC address"):
        VirtualFunctionOptions(of="e0", number=0, mac="03:00:00:00:00:01")
