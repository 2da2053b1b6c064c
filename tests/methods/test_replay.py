"""What a replay says of the frames of a capture, and how it asks for them."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.reading import Counts, PassedFrames, PortFigures, TransmitGaps
from nicbench.core.trial import PortReading, Reading, StreamReading, TrialRequest
from nicbench.methods.served import CaptureReplay
from nicbench.report.tails import ports_tables
from nicbench.stats.latency import histogram_of

from .known import HEALTH, KnownContext

LATE = TransmitGaps(
    count=1000, minimum_ns=900, mean_ns=1000.0, maximum_ns=1100, histogram=histogram_of([(900, 500), (1100, 500)])
)


class Played(KnownContext):
    """Of 100 recorded frames two are missing, one is changed, one came twice and two late in order."""

    bidirectional = True

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        assert request.replay is not None
        counts = Counts(
            intended=100, sent=100, unsent_tester=0, unsent_backpressure=0, received=97, lost=2, late=0, duplicated=1,
            reordered=2, corrupted=0, unattributed=1,
        )  # fmt: skip
        gaps = LATE.replace(lateness=LATE, errors=LATE)
        streams = tuple(
            StreamReading(name=f"capture {number}", counts=counts, transmit_gaps=gaps)
            for number, _ in enumerate(request.replay.captures, start=1)
        )
        ports = tuple(PortReading(name=name, foreign=foreign) for name, foreign in (("t0", 0), ("t1", 4)))
        return Reading(transmit_ns=10**9, counts=counts, streams=streams, ports=ports, latency=None, health=HEALTH)


async def play(**options: Any) -> tuple[Played, Any]:
    method = CaptureReplay("replay", CaptureReplay.Options(**options))
    context = Played()
    return context, await method.run(context)


async def test_each_capture_has_a_row_with_what_became_of_its_frames() -> None:
    captures = ({"file": "a.pcap"}, {"file": "b.pcap", "from_port": 1, "to_port": 0})
    context, results = await play(captures=captures, speed=2.0)
    (request,) = context.requests
    assert request.replay is not None
    assert [(one.file, one.from_port, one.to_port) for one in request.replay.captures] == [
        ("a.pcap", 0, 1), ("b.pcap", 1, 0)
    ]  # fmt: skip
    assert (request.replay.speed, request.replay.together, request.replay.signed) == (2.0, True, False)
    names = ("recorded", "returned", "missing", "changed", "extra", "reordered")
    found = [[result.values[f"{name}_frames"] for name in names] for result in results]
    assert found == [[100, 97, 2, 1, 5, 2], [100, 97, 2, 1, 1, 2]]
    assert results[0].values["late_maximum_ns"] == 1100
    assert results[0].values["gap_error_p99_ns"] == pytest.approx(1100, rel=0.01)


async def test_the_ports_of_a_trial_of_two_captures_are_shown_once() -> None:
    _, results = await play(captures=({"file": "a.pcap"}, {"file": "b.pcap", "from_port": 1, "to_port": 0}))
    counted = {
        "offered_frames": 100, "received_frames": 97, "lost_frames": 3, "failed_frames": 3, "loss_ratio": 0.03,
        "offered_frames_per_s": 100.0, "received_frames_per_s": 97.0,
    }  # fmt: skip
    figures = PortFigures(
        trial="t0001", load_frames_per_s=None, ways=(), ports=(), combined=PassedFrames.model_validate(counted)
    )
    results = [result.replace(by_port=figures) for result in results]
    (table,) = ports_tables(results, {result.id: "replay" for result in results}, None)
    assert len(table.rows) == 1
    assert table.scope == (
        "the capture sent at port 0, received at port 1 or the capture sent at port 1, received at port 0"
    )


async def test_the_whole_of_its_time_is_foretold() -> None:
    method = CaptureReplay("replay", CaptureReplay.Options(captures=({"file": "a.pcap"},), longest=5.0, settle=1.0))
    assert method.estimate_s() == 9.0
