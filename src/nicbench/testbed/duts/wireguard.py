"""WireGuard between two gateways back to back (`wireguard`), by the kernel or by wireguard-go in user space.

Both ends stand on the DUT's machine (``_tandem.py``). Keys are made for the run and never written down. The ends shake
hands before the first trial; a handshake in a trial, every two minutes, is part of what WireGuard costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Literal

from nicbench.core.base import Frozen
from nicbench.core.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.duts._process import DutProcess, require_program
from nicbench.testbed.duts._tandem import MIDDLE_ADDRESSES, TandemDut
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.files import RemovePath

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

    def programs(self) -> Mapping[str, str]:
        own = {} if self.options.implementation == "kernel" else {_PROGRAM: f"apt-get install {_PROGRAM}"}
        return {"wg": "apt-get install wireguard-tools", **own}

    async def _make_ends(self, testbed: Testbed, host: Host, far: NetnsHost, changes: Changes) -> None:
        for program, step in self.programs().items():
            await require_program(host, program, step)
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
        await changes.make(side, RemovePath(path=f"{_SOCKETS}/{device}.sock"), _nothing)
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

    async def waiting_ns(self) -> int | None:
        waits = [wait for process in self._processes if (wait := await process.waiting_ns()) is not None]
        return sum(waits) if waits else None

    async def failure(self) -> str | None:
        for process in self._processes:
            if failed := await process.failure():
                return failed
        return None

    def _disclose_layer(self) -> dict[str, Any]:
        return {
            "implementation": self.options.implementation,
            "versions": dict(self._versions),
            "cipher": "ChaCha20-Poly1305 (WireGuard has no other)",
            "offload": "none: no card has it",
            "threads": _THREADS[self.options.implementation],
        }


async def _nothing() -> None:
    """Does nothing: the program makes the file, and its undo must stand before."""
