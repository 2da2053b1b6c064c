"""Address caching capacity (RFC 2889 section 5.7): how many MAC addresses the DUT keeps, not flooding frames to them.

Steps: frames from a number of source addresses come in at the first port, one of each; after a pause a frame to each of
them comes in at the second. All must arrive at the first port, and none at any other, to which a switch floods what it
has not learnt. A binary search over the number of addresses ends with the greatest that was kept and the next number,
which was not. Before each trial the DUT's ageing time passes. Verified: every frame by its signature and its payload.
What is flooded is counted at every other port of the tester, by its signature: frames of the DUT's own are none of it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSize, Size, size_parameters
from nicbench.core.quantity import FramesPerSecond
from nicbench.core.result import Bounded, LimitedBy, Result
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.methods._results import Values, bounded_unless, measure_sizes
from nicbench.methods.base import Context, FrameMethod, Objection
from nicbench.methods.tables._addresses import (
    MOST_ADDRESSES,
    AddressTimes,
    Found,
    find,
    is_doubtful,
    ports_objection,
    result_of,
)

_SIZE = Column(value="size", head="Frame", unit="bytes", form="text")
_CAPACITY = Column(
    value="capacity_addresses", head="Address caching capacity", unit="addresses", form="whole", is_main=True,
    better="higher",
)  # fmt: skip


class AddressCaching(FrameMethod):
    """The number of MAC addresses that a switch keeps."""

    kind: ClassVar[str] = "address-caching"
    question: ClassVar[str] = "How many MAC addresses does {subject} keep?"

    class Options(Frozen):
        """Options of the bench file."""

        most: int = Field(default=65_536, ge=2, le=MOST_ADDRESSES)
        """The greatest number of addresses to try."""
        frame_bytes: tuple[FrameSize, ...] = Field(default=(64,), min_length=1)
        """Frame sizes, and mixes by name."""
        rate: FramesPerSecond = Field(default=1000.0, gt=0.0)
        """Rate of all frames, at which the DUT must be able to learn (RFC 2889 section 5.8 finds the highest)."""
        trial: AddressTimes = AddressTimes()
        """Times of a trial."""

        @model_validator(mode="after")
        def _no_address_ages(self) -> Self:
            self.trial.require_rate(self.most, self.rate, "rate")
            return self

    options: Options

    def abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.MAC_ADDRESSES})

    def estimate_s(self) -> float:
        times, most = self.options.trial, self.options.most
        trials = 1 + (most - 1).bit_length()
        frames_s = times.attempts * 2 * most * trials / self.options.rate
        return self.points() * (frames_s + times.estimate_s(trials))

    def objection(self, context: Any) -> Objection | None:
        return ports_objection(context)

    async def run(self, context: Context) -> tuple[Result, ...]:
        return await measure_sizes(context, self.options.frame_bytes, self._measure_size)

    async def _measure_size(self, context: Context, size: Size) -> Result:
        """Searches between 0, which every DUT keeps, and the first number that was not kept."""
        tried = await self._try(context, size, self.options.most)
        lower, upper = (self.options.most, None) if tried[-1].kept else (0, self.options.most)
        while upper is not None and upper - lower > 1:
            middle = (lower + upper) // 2
            tried += await self._try(context, size, middle)
            lower, upper = (middle, upper) if tried[-1].kept else (lower, middle)
        failed = next((one for one in reversed(tried) if one.tried == upper), None)
        values: Values = {
            _CAPACITY.value: bounded_unless(is_doubtful(tried, upper), _capacity(lower, upper)),
            "first_not_kept_addresses": upper,
            "flooded_frames": failed.flooded if failed else None,
            "missing_frames": failed.missing if failed else None,
            "rate_frames_per_s": self.options.rate,
            "numbers_tried": len({one.tried for one in tried}),
        }
        return result_of(self, size, values, tried)

    async def _try(self, context: Context, size: Size, addresses: int) -> list[Found]:
        rate = self.options.rate
        point = {**size_parameters(size), "addresses": addresses}
        times = self.options.trial
        return await find(context, point, times.request(size, addresses, rate, rate), addresses, times.attempts)

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Address caching capacity",
            caption=(
                "RFC 2889 section 5.7: the most addresses of which every one was known when a frame came for it. With "
                "one more, frames were flooded to other ports, or went missing."
            ),
            columns=(
                *(_SIZE, _CAPACITY),
                Column(value="first_not_kept_addresses", head="Not kept", unit="addresses", form="whole"),
                Column(value="flooded_frames", head="Then flooded", unit="frames", form="whole"),
                Column(value="missing_frames", head="Then missing", unit="frames", form="whole"),
                Column(value="rate_frames_per_s", head="Learnt at"),
                Column(value="numbers_tried", head="Numbers tried", form="whole"),
            ),
            sentences=("keeps {capacity_addresses}",),
            has_basis=False,
        )


def _capacity(lower: int, upper: int | None) -> Bounded:
    if lower == 0:
        return Bounded(value=None, upper=upper, reason_null="not even one address was known")
    limit = LimitedBy.MAXIMUM_LOAD if upper is None else LimitedBy.DUT
    return Bounded(value=lower, lower=lower, upper=upper, limited_by=limit)
