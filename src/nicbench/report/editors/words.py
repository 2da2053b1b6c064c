"""Text of film-frame rates and of the number of streams that were sustained."""

from __future__ import annotations

import math
from collections.abc import Iterable

from nicbench.report.numbers import THIN_SPACE, UNKNOWN
from nicbench.stats.frames import HeldInstances, Target

GAP = "\u00a0"  # a number and its unit stay on one line


def rate_decimals(rates: Iterable[float | None]) -> int:
    """Returns the decimals (1 to 3) for a table of rates: three significant digits of the smallest rate above 0."""
    known = [rate for rate in rates if rate is not None and rate > 0.0]
    return min(3, max(1, *(2 - math.floor(math.log10(rate)) for rate in known))) if known else 1


def rate_text(frames_per_s: float | None, decimals: int) -> str:
    """Returns a rate in frames/s as text, without the unit."""
    if frames_per_s is None:
        return UNKNOWN
    return f"{frames_per_s:,.{decimals}f}".replace(",", THIN_SPACE)


def plain_rate(frames_per_s: float) -> str:
    """Returns a rate in frames/s without trailing zeros: 24, 23.976, 235.1."""
    decimals = 3 if frames_per_s < 100.0 else 1
    text = rate_text(frames_per_s, decimals)
    return text.rstrip("0").rstrip(".") if "." in text else text


def share_text(ratio: float | None) -> str:
    """Returns a ratio in percent without the sign; "0" and "100" are printed only where they are exact."""
    if ratio is None:
        return UNKNOWN
    percent = 100.0 * ratio
    if 0.0 < percent < 0.1:
        return "< 0.1"
    return "> 99.9" if 99.9 < percent < 100.0 else f"{percent:.1f}".removesuffix(".0")


def target_words(target: Target) -> str:
    """Returns the target rate of an instance with its unit: "24 frames/s"."""
    return f"{plain_rate(target.frames_per_s)}{GAP}frames/s"


def held_text(held: HeldInstances | None) -> str:
    """Returns the sustained instances for a table cell: "9", "≥ 12", "8 (not 5, 6)"; a dash where unknown."""
    if held is None:
        return UNKNOWN
    if held.instances is None:
        return "fewer than tried"
    bound = f"≥{GAP}{held.instances}" if held.is_at_least else f"{held.instances}"
    return f"{bound} (not {', '.join(map(str, held.gaps))})" if held.gaps else bound


def held_words(held: HeldInstances) -> str:
    """Returns the sustained instances for a sentence: "9", "at least 12", "8 (though not 5)", "not even 1"."""
    if held.instances is None:
        return "not even the fewest that were tried"
    if held.instances == 0:
        return "not even 1"
    bound = f"at least {held.instances}" if held.is_at_least else f"{held.instances}"
    return f"{bound} (though not {list_words(list(map(str, held.gaps)))})" if held.gaps else bound


def list_words(parts: list[str]) -> str:
    """Joins words as in a sentence: "one, two and three"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
