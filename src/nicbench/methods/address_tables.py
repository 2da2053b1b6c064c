"""A switch's table of addresses (RFC 2889): how many it keeps, and how fast it learns them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSizes, Size, mean_bytes, size_parameters
from nicbench.core.frozen import frozen
from nicbench.core.pattern import way_of_stream
from nicbench.core.quantity import FramesPerSecond, Percent
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability, MacTable
from nicbench.core.trial import Purpose, StreamReading, Trial, TrialRequest
from nicbench.core.units import format_rate
from nicbench.methods._loads import HIGHEST, FullLoad, Pause, full_rate, highest_frames_per_s
from nicbench.methods._results import bounded_unless, result_at, without_tester
from nicbench.methods.base import FRAME, Context, FrameMethod, Objection, Values

# What tests of a switch's addresses share: frames from and to many MAC addresses, and which of them were known.


MOST_ADDRESSES: Final = 2**20
_LEARNING_STREAM, _TEST_STREAM = "learning", "test"
# Extra time for a trial that ends with its last frame.
_SLACK: Final = 1.01


class AddressTimes(Frozen):
    """The times of a trial."""

    ageing: Pause = 300.0
    """The DUT's ageing time. Half of it passes before and half of it after each trial."""
    pause: Pause = 1.0
    """Pause between the frames that are learnt from and those that test."""
    drain: Pause = 2.0
    """How long frames may arrive after the last was sent."""
    attempts: int = Field(default=2, ge=1, le=10)
    """How often in a row a number or a rate must fail before it counts as failed: a single frame that is lost for
    another reason does not limit the table.
    """

    def slowest_frames_per_s(self, macs: int) -> float:
        """Returns the rate below which the first of the addresses has aged before a frame comes for it."""
        return macs / max(self.ageing - self.pause, 1e-9)

    def require_rate(self, macs: int, frames_per_s: float, key: str) -> None:
        """Raises ValueError where addresses would age before they are tested."""
        slowest = self.slowest_frames_per_s(macs)
        if frames_per_s <= slowest:
            raise ValueError(
                f"of {macs} addresses at {format_rate(frames_per_s)} the first have aged before a frame comes for "
                f"them: write `{key}` above {format_rate(slowest)}, or fewer addresses"
            )

    def estimate_s(self, trials: int) -> float:
        """Returns the time of a number of trials without their frames, in seconds."""
        return trials * self.attempts * (self.ageing + self.pause + self.drain)

    def request(self, size: Size, macs: int, learning_frames_per_s: float, test_frames_per_s: float) -> TrialRequest:
        """Returns the request for a trial of a number of addresses, learnt at one rate and tested at another."""
        frames_s = macs / learning_frames_per_s + macs / test_frames_per_s
        return TrialRequest(
            frame_bytes=mean_bytes(size),
            mix=None if isinstance(size, int) else size,
            load_frames_per_s=test_frames_per_s,
            duration_s=_SLACK * (frames_s + self.pause),
            drain_s=self.drain,
            settle_s=self.ageing / 2,
            purpose=Purpose.BURST,
            frames=macs,
            macs=MacTable(addresses=macs, learning_frames_per_s=learning_frames_per_s, pause_s=self.pause),
        )


@frozen
class SentRate:
    """The rate, in frames per second, at which the frames left that are learnt from: it lies between these two.

    ``least`` is ``None`` where all of them left at once, and ``most`` where nothing but the line bounds it.
    """

    least: float | None
    most: float | None


@frozen
class Found:
    """What a trial found, which tried a number of addresses or a rate (``tried``)."""

    tried: float
    flooded: int
    missing: int
    untaught: int
    disturbances: tuple[str, ...]
    trial: str
    learnt_at: SentRate

    @property
    def kept(self) -> bool:
        """Whether every address was known that a frame was sent from."""
        return self.flooded <= self.untaught and self.missing == 0


