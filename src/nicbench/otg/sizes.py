"""Frame sizes of a flow (OTG ``size``), with FCS: the engine's program, the extremes and the mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from nicbench.otg.refusals import Problems

SMALLEST_FRAME_BYTES: Final = 64
LARGEST_FRAME_BYTES: Final = 9216
FCS_BYTES: Final = 4
_PARTS: Final = 100
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
    """Reads the sizes of a flow whose headers take so many bytes. Without a size, frames are as small as possible."""
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
    parts = [(size, round(weight * _PARTS)) for size, weight in pairs]
    total = sum(weight for _, weight in parts)
    if not parts or total <= 0 or min(weight for _, weight in parts) < 0:
        problems.invalid(path, "needs sizes whose weights are not negative, and not all 0")
        return _fixed(None, seed, path, problems)
    program = {"weighted": [{"frame_bytes": size, "weight": weight} for size, weight in parts], "seed": seed}
    sizes = [size for size, weight in parts if weight]
    return Sizes(program, min(sizes), max(sizes), sum(size * weight for size, weight in parts) / total)


_READERS: Final = {"fixed": _fixed, "increment": _increment, "random": _random, "weight_pairs": _weighted}
