"""The server's ports, as far as configurations need them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from nicbench.core.units import FRAME_OVERHEAD_BYTES
from nicbench.otg.draft import Draft, Tag
from nicbench.otg.headers import encode_packet
from nicbench.otg.model import Problems


@dataclass(frozen=True, slots=True)
class ServedPort:
    """A port of the bench file: the engine's ``number`` for it, its name there, and the rate of its link.

    ``link_bits_per_s`` is L1; None where it is not known: a percentage is then refused. ``largest_frame_bytes``, with
    FCS, is what the port takes; None where it is not known. A frame with a VLAN tag may be ``tag_bytes`` longer.
    """

    number: int
    location: str
    link_bits_per_s: float | None
    largest_frame_bytes: int | None = None
    tag_bytes: int = 0


SMALLEST_FRAME_BYTES: Final = 64
LARGEST_FRAME_BYTES: Final = 9216
FCS_BYTES: Final = 4
_PARTS: Final = 100
MOST_PARTS: Final = 65_536
"""The greatest number of sizes in an order that the engine repeats."""
"""Weights are sent as whole numbers, in hundredths."""

PRESETS: Final[Mapping[str, tuple[tuple[int, float], ...]]] = {
    "imix": ((64, 7), (570, 4), (1518, 1)),
    "ipsec_imix": ((90, 58.67), (92, 2), (594, 23.66), (1418, 15.67)),
    "ipv6_imix": ((60, 58.67), (496, 2), (594, 23.66), (1518, 15.67)),
    "standard_imix": ((58, 58.67), (62, 2), (594, 23.66), (1518, 15.67)),
    "tcp_imix": ((90, 58.67), (92, 2), (594, 23.66), (1518, 15.67)),
}
"""Sizes and weights as the model describes them. Those below 64 bytes are sent with 64, Ethernet's smallest."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The engine's program with what follows from it; all in bytes with FCS."""

    program: dict[str, Any]
    smallest: int
    largest: int
    mean: float


def read_sizes(message: Mapping[str, Any] | None, header_bytes: int, seed: int, path: str, problems: Problems) -> Sizes:
    """Reads the sizes of a flow whose headers take this number of bytes. Without a size, frames are as small as
    possible.
    """
    if not message:
        size = max(SMALLEST_FRAME_BYTES, header_bytes + FCS_BYTES)
        return _checked(Sizes({"fixed": size}, size, size, size), header_bytes, path, problems)
    choice = message.get("choice") or next((key for key in _READERS if key in message), "fixed")
    sizes = _READERS[choice](message.get(choice), seed, f"{path}.{choice}", problems)
    return _checked(sizes, header_bytes, f"{path}.{choice}", problems)


def _checked(sizes: Sizes, header_bytes: int, path: str, problems: Problems) -> Sizes:
    if sizes.smallest < SMALLEST_FRAME_BYTES:
        problems.invalid(path, f"{sizes.smallest} bytes are below Ethernet's smallest frame of {SMALLEST_FRAME_BYTES}")
    elif sizes.smallest < header_bytes + FCS_BYTES:
        need = header_bytes + FCS_BYTES
        problems.invalid(path, f"{sizes.smallest} bytes have no room for the headers, which need {need} with FCS")
    if sizes.largest > LARGEST_FRAME_BYTES:
        problems.invalid(path, f"{sizes.largest} bytes are above the largest frame of {LARGEST_FRAME_BYTES}")
    return sizes


def _fixed(given: Any, seed: int, path: str, problems: Problems) -> Sizes:
    size = int(given) if given is not None else SMALLEST_FRAME_BYTES
    return Sizes({"fixed": size}, size, size, size)


def _increment(given: Mapping[str, Any] | None, seed: int, path: str, problems: Problems) -> Sizes:
    given = given or {}
    start, end, step = int(given.get("start", 64)), int(given.get("end", 1518)), int(given.get("step", 1))
    if step < 1 or end < start:
        problems.invalid(path, "step is at least 1, and end is not below start")
        return _fixed(None, seed, path, problems)
    last = end - (end - start) % step
    return Sizes({"from": start, "to": last, "step": step}, start, last, (start + last) / 2)


def _random(given: Mapping[str, Any] | None, seed: int, path: str, problems: Problems) -> Sizes:
    given = given or {}
    low, high = int(given.get("min", 64)), int(given.get("max", 1518))
    if high < low:
        problems.invalid(path, "max is below min")
        return _fixed(None, seed, path, problems)
    return Sizes({"random": {"from": low, "to": high, "seed": seed}}, low, high, (low + high) / 2)


def _weighted(given: Mapping[str, Any] | None, seed: int, path: str, problems: Problems) -> Sizes:
    given = given or {}
    pairs: list[tuple[int, float]]
    if given.get("choice", "custom" if "custom" in given else "predefined") == "custom":
        pairs = [(int(pair.get("size", 64)), float(pair.get("weight", 1))) for pair in given.get("custom") or ()]
    else:
        preset = PRESETS[given.get("predefined", "imix")]
        pairs = [(max(size, SMALLEST_FRAME_BYTES), weight) for size, weight in preset]
    if not any(weight for _, weight in pairs) or not all(0 <= weight < math.inf for _, weight in pairs):
        problems.invalid(path, "needs sizes whose weights are finite, not negative, and not all 0")
        return _fixed(None, seed, path, problems)
    weights: dict[int, float] = {}
    for size, weight in pairs:
        if weight:
            weights[size] = weights.get(size, 0.0) + weight
    parts = _whole_parts(weights)
    if min(parts.values()) < 1:
        problems.invalid(path, f"needs weights of at least a {MOST_PARTS}th of their sum, or of 0")
        return _fixed(None, seed, path, problems)
    program = {"weighted": [{"frame_bytes": size, "weight": part} for size, part in parts.items()], "seed": seed}
    mean = sum(size * part for size, part in parts.items()) / sum(parts.values())
    return Sizes(program, min(parts), max(parts), mean)


def _whole_parts(weights: Mapping[int, float]) -> dict[int, int]:
    """Returns the weights as whole numbers, as the engine has them: exact in hundredths, or else rounded to a sum of
    ``MOST_PARTS``, those with the largest remainders up.
    """
    parts = {size: round(weight * _PARTS) for size, weight in weights.items()}
    is_exact = all(math.isclose(part, weights[size] * _PARTS, abs_tol=1e-6) for size, part in parts.items())
    if is_exact and sum(parts.values()) // math.gcd(*parts.values()) <= MOST_PARTS:
        return parts
    total = math.fsum(weights.values())
    shares = {size: weight / total * MOST_PARTS for size, weight in weights.items()}
    parts = {size: math.floor(share) for size, share in shares.items()}
    by_remainder = sorted(shares, key=lambda size: parts[size] - shares[size])
    for size in by_remainder[: MOST_PARTS - sum(parts.values())]:
        parts[size] += 1
    return parts


_READERS: Final = {"fixed": _fixed, "increment": _increment, "random": _random, "weight_pairs": _weighted}


PREAMBLE_BYTES: Final = 8
USUAL_GAP_BYTES: Final = 12
_UNITS: Final = {"bps": 1, "kbps": 10**3, "mbps": 10**6, "gbps": 10**9}
RATE_DEFAULTS: Final = {"pps": 1000, "bps": 10**9, "kbps": 10**6, "mbps": 10**3, "gbps": 1}
MOST_FRAMES_PER_S: Final = 1e9


@dataclass(frozen=True, slots=True)
class Timing:
    """The members of the engine's flow by their names there."""

    rate_frames_per_s: float
    burst: dict[str, Any] | None = None
    frames: int | None = None
    bursts: int | None = None
    duration_s: float | None = None
    delay_s: float = 0.0
    exact: bool = True


