"""What netem is to do, in tc's words (tc-netem(8)), how many frames it must hold for that, and what it reads back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.model.base import Frozen
from nicbench.model.quantity import BitsPerSecond, Ratio, Seconds
from nicbench.units import format_bits_per_s, format_duration_s, format_ratio, line_rate_frames_per_s

KERNEL_LIMIT_FRAMES: Final = 1000
"""netem's own queue limit where tc names none."""
MOST_FRAMES: Final = 100_000
"""More is not asked for by itself: a frame that waits takes up to some kilobytes of kernel memory."""
_ROOM: Final = 1.1
_SMALLEST_FRAME_BYTES: Final = 64
_TABLE_REACH: Final = 4.0
"""Entries of tc's distribution tables lie within +-4 times the jitter (16 bits, 8192 for one of it)."""
_READ_BACK_S: Final = 1.001e-6
"""tc prints delays in whole microseconds, cut off, and so takes away up to one more of what the kernel holds."""
_READ_BACK_RATIO: Final = 1e-6
"""The kernel keeps shares in 32 bits; tc prints them with six digits."""

Share = Annotated[Ratio, Field(ge=0.0)]
_Time = Annotated[Seconds, Field(le=60.0)]


class Faults(Frozen):
    """What happens to each frame; every share is drawn for each frame by itself, apart from ``reorder_correlation``."""

    delay: _Time = 0.0
    jitter: _Time = 0.0
    distribution: Literal["uniform", "normal", "pareto", "paretonormal"] = "uniform"
    loss: Share = 0.0
    duplicate: Share = 0.0
    reorder: Share = 0.0
    reorder_correlation: Share = 0.0
    reorder_gap: int = Field(default=1, ge=1, le=1_000_000)
    corrupt: Share = 0.0
    rate: Annotated[BitsPerSecond, Field(ge=8_000.0, le=1e12)] | None = None
    limit: int | None = Field(default=None, ge=1, le=10_000_000)

    @model_validator(mode="after")
    def _what_needs_what(self) -> Self:
        if self.reorder and not self.delay:
            raise ValueError("`reorder` needs a `delay`: a frame overtakes those that wait for it")
        if self.jitter and not self.delay:
            raise ValueError("`jitter` needs a `delay` that it goes around")
        if self.distribution == "uniform" and self.jitter > self.delay:
            raise ValueError("`jitter` is more than the `delay`: no frame can leave before it came")
        if self.distribution != "uniform" and not self.jitter:
            raise ValueError("`distribution` needs a `jitter`")
        if not self.reorder and (self.reorder_correlation or self.reorder_gap != 1):
            raise ValueError("`reorder_correlation` and `reorder_gap` need a `reorder`")
        return self

    @property
    def are_none(self) -> bool:
        """Whether every frame passes as it came."""
        return not any((self.delay, self.loss, self.duplicate, self.corrupt, self.rate))

    @property
    def longest_s(self) -> float:
        """How long a frame waits at most, what the rate adds apart."""
        reach = 1.0 if self.distribution == "uniform" else _TABLE_REACH
        return self.delay + self.jitter * reach


def limit_frames(faults: Faults, link_bits_per_s: float) -> int:
    """How many frames may wait: as given, else as many as the link brings in the longest delay.

    At least the kernel's 1000, at most 100,000. With a ``rate`` it is the kernel's own: the queue before that rate.
    """
    if faults.limit is not None:
        return faults.limit
    if faults.rate is not None:
        return KERNEL_LIMIT_FRAMES
    needed = math.ceil(line_rate_frames_per_s(link_bits_per_s, _SMALLEST_FRAME_BYTES) * faults.longest_s * _ROOM)
    return min(MOST_FRAMES, max(KERNEL_LIMIT_FRAMES, needed))


def holds_frames_per_s(faults: Faults, limit: int) -> float | None:
    """Above this load the queue is full and netem drops, whatever ``loss`` says; None where nothing waits."""
    return limit / faults.longest_s if faults.longest_s else None


def words(faults: Faults, limit: int) -> tuple[str, ...]:
    """After ``tc qdisc add dev X root netem``."""
    said = ["limit", str(limit)]
    if faults.delay:
        said += ["delay", _time(faults.delay)]
    if faults.jitter:
        said += [_time(faults.jitter)]
        # Without a table netem draws uniformly; tc has no table of that name.
        said += ["distribution", faults.distribution] if faults.distribution != "uniform" else []
    if faults.loss:
        said += ["loss", "random", _percent(faults.loss)]
    if faults.duplicate:
        said += ["duplicate", _percent(faults.duplicate)]
    if faults.reorder:
        correlation = [_percent(faults.reorder_correlation)] if faults.reorder_correlation else []
        said += ["reorder", _percent(faults.reorder), *correlation, "gap", str(faults.reorder_gap)]
    if faults.corrupt:
        said += ["corrupt", _percent(faults.corrupt)]
    if faults.rate is not None:
        said += ["rate", f"{round(faults.rate)}bit"]
    return tuple(said)


def injects(faults: Faults) -> dict[str, str]:
    """What is done to frames, in words, by the name of the option; empty where nothing is."""
    told: dict[str, str] = {}
    if faults.delay:
        told["delay"] = format_duration_s(faults.delay)
    if faults.jitter:
        told["jitter"] = f"±{format_duration_s(faults.jitter)}, {faults.distribution}"
    told |= {
        name: format_ratio(share)
        for name in ("loss", "duplicate", "reorder", "corrupt")
        if (share := getattr(faults, name))
    }
    if faults.rate is not None:
        told["rate"] = format_bits_per_s(faults.rate)
    return told


def differing(faults: Faults, limit: int, read: Mapping[str, Any]) -> list[str]:
    """Where the ``options`` of ``tc -j qdisc show`` are not what was asked; empty where they are."""
    delay, rate = read.get("delay") or {}, read.get("rate") or {}
    pairs = [
        ("limit", float(limit), float(read.get("limit", 0)), 0.0),
        ("delay", faults.delay, float(delay.get("delay", 0.0)), _READ_BACK_S),
        ("jitter", faults.jitter, float(delay.get("jitter", 0.0)), _READ_BACK_S),
        # tc gives bytes per second.
        ("rate", faults.rate or 0.0, float(rate.get("rate", 0.0)) * 8.0, 8.0),
    ]
    shares = {"loss": "loss-random", "duplicate": "duplicate", "reorder": "reorder", "corrupt": "corrupt"}
    pairs += [
        (name, getattr(faults, name), float((read.get(place) or {}).get(name, 0.0)), _READ_BACK_RATIO)
        for name, place in shares.items()
    ]
    return [
        f"{name}: asked for {asked:g}, is {got:g}" for name, asked, got, within in pairs if abs(asked - got) > within
    ]


def _time(seconds: float) -> str:
    """Microseconds with what is behind the point: tc 6.1 refuses nanoseconds."""
    return f"{_plain(seconds * 1e6)}us"


def _percent(share: float) -> str:
    return f"{_plain(share * 100.0)}%"


def _plain(number: float) -> str:
    """Without an exponent and without zeros at the end."""
    return f"{number:.7f}".rstrip("0").rstrip(".")
