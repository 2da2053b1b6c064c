"""Multicast group capacity (RFC 3918 section 7.1): how many groups the DUT forwards to those alone who joined.

Steps, for each frame size: the second port joins a number of groups; after a pause the first sends a frame to each, and
the second leaves them. All frames must arrive at the second port, and none at the others. A binary search ends with the
greatest number that passed and the next one, which did not. A number must fail several times in a row to count as
failed. Verified: every frame at every port by its signature and its payload.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSize, Size, mean_bytes, size_parameters
from nicbench.core.headers import MOST_GROUPS, Groups
from nicbench.core.quantity import FramesPerSecond
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Purpose, TrialRequest
from nicbench.methods._results import Values, bounded_unless, measure_sizes, result_at
from nicbench.methods._trial_times import Pause
from nicbench.methods.base import Context, FrameMethod, Objection
from nicbench.methods.multicast._groups import ABILITIES, ports_objection, unsent_reports, watched
from nicbench.methods.tables.connection_capacity import Fill, most_held

_SIZE = Column(value="size", head="Frame", unit="bytes", form="text")
_CAPACITY = Column(
    value="capacity_groups", head="Group capacity", unit="groups", form="whole", is_main=True, better="higher"
)


class GroupTimes(Frozen):
    """The times of a trial."""

    pause: Pause = 1.0
    """How long after the joins the first frame is sent."""
    drain: Pause = 2.0
    """How long frames may arrive after the last was sent."""
    settle: Pause = 2.0
    """Pause before and after a trial, in which the DUT forgets the groups that were left."""
    attempts: int = Field(default=2, ge=1, le=10)
    """How often in a row a number must fail before it counts as failed."""


class MulticastCapacity(FrameMethod):
    """The number of multicast groups that a switch keeps."""

    kind: ClassVar[str] = "multicast-capacity"
    chooses_ways: ClassVar[bool] = True
    question: ClassVar[str] = "How many multicast groups does {subject} keep?"

    class Options(Frozen):
        """Options of the bench file."""

        most: int = Field(default=1024, ge=2, le=MOST_GROUPS)
        """The greatest number of groups to try. The tester has room for some 5000, over IPv6 for some 2000."""
        frame_bytes: tuple[FrameSize, ...] = Field(default=(128,), min_length=1)
        """Frame sizes, and mixes by name."""
        rate: FramesPerSecond = Field(default=1000.0, gt=0.0)
        """Rate of the frames to the groups."""
        trial: GroupTimes = GroupTimes()
        """Times of a trial."""

    options: Options

    def abilities(self) -> frozenset[Ability]:
        return ABILITIES

    def estimate_s(self) -> float:
        times, most = self.options.trial, self.options.most
        trials = self.points() * times.attempts * (1 + (most - 1).bit_length())
        return trials * (most / self.options.rate + times.pause + times.drain + 2 * times.settle)

    def objection(self, context: Any) -> Objection | None:
        return ports_objection(context, Groups(groups=self.options.most, members=1))

    async def run(self, context: Context) -> tuple[Result, ...]:
        return await measure_sizes(context, self.options.frame_bytes, self._measure_size)

    async def _measure_size(self, context: Context, size: Size) -> Result:
        options = self.options
        trials: list[str] = []
        disturbances: list[str] = []
        failures: dict[int, tuple[int, int]] = {}
        not_sent: set[int] = set()
        sound: set[int] = set()

        async def join(groups: int) -> Fill:
            for attempt in range(1, 1 + options.trial.attempts):
                point = {**size_parameters(size), "groups": groups, "attempt": attempt}
                trial, disturbed = await context.measure(point, self._request(size, groups))
                trials.append(trial.id)
                disturbances.extend(finding.text for finding in trial.verdict.findings if disturbed)
                missing = trial.reading.counts.failed
                flooded = max((stream.counts.received for stream in watched(trial)), default=0)
                is_whole = not trial.reading.counts.unsent and not unsent_reports(trial)
                if not missing and not flooded and is_whole:
                    return Fill(groups, True)
                if not is_whole:
                    not_sent.add(groups)
                if not disturbed:
                    sound.add(groups)
                failures[groups] = (flooded, missing)
            return Fill(groups, False)

        passed, failed = await most_held(join, options.most, 0.0)
        flooded, missing = failures.get(failed, (None, None)) if failed is not None else (None, None)
        found = _bounded(passed, failed, is_not_sent=failed in not_sent)
        values: Values = {
            _CAPACITY.value: bounded_unless(failed not in sound, found),
            "first_not_kept_groups": failed,
            "flooded_frames": flooded,
            "missing_frames": missing,
            "trials": len(trials),
        }
        verdict = ResultVerdict.DISTURBED if disturbances else ResultVerdict.VALID
        scope = "one port joins"
        return result_at(self, size, values, verdict, trials=trials, disturbances=disturbances, scope=scope)

    def _request(self, size: Size, groups: int) -> TrialRequest:
        times, rate = self.options.trial, self.options.rate
        return TrialRequest(
            frame_bytes=mean_bytes(size),
            mix=None if isinstance(size, int) else size,
            load_frames_per_s=rate,
            duration_s=groups / rate,
            drain_s=times.drain,
            settle_s=times.settle,
            purpose=Purpose.BURST,
            frames=groups,
            groups=Groups(groups=groups, members=1, send_s=times.pause),
        )

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Multicast group capacity",
            caption=(
                "RFC 3918 section 7.1: the most groups of which a frame to every one came to the port that had joined "
                "it, and to no other. With one more, frames were flooded to other ports, or went missing."
            ),
            columns=(
                *(_SIZE, _CAPACITY),
                Column(value="first_not_kept_groups", head="Not kept", unit="groups", form="whole"),
                Column(value="flooded_frames", head="Then flooded", unit="frames", form="whole"),
                Column(value="missing_frames", head="Then missing", unit="frames", form="whole"),
                Column(value="trials", head="Trials", form="whole"),
            ),
            sentences=("keeps {capacity_groups}",),
            has_basis=False,
        )


def _bounded(passed: int, failed: int | None, *, is_not_sent: bool) -> Bounded:
    """Returns the most groups that were kept; ``is_not_sent``: with more the tester left joins or frames unsent."""
    if is_not_sent:
        reason = None if passed else "the tester did not send the join, or the frame, of a single group"
        return Bounded(value=passed or None, lower=passed or None, limited_by=LimitedBy.TESTER, reason_null=reason)
    if failed is None:
        return Bounded(value=passed, lower=passed, limited_by=LimitedBy.MAXIMUM_LOAD)
    if passed == 0:
        return Bounded(value=None, upper=failed, reason_null="not even one group went to its member alone")
    return Bounded(value=passed, lower=passed, upper=failed, limited_by=LimitedBy.DUT)
