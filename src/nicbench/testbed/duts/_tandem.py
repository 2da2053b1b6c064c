"""What DUTs share that encrypt: two gateways back to back, so that frames leave the DUT as they came.

The first port's traffic is routed into the near tunnel interface, which encrypts. What it sends crosses a veth pair,
the middle wire, to a second network namespace, where the far end decrypts; the far interface was made in that
namespace and moved, so that decrypted packets appear beside the ports and are routed to the second port. The other way
is the mirror image. This is the tandem of two devices of draft-ietf-bmwg-ipsec-meth. Each frame is forwarded twice.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import Any, Final

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost, outermost
from nicbench.testbed.duts._forwarding import ForwardingDut
from nicbench.testbed.duts._packet_filter import set_up_table
from nicbench.testbed.duts._passage import PassageDut, Passed, link_packets
from nicbench.testbed.duts._ports import require_host
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.network import DeleteIpObject, DeleteLink
from nicbench.tuning.undo.processes import DeleteNamespace

MIDDLE: Final = ("nicbench-mid0", "nicbench-mid1")
MIDDLE_ADDRESSES: Final = ("169.254.91.1", "169.254.91.2")
_MIDDLE_MACS: Final = ("02:00:00:00:5a:01", "02:00:00:00:5a:02")
_TABLES: Final = ("5191", "5192")
_LONGEST_OVERHEAD: Final = 200
"""Bytes that the middle wire carries beyond the MTU of the ports: more than any of the encapsulations adds."""
_FAMILY: Final = "netdev"
TABLE: Final = "nicbench-passage"


def passage_ruleset(device: str, carrier: str) -> str:
    """The text for nft that counts what comes in from the middle wire: packets of the tunnel, and others but ARP."""
    rules = ("ether type arp accept", f'{carrier} counter name "encrypted" accept', 'counter name "plain"')
    return "\n".join(
        [
            f"table {_FAMILY} {TABLE} {{",
            "  counter encrypted { }",
            "  counter plain { }",
            "  chain arriving {",
            f'    type filter hook ingress device "{device}" priority 0; policy accept;',
            *(f"    {rule}" for rule in rules),
            "  }",
            "}",
            "",
        ]
    )


class TandemDut(ForwardingDut, PassageDut):
    """Two gateways in one machine; subclasses make the two tunnel interfaces ``devices``.

    ``carrier`` matches the packets of the tunnel, in the words of nft.
    """

    carrier: str
    fewest_ports = 2
    most_ports = 2
    returns_on_same_port = False
    devices: tuple[str, str]

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._made: list[str] = []
        self._far: NetnsHost | None = None
        self._mtu = 0

    @abstractmethod
    async def _make_ends(self, testbed: Testbed, host: Host, far: NetnsHost, changes: Changes) -> None:
        """Makes the two interfaces, the far one in ``far``, with their keys; NotReadyError where it cannot."""

    @abstractmethod
    async def _agree(self, host: Host, far: NetnsHost) -> None:
        """Verifies that the ends understand each other; NotReadyError where they do not."""

    @abstractmethod
    def _disclose_layer(self) -> dict[str, Any]:
        """Version, ciphers and options for the report; never a key."""

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        ports = await self._set_up_routes(testbed, changes)
        links = json.loads((await host.run(("ip", "-j", "link", "show"))).stdout)
        self._mtu = max(int(link["mtu"]) for link in links if link["ifname"] in ports.names)
        far = await self._make_middle(host, changes)
        self._far = far
        await self._make_ends(testbed, host, far, changes)
        back = host.namespace if isinstance(host, NetnsHost) else "1"
        await self._run(far, "ip", "link", "set", "dev", self.devices[1], "netns", back)
        for device, port, number in zip(self.devices, ports.names, _TABLES, strict=True):
            await self._bring_up(host, device)
            for version in ("-4", "-6") if self._has_ipv6 else ("-4",):
                await self._add(host, changes, version, "route", ("default", "dev", device, "table", number))
                await self._add(host, changes, version, "rule", ("iif", port, "lookup", number, "pref", number))
        await self._agree(host, far)
        for side, device in zip((host, far), MIDDLE, strict=True):
            words = {"what": "the count of encrypted frames", "needs": "nf_tables of devices (CONFIG_NF_TABLES_NETDEV)"}
            await set_up_table(side, changes, _FAMILY, TABLE, passage_ruleset(device, self.carrier), **words)

    async def _make_middle(self, host: Host, changes: Changes) -> NetnsHost:
        machine = outermost(host)
        # With the name of the DUT's own, so that several DUTs of one machine have each their own.
        name = f"{host.namespace if isinstance(host, NetnsHost) else 'nicbench'}-far"
        far = NetnsHost(machine, name)
        if await far.exists():
            raise NotReadyError(
                f"there is a network namespace {name} already",
                place=machine.name,
                next_step=f"a run that died left it: nicbench restore RUN, or ip netns delete {name}",
            )
        make = ("ip", "netns", "add", name)
        await changes.make(machine, DeleteNamespace(namespace=name), lambda: self._run(machine, *make))
        await self._run(far, "ip", "link", "set", "dev", "lo", "up")
        # The far end joins its namespace by name, which the machine knows, whatever namespace `ip` runs in.
        pair = ("ip", "link", "add", "name", MIDDLE[0], "type", "veth", "peer", "name", MIDDLE[1], "netns", name)
        await changes.make(host, DeleteLink(device=MIDDLE[0]), lambda: self._run(host, *pair))
        for number, (side, device) in enumerate(zip((host, far), MIDDLE, strict=True)):
            silent = f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6"
            if await side.read_file(silent) is not None:
                await side.write_file(silent, "1")
            mtu = str(self._mtu + _LONGEST_OVERHEAD)
            set_link = ("ip", "link", "set", "dev", device)
            # Each frame of a tunnel is counted: none may be sent as a segment of a larger one.
            await self._run(side, *set_link, "address", _MIDDLE_MACS[number], "mtu", mtu, "gso_max_segs", "1", "up")
            await self._run(side, "ip", "address", "add", f"{MIDDLE_ADDRESSES[number]}/30", "dev", device)
            other = (MIDDLE_ADDRESSES[1 - number], "lladdr", _MIDDLE_MACS[1 - number])
            await self._run(side, "ip", "neigh", "replace", *other, "dev", device, "nud", "permanent")
        return far

    async def _bring_up(self, host: Host, device: str) -> None:
        """Brings a tunnel interface up that sends nothing by itself; its settings go with it."""
        settings = [(f"ipv4/conf/{device}/rp_filter", "0"), (f"ipv6/conf/{device}/addr_gen_mode", "1")]
        settings += [(f"ipv6/conf/{device}/disable_ipv6", "0")] if self._has_ipv6 else []
        for path, value in settings:
            if await host.read_file(f"/proc/sys/net/{path}") is not None:
                await host.write_file(f"/proc/sys/net/{path}", value)
        await self._run(host, "ip", "link", "set", "dev", device, "mtu", str(self._mtu), "up")

    async def _add(self, host: Host, changes: Changes, version: str, what: str, words: tuple[str, ...]) -> None:
        undo = DeleteIpObject(arguments=(version, what, "del", *words))
        await changes.make(host, undo, lambda: self._run(host, "ip", version, what, "add", *words))

    async def _run(self, host: Host, *command: str) -> None:
        await host.run(command)
        inside = f"[{host.name}] " if host is self._far else ""
        self._made.append(f"{inside}{' '.join(command)}")

    async def _make_link(self, host: Host, changes: Changes, device: str, undo_on: Host, *words: str) -> None:
        """Makes a tunnel interface on ``host``; NotReadyError where its kernel has no such kind."""
        command = ("ip", "link", "add", "name", device, "type", *words)
        try:
            await changes.make(undo_on, DeleteLink(device=device), lambda: self._run(host, *command))
        except HostError as error:
            raise NotReadyError(
                f"the kernel makes no interface of the type {words[0]}: {error.message}",
                place=f"dut, on {host.name}",
                next_step=self._without_kernel,
            ) from error

    _without_kernel = "use a kernel that has it, for example that of a virtual machine (docs/vm.md)"

    async def _read_passed(self) -> Passed:
        """Reads what went into the tunnel, what crossed the wire encrypted and came out, and what the ports sent."""
        if self._host is None or self._far is None:
            raise UsageError(f"{self.layer} is not set up", next_step="call up first")
        ports = tuple(port.device for port in self._ports)
        counts = await link_packets(self._host, *self.devices, *ports)
        decrypted = sum(counts[device][0] for device in self.devices)
        into = sum(counts[device][1] for device in self.devices)
        near, far = [await _read_counters(side) for side in (self._host, self._far)]
        return Passed(
            into=into,
            through=min(decrypted, near["encrypted"] + far["encrypted"]),
            sent=sum(counts[port][1] for port in ports),
            plain=near["plain"] + far["plain"],
        )

    def disclosure(self) -> dict[str, Any]:
        routes = self._disclose_routes()
        return {
            "kind": self.kind,
            **self._disclose_layer(),
            "gateways": "two, back to back: one encrypts, the other decrypts; each frame is forwarded twice",
            "middle_wire": "a veth pair of the kernel, on which encrypted and plain frames are counted",
            "mtu": {"tunnel": self._mtu, "middle_wire": self._mtu + _LONGEST_OVERHEAD},
            **routes,
            "commands": [*routes["commands"], *self._made],
        }


async def _read_counters(host: Host) -> dict[str, int]:
    """Reads the packets that each counter of the table has seen."""
    shown = json.loads((await host.run(("nft", "-j", "list", "table", _FAMILY, TABLE))).stdout)
    counters = (entry["counter"] for entry in shown["nftables"] if "counter" in entry)
    return {str(counter["name"]): int(counter["packets"]) for counter in counters}
