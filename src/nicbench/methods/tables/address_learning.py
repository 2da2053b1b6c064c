"""Address learning rate (RFC 2889 section 5.8): the highest rate at which the DUT learns MAC addresses and keeps all.

Steps: frames from a number of source addresses, which must not be above the caching capacity, come in at the first port
at a rate; after a pause a frame to each of them comes in at the second, at a low rate. All must arrive at the first
port, and none at any other, to which a switch floods what it has not learnt. A search halves the rates between the
highest that passed and the lowest that failed. Before each trial the DUT's ageing time passes. Verified: every frame by
its signature and its payload, and the rate at which the frames left that were learnt from: that one is claimed, not the
one that was asked for. What is flooded is counted at every other port of the tester, by its signature: frames of the
DUT's own are none of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSize, Size, size_parameters
from nicbench.core.quantity import FramesPerSecond, Percent
from nicbench.core.result import Bounded, LimitedBy, Result
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.methods._loads import HIGHEST, FullLoad, full_rate, highest_frames_per_s
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
)

_SIZE = Column(value="size", head="Frame", unit="bytes", form="text")
_RATE = Column(
    value="learning_rate_frames_per_s", head="Address learning rate", is_main=True, better="higher",
    comparative="faster",
)  # fmt: skip
_ALL_AT_ONCE: Final = (
    "the frames that were learnt from left the tester at once, so that their rate is not known: write more `addresses`"
)
_CONTRADICTED: Final = (
    "addresses were kept at higher rates than some at which they were not, as the tester did not send at the rates "
    "that were asked for: write more `addresses`"
)


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
            _RATE.value: _learning_rate(tried, full, failed, is_doubtful(tried, upper)),
            "flooded_frames": failed.flooded if failed else None,
            "missing_frames": failed.missing if failed else None,
            "addresses": self.options.addresses,
            "rates_tried": len({one.tried for one in tried}),
        }
        return result_of(self, size, values, tried)

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
                _RATE.replace(head="Interval", aspect="interval", is_main=False),
                Column(value="flooded_frames", head="Then flooded", unit="frames", form="whole"),
                Column(value="missing_frames", head="Then missing", unit="frames", form="whole"),
                Column(value="addresses", head="Addresses", unit="addresses", form="whole"),
                Column(value="rates_tried", head="Rates tried", form="whole"),
            ),
            sentences=("learns {addresses} from frames at {learning_rate_frames_per_s}",),
            has_basis=False,
        )


def _learning_rate(tried: Sequence[Found], full: FullLoad, failed: Found | None, is_doubtful: bool) -> Bounded:
    """Returns the rate from those at which frames left, and not from those that were asked for.

    A pass counts at the least rate at which they may have left, a failure at the most, which is the line's at most.
    """
    line = full.line_rate_frames_per_s
    highest = highest_frames_per_s(line, full.ceiling_frames_per_s)
    passed = {one.tried: one.learnt_at.least for one in tried if one.kept}
    failed_at: dict[float, float] = {}
    for one in tried:
        if one.tried not in passed:
            failed_at[one.tried] = max(failed_at.get(one.tried, 0.0), min(one.learnt_at.most or line, line))
    kept_at = [min(rate, highest) for rate in passed.values() if rate is not None]
    upper = min(failed_at.values(), default=None)
    lower = max((rate for rate in kept_at if upper is None or rate < upper), default=None)
    if lower is None:
        reason = _why_none(failed) if not passed else _CONTRADICTED if kept_at else _ALL_AT_ONCE
        return bounded_unless(is_doubtful, Bounded(value=None, upper=upper, reason_null=reason))
    if upper is not None:
        found = Bounded(value=lower, lower=lower, upper=upper, limited_by=LimitedBy.DUT)
        return bounded_unless(is_doubtful or max(kept_at) > lower, found)
    is_line = full.rate_frames_per_s >= line
    return Bounded(value=lower, lower=lower, limited_by=LimitedBy.LINE_RATE if is_line else LimitedBy.TESTER)


def _why_none(failed: Found | None) -> str:
    flooded = failed is None or failed.flooded > failed.untaught
    missed = failed is not None and failed.missing > 0
    what = "flooded and others went missing" if flooded and missed else "missing" if missed else "flooded"
    return f"frames were {what} at every rate that was tried"