def read_timing(flow: Mapping[str, Any], sizes: Sizes, port: ServedPort, path: str, problems: Problems) -> Timing:
    """Reads rate and duration of a flow that this port sends."""
    duration = flow.get("duration") or {}
    choice = duration.get("choice") or next((key for key in _DURATIONS if key in duration), "continuous")
    message, here = duration.get(choice) or {}, f"{path}.duration.{choice}"
    rate = read_rate(flow.get("rate") or {}, sizes, port, f"{path}.rate", problems)
    rate = min(rate, _rate_of_gap(int(message.get("gap", USUAL_GAP_BYTES)), sizes, port, f"{here}.gap", problems))
    if choice == "burst":
        return _burst(message, rate, port, here, problems)
    delay = _seconds(message.get("delay"), {"bytes": 0.0}, port, f"{here}.delay", problems)
    if choice == "fixed_packets":
        return Timing(rate, frames=int(message.get("packets", 1)), delay_s=delay)
    if choice == "fixed_seconds":
        seconds = float(message.get("seconds", 1.0))
        if not 0 < seconds <= _LONGEST_S:
            problems.invalid(f"{here}.seconds", f"is above 0, and {_LONGEST_S} at most")
        return Timing(rate, duration_s=seconds, delay_s=delay)
    return Timing(rate, delay_s=delay, exact=False)


