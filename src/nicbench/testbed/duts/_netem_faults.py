"""The faults that netem injects: options, arguments for tc (tc-netem(8)), queue limit, and the check of both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.quantity import BitsPerSecond, Ratio, Seconds
from nicbench.core.units import format_bits_per_s, format_duration_s, format_ratio, line_rate_frames_per_s

KERNEL_LIMIT_FRAMES: Final = 1000
"""netem's queue limit where tc names none."""
MOST_FRAMES: Final = 100_000
"""The largest limit set without being asked for: each waiting frame takes some kilobytes of kernel memory."""
_ROOM: Final = 1.1
_SMALLEST_FRAME_BYTES: Final = 64
_TABLE_REACH: Final = 4.0
"""Entries of tc's distribution tables lie within ±4 times the jitter (16 bits, where 8192 is one jitter)."""
_READ_BACK_S: Final = 1.001e-6
"""tc prints delays in whole microseconds, rounded down, so that up to 1 µs less is read than is set."""
_READ_BACK_RATIO: Final = 1e-6
"""The kernel stores shares in 32 bits; tc prints them with six digits."""

Share = Annotated[Ratio, Field(ge=0.0)]
_Time = Annotated[Seconds, Field(le=60.0)]


class Faults(Frozen):
    """Faults for each frame; every share is drawn independently for each frame, except with ``reorder_correlation``."""

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
    def _check_dependencies(self) -> Self:
        if self.reorder and not self.delay:
            raise ValueError("`reorder` needs a `delay`: a frame overtakes others that wait")
        if self.jitter and not self.delay:
            raise ValueError("`jitter` needs a `delay` that it varies")
        if self.distribution == "uniform" and self.jitter > self.delay:
            raise ValueError("`jitter` is more than the `delay`: no frame can leave before it arrives")
        if self.distribution != "uniform" and not self.jitter:
            raise ValueError("`distribution` needs a `jitter`")
        if not self.reorder and (self.reorder_correlation or self.reorder_gap != 1):
            raise ValueError("`reorder_correlation` and `reorder_gap` need a `reorder`")
        return self

    @property
    def are_none(self) -> bool:
        """Whether every frame passes unchanged and at once."""
        return not any((self.delay, self.loss, self.duplicate, self.corrupt, self.rate))

    @property
    def longest_s(self) -> float:
        """The longest time that a frame waits, without the time that ``rate`` adds."""
        reach = 1.0 if self.distribution == "uniform" else _TABLE_REACH
        return self.delay + self.jitter * reach


def limit_frames(faults: Faults, link_bits_per_s: float) -> int:
    """The queue limit in frames: the given one, else as many as the link delivers in the longest delay.

    It is at least the kernel's 1000 and at most 100,000. With a ``rate`` it is the kernel's: the queue of a bottleneck.
    """
    if faults.limit is not None:
        return faults.limit
    if faults.rate is not None:
        return KERNEL_LIMIT_FRAMES
    needed = math.ceil(line_rate_frames_per_s(link_bits_per_s, _SMALLEST_FRAME_BYTES) * faults.longest_s * _ROOM)
    return min(MOST_FRAMES, max(KERNEL_LIMIT_FRAMES, needed))


def holds_frames_per_s(faults: Faults, limit: int) -> float | None:
    """The load above which the queue is full and netem drops more than ``loss``; None where no frame waits."""
    return limit / faults.longest_s if faults.longest_s else None


def netem_arguments(faults: Faults, limit: int) -> tuple[str, ...]:
    """The arguments that follow ``tc qdisc add dev X root netem``."""
    arguments = ["limit", str(limit)]
    if faults.delay:
        arguments += ["delay", _time(faults.delay)]
    if faults.jitter:
        arguments += [_time(faults.jitter)]
        # Without a table netem draws uniformly; tc has no table of that name.
        arguments += ["distribution", faults.distribution] if faults.distribution != "uniform" else []
    if faults.loss:
        arguments += ["loss", "random", _percent(faults.loss)]
    if faults.duplicate:
        arguments += ["duplicate", _percent(faults.duplicate)]
    if faults.reorder:
        correlation = [_percent(faults.reorder_correlation)] if faults.reorder_correlation else []
        arguments += ["reorder", _percent(faults.reorder), *correlation, "gap", str(faults.reorder_gap)]
    if faults.corrupt:
        arguments += ["corrupt", _percent(faults.corrupt)]
    if faults.rate is not None:
        arguments += ["rate", f"{round(faults.rate)}bit"]
    return tuple(arguments)


def describe_faults(faults: Faults) -> dict[str, str]:
    """The faults in words, by the name of the option; empty without faults."""
    descriptions: dict[str, str] = {}
    if faults.delay:
        descriptions["delay"] = format_duration_s(faults.delay)
    if faults.jitter:
        descriptions["jitter"] = f"±{format_duration_s(faults.jitter)}, {faults.distribution}"
    descriptions |= {
        name: format_ratio(share)
        for name in ("loss", "duplicate", "reorder", "corrupt")
        if (share := getattr(faults, name))
    }
    if faults.rate is not None:
        descriptions["rate"] = format_bits_per_s(faults.rate)
    return descriptions


def list_differences(faults: Faults, limit: int, read: Mapping[str, Any]) -> list[str]:
    """A sentence for each of the ``options`` of ``tc -j qdisc show`` that differs from what was asked for."""
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
    """A time in microseconds with decimals: tc 6.1 refuses nanoseconds."""
    return f"{_plain(seconds * 1e6)}us"


def _percent(share: float) -> str:
    return f"{_plain(share * 100.0)}%"


def _plain(number: float) -> str:
    """A number without an exponent and without trailing zeros."""
    return f"{number:.7f}".rstrip("0").rstrip(".")
