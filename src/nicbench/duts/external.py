"""Anything that is already there (`external`): an appliance, a switch, another person's router. Nothing is changed."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, model_validator

from nicbench.duts._networks import MOST_PORTS, checked_version, swept_address, swept_addresses
from nicbench.duts._transparent import tester_macs
from nicbench.duts._ways import ways_back, ways_between
from nicbench.duts.base import Addressing, FrameDut, Refusal
from nicbench.errors import UsageError
from nicbench.labs.base import Testbed
from nicbench.model.base import Frozen
from nicbench.model.pattern import Pattern
from nicbench.tuning.changes import Changes

Mac = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$", to_lower=True)]


class StreamAddresses(Frozen):
    """Where one port's frames come from, as the DUT must see them; the count is swept over the flows.

    Without a count as many as lie behind each of the ports.
    """

    ipv4: str | None = None
    ipv6: str | None = None
    count: int | None = Field(default=None, ge=1, le=1 << 24)


class TesterAddresses(Frozen):
    """The tester's own addresses at one port: a router's next hops."""

    ipv4: IPv4Address | None = None
    ipv6: IPv6Address | None = None


class ExternalOptions(Frozen):
    """``dut: {kind: external, macs: [02:.., 02:..]}``.

    ``macs`` are those of the DUT's ports, in the order of the links; without them the DUT is transparent (a switch,
    a wire) and the tester's ports address each other. ``addresses`` are the IP ranges behind each port, those of RFC
    2544 where none are given. A router finds the tester by ``tester``, the addresses of its ports, for which they
    answer; where the flows' own addresses are in the router's subnets, ``answer_for_flows`` has the ports answer for
    them too.
    """

    macs: tuple[Mac, ...] | None = Field(default=None, min_length=2, max_length=MOST_PORTS)
    addresses: tuple[StreamAddresses, ...] = Field(default=(), max_length=MOST_PORTS)
    tester: tuple[TesterAddresses, ...] = Field(default=(), max_length=MOST_PORTS)
    answer_for_flows: bool = False
    description: str | None = None

    @model_validator(mode="after")
    def _each_port_has_a_mac(self) -> Self:
        for name, given in (("addresses", self.addresses), ("tester", self.tester)):
            if self.macs is not None and len(given) > len(self.macs):
                raise ValueError(f"`{name}` names {len(given)} ports, and `macs` {len(self.macs)}: give each port one")
        return self


class External(FrameDut):
    """Only says how it is to be addressed."""

    kind = "external"
    is_set_up = False
    Options = ExternalOptions
    most_ports = MOST_PORTS
    returns_on_same_port = True
    options: ExternalOptions

    def refusal(self, ports: int, pattern: Pattern) -> Refusal | None:
        macs = self.options.macs
        if macs is not None and len(macs) < ports:
            return Refusal(
                f"the external DUT has {ports} links, and {len(macs)} MAC addresses are given",
                "give `macs` that of its port at each link, or remove them where it is transparent",
            )
        if macs is None and pattern is Pattern.SAME_PORT and ports > 1:
            return Refusal(
                "an external DUT without `macs` is taken for a switch, which sends no frame back by its own port",
                "give it `macs`, or choose another pattern",
            )
        return None

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        """Nothing: it is up already, and it is not ours."""

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        testers = tester_macs(testbed)
        if (refusal := self.refusal(len(testers), Pattern.ONE_TO_ONE)) is not None:
            raise UsageError(refusal.message, place="dut, macs", next_step=refusal.next_step)
        if len(testers) == 1:
            return (self._direction(testers, ip, 0, 0),)
        return tuple(self._direction(testers, ip, here, there) for here, there in ways_between(len(testers)))

    def returning(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        """None where it is transparent: a switch sends no frame back by the port that it came in at."""
        testers = tester_macs(testbed)
        ways = ways_back(len(testers)) if self.options.macs is not None else ()
        return tuple(self._direction(testers, ip, here, there) for here, there in ways)

    def _direction(self, testers: tuple[str, ...], ip: int, here: int, there: int) -> Addressing:
        ports = max(2, len(testers))
        # With one link, frames come back on it: the other side's addresses lie behind the same port.
        far = there if len(testers) > 1 else 1
        count, halved = self._count(far, ports), here == far
        destination = self._address(ip, far, ports)
        if halved:  # of a port's own addresses the first half sends to the second
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
        return tuple(self._answered(port, max(2, ports)) for port in range(ports))

    def _answered(self, port: int, ports: int) -> tuple[dict[str, Any], ...]:
        own = self.options.tester[port] if port < len(self.options.tester) else TesterAddresses()
        single = [{"first": str(address), "count": 1} for address in (own.ipv4, own.ipv6) if address is not None]
        if not self.options.answer_for_flows:
            return tuple(single)
        count = self._count(port, ports)
        return (*single, *({"first": self._address(ip, port, ports), "count": count} for ip in (4, 6)))

    def _given(self, port: int) -> StreamAddresses:
        return self.options.addresses[port] if port < len(self.options.addresses) else StreamAddresses()

    def _count(self, port: int, ports: int) -> int:
        return self._given(port).count or swept_addresses(ports)

    def _address(self, ip: int, port: int, ports: int) -> str:
        given = self._given(port)
        own = given.ipv4 if checked_version(ip) == 4 else given.ipv6
        return own or swept_address(ip, port, ports)

    async def drops(self) -> dict[str, int]:
        """Nothing of it can be read."""
        return {}

    def disclosure(self) -> dict[str, Any]:
        return {"kind": self.kind, "changed": "nothing", **self.options.model_dump(mode="json")}
