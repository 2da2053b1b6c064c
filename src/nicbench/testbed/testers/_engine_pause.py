"""The streams of pause frames that a trial sends, and of those that it listens for. Pure.

They have no signature, and are counted by filters at the port that sends the load: first our own, which no bridge may
forward (IEEE 802.1Q 8.6.3), then the DUT's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from nicbench.core.errors import UsageError
from nicbench.core.headers.pause import MAC_CONTROL, PAUSE_OPCODE, PFC_OPCODE, Codepoint, Pausing, pause_frame
from nicbench.core.traffic import Frames, Traffic
from nicbench.core.trial import Reading
from nicbench.testbed.duts.base import Addressing

SENT, HEARD, ENDED = "pauses", "hears pause", "hears end"
_BESIDE: Final = (SENT, HEARD, ENDED)
_SOURCE_AT, _TYPE_AT, _VECTOR_AT, _PAUSE_TIME_AT, _TIMES_AT = 6, 12, 16, 16, 18
_SMALLEST_FRAME: Final = 64
# So low that no frame is due in any trial.
_NEVER: Final = 1e-6


def is_beside(name: str) -> bool:
    """Returns whether a stream is of pause frames, and no load."""
    return name.rpartition(": ")[2].rstrip("0123456789 ") in _BESIDE


def pause_requests(way: Addressing, pausing: Pausing) -> list[dict[str, Any]]:
    """Returns the streams that the receiving port of a way sends, and those that its sending port listens for."""
    back = f"{way.receive}->{way.transmit}: "
    own_mac = way.destination_mac.replace(":", "")
    ours = [{"at": _SOURCE_AT, "hex": own_mac + f"{MAC_CONTROL:04x}"}]
    trains = [
        {
            "name": f"{back}{SENT} {number}",
            "rate_frames_per_s": train.frames_per_s,
            "begins_s": train.begins_s,
            "frames": train.frames,
            **_raw(way, pause_frame(way.destination_mac, train.priority, train.quanta), ours),
        }
        for number, train in enumerate(pausing.trains, start=1)
    ]
    anything = pause_frame(way.destination_mac, pausing.priority, 0)
    listening = [
        {"name": back + name, "rate_frames_per_s": _NEVER, **_raw(way, anything, filters)}
        for name, filters in ((ENDED, _filters(pausing.priority, ended=True)), (HEARD, _filters(pausing.priority)))
    ]
    return [*trains, *listening]


def delayed(streams: Sequence[dict[str, Any]], begins_s: float) -> list[dict[str, Any]]:
    """Returns the load, which begins later."""
    return [{**one, "begins_s": begins_s} for one in streams]


def _raw(way: Addressing, frame: bytes, filters: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "transmit_port": way.receive,
        "receive_port": way.transmit,
        "flows": 1,
        "frame_bytes": _SMALLEST_FRAME,
        "layers": [{"layer": "raw", "hex": frame.hex()}],
        "unsigned": True,
        "filter": list(filters),
    }


def _filters(priority: int | None, *, ended: bool = False) -> list[dict[str, Any]]:
    """Returns what a frame must hold that pauses; with ``ended`` one of no quanta."""
    opcode = PAUSE_OPCODE if priority is None else PFC_OPCODE
    kind = [{"at": _TYPE_AT, "hex": f"{MAC_CONTROL:04x}{opcode:04x}"}]
    if priority is None:
        return [*kind, *([{"at": _PAUSE_TIME_AT, "hex": "0000"}] if ended else [])]
    bit = f"{1 << priority:04x}"
    vector = [{"at": _VECTOR_AT, "hex": bit, "mask": bit}]
    return [*kind, *vector, *([{"at": _TIMES_AT + 2 * priority, "hex": "0000"}] if ended else [])]


def with_codepoint(traffic: Traffic, codepoint: Codepoint | None) -> Traffic:
    """Returns the traffic with this codepoint in every frame, and the DSCP that it has; unchanged without one.

    UsageError where frames have no traffic class of their own that could be given.
    """
    if codepoint is None:
        return traffic
    streams = tuple(
        _marked(stream, codepoint) if "fields" in stream.model_fields_set else stream for stream in traffic.streams
    )
    return _marked(traffic, codepoint).replace(streams=streams)


def with_sent_classes(reading: Reading, streams: Sequence[dict[str, Any]]) -> Reading:
    """Returns the reading with the traffic class that each stream was sent with."""
    sent = {one["name"]: layer.get("traffic_class", 0) for one in streams for layer in one.get("layers", ())
            if layer["layer"] in ("ipv4", "ipv6")}  # fmt: skip
    read = tuple(
        one
        if one.traffic_classes is None
        else one.replace(traffic_classes=one.traffic_classes.replace(sent=sent.get(one.name)))
        for one in reading.streams
    )
    return reading.replace(streams=read)


_F = TypeVar("_F", bound=Frames)


def _marked(frames: _F, codepoint: Codepoint) -> _F:
    now = frames.fields.traffic_class or 0
    is_whole = frames.raw_frame is not None or frames.pcap is not None
    if not isinstance(now, int) or is_whole or frames.vxlan is not None or frames.tunnels:
        raise UsageError(
            "the test sets the ECN bits of every frame, and the traffic gives whole frames, tunnels or varying classes",
            place="traffic",
            next_step="give `traffic_class` one value for each stream, and leave `raw_frame`, `pcap` and tunnels out",
        )
    fields = frames.fields.replace(traffic_class=now & ~int(Codepoint.CE) | codepoint)
    return frames.replace(fields=fields)
