"""What tests of frames that several ports receive share: who receives them, and how ports join."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.headers.multicast import MOST_GROUPS, RECORDS_OF_A_REPORT, Groups
from nicbench.core.pattern import MOST_STREAMS_AT_ONCE, Pattern
from nicbench.core.traffic import Ability
from nicbench.core.trial import StreamReading, Trial
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

    def request_groups(self, ports: int) -> Groups:
        """Returns what a trial is asked for, in which all ports but the sending one join first."""
        return Groups(
            groups=self.groups,
            members=ports - 1,
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
    copies, reports = context.ports - 1, 2 * groups.members * groups.reports(context.ip)
    if copies + reports > MOST_STREAMS_AT_ONCE:
        each = "one report for each" if groups.older else f"reports of {RECORDS_OF_A_REPORT[context.ip]}"
        return Objection(
            message=f"{groups.groups} groups at {groups.members} ports take {reports} frames to join and to leave "
            f"({each}), and with {copies} ports that receive the tester has room for {MOST_STREAMS_AT_ONCE - copies}",
            next_step="try fewer groups or ports" + (", or leave `older` out" if groups.older else ""),
        )
    return None


def unsent_reports(trial: Trial) -> int:
    """Returns how many reports never left the tester: their groups were not asked for."""
    return sum(stream.counts.unsent for stream in trial.reading.beside)


def watched(trial: Trial) -> Sequence[StreamReading]:
    """Returns the copies at ports that should get no frame."""
    return [stream for stream in trial.reading.beside if stream.name.endswith("watched")]
