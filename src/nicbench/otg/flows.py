"""Flows of a configuration as programs of the engine: packet, sizes, rate, duration, payload and receivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from nicbench.otg.draft import Draft
from nicbench.otg.headers import encode_packet
from nicbench.otg.ports import ServedPort
from nicbench.otg.refusals import Problems
from nicbench.otg.sizes import FCS_BYTES, Sizes, read_sizes
from nicbench.otg.timing import read_timing

SIGNATURE_BYTES: Final = 16
"""What the engine writes before the FCS, where it may: by it every frame is checked and timed."""
INSTRUMENTATION: Final = bytes.fromhex("877367494287118008711805")
"""What other generators of OTG send behind the headers of flows whose metrics are on. Tests tell such frames by it, as
one of the public ones does; the payload of the model begins behind it."""
_BYTE_VALUES: Final = 256


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow: its ``program`` for the engine, and what its metrics need.

    ``counted``: how received frames are recognised: by their signature, by their headers, or not at all (None), where
    nothing is known of them but that they were sent. Only a signature alters frames.
    """

    name: str
    transmit: str
    receive: tuple[str, ...]
    metrics: bool
    loss: bool
    timestamps: bool
    latency: Literal["store_forward", "cut_through"] | None
    counted: Literal["signature", "headers"] | None
    mean_frame_bytes: float
    program: dict[str, Any]
    receive_names: str
    """The receiving ports in one text, as metrics have them."""


def _is_tagged(packet: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one VLAN tag follows the addresses: the MTU of ports does not count it."""
    return [header.get("choice") == "vlan" for header in packet[1:3]] in ([True], [True, False])


def read_flow(
    flow: Mapping[str, Any], seed: int, ports: Mapping[str, ServedPort], path: str, problems: Problems
) -> Flow:
    """Reads a flow whose references were checked; ``ports`` are by their names in the configuration.

    ``seed`` is for what OTG draws at random without a seed: frame sizes.
    """
    problems.begin_flow()
    for key, why in _NOT_IMPLEMENTED.items():
        if flow.get(key):
            problems.not_implemented(f"{path}.{key}", why)
    draft = encode_packet(flow.get("packet") or (), f"{path}.packet", problems)
    metrics = _Metrics.read(flow.get("metrics") or {}, f"{path}.metrics", problems)
    # Without a size it is chosen here, and so that the frames are counted for certain.
    room = SIGNATURE_BYTES if metrics.enable and receivers(flow) and not flow.get("size") else 0
    sizes = read_sizes(flow.get("size"), draft.at + max(draft.trailer_bytes, room), seed, f"{path}.size", problems)
    endpoints = (flow.get("tx_rx") or {}).get("port") or {}
    transmit, receive = str(endpoints.get("tx_name", "")), receivers(flow)
    port = ports[transmit]
    tags = ports[transmit].tag_bytes if _is_tagged(flow.get("packet") or ()) else 0
    most = min(
        (each + tags for name in (transmit, *receive) if (each := ports[name].largest_frame_bytes)), default=None
    )
    if most is not None and sizes.largest > most:
        step = "send smaller frames, or raise the ports' MTU"
        problems.invalid(f"{path}.size", f"{sizes.largest} bytes are more than the {most} that its ports take: {step}")
    timing = read_timing(flow, sizes, port, path, problems)
    signed = metrics.enable and bool(receive) and sizes.smallest >= draft.at + SIGNATURE_BYTES + FCS_BYTES
    if metrics.latency and not signed:
        problems.invalid(
            f"{path}.metrics.latency",
            f"is taken from {SIGNATURE_BYTES} bytes before the FCS, for which the smallest frame has no room, "
            "of frames that are received: send larger frames",
        )
    if signed and sizes.smallest >= draft.at + len(INSTRUMENTATION) + SIGNATURE_BYTES + FCS_BYTES:
        draft.put_bytes(INSTRUMENTATION)
    program = {
        "name": str(flow["name"]),
        "transmit_port": port.number,
        "receive_ports": [ports[name].number for name in receive],
        "template": draft.template().hex(),
        "fields": draft.fields,
        "fixups": draft.fixups(),
        "sizes": sizes.program,
        "filler": read_payload(flow.get("payload") or {}, draft, sizes, f"{path}.payload", problems),
        **asdict(timing),
        "signature": signed,
        "match": {"fields": draft.match(), "bytes": None} if metrics.enable and receive and not signed else None,
    }
    return Flow(
        name=str(flow["name"]),
        transmit=transmit,
        receive=receive,
        metrics=metrics.enable,
        loss=metrics.loss,
        timestamps=metrics.timestamps,
        latency=metrics.latency,
        counted="signature" if signed else "headers" if program["match"] else None,
        mean_frame_bytes=sizes.mean,
        program=program,
        receive_names=",".join(receive),
    )


def receivers(flow: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the names of the ports that receive a flow: of ``rx_names``, or of ``rx_name``, which it replaced."""
    endpoints = (flow.get("tx_rx") or {}).get("port") or {}
    names = endpoints.get("rx_names") or ([endpoints["rx_name"]] if endpoints.get("rx_name") else [])
    return tuple(map(str, names))


_NOT_IMPLEMENTED: Final = {
    "egress_packet": "headers of received packets are not looked at: leave it out",
}


@dataclass(frozen=True, slots=True)
class _Metrics:
    """A flow's ``metrics``."""

    enable: bool
    loss: bool
    timestamps: bool
    latency: Literal["store_forward", "cut_through"] | None

    @classmethod
    def read(cls, message: Mapping[str, Any], path: str, problems: Problems) -> _Metrics:
        if (message.get("predefined_metric_tags") or {}).get("rx_name"):
            problems.not_implemented(f"{path}.predefined_metric_tags", "metrics by tag are not kept: leave it out")
        if message.get("rx_tx_ratio"):
            problems.not_implemented(f"{path}.rx_tx_ratio", "every frame is expected once: leave it out")
        latency = message.get("latency") or {}
        enable = bool(message.get("enable"))
        mode = latency.get("mode", "store_forward") if enable and latency.get("enable") else None
        return cls(enable, bool(message.get("loss")), bool(message.get("timestamps")), mode)


def read_payload(
    message: Mapping[str, Any], draft: Draft, sizes: Sizes, path: str, problems: Problems
) -> dict[str, Any]:
    """Reads what follows the headers as the engine's filler, which repeats its bytes."""
    choice = message.get("choice", "fixed")
    room = max(0, sizes.largest - FCS_BYTES - draft.at)
    if choice == "increment_byte":
        return {"kind": "incrementing_byte"}
    if choice == "decrement_byte":
        return _hex(bytes(reversed(range(_BYTE_VALUES))))
    if choice in ("increment_word", "decrement_word"):
        words = range((room + 1) // 2) if choice == "increment_word" else range(0xFFFF, 0xFFFF - (room + 1) // 2, -1)
        return _hex(b"".join(word.to_bytes(2, "big") for word in words))
    fixed = message.get("fixed") or {}
    digits = str(fixed.get("pattern", "00"))
    digits = digits[2:] if digits[:2] in ("0x", "0X") else digits
    try:
        pattern = bytes.fromhex(digits)
    except ValueError:
        problems.invalid(f"{path}.fixed.pattern", "is no even number of hexadecimal digits")
        return {"kind": "zeros"}
    if not fixed.get("repeat", True):
        pattern = pattern[:room].ljust(room, b"\0")
    return _hex(pattern)


def _hex(content: bytes) -> dict[str, Any]:
    return {"kind": "hex", "hex": content.hex()} if any(content) else {"kind": "zeros"}
