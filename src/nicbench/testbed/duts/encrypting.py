"""DUTs that encrypt: IPsec and WireGuard between two gateways back to back, so that frames leave as they came."""

from __future__ import annotations

import asyncio
import json
import secrets
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost, outermost
from nicbench.testbed.duts._kernel import ForwardingDut, PassageDut, Passed, link_packets, require_host, set_up_table
from nicbench.testbed.duts._process import DutProcess, require_programs
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.files import RemovePath
from nicbench.tuning.undo.network import DeleteIpObject, DeleteLink
from nicbench.tuning.undo.processes import DeleteNamespace

# What DUTs share that encrypt: two gateways back to back, so that frames leave the DUT as they came.
#
# The first port's traffic is routed into the near tunnel interface, which encrypts. What it sends crosses a veth pair,
# the middle wire, to a second network namespace, where the far end decrypts; the far interface was made in that
# namespace and moved, so that decrypted packets appear beside the ports and are routed to the second port. The other
# way is the mirror image. This is the tandem of two devices of draft-ietf-bmwg-ipsec-meth. Each frame is forwarded
# twice.


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


# IPsec of the Linux kernel between two gateways back to back (`ipsec`): ESP in tunnel mode, by xfrm.
#
# Both ends stand on the DUT's machine. Each is an xfrm interface with its security associations and
# policies; keys are made for the run, without IKE, and never written down. Sequence numbers have 32 bits, so that an
# association carries 2^32 packets: at 1 Mpps it ends after 71 minutes.


_SPIS: Final = ("0x5191", "0x5192")
_IF_IDS: Final = ("5191", "5192")
# The words of `ip xfrm state`, with the bytes of each key: RFC 4106 (16 or 32 and a salt of 4), RFC 3602, RFC 4868.
_CIPHERS: Final = {
    "aes-128-gcm": (("aead", "rfc4106(gcm(aes))", 20, "128"),),
    "aes-256-gcm": (("aead", "rfc4106(gcm(aes))", 36, "128"),),
    "aes-128-cbc-sha256": (("auth-trunc", "hmac(sha256)", 32, "128"), ("enc", "cbc(aes)", 16)),
}


class IpsecOptions(Frozen):
    """``dut: {kind: ipsec}``."""

    cipher: Literal["aes-128-gcm", "aes-256-gcm", "aes-128-cbc-sha256"] = "aes-128-gcm"
    """How packets are encrypted and authenticated."""
    offload: Literal["none", "crypto", "packet"] = "none"
    """What the interface of the middle wire is asked to do of it; where it cannot, that is an error."""
    replay_window: int = 64
    """Packets that may arrive out of order; 0 switches the protection against replay off."""


