"""The words `minimum` and `maximum` among frame sizes, and sweeps without an end: what they are with these frames."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from nicbench.bench_file.frame_sizes import largest_frame_bytes, smallest_frame_bytes
from nicbench.bench_file.models import Choice, TestSpec
from nicbench.model.frame_size import MAXIMUM, MINIMUM, SizeSweep
from nicbench.model.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Extremes:
    """The smallest frame that holds headers and signature; the largest of the ports, None where only they know it."""

    smallest: int
    largest: int | None

    @classmethod
    def of(cls, traffic: Traffic, lab: Choice | None) -> Extremes:
        """Of this traffic in this lab."""
        return cls(smallest_frame_bytes(traffic), largest_frame_bytes(lab))

    def in_traffic(self, traffic: Traffic) -> Traffic:
        """With both ends in every sweep, as far as they are known."""
        mixes = {
            name: sizes.within(self.smallest, self.largest) if isinstance(sizes, SizeSweep) else sizes
            for name, sizes in traffic.mixes.items()
        }
        return traffic.model_copy(update={"mixes": mixes})

    def in_test(self, test: TestSpec) -> TestSpec:
        """With numbers for the words among its frame sizes, as far as they are known."""
        written: Iterable[Any] = getattr(test.options, "frame_bytes", ())
        numbers = {MINIMUM: self.smallest, MAXIMUM: self.largest or MAXIMUM}
        if not any(size in numbers for size in written):
            return test
        sizes = tuple(numbers.get(size, size) for size in written)
        return replace(test, options=test.options.model_copy(update={"frame_bytes": sizes}))
