"""Receive spread: what queues got becomes rows; what chance or a table explains is distinguished from what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.machine import CoreFrames, PortQueues, QueueReading, ReceiveHash
from nicbench.core.reading import Counts, Flows
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.trial import Purpose, Reading, StreamReading, TrialRequest
from nicbench.methods.receive_spread import ReceiveSpread
from nicbench.report.tables import sections

from .known import KnownContext, reading_of, run

TABLE = ReceiveHash(function="toeplitz", key="6d:5a", key_from="ethtool -x", table=(0, 1, 2, 3), fields="sdfn")


def stream(name: str, sent: int, flows: int, lost: int = 0, with_loss: int = 0) -> StreamReading:
    counts = Counts(intended=sent, sent=sent, received=sent - lost, lost=lost)
    told = Flows(
        flows=flows, silent=0, with_loss=with_loss, with_reordering=0, with_duplicates=0, with_corruption=0,
        most_lost=(3, lost) if lost else None,
    )  # fmt: skip
    return StreamReading(name=name, counts=counts, flows=told)


class Queues(KnownContext):
    """Every trial reads the same queues."""

    def __init__(
        self, queues: QueueReading | None, *streams: StreamReading, own: tuple[tuple[int, ...], ...] = ()
    ) -> None:
        super().__init__()
        self.queues, self.read_streams, self.own = queues, streams, own

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        assert request.purpose is Purpose.SPREAD
        return reading_of(1.0, self.read_streams, queues=self.queues, dut_queues=self.own)


def port(frames: tuple[int, ...], **more: Any) -> PortQueues:
    return PortQueues(side="dut", port=0, device="d0", driver="veth", source="ethtool -S", frames=frames, **more)


async def measured(context: Queues, **options: Any) -> dict[str, list[Result]]:
    method = ReceiveSpread("spread", ReceiveSpread.Options(rate=1000.0, **options))
    found = {}
    for result in await run(method, context):
        found.setdefault(str(result.parameters["part"]), []).append(result)
    return found


async def test_an_even_spread_is_explained_by_chance() -> None:
    cores = (
        CoreFrames(side="dut", cpu=1, frames=1000, softirqs=7),
        CoreFrames(side="tester", cpu=0, frames=5, softirqs=1),
    )
    reading = QueueReading(ports=(port((260, 240, 250, 250)),), cores=cores)
    found = await measured(Queues(reading, stream("0->1", 1000, 250)))
    (spread,) = found["spread"]
    assert spread.values["jain_index"] == pytest.approx(1000**2 / (4 * (260**2 + 240**2 + 2 * 250**2)))
    assert spread.values["most_to_mean"] == pytest.approx(1.04)
    assert (spread.values["against_chance"], spread.verdict) == ("chance explains it", ResultVerdict.VALID)
    assert [row.values["frames"] for row in found["queues"]] == [260, 240, 250, 250]
    assert [(row.parameters["cpu"], row.values["frames"]) for row in found["cores"]] == [("1", 1000)]
    titles = [section.table.title for section in sections([row for part in found.values() for row in part], {})]
    assert titles == ["Spread over receive queues", "Frames by receive queue", "Frames by core", "Loss by stream"]


async def test_a_queue_that_gets_nothing_is_worse_than_chance() -> None:
    found = await measured(Queues(QueueReading(ports=(port((340, 330, 330, 0)),)), stream("0->1", 1000, 250)))
    assert found["spread"][0].values["against_chance"] == "worse than chance; no frame on queue 3"


async def test_an_elephant_is_no_fault_of_the_hash_and_hurts_the_flows_on_its_queue() -> None:
    streams = (
        stream("0->1 mice", 500, 250, lost=40, with_loss=62),
        stream("0->1 elephant", 500, 1, lost=200, with_loss=1),
    )
    found = await measured(Queues(QueueReading(ports=(port((620, 130, 125, 125)),)), *streams))
    values = found["spread"][0].values
    assert values["against_chance"] == "chance explains it"
    assert values["largest_flow_percent"] == 50.0
    by_stream = {str(row.parameters["stream"]): row.values for row in found["streams"]}
    assert (by_stream["0->1 mice"]["flows_with_loss"], by_stream["0->1 mice"]["loss_percent"]) == (62, 8.0)
    assert by_stream["0->1 elephant"]["loss_percent"] == 40.0


@pytest.mark.parametrize(
    ("frames", "expected", "told", "misplaced"),
    [
        ((254, 250, 250, 250), (250, 250, 250, 250), "every frame where its table says", 0),
        ((350, 150, 250, 250), (250, 250, 250, 250), "100 frames are not where its table says", 100),
        ((500, 500, 0, 0), (500, 500, 0, 0), "every frame where its table says; it leaves out queue 2, 3", 0),
        (
            (250, 50, 250, 250),
            (250, 250, 250, 250),
            "every frame that came is where its table says; 200 frames came to no queue: lost before it",
            0,
        ),
        (
            (350, 50, 250, 250),
            (250, 250, 250, 250),
            "100 frames are not where its table says; 100 frames came to no queue: lost before it",
            100,
        ),
    ],
    ids=[
        "with a frame of others",
        "elsewhere",
        "a table that leaves queues out",
        "an overloaded queue",
        "elsewhere and lost",
    ],
)
async def test_frames_are_held_against_the_table_of_the_adapter(
    frames: tuple[int, ...], expected: tuple[int, ...], told: str, misplaced: int
) -> None:
    known = TABLE if expected[3] else TABLE.replace(table=(0, 1, 0, 1))
    reading = QueueReading(ports=(port(frames, hash=known, expected=expected),))
    values = (await measured(Queues(reading, stream("0->1", 1000, 250))))["spread"][0].values
    assert (values["against_table"], values["misplaced_frames"]) == (told, misplaced)


async def test_a_dut_that_counts_its_own_queues_needs_no_machine() -> None:
    found = await measured(Queues(QueueReading(unread=("d0: no",)), stream("0->1", 100, 50), own=((60, 40), (0, 0))))
    assert [row.values["frames"] for row in found["queues"]] == [60, 40]


@pytest.mark.parametrize("queues", [None, QueueReading(unread=("d0: what the driver calls them is not known",))])
async def test_queues_that_cannot_be_read_are_said_and_nothing_is_made_up(queues: QueueReading | None) -> None:
    (result,) = (await measured(Queues(queues, stream("0->1", 100, 50))))["spread"]
    index = result.values["jain_index"]
    assert index.value is None
    assert result.verdict is ResultVerdict.INCOMPLETE
    assert "not known" in str(index.reason_null) or "name the machine" in str(index.reason_null)