def is_doubtful(tried: Iterable[Found], upper: float | None) -> bool:
    """Whether every trial that failed at the upper bound was disturbed: then what went wrong may not be the DUT's."""
    return all(one.disturbances for one in tried if one.tried == upper and not one.kept)


async def find(
    context: Context, point: dict[str, Any], request: TrialRequest, tried: float, attempts: int
) -> list[Found]:
    """Makes trials until one passes or the maximum number failed, and says what each found."""
    found: list[Found] = []
    while len(found) < attempts and not (found and found[-1].kept):
        found.append(await _attempt(context, {**point, "attempt": len(found) + 1}, request, tried))
    return found


async def _attempt(context: Context, point: dict[str, Any], request: TrialRequest, tried: float) -> Found:
    """Makes a trial and says which frames were not sent to the port of their address alone."""
    trial, disturbed = await context.measure(point, request)
    return Found(
        tried=tried,
        flooded=flooded_frames(trial),
        missing=sum(one.counts.failed for one in _streams(trial, _TEST_STREAM)),
        untaught=sum(one.counts.unsent for one in _streams(trial, _LEARNING_STREAM)),
        disturbances=trial.verdict.texts if disturbed else (),
        trial=trial.id,
        learnt_at=_sent_rate(trial),
    )


def result_of(method: FrameMethod, size: Size, values: Values, found: Sequence[Found]) -> Result:
    """Returns the result of a frame size, with the trials behind it."""
    disturbances = [text for one in found for text in one.disturbances]
    verdict = ResultVerdict.DISTURBED if disturbances else ResultVerdict.VALID
    trials = [one.trial for one in found]
    scope = "one pair of ports"
    return result_at(method, size, values, verdict, trials=trials, disturbances=disturbances, scope=scope)


def ports_objection(context: Any) -> Objection | None:
    """Returns why ports or traffic do not suit: without a port that sees flooded frames, or without a way back."""
    if context.ports < 3:
        return Objection(
            message="flooded frames are seen at a third port, and the test has "
            f"{'one port' if context.ports == 1 else 'two ports'}",
            next_step="give lab and DUT more `ports`: four with `pattern: one-to-one`",
        )
    if not context.bidirectional:
        return Objection(
            message="frames go one way to be learnt from and the other to be switched, and the traffic is one way",
            next_step="write `bidirectional: true` under `traffic`",
        )
    return None


def flooded_frames(trial: Trial) -> int:
    """Returns the flood count (RFC 2285 section 3.8.3): the most frames of the trial at any port that none was for.

    Frames of the DUT's own are not among them.
    """
    ways = (way_of_stream(stream.name) for stream in trial.reading.streams)
    used = {port for way in ways if way is not None for port in way}
    others = [port for number, port in enumerate(trial.reading.ports) if number not in used]
    return max((port.misdirected or 0 for port in others), default=0)


def _sent_rate(trial: Trial) -> SentRate:
    """Returns between which rates the frames left that are learnt from.

    Their gaps add up to the time from the first frame to the beginning of the last burst, which left within some time
    thereafter: at least all frames but one burst left in that time, at most all but one.
    """
    (stream,) = _streams(trial, _LEARNING_STREAM)
    gaps, burst = stream.transmit_gaps, stream.maximum_burst or 1
    if gaps is None:
        return SentRate(None, None)
    # Each of several workers has gaps of its own, one less than it sends frames, over about the same time.
    senders = max(1, stream.counts.sent - gaps.count)
    frames, sending_s = gaps.count + senders, gaps.count * gaps.mean_ns / senders / 1e9
    if sending_s <= 0.0:
        return SentRate(None, None)
    least = (frames - senders * burst) / sending_s
    return SentRate(least if least > 0.0 else None, gaps.count / sending_s)


def _streams(trial: Trial, name: str) -> list[StreamReading]:
    return [stream for stream in trial.reading.streams if stream.name.endswith(name)]


_CAPACITY = Column(
    "capacity_addresses", "Address caching capacity", unit="addresses", form="whole", is_main=True,
    better="higher",
)  # fmt: skip


