"""The testbed of workloads as a table: the ports of the measured host, each followed by the clients that
connect to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from nicbench.core.bond import Bond
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.core.pattern import Pattern, Way, ways_of
from nicbench.core.plan import Plan
from nicbench.core.round import EndpointFacts
from nicbench.core.units import count_of, format_bits_per_s
from nicbench.report.answer.sentences import dut_name, is_of_session
from nicbench.report.wording import capitalise, first_few

ENDPOINTS = "endpoints"
"""The name under which the facts of a plan have the endpoints."""


def endpoints_of(plan: Plan | None) -> tuple[EndpointFacts, ...]:
    """Returns each port of the server, followed by its clients' ports; empty where frames were measured."""
    known: Mapping[str, Any] = (plan.facts.get(ENDPOINTS) or {}) if plan else {}
    ends = [EndpointFacts.model_validate({"name": name, **facts}) for name, facts in known.items()]
    return tuple(
        end for server in ends if server.port is None for end in (server, *(e for e in ends if e.port == server.name))
    )


class Direction(StrEnum):
    """The direction of the traffic on a link, as seen in the diagram."""

    RIGHT = "right"
    LEFT = "left"
    BOTH = "both"
    NONE = "none"
    """No traffic, or its direction is not known."""


class PortPart(NamedTuple):
    """A port; ``lines`` are printed below its name: driver, interface, address, speed, ports of a bond."""

    name: str
    lines: tuple[str, ...] = ()


class MachinePart(NamedTuple):
    """A machine or a network namespace; ``lines`` are printed below its title."""

    title: str
    lines: tuple[str, ...] = ()


@frozen
class LinkPart:
    """One cable, physical or virtual, from a port on the left to a port on the right, each with its machine."""

    left_machine: MachinePart
    left: PortPart
    right_machine: MachinePart
    right: PortPart
    label: str = ""
    direction: Direction = Direction.NONE


class Wiring(NamedTuple):
    """The links of a testbed; ``around`` names the machine or program that holds all, ``words`` describe them."""

    links: tuple[LinkPart, ...]
    words: str
    around: str | None = None


_MOST_WAYS = 6
_INCOMING = frozenset({"forward", "write"})
_OUTGOING = frozenset({"reverse", "read"})
_JOINT = " <-> "


Bonds = Mapping[str, Mapping[str, Bond]]
"""The bonds of each configuration, by the name of the endpoint on top of them."""


def wirings(plan: Plan | None, bonds: Bonds | None = None) -> tuple[tuple[str, Wiring], ...]:
    """Returns each different testbed with its configurations' names; the name is "" where all have the same testbed."""
    found = grouped(
        (made, each.configuration)
        for each in (plan.each if plan else ())
        if (made := wiring(each, (bonds or {}).get(each.configuration)))
    )
    return tuple(("" if len(found) == 1 else ", ".join(names), made) for made, names in found.items())


def wiring(plan: Plan | None, bonds: Mapping[str, Bond] | None = None) -> Wiring | None:
    """Returns the testbed of a plan, None without cabling; ``bonds`` are by the name of the endpoint on top of them."""
    if plan is None:
        return None
    if plan.facts.get("endpoints"):
        return _of_endpoints(plan, bonds or {})
    return _of_frames(plan)


