"""The ports of this machine that a test could use: driver, speed, link, neighbour, and why not to use one."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.core.frozen import frozen
from nicbench.core.proof import Proof
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.store.proofs import find_proof
from nicbench.system.adapters.ethtool import parse_driver, parse_link_settings
from nicbench.system.adapters.links import parse_neighbours
from nicbench.system.identity import identify_port
from nicbench.system.inventory.base import NOT_UNDERSTOOD
from nicbench.testbed.interfaces.host_interfaces import Interfaces, check_free, interfaces_of

_KINDS: Final = frozenset({None, "veth"})
"""The kinds of ``ip -d link`` that are ports: cards (which have no kind), and veths of labs; bridges, bonds and VLANs
are not.
"""


@frozen
class FoundPort:
    """A port of this machine.

    ``never`` says why no test may use it (it leads out of the machine), ``warning`` why one had better not (it serves
    somebody). Speed in bits per second; None means unknown. A port without a valid proof has None as ``proof``.
    """

    name: str
    driver: str | None = None
    bus: str | None = None
    speed_bits_per_s: int | None = None
    is_up: bool = False
    has_link: bool | None = None
    neighbour: str | None = None
    never: str | None = None
    warning: str | None = None
    proof: Proof | None = None

    @property
    def is_free(self) -> bool:
        """Whether nothing speaks against using it."""
        return self.never is None and self.warning is None


async def ports_of_this_machine() -> tuple[FoundPort, ...]:
    """Every port of this machine, in the order of the kernel. NotReadyError where they cannot be listed."""
    return await look_at_ports(LocalHost("this machine"))


async def look_at_ports(host: Host) -> tuple[FoundPort, ...]:
    """Every port of the host. Changes nothing and works without root; None means that driver and tools do not tell."""
    found = await interfaces_of(host)
    names = [name for name, link in found.links.items() if _is_port(link)]
    neighbours = await _neighbours(host)
    return tuple([await _look_at(host, name, found, neighbours.get(name)) for name in names])


def free_ports(ports: Iterable[FoundPort]) -> tuple[FoundPort, ...]:
    """Those that a test may use, the ones with a link first."""
    return tuple(sorted((port for port in ports if port.is_free), key=lambda port: port.has_link is not True))


def _is_port(link: Mapping[str, Any]) -> bool:
    return link.get("link_type") == "ether" and link.get("linkinfo", {}).get("info_kind") in _KINDS


async def _look_at(host: Host, name: str, found: Interfaces, neighbour: str | None) -> FoundPort:
    flags = found.links[name].get("flags", ())
    driver = await _asked(host, ("ethtool", "-i", name), parse_driver)
    link = await _asked(host, ("ethtool", name), parse_link_settings)
    never = _objection(found, name, for_tester=False)
    return FoundPort(
        name=name,
        driver=driver.get("name"),
        bus=driver.get("bus"),
        speed_bits_per_s=link.get("speed_bits_per_s"),
        is_up="UP" in flags,
        has_link="LOWER_UP" in flags if "UP" in flags else link.get("link"),
        neighbour=neighbour,
        never=never,
        warning=None if never else _objection(found, name, for_tester=True),
        proof=await _proof_of(host, name),
    )


async def _proof_of(host: Host, name: str) -> Proof | None:
    """What `nicbench prove` found of the port, where driver, firmware and kernel are the same still."""
    try:
        now = await identify_port(host, name)
    except NicbenchError:
        return None
    proof = find_proof(now.fingerprint)
    kernel = (await host.read_file("/proc/sys/kernel/osrelease") or "").strip()
    return None if proof is None or proof.aged(now, kernel) else proof


def _objection(found: Interfaces, name: str, *, for_tester: bool) -> str | None:
    """Why a run would refuse the port, by the rule that runs have themselves."""
    try:
        check_free(found, name, name, for_tester=for_tester)
    except NotReadyError as error:
        return error.message.removeprefix(f"the interface {name} ").removeprefix("is in use: ")
    return None


async def _asked(host: Host, command: tuple[str, ...], parse: Any) -> Mapping[str, Any]:
    try:
        return dict(parse((await host.run(command)).stdout))
    except (NicbenchError, *NOT_UNDERSTOOD):  # the program is not installed, or the driver does not say
        return {}


async def _neighbours(host: Host) -> dict[str, str]:
    """What announces itself at the other end of each cable; nothing where no LLDP daemon runs."""
    try:
        found = parse_neighbours((await host.run(("lldpcli", "-f", "json", "show", "neighbors"))).stdout)
    except (NicbenchError, *NOT_UNDERSTOOD):
        return {}
    return {
        name: ", port ".join(filter(None, (entries[0]["name"] or entries[0]["chassis"], entries[0]["port"])))
        for name, entries in found.items()
        if entries
    }


# Which ports of this machine are cabled to each other: by frames sent from each of them, with the user's consent.
# Each port sends two short frames with the EtherType for local experiments (IEEE 802 clause 9.2.4): one to the
# address of LLDP, which no switch forwards (IEEE 802.1Q clause 8.6.3), and one to all. Where only the second arrives
# there is a switch between the two. A router forwards neither.

_ETHER_TYPE: Final = 0x88B5
_NEXT_BRIDGE: Final = bytes.fromhex("0180c200000e")
_ALL: Final = b"\xff" * 6
_MARK: Final = b"nicbench looks for cables"
_NAME_MARK: Final = b"nicbench is here:"
_REPEAT_S: Final = 0.5
_LONGEST_NAME_BYTES: Final = 255
_SHORTEST: Final = 60
_SOL_PACKET: Final = 263  # packet(7)
_ADD_MEMBERSHIP: Final = 1
_MULTICAST: Final = 0
_OUTGOING: Final = 4
_WAIT_S: Final = 1.0


@frozen
class Cabling:
    """Two ports that reach each other: by a cable, or through a switch."""

    one: str
    other: str
    is_direct: bool

    def __str__(self) -> str:
        return f"{self.one} <-> {self.other}: {'one cable' if self.is_direct else 'through a switch'}"


def find_cabling(devices: Iterable[str], wait_s: float = _WAIT_S) -> tuple[Cabling, ...]:
    """Sends from each of these ports, which must be up, and listens on all for ``wait_s`` seconds.

    NotReadyError without the right to do so. Changes nothing that outlives the call.
    """
    token = os.urandom(8)
    with ExitStack() as stack:
        sockets = {device: stack.enter_context(_open(device)) for device in devices}
        for number, listener in enumerate(sockets.values()):
            own = listener.getsockname()[4]
            for target in (_NEXT_BRIDGE, _ALL):
                _send(listener, target + own + struct.pack("!H", _ETHER_TYPE) + _MARK + token + bytes([number]))
        return pair_up(list(sockets), _listen(sockets, token, wait_s))


Arrivals = frozenset[tuple[int, str, bool]]
"""Number of the sender, device that received, and whether the frame was one that no switch forwards."""


def pair_up(devices: list[str], arrivals: Arrivals) -> tuple[Cabling, ...]:
    """Each pair once, cables first. Pure."""
    direct: dict[frozenset[str], bool] = {}
    for number, device, is_direct in arrivals:
        pair = frozenset((devices[number], device))
        if len(pair) == 2:
            direct[pair] = direct.get(pair, False) or is_direct
    ordered = {tuple(sorted(pair, key=devices.index)): is_direct for pair, is_direct in direct.items()}
    found = [Cabling(one, other, is_direct) for (one, other), is_direct in ordered.items()]
    return tuple(sorted(found, key=lambda one: (not one.is_direct, devices.index(one.one), devices.index(one.other))))


# Cables to other machines, which look for them at the same time.


@dataclass(frozen=True, slots=True, order=True)
class Neighbour:
    """The port of another machine at the other end of the cable in ``device``."""

    device: str
    machine: str
    port: str


def find_neighbours(devices: Iterable[str], machine: str, wait_s: float) -> tuple[Neighbour, ...]:
    """Sends the name of this machine from each of these ports, which must be up, and listens for names of others.

    It does so for ``wait_s`` seconds, twice a second; other machines must do so at the same time. The frames go to an
    address that no switch forwards. NotReadyError without the right to do so. Changes nothing that outlives the call.
    """
    found = set()
    end = time.monotonic() + wait_s
    with ExitStack() as stack:
        sockets = {device: stack.enter_context(_open(device)) for device in devices}
        while sockets and (left := end - time.monotonic()) > 0:
            for device, sender in sockets.items():
                head = _NEXT_BRIDGE + sender.getsockname()[4] + struct.pack("!H", _ETHER_TYPE)
                _send(sender, head + write_name(machine, device))
            for device, frame in _receive(sockets, min(left, _REPEAT_S)):
                name = read_name(frame[14:])
                if name is not None and name[0] != machine:
                    found.add(Neighbour(device, *name))
    return tuple(sorted(found))


def write_name(machine: str, port: str) -> bytes:
    """What a port says of itself: its machine and its name, each with its length in a byte before it."""
    names = (name.encode()[:_LONGEST_NAME_BYTES] for name in (machine, port))
    return _NAME_MARK + b"".join(bytes([len(name)]) + name for name in names)


def read_name(payload: bytes) -> tuple[str, str] | None:
    """Machine and port, as ``write_name`` wrote them; None of any other frame."""
    if not payload.startswith(_NAME_MARK):
        return None
    names, rest = [], payload.removeprefix(_NAME_MARK)
    for _ in range(2):
        length = rest[0] if rest else 0
        name, rest = rest[1 : 1 + length], rest[1 + length :]
        if not name or len(name) < length or not (text := name.decode("utf-8", "replace")).isprintable():
            return None
        names.append(text)
    return names[0], names[1]


# Sockets of ports.


def _open(device: str) -> socket.socket:
    try:
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(_ETHER_TYPE))
    except PermissionError as error:
        raise NotReadyError(
            "only root may send test frames", place=device, next_step="use sudo, or leave --probe out"
        ) from error
    try:
        made.bind((device, _ETHER_TYPE))
        wanted = struct.pack("iHH8s", socket.if_nametoindex(device), _MULTICAST, len(_NEXT_BRIDGE), _NEXT_BRIDGE)
        made.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, wanted)
    except OSError as error:
        made.close()
        raise NotReadyError(
            f"no test frame can be sent: {error.strerror}", place=device, next_step="leave --probe out"
        ) from error
    return made


def _send(sender: socket.socket, frame: bytes) -> None:
    try:
        sender.send(frame.ljust(_SHORTEST, b"\0"))
    except OSError as error:
        device = sender.getsockname()[0]
        raise NotReadyError(
            f"no test frame can be sent: {error.strerror}", place=device, next_step=f"ip link set dev {device} up"
        ) from error


def _listen(sockets: Mapping[str, socket.socket], token: bytes, wait_s: float) -> Arrivals:
    """What arrives in that time; frames of others are left out."""
    found = set()
    for device, frame in _receive(sockets, wait_s):
        rest = frame[14:].removeprefix(_MARK)
        if rest.startswith(token) and rest[len(token)] < len(sockets):
            found.add((rest[len(token)], device, frame.startswith(_NEXT_BRIDGE)))
    return frozenset(found)


def _receive(sockets: Mapping[str, socket.socket], wait_s: float) -> Iterator[tuple[str, bytes]]:
    """Yields every frame that arrives in that time, with its port; frames that the kernel shows on their way out are
    skipped.
    """
    end = time.monotonic() + wait_s
    names = {listener: device for device, listener in sockets.items()}
    while (left := end - time.monotonic()) > 0:
        for ready in select.select(list(names), [], [], left)[0]:
            frame, address = ready.recvfrom(2048)
            if address[2] != _OUTGOING:
                yield names[ready], frame