def read_rate(message: Mapping[str, Any], sizes: Sizes, port: ServedPort, path: str, problems: Problems) -> float:
    """Reads a rate as frames/s. Bits are counted on layer 1 (with preamble and gap), as OTG's minimum implies."""
    choice = message.get("choice") or next((key for key in ("pps", *_UNITS, "percentage") if key in message), "pps")
    bits = 8 * (sizes.mean + FRAME_OVERHEAD_BYTES)
    if choice == "pps":
        rate = float(message.get(choice, RATE_DEFAULTS[choice]))
    elif choice == "percentage":
        percentage = float(message.get("percentage", 100.0))
        if port.link_bits_per_s is None:
            problems.invalid(f"{path}.percentage", f"the rate of port {port.location}'s link is not known: give pps")
            return 1.0
        rate = port.link_bits_per_s * percentage / 100 / bits
    else:
        rate = float(message.get(choice, RATE_DEFAULTS[choice])) * _UNITS[choice] / bits
    if not 0 < rate <= MOST_FRAMES_PER_S:
        problems.invalid(
            f"{path}.{choice}", f"is {rate:g} frames/s; it must be above 0, and {MOST_FRAMES_PER_S:g} at most"
        )
        return 1.0
    return rate


_LONGEST_S: Final = 31_536_000
_DURATIONS: Final = ("fixed_packets", "fixed_seconds", "burst", "continuous")


def _rate_of_gap(gap_bytes: int, sizes: Sizes, port: ServedPort, path: str, problems: Problems) -> float:
    """The rate at which frames have this gap between them, which the model calls the smallest allowed."""
    if gap_bytes <= USUAL_GAP_BYTES:
        return MOST_FRAMES_PER_S
    if port.link_bits_per_s is None:
        problems.invalid(path, f"the rate of port {port.location}'s link is not known: leave it out, and give a rate")
        return MOST_FRAMES_PER_S
    return port.link_bits_per_s / 8 / (sizes.mean + PREAMBLE_BYTES + gap_bytes)


def _burst(message: Mapping[str, Any], rate: float, port: ServedPort, path: str, problems: Problems) -> Timing:
    between = _seconds(message.get("inter_burst_gap"), _BURST_GAP_DEFAULTS, port, f"{path}.inter_burst_gap", problems)
    packets = int(message.get("packets", 1))
    bursts = int(message.get("bursts", 0))
    burst = {"packets": packets, "gap_between_packets_s": 0.0, "gap_between_bursts_s": between}
    return Timing(rate, burst=burst, bursts=bursts or None, exact=bursts > 0)


_BURST_GAP_DEFAULTS: Final = {"bytes": 12.0, "nanoseconds": 96.0, "microseconds": 0.096}


def _seconds(
    message: Mapping[str, Any] | None, defaults: Mapping[str, float], port: ServedPort, path: str, problems: Problems
) -> float:
    """Reads a time that is given in ns, µs or bytes of the line."""
    message = message or {}
    choice = message.get("choice") or next((key for key in ("nanoseconds", "microseconds") if key in message), "bytes")
    value = float(message.get(choice, defaults.get(choice, 0.0)))
    if choice == "nanoseconds":
        return value / 1e9
    if choice == "microseconds":
        return value / 1e6
    if port.link_bits_per_s is None:
        if value and choice in message:
            problems.invalid(f"{path}.bytes", f"the rate of port {port.location}'s link is not known: give nanoseconds")
        return 0.0
    return value * 8 / port.link_bits_per_s


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
    tags: tuple[str, ...] = ()
    """The fields of received frames by whose values these are counted too."""


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
    counted_by = (*draft.tags, *_egress_tags(flow, f"{path}.egress_packet", problems))
    if counted_by and not (metrics.enable and receive):
        problems.invalid(f"{path}.metrics.enable", "frames are counted by metric_tags where they are received: set it")
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
        "tags": [{"offset_bits": tag.offset_bits, "bits": tag.bits} for tag in counted_by],
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
        tags=tuple(tag.name for tag in counted_by),
    )


MOST_TAG_BITS: Final = 128


def _egress_tags(flow: Mapping[str, Any], path: str, problems: Problems) -> list[Tag]:
    """Reads where the fields are, in frames as they are received, by whose values these are counted."""
    packet = flow.get("egress_packet")
    if not packet:
        return []
    tags = encode_packet(packet, path, problems).tags
    if sum(tag.bits for tag in tags) > MOST_TAG_BITS:
        problems.invalid(path, f"its metric_tags have more than {MOST_TAG_BITS} bits together")
    return tags


def receivers(flow: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the names of the ports that receive a flow: of ``rx_names``, or of ``rx_name``, which it replaced."""
    endpoints = (flow.get("tx_rx") or {}).get("port") or {}
    names = endpoints.get("rx_names") or ([endpoints["rx_name"]] if endpoints.get("rx_name") else [])
    return tuple(map(str, names))


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
            problems.not_implemented(f"{path}.predefined_metric_tags", "ports are not a tag: leave it out")
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
