"""A DUT that exists already (`external`): an appliance, a switch, another person's router. Nothing is changed on it."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import UsageError
from nicbench.core.headers import WrittenMac
from nicbench.core.pattern import Pattern
from nicbench.core.reading import ChangeKind
from nicbench.testbed.addressing import (
    MOST_PORTS,
    check_version,
    swept_address,
    swept_addresses,
    tester_macs,
    ways_back,
    ways_between,
)
from nicbench.testbed.duts.base import Addressing, FrameDut, Refusal
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes


class StreamAddresses(Frozen):
    """The source addresses of one port's frames; flows sweep over ``count`` of them.

    Without ``count`` they are as many as lie behind each port of the benchmark networks.
    """

    ipv4: str | None = None
    """The first IPv4 address."""
    ipv6: str | None = None
    """The first IPv6 address."""
    count: int | None = Field(default=None, ge=1, le=1 << 24)
    """How many addresses; without it one for each flow."""


class TesterAddresses(Frozen):
    """The tester's own addresses at one port: a router's next hops."""

    ipv4: IPv4Address | None = None
    """The tester's IPv4 address at the port."""
    ipv6: IPv6Address | None = None
    """The tester's IPv6 address at the port."""


class ExternalOptions(Frozen):
    """``dut: {kind: external, macs: [02:.., 02:..]}``.

    ``macs`` are those of the DUT's ports, in the order of the links; without them the DUT is transparent (a switch,
    a wire) and the tester's ports address each other. ``addresses`` are the IP ranges behind each port, those of RFC
    2544 where none are given. A router finds the tester by ``tester``, the addresses of its ports, for which they
    answer; where the flows' own addresses are in the router's subnets, ``answer_for_flows`` has the ports answer for
    them too.
    """

    macs: tuple[WrittenMac, ...] | None = Field(default=None, min_length=2, max_length=MOST_PORTS)
    """MAC addresses of its ports in the order of the links, where it is a router."""
    addresses: tuple[StreamAddresses, ...] = Field(default=(), max_length=MOST_PORTS)
    """The addresses behind each port, in the order of the links."""
    tester: tuple[TesterAddresses, ...] = Field(default=(), max_length=MOST_PORTS)
    """The tester's own addresses at each port, for which it answers ARP and neighbour discovery, so that a router
    finds its next hops.
    """
    answer_for_flows: bool = False
    """The tester answers for the addresses of the flows too."""
    description: str | None = None
    """What it is, for the report."""

    @model_validator(mode="after")
    def _check_ports(self) -> Self:
        for name, given in (("addresses", self.addresses), ("tester", self.tester)):
            if self.macs is not None and len(given) > len(self.macs):
                raise ValueError(f"`{name}` names {len(given)} ports, and `macs` {len(self.macs)}: give each port one")
        return self


class External(FrameDut):
    """Says how frames to an existing DUT are addressed."""

    kind = "external"
    is_set_up = False
    Options = ExternalOptions
    most_ports = MOST_PORTS
    returns_on_same_port = True
    changes_itself = frozenset({ChangeKind.NEIGHBOUR, ChangeKind.ROUTE})
    options: ExternalOptions

    def refusal(self, ports: int, pattern: Pattern) -> Refusal | None:
        macs = self.options.macs
        if macs is not None and len(macs) < ports:
            return Refusal(
                f"the external DUT has {ports} links, but `macs` has {len(macs)} MAC addresses",
                "write the address of its port at each link in `macs`, or remove `macs` where it is transparent",
            )
        if macs is None and pattern is Pattern.SAME_PORT and ports > 1:
            return Refusal(
                "an external DUT without `macs` is taken for a switch, which never sends a frame back by its port",
                "give it `macs`, or choose another pattern",
            )
        return None

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        """Does nothing: the DUT is already up."""

    def cpus(self, testbed: Testbed) -> tuple[int, ...]:
        """None: where an appliance works is not known, and no core of the tester's machine is the DUT's."""
        return ()

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        testers = tester_macs(testbed)
        if (refusal := self.refusal(len(testers), Pattern.ONE_TO_ONE)) is not None:
            raise UsageError(refusal.message, place="dut, macs", next_step=refusal.next_step)
        if len(testers) == 1:
            return (self._direction(testers, ip, 0, 0),)
        return tuple(self._direction(testers, ip, here, there) for here, there in ways_between(len(testers)))

    def returning(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        """No ways where the DUT is transparent: a switch never sends a frame back by the port it came in on."""
        testers = tester_macs(testbed)
        ways = ways_back(len(testers)) if self.options.macs is not None else ()
        return tuple(self._direction(testers, ip, here, there) for here, there in ways)

    def _direction(self, testers: tuple[str, ...], ip: int, here: int, there: int) -> Addressing:
        ports = max(2, len(testers))
        # With one link, frames come back on it: the other side's addresses lie behind the same port.
        far = there if len(testers) > 1 else 1
        count, halved = self._count(far, ports), here == far
        destination = self._address(ip, far, ports)
        if halved:  # the first half of a port's addresses sends to the second half
            count = max(1, count // 2)
            destination = str(ip_address(destination) + count)
        return Addressing(
            transmit=here,
            receive=there,
            source_mac=testers[here],
            destination_mac=self.options.macs[here] if self.options.macs else testers[there],
            ip=ip,
            source_address=self._address(ip, here, ports),
            destination_address=destination,
            source_address_count=count if halved else self._count(here, ports),
            destination_address_count=count,
        )

    def neighbours(self, testbed: Testbed) -> tuple[tuple[dict[str, Any], ...], ...]:
        ports = len(testbed.tester_ports)
        return tuple(self._answered_addresses(port, max(2, ports)) for port in range(ports))

    def _answered_addresses(self, port: int, ports: int) -> tuple[dict[str, Any], ...]:
        own = self.options.tester[port] if port < len(self.options.tester) else TesterAddresses()
        single = [{"first": str(address), "count": 1} for address in (own.ipv4, own.ipv6) if address is not None]
        if not self.options.answer_for_flows:
            return tuple(single)
        count = self._count(port, ports)
        return (*single, *({"first": self._address(ip, port, ports), "count": count} for ip in (4, 6)))

    def _stream_addresses(self, port: int) -> StreamAddresses:
        return self.options.addresses[port] if port < len(self.options.addresses) else StreamAddresses()

    def _count(self, port: int, ports: int) -> int:
        return self._stream_addresses(port).count or swept_addresses(ports)

    def _address(self, ip: int, port: int, ports: int) -> str:
        given = self._stream_addresses(port)
        own = given.ipv4 if check_version(ip) == 4 else given.ipv6
        return own or swept_address(ip, port, ports)

    def disclosure(self) -> dict[str, Any]:
        return {"kind": self.kind, "changed": "nothing", **self.options.model_dump(mode="json")}
