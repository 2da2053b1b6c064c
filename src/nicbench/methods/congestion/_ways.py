"""What tests of congestion share: loads of single ways between ports of a mesh, and what came of each way."""

from __future__ import annotations

from typing import Any, Final

from nicbench.core.pattern import Pattern, Way, WayLoad, way_of_stream
from nicbench.core.reading import Counts
from nicbench.core.traffic import Ability
from nicbench.core.trial import StreamReading, Trial, TrialRequest
from nicbench.methods.base import Objection

ABILITIES: Final = frozenset({Ability.WAY_LOADS})


def mesh_objection(context: Any, fewest_ports: int) -> Objection | None:
    """Returns why ports or pattern do not suit: single ways are chosen of all that there are."""
    if context.pattern is not Pattern.FULL_MESH:
        return Objection(
            message=f"the test chooses ways of all that ports have, and the pattern is {context.pattern.value}",
            next_step="write `pattern: full-mesh` under `traffic`",
        )
    if context.ports < fewest_ports:
        return Objection(
            message=f"it needs {fewest_ports} ports, and has {context.ports}",
            next_step=f"give lab and DUT {fewest_ports} `ports`",
        )
    return None


def with_ways(request: TrialRequest, ways: tuple[WayLoad, ...]) -> TrialRequest:
    """Returns the request with these loads."""
    return request.replace(ways=ways)


def streams_of(trial: Trial, ways: frozenset[Way]) -> list[StreamReading]:
    """Returns the streams of these ways."""
    return [stream for stream in trial.reading.streams if way_of_stream(stream.name) in ways]


def counts_to(trial: Trial, receive: int) -> Counts:
    """Returns the counts of all frames for one port."""
    to = (way for stream in trial.reading.streams if (way := way_of_stream(stream.name)) and way[1] == receive)
    return Counts.sum_of(stream.counts for stream in streams_of(trial, frozenset(to)))
