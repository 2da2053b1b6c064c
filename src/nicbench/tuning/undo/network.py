"""Undoes what was made in the network: namespaces, interfaces, addresses, rules, and programs on interfaces."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NAMESPACE_FOLDER
from nicbench.tuning import bpf
from nicbench.tuning.undo.base import Undo


async def show_link(host: Host, device: str, *options: str) -> dict[str, Any] | None:
    """Returns the object of ``ip -j link`` for an interface; None if it does not exist."""
    shown = await host.run(("ip", "-j", *options, "link", "show", "dev", device), check=False)
    links: list[dict[str, Any]] = json.loads(shown.stdout or "[]") if shown.status == 0 else []
    return links[0] if links else None


class DeleteLink(Undo):
    """Delete an interface that nicbench made."""

    kind: Literal["delete_link"] = "delete_link"
    device: str

    async def undo(self, host: Host) -> str | None:
        if await show_link(host, self.device) is not None:
            await host.run(("ip", "link", "delete", "dev", self.device))
        return None


class SetLinkUp(Undo):
    """Bring an interface up that nicbench took down."""

    kind: Literal["set_link_up"] = "set_link_up"
    device: str

    async def undo(self, host: Host) -> str | None:
        if await show_link(host, self.device) is not None:
            await host.run(("ip", "link", "set", "dev", self.device, "up"))
        return None


class SetLinkDown(Undo):
    """Take an interface down that was down before."""

    kind: Literal["set_link_down"] = "set_link_down"
    device: str

    async def undo(self, host: Host) -> str | None:
        if await show_link(host, self.device) is not None:
            await host.run(("ip", "link", "set", "dev", self.device, "down"))
        return None


class EndPromiscuity(Undo):
    """Take the promiscuous mode from an interface that did not have it: a killed engine leaves it there."""

    kind: Literal["end_promiscuity"] = "end_promiscuity"
    device: str

    async def undo(self, host: Host) -> str | None:
        # IFF_PROMISC is what somebody switched on for the interface itself; a bridge's own use does not set it.
        if "PROMISC" in (await show_link(host, self.device) or {}).get("flags", ()):
            await host.run(("ip", "link", "set", "dev", self.device, "promisc", "off"))
        return None


# $1 namespace, $2 interface, $3 whether it was up, then its addresses as `ip address add` takes them. The namespace to
# come back to is that of this shell, for which `ip` takes its number. One that has come back already (the kernel puts
# the cards of a namespace that is gone into the first one) still gets its addresses.
_RETURN: Final = f"""
namespace=$1 device=$2 up=$3 status=0
shift 3
if [ -e {NAMESPACE_FOLDER}/"$namespace" ] && ip -n "$namespace" link show dev "$device" >/dev/null 2>&1; then
    ip -n "$namespace" link set dev "$device" netns $$ || exit 1
fi
ip link show dev "$device" >/dev/null 2>&1 || exit 0
[ "$up" = 0 ] || ip link set dev "$device" up || status=1
for words in "$@"; do
    ip -o address show dev "$device" | grep -qF " ${{words%% *}} " ||
        ip address add $words dev "$device" || status=1
