"""Gives network adapters back what they had: driver, time stamps, MAC address, RDMA devices, ports of a TRex server."""

from __future__ import annotations

from typing import Any, Literal

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.engine.trex import TrexClient, TrexError
from nicbench.hosts.base import Host
from nicbench.system.adapters.ethtool import ALL_FRAMES, StampSetting, parse_stamp_setting
from nicbench.system.adapters.links import parse_links, virtual_functions
from nicbench.tuning.drivers import bound_driver, folder_of, interface_of, set_driver
from nicbench.tuning.undo.base import Undo
from nicbench.tuning.undo.network import show_link


class RestoreDriver(Undo):
    """Give a PCI device back to the ``driver`` that it had ("": none), unless another than ``asked`` has it by now.

    Its interface is then called ``device`` again, and is up if it was.
    """

    kind: Literal["restore_driver"] = "restore_driver"
    address: str
    driver: str
    override: str
    asked: str
    device: str | None = None
    up: bool = False

    async def undo(self, host: Host) -> str | None:
        """A sentence where somebody gave it to another driver since; a device that is gone needs nothing."""
        if (await host.run(("test", "-e", folder_of(self.address)), check=False)).status != 0:
            return None
        now = await bound_driver(host, self.address)
        if now not in (self.asked, self.driver, ""):
            return (
                f"{host.name}: the PCI device {self.address} was left with the driver {now}: somebody changed it since "
                f"we set {self.asked}; before the run it was {self.driver or 'none'}"
            )
        await set_driver(host, self.address, self.driver, override=self.override)
        if self.device is not None:
            await self._restore_interface(host, self.device)
        return None

    async def _restore_interface(self, host: Host, device: str) -> None:
        found = await interface_of(host, self.address)
        if found is None:
            message = f"the card {self.address} should have the interface {device} again, and has none"
            raise HostError(message, place=host.name)
        if found != device:
            await host.run(("ip", "link", "set", "dev", found, "down"))
            await host.run(("ip", "link", "set", "dev", found, "name", device))
        if self.up:
            await host.run(("ip", "link", "set", "dev", device, "up"))


_NO_SUCH_COMMAND = 127
_INSTEAD = "use `timestamps: tsc`"


class RestoreHardwareStamps(Undo):
    """Give the card of an interface its setting of time stamps back; all frames were stamped meanwhile."""

    kind: Literal["restore_hardware_stamps"] = "restore_hardware_stamps"
    device: str
    transmit: int
    receive: int

    async def undo(self, host: Host) -> str | None:
        if await show_link(host, self.device) is None:
            return None
        before, now = StampSetting(self.transmit, self.receive), await read_stamp_setting(host, self.device)
        if now.receive != ALL_FRAMES:
            if now == before:
                return None
            return f"{self.device} stamps other frames (rx_filter {now.receive}) than we set: left as it is"
        await write_stamp_setting(host, self.device, before)
        return None


async def read_stamp_setting(host: Host, device: str) -> StampSetting:
    """NotReadyError where the tool is missing, or the driver does not say."""
    return await _call(host, device)


async def write_stamp_setting(host: Host, device: str, setting: StampSetting) -> StampSetting:
    """Gives what the driver made of it: it may stamp more than it was asked for. NotReadyError where it refuses."""
    return await _call(host, device, "-t", str(setting.transmit), "-r", str(setting.receive))


async def _call(host: Host, device: str, *arguments: str) -> StampSetting:
    place = f"{host.name}, {device}"
    try:
        done = await host.run(("hwstamp_ctl", "-i", device, *arguments), check=False)
    except NicbenchError as error:
        raise _without_tool(place) from error
    if done.status == _NO_SUCH_COMMAND:
        raise _without_tool(place)
    try:
        if done.status != 0:
            raise ValueError(" ".join(done.stderr.split()) or f"exit status {done.status}")
        return parse_stamp_setting(done.stdout)
    except ValueError as error:
        raise NotReadyError(
            f"the time stamps of the card cannot be {'set' if arguments else 'read'}: {error}",
            place=place,
            next_step=_INSTEAD,
        ) from error


def _without_tool(place: str) -> NotReadyError:
    return NotReadyError(
        "hwstamp_ctl, which switches the time stamps of cards on, is not installed",
        place=place,
        next_step=f"apt-get install linuxptp, or {_INSTEAD}",
    )


class RestoreFunctionMac(Undo):
    """Give a virtual function the address that it had, by its adapter's port, unless it is not ``asked`` any more."""

    kind: Literal["restore_function_mac"] = "restore_function_mac"
    device: str
    number: int
    mac: str
    asked: str

    async def undo(self, host: Host) -> str | None:
        """A sentence where somebody gave it another address since; a function that is gone needs none."""
        shown = await host.run(("ip", "-d", "-j", "link", "show", "dev", self.device), check=False)
        functions = [each for link in parse_links(shown.stdout or "[]") for each in virtual_functions(link)]
        now = next((each["mac"] for each in functions if each["number"] == self.number), None)
        if now is None or now == self.mac:
            return None
        if now != self.asked:
            return (
                f"{host.name}: virtual function {self.number} of {self.device} was left with the address {now}: "
                f"somebody changed it since we set {self.asked}; before the run it was {self.mac}"
            )
        await host.run(("ip", "link", "set", "dev", self.device, "vf", str(self.number), "mac", self.mac))
        return None


class DeleteRdmaLink(Undo):
    """Delete a soft RDMA device that nicbench made."""

    kind: Literal["delete_rdma_link"] = "delete_rdma_link"
    device: str

    async def undo(self, host: Host) -> str | None:
        # One that is not there any more went with its interface.
        done = await host.run(("rdma", "link", "delete", self.device), check=False)
        still = await host.run(("test", "-e", f"/sys/class/infiniband/{self.device}"), check=False)
        if still.status == 0:
            raise HostError(f"the RDMA device {self.device} cannot be deleted: {done.stderr.strip()}", place=host.name)
        return None


class FreeTrexPorts(Undo):
    """Take ports from ``owner``, the name under which one run held them, and release them, not promiscuous.

    Ports that others hold by now are left alone. A server that does not answer holds none that could be freed.
    """

    kind: Literal["free_trex_ports"] = "free_trex_ports"
    client: str
    python: str
    server: str
    sync_port: int
    async_port: int
    owner: str
    ports: tuple[int, ...]
    promiscuous: tuple[int, ...]
    """Of these ports those that were not promiscuous before."""

    outlasts_reboot = True
    can_be_scripted = False

    async def undo(self, host: Host) -> str | None:
        place = f"TRex at {self.server}:{self.sync_port}"
        client = await TrexClient.start(host, self.python, self.client, place)
        try:
            # Under a name of its own: TRex gives a port to whoever has its owner's name without asking.
            address: dict[str, Any] = {
                "server": self.server,
                "sync_port": self.sync_port,
                "async_port": self.async_port,
            }
            await client.ask("connect", **address, owner="nicbench restore")
            told = await client.ask("free", ports=self.ports, promiscuous=self.promiscuous, owner=self.owner)
        except TrexError as error:
            if error.kind != "unreachable":
                raise
            return f"{place} does not answer: if it runs, {self.owner} still holds its ports; `force: true` takes them"
        finally:
            await client.close()
        return f"{place}: ports that {', '.join(told['others'])} took since were left alone" if told["others"] else None

    def describe(self) -> str:
        return f"ports {', '.join(map(str, self.ports))} of TRex at {self.server}:{self.sync_port}"
