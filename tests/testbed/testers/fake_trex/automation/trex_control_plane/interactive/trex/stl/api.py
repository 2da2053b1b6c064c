"""Looks like ``trex.stl.api`` as far as its documentation and its source say; the server is in the test's process.

Every call of the client goes there, by the socket that ``FAKE_TREX`` names.
"""

from __future__ import annotations

import os
from multiprocessing.connection import Client
from typing import Any


class TRexError(Exception):
    """Whatever the client or the server refuses."""


class TRexTimeoutError(TRexError):
    """The traffic went on for longer than was waited."""


STLError = TRexError


class StatNotAvailable:
    """A statistic that this card does not give."""

    def __repr__(self) -> str:
        return "N/A"


class OwnedPort:
    """A port, of which the client knows who holds it: this is in no ``get_port_info``."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def get_owner(self) -> str:
        return self._owner


class STLTXCont:
    def __init__(self, pps: float) -> None:
        self.pps = pps


class STLTXSingleBurst:
    def __init__(self, pps: float, total_pkts: int) -> None:
        if not isinstance(total_pkts, int) or total_pkts < 1:
            raise TRexError("single_burst: 'total_pkts' cannot be zero.")
        self.pps, self.total_pkts = pps, total_pkts


class STLFlowStats:
    def __init__(self, pg_id: int) -> None:
        self.pg_id = pg_id


class STLFlowLatencyStats:
    def __init__(self, pg_id: int) -> None:
        self.pg_id = pg_id


class STLVmFlowVar:
    def __init__(
        self,
        name: str,
        min_value: int,
        max_value: int,
        size: int,
        op: str,
        split_to_cores: bool = True,
        next_var: str | None = None,
    ) -> None:
        if min_value > max_value or not 0 <= max_value < 1 << (8 * size):
            raise TRexError(f"{name}: from {min_value} to {max_value} in {size} bytes")
        self.name, self.count = name, max_value - min_value + 1
        self.first, self.last = min_value, max_value
        self.split_to_cores, self.next_var = split_to_cores, next_var


class STLVmWrFlowVar:
    def __init__(self, fv_name: str, pkt_offset: int) -> None:
        self.name, self.offset = fv_name, pkt_offset


class STLVmFixIpv4:
    def __init__(self, offset: int) -> None:
        self.offset = offset


class STLScVmRaw:
    def __init__(self, list_of_commands: list[Any]) -> None:
        self.commands = list_of_commands


class STLPktBuilder:
    def __init__(self, pkt_buffer: bytes, vm: STLScVmRaw) -> None:
        self.packet, self.vm = pkt_buffer, vm


class STLStream:
    def __init__(
        self,
        packet: STLPktBuilder,
        mode: STLTXCont | STLTXSingleBurst,
        flow_stats: STLFlowStats | STLFlowLatencyStats | None,
        mac_src_override_by_pkt: bool,
        mac_dst_override_mode: int,
    ) -> None:
        self.packet, self.mode, self.flow_stats = packet, mode, flow_stats


class STLClient:
    """Sends the name of each method and what it is given to the server, which has a session for each client."""

    def __init__(self, **options: Any) -> None:
        self._connection = Client(os.environ["FAKE_TREX"])
        self._call("__init__", (), options)

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **named: self._call(name, given, named)

    def _call(self, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self._connection.send((name, given, named))
        worked, value = self._connection.recv()
        if not worked:
            raise value
        return value