def _of_frames(plan: Plan) -> Wiring | None:
    """Returns a diagram with the tester on the left and the DUT's cabled ports on the right; None without ports."""
    ports = [port for port in plan.tester.get("ports") or () if isinstance(port, Mapping)]
    joined = dict(_ends(plan.facts.get("links") or ()))
    names = [str(port.get("name", number)) for number, port in enumerate(ports)] or list(joined)
    if not names:
        return None
    sending, receiving = _used_ports(plan, len(names))
    second = plan.tester.get("second_machine") or {}
    tester = MachinePart("Tester", _told(_program(plan), _space(plan, "tester")))
    peer = MachinePart("Second tester", _told(_program(plan), _space(plan, str(second.get("host", "")))))
    dut = MachinePart("Device under test (DUT)", _told(dut_name(plan), _space(plan, "dut")))
    links = []
    for number, name in enumerate(names):
        port = ports[number] if number < len(ports) else {}
        speed = plan.link_bits_per_s
        direction = _direction(to_the_right=number in sending, to_the_left=number in receiving)
        here = PortPart(name, _told(port.get("driver")))
        there = PortPart(joined.get(name) or f"its port {number + 1}")
        near = peer if name in second.get("ports", ()) else tester
        links.append(LinkPart(near, here, dut, there, _rate(plan, speed), direction))
    return Wiring(tuple(links), _frame_words(plan, names), _around(plan))


def _of_endpoints(plan: Plan, bonds: Mapping[str, Bond]) -> Wiring | None:
    """Returns a diagram with clients on the left, each level with the port of the server that it leads to."""
    every = endpoints_of(plan)
    ends = {end.name: end for end in every}
    clients = [end for end in every if end.port is not None]
    if not clients:
        return None
    machines = {end.machine for end in ends.values()}
    direction = _asked_direction(plan)
    links = []
    for client in clients:
        server = ends[str(client.port)]
        links.append(
            LinkPart(
                _host(plan, client, machines, "Client"),
                _endpoint(client, bonds),
                _host(plan, server, machines, "Server", *_shares(plan)),
                _endpoint(server, bonds),
                _rate(plan, client.link_bits_per_s or server.link_bits_per_s),
                direction,
            )
        )
    servers = list(dict.fromkeys(str(end.port) for end in clients))
    per_port = {name: sum(1 for end in clients if end.port == name) for name in servers}
    same = len(set(per_port.values())) == 1
    each = f"{count_of(next(iter(per_port.values())), 'client')} at each" if same else f"{len(clients)} clients"
    switched = ", through a switch" if (plan.lab or {}).get("kind") == "clients" and max(per_port.values()) > 1 else ""
    words = f"{capitalise(dut_name(plan) or 'a server')} with {count_of(len(servers), 'port')}, {each}{switched}."
    going = {Direction.RIGHT: "to the server", Direction.LEFT: "from the server", Direction.BOTH: "both ways"}
    words += f" Traffic goes {going[direction]}." if direction in going else ""
    return Wiring(tuple(links), words, _around(plan))


def _program(plan: Plan) -> str | None:
    """Returns the name of the program that sends the frames."""
    engine = plan.tester.get("engine")
    return " ".join(_told(engine.get("engine"), engine.get("version"))) or None if isinstance(engine, Mapping) else None


def _ends(links: Sequence[Any]) -> Iterator[tuple[str, str]]:
    for link in links:
        left, joint, right = str(link).partition(_JOINT)
        if joint:
            yield left.strip(), right.strip()


def _used_ports(plan: Plan, ports: int) -> tuple[set[int], set[int]]:
    """Returns the ports that send and those that receive counted frames; learning frames do not count."""
    loaded = _loaded_ways(plan, ports)
    return {transmit for transmit, _ in loaded}, {receive for _, receive in loaded}


def _loaded_ways(plan: Plan, ports: int) -> tuple[Way, ...]:
    if is_of_session(plan):  # clients say which ways frames go
        return ()
    try:
        pattern = Pattern(plan.traffic.get("pattern", Pattern.ONE_TO_ONE))
        found = ways_of(pattern, ports, bidirectional=bool(plan.traffic.get("bidirectional"))).loaded
    except ValueError:
        return ()
    pairs = ((way.get("transmit"), way.get("receive")) for way in plan.addressing)
    known = tuple(
        dict.fromkeys((here, there) for here, there in pairs if isinstance(here, int) and isinstance(there, int))
    )
    if known and not set(found) <= set(known):  # only addresses tell that frames return on their own port
        return known
    return found


