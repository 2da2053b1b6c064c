"""Anything that is already there (`external`): an appliance, a switch, another person's router. Nothing is changed."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from nicbench.duts._networks import SWEPT_ADDRESSES, checked_version, swept_address
from nicbench.duts._transparent import tester_macs
from nicbench.duts.base import Addressing, Dut
from nicbench.errors import UsageError
from nicbench.labs.base import Testbed
from nicbench.model.base import Frozen
from nicbench.tuning.changes import Changes

Mac = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$", to_lower=True)]


class StreamAddresses(Frozen):
    """Where one side's frames come from, as the DUT must see them; the counts are swept over the flows."""

    ipv4: str | None = None
    ipv6: str | None = None
    count: int = Field(default=SWEPT_ADDRESSES, ge=1, le=1 << 24)


class TesterAddresses(Frozen):
    """The tester's own addresses at one port: a router's next hops."""

    ipv4: IPv4Address | None = None
    ipv6: IPv6Address | None = None


class ExternalOptions(Frozen):
    """``dut: {kind: external, macs: [02:.., 02:..]}``.

    ``macs`` are those of the DUT's ports, in the order of the links; without them the DUT is transparent (a switch,
    a wire) and the tester's ports address each other. ``addresses`` are the IP ranges behind port 0 and port 1.
    A router finds the tester by ``tester``, the addresses of its two ports, for which they answer; where the flows'
    own addresses are in the router's subnets, ``answer_for_flows`` has the ports answer for them too.
    """

    macs: tuple[Mac, Mac] | None = None
    addresses: tuple[StreamAddresses, StreamAddresses] = (StreamAddresses(), StreamAddresses())
    tester: tuple[TesterAddresses, TesterAddresses] = (TesterAddresses(), TesterAddresses())
    answer_for_flows: bool = False
    description: str | None = None


class External(Dut):
    """Only says how it is to be addressed."""

    kind = "external"
    Options = ExternalOptions
    options: ExternalOptions

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        """Nothing: it is up already, and it is not ours."""

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        testers = tester_macs(testbed)
        if len(testers) == 1:
            return (self._direction(testers, ip, 0, 0),)
        if len(testers) != 2:
            raise UsageError(
                f"an external DUT has one or two links, not {len(testers)}", place="links", next_step="give one or two"
            )
        return (self._direction(testers, ip, 0, 1), self._direction(testers, ip, 1, 0))

    def _direction(self, testers: tuple[str, ...], ip: int, here: int, there: int) -> Addressing:
        # With one link, frames come back on it: the other side's addresses lie behind the same port.
        far = there if there != here else 1
        return Addressing(
            transmit=here,
            receive=there,
            source_mac=testers[here],
            destination_mac=self.options.macs[here] if self.options.macs else testers[there],
            ip=ip,
            source_address=self._address(ip, here),
            destination_address=self._address(ip, far),
            source_address_count=self.options.addresses[here].count,
            destination_address_count=self.options.addresses[far].count,
        )

    def neighbours(self, testbed: Testbed) -> tuple[tuple[dict[str, Any], ...], ...]:
        return tuple(self._answered(min(port, 1)) for port in range(len(testbed.tester_ports)))

    def _answered(self, port: int) -> tuple[dict[str, Any], ...]:
        own = self.options.tester[port]
        single = [{"first": str(address), "count": 1} for address in (own.ipv4, own.ipv6) if address is not None]
        if not self.options.answer_for_flows:
            return tuple(single)
        count = self.options.addresses[port].count
        return (*single, *({"first": self._address(ip, port), "count": count} for ip in (4, 6)))

    def _address(self, ip: int, port: int) -> str:
        given = self.options.addresses[port]
        own = given.ipv4 if checked_version(ip) == 4 else given.ipv6
        return own or swept_address(ip, port)

    async def drops(self) -> dict[str, int]:
        """Nothing of it can be read."""
        return {}

    def disclosure(self) -> dict[str, Any]:
        return {"kind": self.kind, "changed": "nothing", **self.options.model_dump(mode="json")}