done
exit $status
"""


class ReturnLink(Undo):
    """Move an interface back out of ``namespace``, bring it up where it was, and give it the addresses it had.

    Each address is in the words of ``ip address add``.
    """

    kind: Literal["return_link"] = "return_link"
    device: str
    namespace: str
    up: bool
    addresses: tuple[str, ...] = ()

    async def undo(self, host: Host) -> str | None:
        """``host`` is where it came from. A sentence where it is nowhere any more."""
        up = "1" if self.up else "0"
        await host.run(("sh", "-c", _RETURN, "return", self.namespace, self.device, up, *self.addresses))
        link = await show_link(host, self.device)
        if link is None:
            return (
                f"{host.name}: the interface {self.device} is neither here nor in the namespace {self.namespace} any "
                "more: somebody moved, renamed or removed it"
            )
        if self.up and "UP" not in link.get("flags", ()):
            raise HostError(f"the interface {self.device} should be up again and is down", place=host.name)
        return None


class ReleasePort(Undo):
    """Take an interface out of a bond that nicbench made, and give it its state, MAC address and MTU back.

    One that is in another group by now, or in none and changed since, was taken by somebody: it is left alone.
    """

    kind: Literal["release_port"] = "release_port"
    device: str
    bond: str
    is_up: bool
    mac: str
    mtu_bytes: int

    async def undo(self, host: Host) -> str | None:
        """The driver gives MAC address and MTU back by itself where nobody changed them, and leaves the port down."""
        link = await show_link(host, self.device, "-d")
        if link is None:
            return None  # its card went, or its namespace
        master = link.get("master")
        if master is not None and master != self.bond:
            return f"{host.name}: {self.device} was left alone: somebody made it a member of {master} since"
        state = "up" if self.is_up else "down"
        wanted = (("address", self.mac), ("mtu", str(self.mtu_bytes)), (state,))
        if master is not None:
            now: tuple[tuple[str, ...], ...] = ()
            await host.run(("ip", "link", "set", "dev", self.device, "nomaster"))
        else:
            now = (("address", str(link.get("address"))), ("mtu", str(link.get("mtu"))), (_state_of(link),))
        for words in wanted:
            if words not in now:
                await host.run(("ip", "link", "set", "dev", self.device, *words))
        after = await show_link(host, self.device, "-d") or {}
        found = (after.get("master"), after.get("address"), after.get("mtu"), _state_of(after))
        if found != (None, self.mac, self.mtu_bytes, state):
            raise HostError(
                f"{self.device} should be out of {self.bond}, {state}, with {self.mac} and an MTU of "
                f"{self.mtu_bytes} again; it is in {found[0] or 'none'}, {found[3]}, with {found[1]} and {found[2]}",
                place=host.name,
            )
        return None


def _state_of(link: Mapping[str, Any]) -> str:
    return "up" if "UP" in link.get("flags", ()) else "down"


# The kernel's words for an address (old kernels, newer ones), a route (and the last of its table), a neighbour, and an
# interface that is gone.
_GONE: Final = (
    "Cannot assign requested address",
    "address not found",
    "No such process",
    "FIB table does not exist",
    "No such file or directory",
    "Cannot find device",
)


class DeleteIpObject(Undo):
    """Delete an address, route or neighbour that nicbench added: ``ip`` with these arguments."""

    kind: Literal["delete_ip_object"] = "delete_ip_object"
    arguments: tuple[str, ...]

    async def undo(self, host: Host) -> str | None:
        done = await host.run(("ip", *self.arguments), check=False)
        if done.status != 0 and not any(words.lower() in done.stderr.lower() for words in _GONE):
            raise HostError(f"ip {' '.join(self.arguments)}: {done.stderr.strip()}", place=host.name)
        return None


class DeleteClsact(Undo):
    """Delete the queueing discipline ``clsact`` that nicbench added to an interface, with the filters in it."""

    kind: Literal["delete_clsact"] = "delete_clsact"
    device: str

    async def undo(self, host: Host) -> str | None:
        shown = await host.run(("tc", "-j", "qdisc", "show", "dev", self.device), check=False)
        if shown.status == 0 and any(one.get("kind") == "clsact" for one in json.loads(shown.stdout or "[]")):
            await host.run(("tc", "qdisc", "del", "dev", self.device, "clsact"))
        return None


class DeleteNftTable(Undo):
    """Delete a table of packet filter rules that nicbench made; ``family`` is nft's (``ip``, ``ip6``)."""

    kind: Literal["delete_nft_table"] = "delete_nft_table"
    family: str
    table: str

    async def undo(self, host: Host) -> str | None:
        # A table that is not there is no trouble: the change may have failed, or somebody deleted it.
        done = await host.run(("nft", "delete", "table", self.family, self.table), check=False)
        still = await host.run(("nft", "list", "table", self.family, self.table), check=False)
        if still.status == 0:
            raise HostError(
                f"the table {self.family} {self.table} cannot be deleted: {done.stderr.strip()}", place=host.name
            )
        return None


class DeleteDatapath(Undo):
    """Delete a datapath that nicbench had the kernel make: it outlives the switch that uses it."""

    kind: Literal["delete_datapath"] = "delete_datapath"
    datapath: str

    async def undo(self, host: Host) -> str | None:
        done = await host.run(("ovs-dpctl", "del-dp", f"system@{self.datapath}"), check=False)
        if await show_link(host, self.datapath) is not None:
            raise HostError(f"the datapath {self.datapath} cannot be deleted: {done.stderr.strip()}", place=host.name)
        return None


class DetachXdp(Undo):
    """Detach the XDP program that nicbench (or its engine) attached; ``program_id`` None: whichever came since."""

    kind: Literal["detach_xdp"] = "detach_xdp"
    device: str
    program_id: int | None = None

    async def undo(self, host: Host) -> str | None:
        if await show_link(host, self.device) is None:
            return None
        present = await bpf.attached_program(host, self.device)
        if present is not None and self.program_id not in (None, present):
            return f"{host.name}: XDP program {present} on {self.device} is not ours ({self.program_id}): left alone"
        await bpf.detach(host, self.device, self.program_id)
        return None


class StopPollingThreads(Undo):
    """Switch threaded NAPI off, which ends the threads; the device may have lost its XDP program since.

    The kernel takes the setting only of a device that polls. A veth without a program polls while it has GRO.
    """

    kind: Literal["stop_polling_threads"] = "stop_polling_threads"
    device: str

    async def undo(self, host: Host) -> str | None:
        path = f"/sys/class/net/{self.device}/threaded"
        if await show_link(host, self.device) is None or (await host.read_file(path) or "0").strip() == "0":
            return None
        write = ("sh", "-c", 'echo 0 >"$1"', "write", path)
        if (await host.run(write, check=False)).status == 0:
            return None
        await host.run(("ethtool", "-K", self.device, "gro", "on"))
        try:
            await host.run(write)
        finally:
            await host.run(("ethtool", "-K", self.device, "gro", "off"))
        return None
