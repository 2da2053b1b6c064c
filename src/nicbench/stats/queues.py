"""Receive queues: the hash that chooses one (Toeplitz), and whether chance explains how evenly flows are spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nicbench.core.frozen import frozen
from nicbench.stats.frames import fairness

# How evenly flows are spread over queues, and whether chance explains what is uneven. Pure; draws have a seed.
#
# An ideal hash gives each flow a queue at random. Of F equal flows the queues' shares are then multinomial: with few
# flows some queue is far above the mean although nothing is wrong. So the observed Jain's index is held against that
# of many random assignments of the very same flows.


DRAWS: Final = 20_000
_SPAN: Final = (0.025, 0.975)
# Shares are sums of floating-point numbers: equal ones may differ in the last digits.
_EQUAL: Final = 1e-9


@frozen
class Flows:
    """``count`` flows, each with this number of frames."""

    count: int
    frames: float


@frozen
class Chance:
    """What random assignments of the flows give: the middle 95 % of Jain's index and of the most loaded queue.

    ``probability`` is that of an index as low as the observed one, or lower; never 0, as draws are finite.
    """

    index_lower: float
    index_upper: float
    most_to_mean_lower: float
    most_to_mean_upper: float
    probability: float


def most_to_mean(frames: Sequence[float]) -> float | None:
    """Returns the largest value by the mean of all; None without values, and where all are 0."""
    total = sum(frames)
    return max(frames) * len(frames) / total if total > 0 else None


def spread_by_chance(
    flows: Sequence[Flows], frames: Sequence[float], seed: int, *, draws: int = DRAWS
) -> Chance | None:
    """Returns what chance makes of these flows over as many queues as there are ``frames``; None without a frame."""
    observed = fairness(frames)
    known = [each for each in flows if each.count > 0 and each.frames > 0]
    if observed is None or not known:
        return None
    import numpy as np  # imported here, as most commands spread nothing

    queues = len(frames)
    generator = np.random.default_rng(seed)
    loads = np.zeros((draws, queues))
    for each in known:
        loads += each.frames * generator.multinomial(each.count, [1.0 / queues] * queues, size=draws)
    total = sum(each.count * each.frames for each in known)
    indexes = total**2 / (queues * (loads**2).sum(axis=1))
    most = loads.max(axis=1) * queues / total
    as_low = int((indexes <= observed * (1.0 + _EQUAL)).sum())
    index_lower, index_upper = (float(each) for each in np.quantile(indexes, _SPAN))
    most_lower, most_upper = (float(each) for each in np.quantile(most, _SPAN))
    return Chance(index_lower, index_upper, most_lower, most_upper, (1 + as_low) / (1 + draws))


# The Toeplitz hash of receive side scaling, and the queue that an indirection table gives it.
#
# Microsoft, "RSS Hashing Types" and "Verifying the RSS Hash Calculation" (Windows Driver Kit), whose vectors the tests
# have.


_BITS: Final = 32


class Toeplitz:
    """The hash with one key. ValueError for a key of less than 4 bytes more than ``input_bytes``."""

    def __init__(self, key: bytes, input_bytes: int) -> None:
        if len(key) < input_bytes + _BITS // 8:
            raise ValueError(f"a key of {len(key)} bytes is too short for an input of {input_bytes} bytes")
        self._input_bytes = input_bytes
        whole, size = int.from_bytes(key), 8 * len(key)
        windows = [(whole >> (size - _BITS - at)) & 0xFFFF_FFFF for at in range(8 * input_bytes)]
        self._tables = [_of_each_byte(windows[8 * at : 8 * at + 8]) for at in range(input_bytes)]

    def __call__(self, data: bytes) -> int:
        """Returns the 32 bits of the hash. ValueError where the input has another length."""
        if len(data) != self._input_bytes:
            raise ValueError(f"the input has {len(data)} bytes, not {self._input_bytes}")
        value = 0
        for table, byte in zip(self._tables, data, strict=True):
            value ^= table[byte]
        return value


def queue_of(hash_value: int, table: Sequence[int]) -> int:
    """Returns the queue of a hash: its low bits choose the entry of the table, whose size is a power of two."""
    return table[hash_value % len(table)]


def _of_each_byte(windows: Sequence[int]) -> tuple[int, ...]:
    """Returns what each value of a byte adds, whose most significant bit takes the first window."""
    values = []
    for byte in range(256):
        value = 0
        for bit, window in enumerate(windows):
            if byte & (0x80 >> bit):
                value ^= window
        values.append(value)
    return tuple(values)
