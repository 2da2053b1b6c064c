"""Frame sizes of a flow (OTG ``size``), with FCS: the engine's program, the extremes and the mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from nicbench.otg.refusals import Problems

SMALLEST_FRAME_BYTES: Final = 64
LARGEST_FRAME_BYTES: Final = 9216
FCS_BYTES: Final = 4
_PARTS: Final = 100
MOST_PARTS: Final = 65_536
"""The engine repeats an order of so many sizes at most."""
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
