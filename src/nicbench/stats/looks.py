"""How much of its physical core a CPU had, look by look over a trial, and how high the clock of that core was."""

from __future__ import annotations

import itertools
import math
import zlib
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from nicbench.core.trial import CpuTime, Looks

SLOW_SHARE: Final = 0.8
"""A look that finds less of the core than this share of its best finds it shared (the engine's ``core_watch``)."""
_UNLIKE, _ALIKE = 0.02, 0.98
"""Correlations beyond these are those of too few looks."""
_MOST_SLOTS: Final = 2**20
"""Of a series that is read: the engine keeps a sixteenth of this."""


class Look(NamedTuple):
    """The core's speed in the slot that began at ``time_ns`` since the first frame was due, of its best."""

    time_ns: int
    share: float


def decode_looks(looks: Looks) -> tuple[Look, ...]:
    """Returns the looks in the order of their time, slots without one left out; ValueError where they are damaged."""
    unpack = zlib.decompressobj()
    try:
        shares = unpack.decompress(b64decode(looks.shares, validate=True), _MOST_SLOTS)
    except (NotBase64, zlib.error) as problem:
        raise ValueError(f"the looks at a core are damaged: {problem}") from problem
    if not unpack.eof or unpack.unused_data:
        raise ValueError(f"the looks at a core are cut off, or more than {_MOST_SLOTS}")
    begins_ns, slot_ns = looks.begins_ns, looks.slot_ns
    return tuple(Look(begins_ns + slot * slot_ns, share / 100) for slot, share in enumerate(shares) if share)


def shared_share(looks: Looks, from_ns: int, until_ns: int) -> float | None:
    """Returns the share of the looks of a period that found the core shared; None where nobody looked in it."""
    seen = [look.share for look in decode_looks(looks) if from_ns <= look.time_ns < until_ns]
    return sum(share < SLOW_SHARE for share in seen) / len(seen) if seen else None


class CoreLooks(NamedTuple):
    """The looks at one or more cores over a trial, how many of them found their core slow, and the clock of the cores.

    The clocks are means over the cores by their looks, and None where no core's clock was measured.
    """

    looks: int
    slow: int
    independent: float = 0.0
    """How many looks at random moments would tell the share as well."""
    clock_hz: float | None = None
    highest_clock_hz: float | None = None

    @property
    def slow_share(self) -> float | None:
        """Returns the share of the looks that found their core slow; None where nobody looked."""
        return self.slow / self.looks if self.looks else None


def sum_looks(cpus: Iterable[CpuTime]) -> CoreLooks:
    """Returns the looks at these cores together."""
    seen = [cpu for cpu in cpus if cpu.speed_samples]
    return CoreLooks(
        looks=sum(cpu.speed_samples or 0 for cpu in seen),
        slow=sum(cpu.slow_samples or 0 for cpu in seen),
        independent=sum(_count_independent_of(cpu) for cpu in seen),
        clock_hz=_mean([(cpu.speed_samples or 0, cpu.clock_hz) for cpu in seen]),
        highest_clock_hz=_mean([(cpu.speed_samples or 0, cpu.highest_clock_hz) for cpu in seen]),
    )


def _count_independent_of(cpu: CpuTime) -> float:
    if cpu.looks is None:
        return float(cpu.speed_samples or 0)
    try:
        return count_independent([look.share < SLOW_SHARE for look in decode_looks(cpu.looks)])
    except ValueError:  # damaged on disk; the counts stand beside it
        return float(cpu.speed_samples or 0)


def _mean(weighted: Sequence[tuple[int, float | None]]) -> float | None:
    """The mean of the known values by their weights; None where none is known."""
    known = [(weight, value) for weight, value in weighted if value is not None]
    return sum(weight * value for weight, value in known) / sum(weight for weight, _ in known) if known else None


def count_independent(slow: Sequence[bool]) -> float:
    """Returns how many looks at random moments would tell as much of the share as these, taken at equal intervals.

    Between looks that are nearer than a spell lasts little is missed. The correlation of each look with the next tells
    how long spells last. The result is the error of a regular sample of a process with exponential autocorrelation
    against the mean of the process over the same time (Cochran: Sampling Techniques, 1977, section 8.6).
    """
    count = len(slow)
    share = sum(slow) / count if count else 0.0
    if not 0.0 < share < 1.0:
        return float(count)
    pairs = sum((one - share) * (other - share) for one, other in itertools.pairwise(slow))
    correlation = min(_ALIKE, max(_UNLIKE, pairs / (count * share * (1.0 - share))))
    half = -math.log(correlation) / 2.0
    return count / (1.0 / math.tanh(half) - 1.0 / half)