class Ipsec(TandemDut):
    """The DUT's host encrypts between its ports by ESP, and decrypts."""

    kind = "ipsec"
    Options = IpsecOptions
    layer = "IPsec"
    carrier = "ip protocol esp"
    devices = ("nicbench-sa0", "nicbench-sa1")
    options: IpsecOptions
    _without_kernel = "modprobe xfrm_interface; or use a virtual machine, whose kernel has it (docs/vm.md)"

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._kernel = ""

    async def _make_ends(self, testbed: Testbed, host: Host, far: NetnsHost, changes: Changes) -> None:
        self._kernel = (await host.run(("uname", "-r"))).stdout.strip()
        keys = [self._make_keys() for _ in _SPIS]
        sides = (host, far)
        for number, side in enumerate(sides):
            under = ("xfrm", "dev", MIDDLE[number], "if_id", _IF_IDS[number])
            await self._make_link(side, changes, self.devices[number], host, *under)
            for way in (0, 1):
                await self._add_state(side, changes, number, way, keys[way])
            await self._add_policies(side, changes, number, ("out", "in", "fwd"))
        # What the far end decrypts appears beside the ports, where the kernel asks for its policy again.
        await self._add_policies(host, changes, 1, ("in", "fwd"))

    def _make_keys(self) -> tuple[str, ...]:
        return tuple(
            word
            for kind, name, size, *rest in _CIPHERS[self.options.cipher]
            for word in (kind, name, f"0x{secrets.token_hex(int(size))}", *map(str, rest))
        )

    async def _add_state(self, side: Host, changes: Changes, number: int, way: int, keys: tuple[str, ...]) -> None:
        """Adds the association of a way (0 from the near end) on one side; NotReadyError where the kernel refuses."""
        source, destination = MIDDLE_ADDRESSES[way], MIDDLE_ADDRESSES[1 - way]
        key = ("src", source, "dst", destination, "proto", "esp", "spi", _SPIS[way])
        more = ("mode", "tunnel", "if_id", _IF_IDS[number], "replay-window", str(self.options.replay_window))
        direction = "out" if way == number else "in"
        kind = ("packet",) if self.options.offload == "packet" else ()
        offload = () if self.options.offload == "none" else ("offload", *kind, "dev", MIDDLE[number], "dir", direction)

        async def add() -> None:
            # By its input: arguments are in the list of processes, and in the message of an error.
            words = ("xfrm", "state", "add", *key, *more, *keys, *offload)
            await side.run(("ip", "-batch", "-"), input_text=f"{' '.join(words)}\n")

        try:
            await changes.make(side, DeleteIpObject(arguments=("xfrm", "state", "del", *key)), add)
        except HostError as error:
            wanted = f" with offload {self.options.offload}" if offload else ""
            raise NotReadyError(
                f"the kernel takes no security association of {self.options.cipher}{wanted}: {error.message}",
                place=f"dut, on {side.name}",
                next_step="modprobe esp4 (CONFIG_INET_ESP); or another `cipher`, or `offload: none`",
            ) from None
        self._made.append(f"ip xfrm state add {' '.join((*key, *more, *offload))} (keys left out)")

    async def _add_policies(self, side: Host, changes: Changes, number: int, directions: tuple[str, ...]) -> None:
        for direction in directions:
            way = number if direction == "out" else 1 - number
            ends = ("src", MIDDLE_ADDRESSES[way], "dst", MIDDLE_ADDRESSES[1 - way])
            for network in ("0.0.0.0/0", "::/0") if self._has_ipv6 else ("0.0.0.0/0",):
                key = ("src", network, "dst", network, "dir", direction, "if_id", _IF_IDS[number])
                command = ("ip", "xfrm", "policy", "add", *key, "tmpl", *ends, "proto", "esp", "mode", "tunnel")
                undo = DeleteIpObject(arguments=("xfrm", "policy", "del", *key))

                async def add(command: tuple[str, ...] = command) -> None:
                    await self._run(side, *command)

                await changes.make(side, undo, add)

    async def _agree(self, host: Host, far: NetnsHost) -> None:
        """Nothing is negotiated: keys are the same at both ends by the way they were made."""

    def _disclose_layer(self) -> dict[str, Any]:
        return {
            "versions": {"kernel": self._kernel},
            "protocol": "ESP in tunnel mode, RFC 4303; keys by hand, without IKE",
            "cipher": self.options.cipher,
            "offload": self.options.offload,
            "replay_window": self.options.replay_window,
            "sequence_numbers": "32 bits: an association carries 2^32 packets",
        }


# WireGuard between two gateways back to back (`wireguard`), by the kernel or by wireguard-go in user space.
#
# Both ends stand on the DUT's machine. Keys are made for the run and never written down. The ends
# shake hands before the first trial; a handshake in a trial, every two minutes, is part of what WireGuard costs.


_PORT: Final = "51820"
_PROGRAM: Final = "wireguard-go"
_SOCKETS: Final = "/var/run/wireguard"
_THREADS: Final = {"kernel": "of the kernel, on any CPU of the machine", "user": "on the DUT's CPUs"}
_TRIES: Final = 100
_BETWEEN_TRIES_S: Final = 0.1


class WireguardOptions(Frozen):
    """``dut: {kind: wireguard}``."""

    implementation: Literal["kernel", "user"] = "kernel"
    """`kernel` is the module of Linux 5.6 and newer; `user` is wireguard-go, one process for each end, on the DUT's
    CPUs.
    """


