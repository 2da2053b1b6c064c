"""What tests of frames that several ports receive share: who receives them, and how ports join."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.headers import (
    BURDEN,
    JOIN,
    LEAVE,
    MOST_GROUPS,
    RECORDS_OF_A_REPORT,
    UNICAST,
    WATCHED,
    Burden,
    Groups,
)
from nicbench.core.pattern import MOST_STREAMS_AT_ONCE, Pattern
from nicbench.core.quantity import Ratio
from nicbench.core.reading import Counts
from nicbench.core.table import Column
from nicbench.core.traffic import Ability
from nicbench.core.trial import StreamReading, Trial
from nicbench.methods._results import Values
from nicbench.methods._trial_times import Pause
from nicbench.methods.base import Objection

ABILITIES: Final = frozenset({Ability.COPIES, Ability.FRAME_COUNT})


class Joining(Frozen):
    """How ports join groups."""

    older: bool = False
    """IGMPv2 and MLDv1 in place of IGMPv3 and MLDv2."""
    pause: Pause = 0.5
    """How long after the joins the first frame is sent."""


class GroupOptions(Frozen):
    """The groups of a test, all of which every receiving port joins."""

    groups: int = Field(default=1, ge=1, le=MOST_GROUPS)
    """How many groups; frames go to each in turn."""
    joining: Joining = Joining()
    """How ports join."""
    unicast: Ratio = Field(default=0.0, ge=0.0, lt=1.0)
    """The share of the load that goes to single stations, one at each port in turn (RFC 3918 section 4.1: `50 %`)."""

    def request_groups(self, ports: int, burden: Burden | None = None) -> Groups:
        """Returns what a trial is asked for, in which all ports but the sending and burdening ones join first."""
        return Groups(
            groups=self.groups,
            members=max(1, ports - 1 - (burden.ports if burden is not None else 0)),
            unicast=self.unicast,
            burden=burden,
            older=self.joining.older,
            send_s=self.joining.pause,
        )


STATIONS: Final = Groups(groups=0, members=1)
"""Frames to all stations: nobody joins."""


def ports_objection(context: Any, groups: Groups) -> Objection | None:
    """Returns why ports, pattern or groups do not suit."""
    if context.pattern is not Pattern.ONE_TO_MANY:
        return Objection(
            message=f"one port sends and all others receive, and the pattern is {context.pattern.value}",
            next_step="write `pattern: one-to-many` under `traffic`",
        )
    if context.bidirectional:
        return Objection(
            message="receiving ports send nothing but reports, and the traffic goes both ways",
            next_step="leave `bidirectional` out under `traffic`",
        )
    burdening = 0 if groups.burden is None else groups.burden.ports
    if groups.members + burdening > context.ports - 1:
        return Objection(
            message=f"{burdening} of {context.ports} ports are the `burden`, and none is left that receives",
            next_step=f"add ports ({2 + burdening} at least), or lower `ports` under `burden`",
        )
    beside = (groups.members if groups.unicast else 0) + burdening * (burdening - 1)
    copies, reports = context.ports - 1 + beside, 2 * groups.members * groups.reports(context.ip)
    if copies + reports > MOST_STREAMS_AT_ONCE:
        each = "one report for each" if groups.older else f"reports of {RECORDS_OF_A_REPORT[context.ip]}"
        return Objection(
            message=f"{groups.groups} groups at {groups.members} ports take {reports} frames to join and to leave "
            f"({each}), and beside {copies} streams of other frames the tester has room for "
            f"{MOST_STREAMS_AT_ONCE - copies}",
            next_step="try fewer groups or ports" + (", or leave `older` out" if groups.older else ""),
        )
    return None


def unsent_reports(trial: Trial) -> int:
    """Returns how many reports never left the tester: their groups were not asked for."""
    return sum(stream.counts.unsent for stream in trial.reading.beside if stream.name.endswith((JOIN, LEAVE)))


def watched(trial: Trial) -> Sequence[StreamReading]:
    """Returns the copies at ports that should get no frame."""
    return [stream for stream in trial.reading.beside if stream.name.endswith(WATCHED)]


def to_groups(trial: Trial) -> Sequence[StreamReading]:
    """Returns the load without its frames to single stations."""
    return [stream for stream in trial.reading.streams if not stream.name.endswith(UNICAST)]


def to_stations(trial: Trial) -> Sequence[StreamReading]:
    """Returns the frames to single stations that are part of the load."""
    return [stream for stream in trial.reading.streams if stream.name.endswith(UNICAST)]


BURDEN_COLUMNS: Final = (
    Column(value="burden_frames_per_s", head="Burden", is_optional=True),
    Column(value="burden_loss_percent", head="Burden lost", unit="%", form="of_frames", is_optional=True),
)


def burden_values(trials: Sequence[Trial]) -> Values:
    """Returns what each burdening port sent, and what of it was lost; nothing without a burden."""
    burden = next((trial.request.groups.burden for trial in trials if trial.request.groups is not None), None)
    if burden is None:
        return {}
    beside = (stream for trial in trials for stream in trial.reading.beside if stream.name.endswith(BURDEN))
    counts = Counts.sum_of(stream.counts for stream in beside)
    return {
        "burden_frames_per_s": burden.rate * counts.sent / counts.intended if counts.intended else None,
        "burden_loss_percent": 100.0 * counts.loss_ratio if counts.sent else None,
    }
