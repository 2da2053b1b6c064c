"""Membership of multicast groups (RFC 3918): how many the DUT forwards, and how soon it follows joins and leaves."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSizes, Size, mean_bytes, size_parameters
from nicbench.core.frozen import frozen
from nicbench.core.headers import MOST_GROUPS, Burden, Groups
from nicbench.core.quantity import FramesPerSecond, Repetitions
from nicbench.core.result import Bounded, Result
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Purpose, Trial, TrialRequest
from nicbench.methods._loads import Duration, Pause
from nicbench.methods._results import (
    SeveralTrials,
    bounded_unless,
    bounds_between,
    reason_of,
    repeat_trial,
    result_at,
)
from nicbench.methods.base import FRAME, TRIALS, Context, FrameMethod, Objection, Values
from nicbench.methods.connection_capacity import Fill, most_held
from nicbench.methods.multicast import (
    ABILITIES,
    BURDEN_COLUMNS,
    burden_values,
    ports_objection,
    unsent_reports,
    watched,
)

_CAPACITY = Column("capacity_groups", "Group capacity", unit="groups", form="whole", is_main=True, better="higher")


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

    kind = "multicast-capacity"
    chooses_ways = True
    question = "How many multicast groups does {subject} keep?"
    steps = """
    Multicast group capacity (RFC 3918 section 7.1): how many groups the DUT forwards to those alone who joined.
    Steps, for each frame size: the second port joins a number of groups; after a pause the first sends a frame to
    each, and the second leaves them. All frames must arrive at the second port, and none at the others. A binary
    search ends with the greatest number that passed and the next one, which did not. A number must fail several
    times in a row to count as failed. Verified: every frame at every port by its signature and its payload.
    """

    class Options(Frozen):
        """Options of the bench file."""

        most: int = Field(default=1024, ge=2, le=MOST_GROUPS)
        """The greatest number of groups to try. The tester has room for some 5000, over IPv6 for some 2000."""
        frame_bytes: FrameSizes = (128,)
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

    async def measure_size(self, context: Context, size: Size) -> Result:
        options = self.options
        trials = SeveralTrials(context)
        failures: dict[int, tuple[int, int]] = {}
        not_sent: set[int] = set()
        sound: set[int] = set()

        async def join(groups: int) -> Fill:
            for attempt in range(1, 1 + options.trial.attempts):
                point = {**size_parameters(size), "groups": groups, "attempt": attempt}
                trial, disturbed = await trials.measure(point, self._request(size, groups))
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
        found = bounds_between(
            passed,
            failed,
            "not even one group went to its member alone",
            "the tester did not send the join, or the frame, of a single group" if failed in not_sent else None,
        )
        values: Values = {
            _CAPACITY.value: bounded_unless(failed not in sound, found),
            "first_not_kept_groups": failed,
            "flooded_frames": flooded,
            "missing_frames": missing,
            "trials": len(trials.ids),
        }
        scope = "one port joins"
        return result_at(
            self, size, values, trials.verdict, trials=trials.ids, disturbances=trials.disturbances, scope=scope
        )

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
                *(FRAME, _CAPACITY),
                Column("first_not_kept_groups", "Not kept", unit="groups", form="whole"),
                Column("flooded_frames", "Then flooded", unit="frames", form="whole"),
                Column("missing_frames", "Then missing", unit="frames", form="whole"),
                TRIALS,
            ),
            sentences=("keeps {capacity_groups}",),
            has_basis=False,
        )


# Arrivals are counted in whole nanoseconds.
_RESOLUTION_NS = 1.0
_JOIN_S: Final = 0.3
"""The time before the join in which frames must not come."""
_JOIN, _LEAVE = "join_delay_ns", "leave_delay_ns"


class MembershipTimes(Frozen):
    """The times of a trial."""

    member: Duration = 1.0
    """From the join to the leave."""
    after: Duration = 5.0
    """From the leave to the end: longer than the leave delay."""
    drain: Pause = 2.0
    """How long frames may arrive after the last was sent."""
    settle: Pause = 2.0
    """Pause before and after a trial."""

    @property
    def duration_s(self) -> float:
        """Returns how long frames are sent."""
        return _JOIN_S + self.member + self.after


@frozen
class Delay:
    """A delay between the two times that contain it, in nanoseconds; or why it is unknown."""

    lower_ns: float = 0.0
    upper_ns: float = 0.0
    why_not: str | None = None


class MulticastMembership(FrameMethod):
    """How soon frames to a group come and end."""

    kind = "multicast-membership"
    chooses_ways = True
    question = "How soon does {subject} forward to a port that joins a group, and how soon does it end?"
    steps = """
    Multicast join and leave delay (RFC 3918 sections 6.1, 6.2): how soon frames come after a join, end after a
    leave.
    Steps, for each frame size: the first port sends to a group at a steady rate; the second joins it, and leaves it
    again in the same trial; several trials. The join delay is the time from the join to the first frame that comes,
    the leave delay from the leave to the last one. Both are known as exactly as frames follow one another: the
    interval says so, and has the tester's own pauses. The report names frames before the join, a join without
    frames, and frames at the end of the trial. With a burden (section 8.2) the last ports send to each other, from
    before the join to the end. Verified: every frame by its signature and its payload; other ports, which joined
    nothing, must get none.
    """

    class Options(Frozen):
        """Options of the bench file."""

        frame_bytes: FrameSizes = (128,)
        """Frame sizes, and mixes by name."""
        rate: FramesPerSecond = Field(default=10_000.0, gt=0.0)
        """Rate of the frames to the group; delays are known to its interval."""
        repetitions: Repetitions = 10
        """Trials. The delays are their means."""
        older: bool = False
        """IGMPv2 and MLDv1 in place of IGMPv3 and MLDv2."""
        burden: Burden | None = None
        """Ports that join no group and load the DUT meanwhile (RFC 3918 section 8.2); without it no port does."""
        trial: MembershipTimes = MembershipTimes()
        """Times of a trial."""

    options: Options

    def abilities(self) -> frozenset[Ability]:
        return ABILITIES | {Ability.ARRIVALS}

    def estimate_s(self) -> float:
        times = self.options.trial
        each = times.duration_s + times.drain + 2 * times.settle
        return self.points() * self.options.repetitions * each

    def objection(self, context: Any) -> Objection | None:
        return ports_objection(context, self._groups)

    @property
    def _groups(self) -> Groups:
        leave_s = _JOIN_S + self.options.trial.member
        options = self.options
        return Groups(groups=1, members=1, older=options.older, join_s=_JOIN_S, leave_s=leave_s, burden=options.burden)

    async def measure_size(self, context: Context, size: Size) -> Result:
        made = await repeat_trial(context, size, self._request(size), self.options.repetitions)
        values: Values = {
            **_summary(_JOIN, [join_delay(trial) for trial in made.trials]),
            **_summary(_LEAVE, [leave_delay(trial) for trial in made.trials]),
            "rate_frames_per_s": self.options.rate,
            "repetitions": len(made.trials),
            "flooded_frames": sum(stream.counts.received for trial in made.trials for stream in watched(trial)),
            **burden_values(made.trials),
        }
        reasons = [reason for name in (_JOIN, _LEAVE) if (reason := reason_of(values, name)) is not None]
        return result_at(
            self,
            size,
            {**values, "limit": "; ".join(dict.fromkeys(reasons)) or None},
            made.verdict,
            trials=made.trial_ids,
            disturbances=made.disturbances(None),
            scope="one port joins",
        )

    def _request(self, size: Size) -> TrialRequest:
        times = self.options.trial
        return TrialRequest(
            frame_bytes=mean_bytes(size),
            mix=None if isinstance(size, int) else size,
            load_frames_per_s=self.options.rate,
            duration_s=times.duration_s,
            drain_s=times.drain,
            settle_s=times.settle,
            purpose=Purpose.MEMBERSHIP,
            groups=self._groups,
        )

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Multicast join and leave delay",
            caption=(
                "RFC 3918 sections 6.1, 6.2 and 8.2: from the join to the first frame, and from the leave to the last "
                "one, means over the trials. An interval contains the mean: frames come at the rate beside it."
            ),
            columns=(
                FRAME,
                Column(_JOIN, "Join delay", is_main=True, better="lower"),
                Column(_JOIN, "Interval", aspect="interval", is_minor=True),
                Column("join_delay_maximum_ns", "Longest"),
                Column(_LEAVE, "Leave delay", is_main=True, better="lower"),
                Column(_LEAVE, "Interval", aspect="interval", is_minor=True),
                Column("leave_delay_maximum_ns", "Longest"),
                Column("rate_frames_per_s", "Rate"),
                Column("repetitions", "Trials", form="whole"),
                Column("flooded_frames", "At other ports", unit="frames", form="whole"),
                *BURDEN_COLUMNS,
            ),
            sentences=(
                "forwards {join_delay_ns} after a join, and until {leave_delay_ns} after a leave",
                "forwards {join_delay_ns} after a join",
            ),
            notes=(("limit", "Limit"),),
            has_basis=False,
        )


def join_delay(trial: Trial) -> Delay:
    """Returns the time from the join to the first frame: the DUT forwards at some time since the frame before that."""
    if (why_not := _unknown(trial)) is not None:
        return Delay(why_not=why_not)
    arrivals, groups = trial.reading.streams[0].arrivals, trial.request.groups
    if arrivals is None or groups is None:
        return Delay(why_not="no frame came after the join")
    upper_ns = arrivals.first_ns - 1e9 * groups.join_s
    if upper_ns < 0.0:
        return Delay(why_not="frames came before the join: they are flooded")
    return Delay(max(0.0, upper_ns - _interval_ns(trial) - trial.reading.health.held_up_ns), upper_ns)


def leave_delay(trial: Trial) -> Delay:
    """Returns the time from the leave to the last frame: the DUT forwards until some time before the next is due."""
    if (why_not := _unknown(trial)) is not None:
        return Delay(why_not=why_not)
    arrivals, groups = trial.reading.streams[0].arrivals, trial.request.groups
    if arrivals is None or groups is None or groups.leave_s is None:
        return Delay(why_not="no frame came after the join")
    wavers_ns = _interval_ns(trial) + trial.reading.health.held_up_ns
    ended_ns = 1e9 * (groups.send_s + trial.request.duration_s)
    if arrivals.last_ns > ended_ns - 2.0 * wavers_ns:
        return Delay(why_not=f"frames still came {trial.request.duration_s - groups.leave_s:g} s after the leave")
    seen_ns = arrivals.last_ns - 1e9 * groups.leave_s
    if seen_ns < -wavers_ns - _RESOLUTION_NS:
        return Delay(why_not="frames ended before the leave")
    return Delay(max(0.0, seen_ns - trial.reading.health.held_up_ns), max(0.0, seen_ns + wavers_ns))


def _unknown(trial: Trial) -> str | None:
    return "a report of membership did not leave the tester" if unsent_reports(trial) else None


def _interval_ns(trial: Trial) -> float:
    return 1e9 / (trial.request.sent_frames_per_s or 1e9)


def _summary(name: str, delays: Sequence[Delay]) -> Values:
    """Returns the mean with the interval that contains it, and the longest; a reason where one is missing."""
    reasons = [delay.why_not for delay in delays if delay.why_not is not None]
    if reasons or not delays:
        words = f"in {len(reasons)} of {len(delays)} trials: {reasons[0]}" if reasons else "there is no trial"
        return {name: Bounded(value=None, n=len(delays), reason_null=words)}
    lower, upper = (
        statistics.fmean(ends) for ends in zip(*((one.lower_ns, one.upper_ns) for one in delays), strict=True)
    )
    longest = name.replace("_ns", "_maximum_ns")
    mean = Bounded(value=(lower + upper) / 2.0, lower=lower, upper=upper, n=len(delays))
    return {name: mean, longest: max(one.upper_ns for one in delays)}