class Wireguard(TandemDut):
    """The DUT's host encrypts between its ports by WireGuard, and decrypts."""

    kind = "wireguard"
    Options = WireguardOptions
    layer = "WireGuard"
    carrier = f"udp dport {_PORT}"
    devices = ("nicbench-wg0", "nicbench-wg1")
    options: WireguardOptions
    _without_kernel = "modprobe wireguard; or `implementation: user` under `dut` (apt-get install wireguard-go)"

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._processes: list[DutProcess] = []
        self._versions: dict[str, str] = {}

    @property
    def processes(self) -> Sequence[DutProcess]:
        return self._processes

    def programs(self) -> Mapping[str, str]:
        own = {} if self.options.implementation == "kernel" else {_PROGRAM: f"apt-get install {_PROGRAM}"}
        return {"wg": "apt-get install wireguard-tools", **own}

    async def _make_ends(self, testbed: Testbed, host: Host, far: NetnsHost, changes: Changes) -> None:
        await require_programs(host, self.programs())
        self._versions["wg"] = (await host.run(("wg", "--version"))).stdout.split(" - ")[0].strip()
        if self.options.implementation == "kernel":
            self._versions["kernel"] = (await host.run(("uname", "-r"))).stdout.strip()
            for side, device in zip((host, far), self.devices, strict=True):
                await self._make_link(side, changes, device, host, "wireguard")
        else:
            said = (await host.run((_PROGRAM, "--version"))).stdout
            self._versions[_PROGRAM] = said.splitlines()[0].removeprefix(_PROGRAM).strip() if said else "unknown"
            cpus = ",".join(map(str, testbed.cores.dut))
            for side, device in zip((host, far), self.devices, strict=True):
                await self._start(side, changes, device, cpus)
        await self._exchange_keys((host, far))

    async def _start(self, side: Host, changes: Changes, device: str, cpus: str) -> None:
        """Starts one end in user space, and waits until it can be set up."""
        await changes.make(side, RemovePath(path=f"{_SOCKETS}/{device}.sock"))
        command = ("taskset", "-c", cpus, _PROGRAM, "-f", device)
        started = await DutProcess.start(side, changes, command, _PROGRAM, {"LOG_LEVEL": "error"})
        self._processes.append(started)
        self._made.append(" ".join(command))
        for _ in range(_TRIES):
            if (await side.run(("wg", "show", device), check=False)).status == 0:
                return
            if failed := await started.failure():
                raise NotReadyError(
                    f"WireGuard in user space does not start: {failed}",
                    place=f"dut, on {side.name}",
                    next_step="it needs /dev/net/tun and the right to make interfaces (CAP_NET_ADMIN)",
                )
            await asyncio.sleep(_BETWEEN_TRIES_S)
        raise NotReadyError(f"{_PROGRAM} did not answer on {device}", place=f"dut, on {side.name}")

    async def _exchange_keys(self, sides: tuple[Host, Host]) -> None:
        private = [(await sides[0].run(("wg", "genkey"))).stdout.strip() for _ in sides]
        public = [(await sides[0].run(("wg", "pubkey"), input_text=key)).stdout.strip() for key in private]
        for number, (side, device) in enumerate(zip(sides, self.devices, strict=True)):
            end = ("wg", "set", device, "private-key", "/dev/stdin", "listen-port", _PORT)
            peer = ("peer", public[1 - number], "allowed-ips", "0.0.0.0/0,::/0")
            at = ("endpoint", f"{MIDDLE_ADDRESSES[1 - number]}:{_PORT}")
            await side.run((*end, *peer, *at), input_text=private[number])
            self._made.append(f"wg set {device} listen-port {_PORT} {' '.join(peer)} {' '.join(at)}")

    async def _agree(self, host: Host, far: NetnsHost) -> None:
        """Shakes hands: a keepalive asks for it, which is switched off again."""
        peer = (await host.run(("wg", "show", self.devices[0], "peers"))).stdout.strip()
        await host.run(("wg", "set", self.devices[0], "peer", peer, "persistent-keepalive", "1"))
        for _ in range(_TRIES):
            shown = (await host.run(("wg", "show", self.devices[0], "latest-handshakes"))).stdout.split()
            if shown and shown[-1] != "0":
                await host.run(("wg", "set", self.devices[0], "peer", peer, "persistent-keepalive", "off"))
                return
            await asyncio.sleep(_BETWEEN_TRIES_S)
        raise NotReadyError(
            "the two ends of WireGuard did not shake hands within 10 s",
            place=f"dut, on {host.name}",
            next_step=f"look with `wg show` there; a packet filter may hold back UDP port {_PORT}",
        )

    def cpus(self, testbed: Testbed) -> tuple[int, ...]:
        return ()  # its threads, of the kernel or of the program, would count as other programs

    def _disclose_layer(self) -> dict[str, Any]:
        return {
            "implementation": self.options.implementation,
            "versions": dict(self._versions),
            "cipher": "ChaCha20-Poly1305 (WireGuard has no other)",
            "offload": "none: no card has it",
            "threads": _THREADS[self.options.implementation],
        }
