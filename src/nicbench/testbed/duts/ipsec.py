"""IPsec of the Linux kernel between two gateways back to back (`ipsec`): ESP in tunnel mode, by xfrm.

Both ends stand on the DUT's machine (``_tandem.py``). Each is an xfrm interface with its security associations and
policies; keys are made for the run, without IKE, and never written down. Sequence numbers have 32 bits, so that an
association carries 2^32 packets: at 1 Mpps it ends after 71 minutes.
"""

from __future__ import annotations

import secrets
from typing import Any, Final, Literal

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.duts._tandem import MIDDLE, MIDDLE_ADDRESSES, TandemDut
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.network import DeleteIpObject

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
