"""Address learning rate (RFC 2889 section 5.8): the highest rate at which the DUT learns MAC addresses and keeps all.

Steps: frames from a number of source addresses, which must not be above the caching capacity, come in at the first port
at a rate; after a pause a frame to each of them comes in at the second, at a low rate. All must arrive at the first
port, and none at any other, to which a switch floods what it has not learnt. A search halves the rates between the
highest that passed and the lowest that failed. Before each trial the DUT's ageing time passes. Verified: every frame by
its signature and its payload; what is flooded is counted at every other port of the tester, and that the DUT
sends no frames of its own, in a last trial of one address.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSize, Size, size_parameters
from nicbench.core.quantity import FramesPerSecond, Percent
from nicbench.core.result import Bounded, LimitedBy, Result
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.methods._loads import HIGHEST, FullLoad, full_rate
from nicbench.methods._results import Values, bounded_unless, measure_sizes, without_tester
from nicbench.methods.base import Context, FrameMethod, Objection
from nicbench.methods.tables._addresses import (
    MOST_ADDRESSES,
    AddressTimes,
    Found,
    find,
    is_doubtful,
    ports_objection,
    result_of,
    watch_for_own_frames,
)

_SIZE = Column(value="size", head="Frame", unit="bytes", form="text")
_RATE = Column(
    value="learning_rate_frames_per_s", head="Address learning rate", is_main=True, better="higher",
    comparative="faster",
)  # fmt: skip


class AddressLearning(FrameMethod):
    """The rate at which a switch learns MAC addresses."""

    kind: ClassVar[str] = "address-learning"
    question: ClassVar[str] = "How fast does {subject} learn MAC addresses?"

    class Options(Frozen):
        """Options of the bench file."""

        addresses: int = Field(default=1000, ge=1, le=MOST_ADDRESSES)
        """How many addresses are learnt; no more than the DUT keeps (`address-caching`)."""
        frame_bytes: tuple[FrameSize, ...] = Field(default=(64,), min_length=1)
        """Frame sizes, and mixes by name."""
        test_rate: FramesPerSecond = Field(default=1000.0, gt=0.0)
        """Rate of the frames that test."""
        precision: Percent = 1.0
        """Width of the interval at the end, of its upper end."""
        trial: AddressTimes = AddressTimes()
        """Times of a trial."""

        @model_validator(mode="after")
        def _no_address_ages(self) -> Self:
            self.trial.require_rate(self.addresses, self.test_rate, "test_rate")
            return self

    options: Options

    def abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.MAC_ADDRESSES})

    def estimate_s(self) -> float:
        trials = 1 + math.ceil(math.log2(100.0 / self.options.precision))
        frames_s = self.options.trial.attempts * trials * 2 * self.options.addresses / self.options.test_rate
        return self.points() * (frames_s + self.options.trial.estimate_s(trials))

    def objection(self, context: Any) -> Objection | None:
        return ports_objection(context)

    async def run(self, context: Context) -> tuple[Result, ...]:
        return await measure_sizes(context, self.options.frame_bytes, self._measure_size)

    async def _measure_size(self, context: Context, size: Size) -> Result:
        full = await full_rate(context, size, HIGHEST)
        if full.is_sent_nothing:
            return without_tester(self, size, full, _RATE.value)
        most, slowest = full.rate_frames_per_s, self.options.trial.slowest_frames_per_s(self.options.addresses)
        tried = await self._try(context, size, most)
        lower, upper = (most, None) if tried[-1].kept else (0.0, most)
        while upper is not None and upper - lower > upper * self.options.precision / 100.0:
            middle = (lower + upper) / 2.0
            if middle <= slowest:
                break
            tried += await self._try(context, size, middle)
            lower, upper = (middle, upper) if tried[-1].kept else (lower, middle)
        failed = next((one for one in reversed(tried) if one.tried == upper), None)
        values: Values = {
            _RATE.value: bounded_unless(is_doubtful(tried, upper), _learning_rate(lower, upper, full, failed)),
            "flooded_frames": failed.flooded if failed else None,
            "missing_frames": failed.missing if failed else None,
            "addresses": self.options.addresses,
            "rates_tried": len({one.tried for one in tried}),
        }
        watch = await watch_for_own_frames(context, size, self.options.trial, tried, kept_any=lower > 0)
        return result_of(self, size, _RATE.value, values, tried, watch)

    async def _try(self, context: Context, size: Size, rate: float) -> list[Found]:
        options = self.options
        point = {**size_parameters(size), "learning_frames_per_s": rate}
        request = options.trial.request(size, options.addresses, rate, options.test_rate)
        return await find(context, point, request, rate, options.trial.attempts)

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Address learning rate",
            caption=(
                "RFC 2889 section 5.8: the highest rate of frames from new addresses after which every address was "
                "known. At the lowest rate that failed, frames were flooded to other ports, or went missing."
            ),
            columns=(
                *(_SIZE, _RATE),
                _RATE.model_copy(update={"head": "Interval", "aspect": "interval", "is_main": False}),
                Column(value="flooded_frames", head="Then flooded", unit="frames", form="whole"),
                Column(value="missing_frames", head="Then missing", unit="frames", form="whole"),
                Column(value="addresses", head="Addresses", unit="addresses", form="whole"),
                Column(value="rates_tried", head="Rates tried", form="whole"),
            ),
            sentences=("learns {addresses} from frames at {learning_rate_frames_per_s}",),
            has_basis=False,
        )


def _learning_rate(lower: float, upper: float | None, full: FullLoad, failed: Found | None) -> Bounded:
    if lower == 0.0:
        flooded = failed is None or failed.flooded > failed.untaught
        missed = failed is not None and failed.missing > 0
        what = "flooded and others went missing" if flooded and missed else "missing" if missed else "flooded"
        return Bounded(value=None, upper=upper, reason_null=f"frames were {what} at every rate that was tried")
    if upper is not None:
        return Bounded(value=lower, lower=lower, upper=upper, limited_by=LimitedBy.DUT)
    is_line = full.ceiling_frames_per_s is None or lower >= full.line_rate_frames_per_s
    return Bounded(value=lower, lower=lower, limited_by=LimitedBy.LINE_RATE if is_line else LimitedBy.TESTER)
