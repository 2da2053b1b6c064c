"""Address caching capacity (RFC 2889 section 5.7): how many MAC addresses the DUT keeps, not flooding frames to them.

Steps: frames from a number of source addresses come in at the first port, one of each; after a pause a frame to each of
them comes in at the second. All must arrive at the first port, and none at any other, to which a switch floods what it
has not learnt. A binary search over the number of addresses ends with the greatest that was kept and the next number,
which was not. Before each trial the DUT's ageing time passes. Verified: every frame by its signature and its payload;
what is flooded is counted at every other port of the tester.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSize, Size, size_parameters
from nicbench.core.pattern import way_of_stream
from nicbench.core.quantity import FramesPerSecond
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability, MacTable
from nicbench.core.trial import Purpose, StreamReading, Trial, TrialRequest
from nicbench.methods._results import Values, measure_sizes, result_at
from nicbench.methods._trial_times import Pause
from nicbench.methods.base import Context, FrameMethod, Objection

MOST_ADDRESSES: Final = 2**20
_LEARNING_STREAM, _TEST_STREAM = "learning", "test"
# Extra time for a trial that ends with its last frame.
_SLACK: Final = 1.01

_SIZE = Column(value="size", head="Frame", unit="bytes", form="text")
_CAPACITY = Column(
    value="capacity_addresses", head="Address caching capacity", unit="addresses", form="whole", is_main=True,
    better="higher",
)  # fmt: skip


class CachingTimes(Frozen):
    """The times of a trial."""

    ageing: Pause = 300.0
    """The DUT's ageing time. Half of it passes before and half of it after each trial."""
    pause: Pause = 1.0
    """Pause between the frames that are learnt from and those that test."""
    drain: Pause = 2.0
    """How long frames may arrive after the last was sent."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What a trial of so many addresses found."""

    addresses: int
    flooded: int
    missing: int
    untaught: int
    disturbances: tuple[str, ...]
    trial: str

    @property
    def kept(self) -> bool:
        """Whether every address was known that a frame was sent from."""
        return self.flooded <= self.untaught and self.missing == 0


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
        trial: CachingTimes = CachingTimes()
        """Times of a trial."""

    options: Options

    def points(self) -> int:
        return len(self.options.frame_bytes)

    def frame_sizes(self) -> tuple[int | str, ...]:
        return self.options.frame_bytes

    def abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.MAC_ADDRESSES})

    def estimate_s(self) -> float:
        times, most = self.options.trial, self.options.most
        # The numbers of a binary search add up to less than the first and as many halves.
        trials = 1 + (most - 1).bit_length()
        frames_s = 2 * (most + most * (trials - 1)) / self.options.rate
        return self.points() * (frames_s + trials * (times.ageing + times.pause + times.drain))

    def objection(self, context: Any) -> Objection | None:
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

    async def run(self, context: Context) -> tuple[Result, ...]:
        return await measure_sizes(context, self.options.frame_bytes, self._measure_size)

    async def _measure_size(self, context: Context, size: Size) -> Result:
        """Searches between 0, which every DUT keeps, and the first number that was not kept."""
        tried = [await self._try(context, size, self.options.most)]
        lower, upper = (self.options.most, None) if tried[0].kept else (0, self.options.most)
        while upper is not None and upper - lower > 1:
            tried.append(await self._try(context, size, (lower + upper) // 2))
            lower, upper = (tried[-1].addresses, upper) if tried[-1].kept else (lower, tried[-1].addresses)
        failed = next((one for one in reversed(tried) if one.addresses == upper), None)
        values: Values = {
            _CAPACITY.value: _capacity(lower, upper),
            "first_not_kept_addresses": upper,
            "flooded_frames": failed.flooded if failed else None,
            "missing_frames": failed.missing if failed else None,
            "rate_frames_per_s": self.options.rate,
            "numbers_tried": len(tried),
        }
        disturbances = [text for one in tried for text in one.disturbances]
        return result_at(
            self,
            size,
            values,
            ResultVerdict.DISTURBED if disturbances else ResultVerdict.VALID,
            trials=(one.trial for one in tried),
            disturbances=disturbances,
            scope="one pair of ports",
        )

    async def _try(self, context: Context, size: Size, addresses: int) -> _Found:
        point = {**size_parameters(size), "addresses": addresses}
        trial, disturbed = await context.measure(point, self._request(size, addresses))
        said = tuple(finding.text for finding in trial.verdict.findings) if disturbed else ()
        untaught = sum(one.counts.unsent for one in _streams(trial, _LEARNING_STREAM))
        missing = sum(one.counts.failed for one in _streams(trial, _TEST_STREAM))
        return _Found(addresses, flooded_frames(trial), missing, untaught, said, trial.id)

    def _request(self, size: Size, addresses: int) -> TrialRequest:
        times, rate = self.options.trial, self.options.rate
        frame_bytes = size if isinstance(size, int) else size.frame_bytes
        return TrialRequest(
            frame_bytes=frame_bytes,
            mix=None if isinstance(size, int) else size,
            load_frames_per_s=rate,
            duration_s=_SLACK * (2 * addresses / rate + times.pause),
            drain_s=times.drain,
            settle_s=times.ageing / 2,
            purpose=Purpose.BURST,
            frames=addresses,
            macs=MacTable(addresses=addresses, learning_frames_per_s=rate, pause_s=times.pause),
        )

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


def flooded_frames(trial: Trial) -> int:
    """Returns how many frames of the trial were flooded: the most that came to any port that none was for."""
    ways = (way_of_stream(stream.name) for stream in trial.reading.streams)
    used = {port for way in ways if way is not None for port in way}
    return max((port.foreign or 0 for number, port in enumerate(trial.reading.ports) if number not in used), default=0)


def _streams(trial: Trial, name: str) -> list[StreamReading]:
    return [stream for stream in trial.reading.streams if stream.name.endswith(name)]
