"""The schedule of a flow: OTG's ``rate`` and ``duration`` as frames per second, frames and seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from nicbench.core.units import FRAME_OVERHEAD_BYTES
from nicbench.otg.ports import ServedPort
from nicbench.otg.refusals import Problems
from nicbench.otg.sizes import Sizes

PREAMBLE_BYTES: Final = 8
USUAL_GAP_BYTES: Final = 12
_UNITS: Final = {"bps": 1, "kbps": 10**3, "mbps": 10**6, "gbps": 10**9}
_RATE_DEFAULTS: Final = {"bps": 10**9, "kbps": 10**6, "mbps": 10**3, "gbps": 1}
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
        rate = float(message.get("pps", 1000))
    elif choice == "percentage":
        percentage = float(message.get("percentage", 100.0))
        if port.link_bits_per_s is None:
            problems.invalid(f"{path}.percentage", f"the rate of port {port.location}'s link is not known: give pps")
            return 1.0
        rate = port.link_bits_per_s * percentage / 100 / bits
    else:
        rate = float(message.get(choice, _RATE_DEFAULTS[choice])) * _UNITS[choice] / bits
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
