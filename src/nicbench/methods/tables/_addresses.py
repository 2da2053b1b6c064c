"""What tests of a switch's addresses share: frames from and to many MAC addresses, and which of them were known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import Size, mean_bytes
from nicbench.core.pattern import way_of_stream
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.traffic import MacTable
from nicbench.core.trial import Purpose, StreamReading, Trial, TrialRequest
from nicbench.core.units import format_rate
from nicbench.methods._results import Values, result_at
from nicbench.methods._trial_times import Pause
from nicbench.methods.base import Context, FrameMethod, Objection

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
    another reason is no limit of the table.
    """

    def slowest_frames_per_s(self, macs: int) -> float:
        """Returns the rate below which the first of so many addresses has aged before a frame comes for it."""
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
        """Returns the time of so many trials without their frames, in seconds."""
        return trials * self.attempts * (self.ageing + self.pause + self.drain)

    def request(self, size: Size, macs: int, learning_frames_per_s: float, test_frames_per_s: float) -> TrialRequest:
        """Returns the request for a trial of so many addresses, learnt at one rate and tested at another."""
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


@dataclass(frozen=True, slots=True)
class SentRate:
    """The rate, in frames per second, at which the frames left that are learnt from: it lies between these two.

    ``least`` is None where all of them left at once, and ``most`` where nothing but the line bounds it.
    """

    least: float | None
    most: float | None


@dataclass(frozen=True, slots=True)
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
    """Makes trials until one passes, or so many failed, and says what each found."""
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
        disturbances=tuple(finding.text for finding in trial.verdict.findings) if disturbed else (),
        trial=trial.id,
        learnt_at=_learning_rate(trial),
    )


def result_of(method: FrameMethod, size: Size, values: Values, found: Sequence[Found]) -> Result:
    """Returns the result of a frame size, with the trials behind it."""
    disturbances = [text for one in found for text in one.disturbances]
    verdict = ResultVerdict.DISTURBED if disturbances else ResultVerdict.VALID
    trials = [one.trial for one in found]
    scope = "one pair of ports"
    return result_at(method, size, values, verdict, trials=trials, disturbances=disturbances, scope=scope)


def ports_objection(context: Any) -> Objection | None:
    """Returns why ports or traffic do not suit: there is no port to see flooded frames at, or no way back."""
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

    Frames of the DUT's own are not among them, but in trials from before these were counted apart.
    """
    ways = (way_of_stream(stream.name) for stream in trial.reading.streams)
    used = {port for way in ways if way is not None for port in way}
    others = [port for number, port in enumerate(trial.reading.ports) if number not in used]
    flooded = (port.foreign if port.misdirected is None else port.misdirected for port in others)
    return max((frames or 0 for frames in flooded), default=0)


def _learning_rate(trial: Trial) -> SentRate:
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
