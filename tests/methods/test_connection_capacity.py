"""Connection capacity: a table of a known size is found within the interval, and what was not sent claims nothing."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.trial import Reading, StreamReading, TrialRequest
from nicbench.methods.connection_capacity import ConnectionCapacity
from nicbench.report.tables import sections

from .known import KnownContext, reading_of, run


class Table(KnownContext):
    """Holds a number of connections; of those of the ``short`` trials, from 1 on, only half are sent."""

    def __init__(self, size: int, *, short: tuple[int, ...] = (), disturbed: tuple[int, ...] = ()) -> None:
        super().__init__(disturbed=disturbed)
        self.size, self.short = size, short

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        assert request.frames is not None
        sent = request.frames // (2 if len(self.requests) in self.short else 1)
        lost = max(0, sent - self.size)
        counts = Counts(
            intended=request.frames, sent=sent, unsent_tester=request.frames - sent, received=sent - lost, lost=lost
        )
        return reading_of(request.duration_s, [StreamReading(name="0->1", counts=counts)])


async def measured(table: Table, **options: Any) -> tuple[Result, Bounded]:
    given = ConnectionCapacity.Options(connections=4096, **options)
    (result,) = await run(ConnectionCapacity("capacity", given), table)
    found = result.values["connection_capacity"]
    assert isinstance(found, Bounded)
    return result, found


@pytest.mark.parametrize("size", [1, 2, 63, 1000, 2047, 2048, 4095])
async def test_the_size_of_a_table_lies_within_the_interval(size: int) -> None:
    _, found = await measured(Table(size))
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= size < found.upper <= max(found.lower + 1, 1.02 * found.lower)


async def test_a_table_that_is_never_full_is_at_least_as_large_as_what_was_tried() -> None:
    result, found = await measured(Table(4096))
    assert (found.value, found.at_least, result.values["trials"]) == (4096, True, 1)


async def test_a_dut_that_takes_no_connection_says_so() -> None:
    _, found = await measured(Table(0))
    assert found.value is None
    assert found.passes_nothing


@pytest.mark.parametrize("short", [(1,), (2,), (1, 2, 3), tuple(range(1, 60, 2)), tuple(range(1, 99))])
async def test_connections_that_were_not_asked_for_are_not_held(short: tuple[int, ...]) -> None:
    _, found = await measured(Table(1000, short=short))
    assert found.lower is not None
    assert found.lower <= 1000
    assert found.upper is None or found.upper > 1000


async def test_a_disturbed_trial_is_said_and_the_report_has_the_capacity() -> None:
    result, found = await measured(Table(1000, disturbed=range(1, 1000)), precision=0.1)
    assert (found.upper, found.limited_by) == (None, None)  # the tester may have lost the frames
    assert found.lower is not None
    assert found.lower <= 1000
    assert (result.verdict, result.disturbances) == (ResultVerdict.DISTURBED, ("the worker was held up",))
    (section,) = sections([(await measured(Table(1000)))[0]], {})
    assert section.table.title == "Connection capacity"
    assert section.rows[0].cells[1] == "1\u202f000"
    assert section.sentence == "holds 1\u202f000 to 1\u202f010\u00a0connections at once"


class SharedTable(KnownContext):
    """Holds a number of connections of both directions together."""

    bidirectional, sending_ports = True, 2

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        assert request.frames is not None
        frames = request.frames
        kept = min(2 * frames, self.size)
        streams = [
            StreamReading(name=name, counts=Counts(intended=frames, sent=frames, received=got, lost=frames - got))
            for name, got in (("0->1", kept - kept // 2), ("1->0", kept // 2))
        ]
        return reading_of(request.duration_s, streams)


async def test_a_table_that_both_directions_share_is_reported_whole() -> None:
    given = ConnectionCapacity.Options(connections=2000)
    (result,) = await run(ConnectionCapacity("capacity", given), SharedTable(1000))
    found = result.values["connection_capacity"]
    assert isinstance(found, Bounded)
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= 1000 < found.upper <= 1.02 * found.lower
    assert (result.scope, result.values["connections_tried"]) == ("sum of 2 ports", 4000)