def _frame_words(plan: Plan, names: Sequence[str]) -> str:
    loaded = [
        (names[here], names[there]) for here, there in _loaded_ways(plan, len(names)) if max(here, there) < len(names)
    ]
    there = (plan.tester.get("second_machine") or {}).get("ports", ())
    second = f", {' and '.join(there)} on a second machine" if there else ""
    ports = f"{count_of(len(names), 'port')} ({', '.join(names)}{second})"
    said = f"Tester with {ports}, DUT: {dut_name(plan) or 'not named'}."
    if not loaded:
        return f"{said} Clients say which ways frames go." if is_of_session(plan) else said
    ways = [f"{here} to {there}" if here != there else f"{here} back to itself" for here, there in loaded]
    return f"{said} Measured traffic: {first_few(ways, _MOST_WAYS, more=' and {} more ways')}."


def _asked_direction(plan: Plan) -> Direction:
    """Returns the direction of the traffic of all tests together."""
    asked = set()
    for test in plan.tests:
        given = test.options.get("direction") or ()
        asked |= {given} if isinstance(given, str) else set(map(str, given))
    to_the_right, to_the_left = bool(asked & (_INCOMING | {"both"})), bool(asked & (_OUTGOING | {"both"}))
    return _direction(to_the_right=to_the_right, to_the_left=to_the_left)


def _direction(*, to_the_right: bool, to_the_left: bool) -> Direction:
    if to_the_right and to_the_left:
        return Direction.BOTH
    return Direction.RIGHT if to_the_right else Direction.LEFT if to_the_left else Direction.NONE


def _host(plan: Plan, end: EndpointFacts, machines: set[str], role: str, *more: str) -> MachinePart:
    machine = end.machine if len(machines) > 1 and end.machine != end.host else None
    return MachinePart(
        f"{role} {end.host}" if end.host.lower() != role.lower() else role,
        _told(machine, _space(plan, end.host), *more),
    )


def _endpoint(end: EndpointFacts, bonds: Mapping[str, Bond]) -> PortPart:
    device = end.device if end.device != end.name else None
    card = f"card {end.card}" if end.card else None
    bond = bonds.get(end.name)
    joined = f"bond of {', '.join(port.name for port in bond.ports)}" if bond else None
    return PortPart(end.name, _told(device, joined, end.address, card))


def _shares(plan: Plan) -> tuple[str, ...]:
    share, count = plan.dut_disclosure.get("share"), plan.dut_disclosure.get("shares")
    if not isinstance(share, Mapping) or not count:
        return ()
    return (f"{count_of(int(count), 'share')} by {share.get('kind')}",)


def _space(plan: Plan, host: str) -> str | None:
    spaces = plan.facts.get("namespaces")
    name = spaces.get(host) if isinstance(spaces, Mapping) else None
    return "network namespace" if name else None


def _rate(plan: Plan, bits_per_s: float | None) -> str:
    if bits_per_s is None:
        return ""
    return f"{format_bits_per_s(bits_per_s)}{', nominal' if plan.link_is_nominal else ''}"


def _around(plan: Plan) -> str | None:
    if plan.simulated:
        return "Simulated, inside one program"
    kinds = {"veth": "veth pairs", "memif": "shared memory (memif)", "clients": "veth pairs"}
    kind = str((plan.lab or {}).get("kind", ""))
    return f"{_machine_of_lab(plan)}, joined by {kinds.get(kind, kind)}" if kind else None


def _machine_of_lab(plan: Plan) -> str:
    """Returns the text for the machine that the lab is made on: this one, or the host that the plan names."""
    name = (plan.lab or {}).get("on")
    made = plan.facts.get("hosts")
    if name is None:
        return "One machine"
    is_virtual = isinstance(made, Mapping) and name in made
    return f"The virtual machine {name}" if is_virtual else f"The machine {name}"


def _told(*texts: Any) -> tuple[str, ...]:
    return tuple(str(text) for text in texts if text)