class AddressCaching(FrameMethod):
    """The number of MAC addresses that a switch keeps."""

    kind = "address-caching"
    question = "How many MAC addresses does {subject} keep?"
    steps = """
    Address caching capacity (RFC 2889 section 5.7): how many MAC addresses the DUT keeps, not flooding frames to
    them.
    Steps: frames from a number of source addresses come in at the first port, one of each; after a pause a frame to
    each of them comes in at the second. All must arrive at the first port, and none at any other, to which a switch
    floods what it has not learnt. A binary search over the number of addresses ends with the greatest that was kept
    and the next number, which was not. Before each trial the DUT's ageing time passes. Verified: every frame by its
    signature and its payload. What is flooded is counted at every other port of the tester, by its signature:
    frames that the DUT itself sends do not count.
    """

    class Options(Frozen):
        """Options of the bench file."""

        most: int = Field(default=65_536, ge=2, le=MOST_ADDRESSES)
        """The greatest number of addresses to try."""
        frame_bytes: FrameSizes = (64,)
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

    async def measure_size(self, context: Context, size: Size) -> Result:
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
                *(FRAME, _CAPACITY),
                Column("first_not_kept_addresses", "Not kept", unit="addresses", form="whole"),
                Column("flooded_frames", "Then flooded", unit="frames", form="whole"),
                Column("missing_frames", "Then missing", unit="frames", form="whole"),
                Column("rate_frames_per_s", "Learnt at"),
                Column("numbers_tried", "Numbers tried", form="whole"),
            ),
            sentences=("keeps {capacity_addresses}",),
            has_basis=False,
        )


def _capacity(lower: int, upper: int | None) -> Bounded:
    if lower == 0:
        return Bounded(value=None, upper=upper, reason_null="not even one address was known")
    limit = LimitedBy.MAXIMUM_LOAD if upper is None else LimitedBy.DUT
    return Bounded(value=lower, lower=lower, upper=upper, limited_by=limit)


_RATE = Column(
    "learning_rate_frames_per_s", "Address learning rate", is_main=True, better="higher",
    adjective="fast",
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

    kind = "address-learning"
    question = "How fast does {subject} learn MAC addresses?"
    steps = """
    Address learning rate (RFC 2889 section 5.8): the highest rate at which the DUT learns MAC addresses and keeps
    all.
    Steps: frames from a number of source addresses, which must not be above the caching capacity, come in at the
    first port at a rate; after a pause a frame to each of them comes in at the second, at a low rate. All must
    arrive at the first port, and none at any other, to which a switch floods what it has not learnt. A search
    halves the rates between the highest that passed and the lowest that failed. Before each trial the DUT's ageing
    time passes. Verified: every frame by its signature and its payload, and the rate at which the frames left that
    were learnt from: the result is this rate, not the intended one. What is flooded is counted at every other
    port of the tester, by its signature: frames that the DUT itself sends do not count.
    """

    class Options(Frozen):
        """Options of the bench file."""

        addresses: int = Field(default=1000, ge=1, le=MOST_ADDRESSES)
        """How many addresses are learnt; no more than the DUT keeps (`address-caching`)."""
        frame_bytes: FrameSizes = (64,)
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

    async def measure_size(self, context: Context, size: Size) -> Result:
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
            _RATE.value: _bounded_rate(tried, full, failed, is_doubtful(tried, upper)),
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
                *(FRAME, _RATE),
                _RATE.replace(head="Interval", aspect="interval", is_main=False),
                Column("flooded_frames", "Then flooded", unit="frames", form="whole"),
                Column("missing_frames", "Then missing", unit="frames", form="whole"),
                Column("addresses", "Addresses", unit="addresses", form="whole"),
                Column("rates_tried", "Rates tried", form="whole"),
            ),
            sentences=("learns {addresses} from frames at {learning_rate_frames_per_s}",),
            has_basis=False,
        )


def _bounded_rate(tried: Sequence[Found], full: FullLoad, failed: Found | None, is_doubtful: bool) -> Bounded:
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
