"""The ends of tunnels as XDP programs (`xdp-tunnel`): between the ports of a pair, headers are taken off and put on.

On the side of the first port frames are in `tunnels`, on that of the second in `beyond` (in none by default). What
comes in at the first port loses the headers of `tunnels` and gets those of `beyond`, at the second the other way round.
The packet inside and the MAC addresses stay as they are. It is a golden DUT: every frame in the tunnel is sent on, but
for those that it is told to drop or to damage.
"""

from __future__ import annotations

import struct
import sys
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.errors import HostError
from nicbench.core.headers import OverIp, Tunnels
from nicbench.core.pattern import Pattern, ways_of
from nicbench.testbed.addressing import MOST_PORTS, transparent_addressing
from nicbench.testbed.duts._ports import dut_devices, require_host
from nicbench.testbed.duts._tunnel_bytes import TunnelBytes, tunnel_headers
from nicbench.testbed.duts._xdp_ports import XdpDut, XdpOptions
from nicbench.testbed.duts.base import Addressing, Refusal
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning import bpf
from nicbench.tuning.changes import Changes

_PROGRAM: Final = "xdp_tunnel"
_MOST_BYTES: Final = 192
_MOST_FIELDS: Final = 8
_NOWHERE: Final = 0xFFFF
_SETTINGS: Final = struct.Struct(f"=III2s2sII{2 * _MOST_FIELDS}H{_MOST_FIELDS}H{3 * _MOST_BYTES}s")


class XdpTunnelOptions(XdpOptions):
    """``dut: {kind: xdp-tunnel, tunnels: [...]}``."""

    tunnels: Tunnels = Field(default=(), max_length=8)
    """The tunnels on the side of the first port, as in `traffic`, each with its addresses."""
    beyond: Tunnels = Field(default=(), max_length=8)
    """The tunnels on the side of the second port; without it none."""
    carries: Literal[4, 6] = 4
    """The IP version of the packets inside."""
    drop_every: int = Field(default=0, ge=0, le=2**31)
    """Of so many frames that come in at a port one is dropped: a broken DUT. 0: none."""
    damage_every: int = Field(default=0, ge=0, le=2**31)
    """Of so many frames that come in at a port the last byte of one is altered: a broken DUT. 0: none."""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not self.tunnels and not self.beyond and not self.drop_every and not self.damage_every:
            raise ValueError("it needs `tunnels` or `beyond`: without them it would change nothing")
        for tunnel in (*self.tunnels, *self.beyond):
            if isinstance(tunnel, OverIp) and tunnel.source is None:
                raise ValueError(f"the {tunnel.words} header needs `source` and `destination`, as it has in `traffic`")
        for tunnels in (self.tunnels, self.beyond):
            made = tunnel_headers(tunnels, self.carries)
            if len(made.header) > _MOST_BYTES or len(made.lengths) > _MOST_FIELDS:
                raise ValueError(f"the headers have {len(made.header)} bytes, and it takes at most {_MOST_BYTES}")
        return self


class XdpTunnel(XdpDut):
    """The DUT's host ends and begins tunnels between the ports of a pair."""

    kind = "xdp-tunnel"
    Options = XdpTunnelOptions
    fewest_ports = 2
    most_ports = MOST_PORTS
    fates = ("sent on", "not in the tunnel", "dropped on purpose", "damaged on purpose")
    """In the order of `enum fate` of the program."""
    options: XdpTunnelOptions

    def refusal(self, ports: int, pattern: Pattern) -> Refusal | None:
        if pattern is Pattern.ONE_TO_ONE:
            return None
        return Refusal("a tunnel only joins pairs of ports", "write `pattern: one-to-one`, or choose another DUT")

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        devices = await dut_devices(testbed, self.kind, fewest=self.fewest_ports, most=self.most_ports)
        await self._attach(testbed, changes, devices, _PROGRAM)
        for start, end in ways_of(Pattern.ONE_TO_ONE, len(devices.names), bidirectional=True).loaded:
            back = start > end
            sides = (self.options.tunnels, self.options.beyond)
            made = [tunnel_headers(side, self.options.carries, back=back) for side in sides]
            removed, added = made[::-1] if back else made
            packed = pack_settings(self.options, devices.indexes[end], removed, added)
            settings = await bpf.map_id(host, self._attached[start].program, "tunnel_settings")
            wanted = int.from_bytes(packed, sys.byteorder)
            await bpf.write_map(host, settings, 0, wanted, value_bytes=len(packed))
            if await bpf.read_map(host, settings, 0) != wanted:
                raise HostError("the program did not accept its settings", place=f"{host.name}, {devices.names[start]}")

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        pairs = ways_of(Pattern.ONE_TO_ONE, len(testbed.dut_ports), bidirectional=True).loaded
        return tuple(way for way in transparent_addressing(testbed, ip) if (way.transmit, way.receive) in pairs)

    async def drops(self) -> dict[str, int]:
        return await self._counts_of("dropped on purpose")

    async def left_to_kernel(self) -> dict[str, int]:
        return await self._counts_of("not in the tunnel")

    async def _counts_of(self, fate: str) -> dict[str, int]:
        return {f"{port.device} {fate}": (await self._read_counts(port))[fate] for port in self._attached}

    def disclosure(self) -> dict[str, Any]:
        options = self.options
        return {
            "kind": self.kind,
            **self._disclose_programs(_PROGRAM),
            "tunnels": [tunnel.model_dump(mode="json", exclude_none=True) for tunnel in options.tunnels],
            "beyond": [tunnel.model_dump(mode="json", exclude_none=True) for tunnel in options.beyond],
            "drop_every": options.drop_every or None,
            "damage_every": options.damage_every or None,
        }


def pack_settings(options: XdpTunnelOptions, interface: int, removed: TunnelBytes, added: TunnelBytes) -> bytes:
    """``struct settings`` of xdp_tunnel.bpf.c."""
    types = (removed.ethertype, added.ethertype)
    lengths = [number for field in added.lengths for number in field]
    lengths += [_NOWHERE, 0] * (_MOST_FIELDS - len(added.lengths))
    checksums = added.checksums + [_NOWHERE] * (_MOST_FIELDS - len(added.checksums))
    images = (removed.header, removed.mask, added.header)
    return _SETTINGS.pack(
        interface,
        len(removed.header),
        len(added.header),
        *(number.to_bytes(2, "big") for number in types),
        options.drop_every,
        options.damage_every,
        *lengths,
        *checksums,
        b"".join(bytes(image).ljust(_MOST_BYTES, b"\0") for image in images),
    )
