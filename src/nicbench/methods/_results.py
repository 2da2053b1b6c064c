"""Results of frame methods: one for each frame size, the frames that a trial returned, and repeated trials."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nicbench.core.errors import NicbenchError
from nicbench.core.frame_size import Size, size_label, size_parameters
from nicbench.core.frozen import frozen
from nicbench.core.headers import BROADCASTS
from nicbench.core.pattern import times_load, way_of_stream
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.table import Column
from nicbench.core.trial import Reading, Trial, TrialRequest
from nicbench.methods._loads import FullLoad
from nicbench.methods.base import Context, FrameMethod, Values

PER_PORT = "per port"


def result_at(
    method: FrameMethod,
    size: Size,
    values: Values,
    verdict: ResultVerdict,
    *,
    trials: Iterable[str] = (),
    disturbances: Iterable[str] = (),
    parameters: Mapping[str, Any] | None = None,
    point: str | None = None,
    scope: str = PER_PORT,
) -> Result:
    """Returns the result of a frame size, or of a ``point`` of it; repeated disturbances are listed once."""
    label = size_label(size)
    return Result(
        id="/".join((method.name, label, *(() if point is None else (point,)))),
        method=method.kind,
        scope=scope,
        parameters={**size_parameters(size), "size": label, **(parameters or {})},
        values=values,
        verdict=verdict,
        disturbances=tuple(dict.fromkeys(disturbances)),
        trials=tuple(trials),
    )


@dataclass
class SeveralTrials:
    """Makes the trials behind one result, and keeps their ids and what disturbed them."""

    context: Context
    ids: list[str] = field(default_factory=list)
    disturbances: list[str] = field(default_factory=list)

    async def measure(self, point: dict[str, Any], request: TrialRequest) -> tuple[Trial, bool]:
        """Returns a trial, and whether it had to be used although disturbed."""
        trial, disturbed = await self.context.measure(point, request)
        self.ids.append(trial.id)
        self.disturbances.extend(trial.verdict.texts if disturbed else ())
        return trial, disturbed

    @property
    def verdict(self) -> ResultVerdict:
        """The verdict on their result: disturbed where one of them is."""
        return ResultVerdict.DISTURBED if self.disturbances else ResultVerdict.VALID


@frozen
class RepeatedTrials:
    """Repeated trials, each with whether it had to be used although disturbed; empty where nothing could be sent."""

    trials: tuple[Trial, ...] = ()
    disturbed: tuple[bool, ...] = ()

    @property
    def readings(self) -> list[Reading]:
        return [trial.reading for trial in self.trials]

    @property
    def trial_ids(self) -> tuple[str, ...]:
        return tuple(trial.id for trial in self.trials)

    @property
    def verdict(self) -> ResultVerdict:
        if not self.trials:
            return ResultVerdict.INCOMPLETE
        return ResultVerdict.DISTURBED if any(self.disturbed) else ResultVerdict.VALID

    def disturbances(self, reason_null: str | None) -> tuple[str, ...]:
        """Returns what disturbed the trials; without trials, the reason for that."""
        if not self.trials:
            return (reason_null,) if reason_null else ()
        pairs = zip(self.trials, self.disturbed, strict=True)
        return tuple(found.text for trial, disturbed in pairs if disturbed for found in trial.verdict.findings)


async def repeat_trial(context: Context, size: Size, request: TrialRequest, repetitions: int) -> RepeatedTrials:
    """Makes the same trial ``repetitions`` times."""
    made = [
        await context.measure({**size_parameters(size), "repetition": repetition}, request)
        for repetition in range(1, repetitions + 1)
    ]
    return RepeatedTrials(tuple(trial for trial, _ in made), tuple(disturbed for _, disturbed in made))


def average_ms(name: str, times_s: Sequence[float | None], why_unknown: Callable[[], str]) -> Values:
    """Returns the average and the extremes in milliseconds; without a value but a reason, where one time is unknown."""
    known = [1e3 * time_s for time_s in times_s if time_s is not None]
    if len(known) < len(times_s):
        unknown = Bounded(value=None, n=len(times_s), reason_null=why_unknown())
        return {name: unknown, "repetitions": len(times_s)}
    return {
        name: Bounded(value=statistics.fmean(known), lower=min(known), upper=max(known), n=len(known)),
        "minimum_ms": min(known),
        "maximum_ms": max(known),
        "repetitions": len(known),
    }


def reason_of(values: Values, name: str) -> str | None:
    """Returns the reason why a value is missing."""
    value = values[name]
    return value.reason_null if isinstance(value, Bounded) else None


BROADCASTS_NOTE: Final = (BROADCASTS, "Broadcasts")
"""The note of a table that says what became of broadcasts in the load."""
# A transmission ends within a burst of its time.
_ROUNDING = 1.001

COLUMNS = (
    Column("load_frames_per_s", "Offered load"),
    Column("percent_of_line_rate", "% of line rate", form="trimmed"),
    Column("offered_frames", "Offered frames", form="whole"),
    Column("returned_frames", "Returned intact", form="whole"),
    Column("lost_frames", "Lost", form="whole"),
    Column("refused_frames", "Refused", form="whole"),
    Column("altered_frames", "Altered", form="whole"),
    Column("late_frames", "Late", form="whole"),
    Column("checked_bytes", "Compared of each", unit="bytes", form="whole"),
    Column("returned_percent", "Returned intact", unit="%", form="of_frames"),
    Column("loss_percent", "Loss", unit="%", form="of_frames"),
    Column("returned_by_way", "Returned each way", unit="%", form="text"),
)
"""The columns of a table with a row for each point."""

HOW_IT_IS_CHECKED = (
    "Every frame that comes back is compared with what was sent, signature and payload, over the bytes of the column "
    "Compared; an altered one is not returned intact. An empty cell means that this tester does not compare."
)


def returned_values(trial: Trial, full: FullLoad) -> Values:
    """Returns the values of a trial: frames of all ports, loads of each port and direction.

    Loss is as in RFC 2544 section 26.3: offered less returned frames. Frames that came after the drain count as late
    and not as lost; frames that a lossless port refused count as offered and lost.
    """
    reading = trial.reading
    counts = reading.counts
    load = trial.request.sent_frames_per_s or 0.0
    line_rate = full.line_rate_frames_per_s
    if load > line_rate * full.most_line_rates * _ROUNDING:
        raise NicbenchError(
            f"{load:.0f} frames/s were offered where the lines carry {line_rate * full.most_line_rates:.0f}",
            place=f"trial {trial.id}",
            next_step="report it with the run folder",
        )
    offered = counts.offered
    checked = [stream.checked_bytes for stream in reading.streams if stream.checked_bytes is not None]
    return {
        "load_frames_per_s": load,
        "line_rate_frames_per_s": line_rate,
        "ceiling_frames_per_s": None if full.is_of_a_trial else full.ceiling_frames_per_s,
        "percent_of_line_rate": 100.0 * load / line_rate,
        "intended_frames": counts.intended,
        "offered_frames": offered,
        "returned_frames": counts.received,
        "lost_frames": counts.lost,
        "refused_frames": counts.unsent_backpressure,
        "altered_frames": None if counts.corrupted is None else counts.corrupted + (counts.unattributed or 0),
        "late_frames": counts.late,
        "checked_bytes": min(checked) if checked else None,
        "returned_percent": 100.0 * counts.received / offered if offered else None,
        "loss_percent": 100.0 * counts.loss_ratio if offered else None,
        "returned_by_way": _returned_by_way(reading),
    }


def values_not_offered(percent: float, full: FullLoad) -> Values:
    """Returns the values of a load that could not be sent."""
    load = full.load_frames_per_s(percent)
    reason = full.why_not_more
    return {
        "load_frames_per_s": load,
        "line_rate_frames_per_s": full.line_rate_frames_per_s,
        "ceiling_frames_per_s": None if full.is_of_a_trial else full.ceiling_frames_per_s,
        "percent_of_line_rate": 100.0 * load / full.line_rate_frames_per_s,
        "returned_percent": Bounded(value=None, reason_null=reason),
        "loss_percent": Bounded(value=None, reason_null=reason),
    }


def without_tester(
    method: FrameMethod, size: Size, full: FullLoad, value: str, parameters: Mapping[str, Any] | None = None
) -> Result:
    """Returns the result, without its ``value``, of a tester that sends nothing: no trial is made."""
    reason, percent = full.why_not_more, (parameters or {}).get("load_percent")
    values: Values = {**values_not_offered(percent or 100.0, full), value: Bounded(value=None, reason_null=reason)}
    point = None if percent is None else f"{percent:g}"
    incomplete = ResultVerdict.INCOMPLETE
    return result_at(method, size, values, incomplete, disturbances=(reason,), parameters=parameters, point=point)


def bounds_between(passed: float, failed: float | None, why_none: str, why_not_sent: str | None = None) -> Bounded:
    """Returns the most that passed, below the least that failed; without a failure, it is the most that was tried.

    With ``why_not_sent``, the tester did not send whole what failed; it is the reason where nothing passed.
    """
    if why_not_sent is not None:
        most = passed or None
        reason = None if passed else why_not_sent
        return Bounded(value=most, lower=most, limited_by=LimitedBy.TESTER, reason_null=reason)
    if failed is None:
        return Bounded(value=passed, lower=passed, limited_by=LimitedBy.MAXIMUM_LOAD)
    if not passed:
        return Bounded(value=None, upper=failed, limited_by=LimitedBy.DUT, reason_null=why_none)
    return Bounded(value=passed, lower=passed, upper=failed, limited_by=LimitedBy.DUT)


def bounded_unless(disturbed: object, found: Bounded) -> Bounded:
    """Returns what was found; of disturbed trials without upper bound and limit, as their loss may not be the DUT's."""
    if not disturbed or (found.limited_by is not LimitedBy.DUT and found.upper is None):
        return found
    reason = found.reason_null and f"trials were disturbed: {found.reason_null}"
    return found.replace(upper=None, limited_by=None, reason_null=reason, passes_nothing=False)


def sending_ports(trial: Trial) -> int:
    """Returns how many ports' line rates the streams can fill: 2 for both directions, 1 for many ports to one."""
    ways = {way for stream in trial.reading.streams if (way := way_of_stream(stream.name)) is not None}
    return max(1, round(times_load(tuple(ways))))


def verdict_of(trial: Trial | None, disturbed: bool) -> ResultVerdict:
    """Returns the verdict on a result of one trial; incomplete without a trial."""
    if trial is None:
        return ResultVerdict.INCOMPLETE
    return ResultVerdict.DISTURBED if disturbed else ResultVerdict.VALID


def _returned_by_way(reading: Reading) -> str | None:
    """Returns the share returned by each stream where there are several.

    A figure for all ports may hide a port that returns nothing.
    """
    if len(reading.streams) < 2:
        return None
    shares = []
    for stream in reading.streams:
        offered = stream.counts.offered
        # Rounded down: 100 is every frame.
        share = f"{math.floor(1e5 * stream.counts.received / offered) / 1e3:g}" if offered else "nothing offered"
        shares.append(f"{stream.name}: {share}")
    return ", ".join(shares)
