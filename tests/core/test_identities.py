"""Counts of a trial that contradict themselves are found, whoever wrote them down."""

from __future__ import annotations

import pytest

from nicbench.core.reading import Counts
from nicbench.core.trial import Health, PortReading, Reading, StreamReading, contradiction_in, require_identities

COUNTS = Counts(
    intended=10, sent=9, unsent_tester=1, received=6, lost=1, late=1, corrupted=1, duplicated=2, reordered=3
)


def reading(counts: Counts = COUNTS, total: Counts = COUNTS, **port: int | None) -> Reading:
    at_port = PortReading(**{"name": "t1", "arrived": 9, "foreign": 0, "misdirected": 0, "stale": 0, **port})  # type: ignore[arg-type]
    return Reading(
        transmit_ns=1,
        counts=total,
        streams=(StreamReading(name="0->1", counts=counts),),
        ports=(PortReading(name="t0"), at_port.replace(corrupted_unattributed=0)),
        latency=None,
        health=Health(),
    )


def test_counts_that_add_up_are_taken_as_they_are() -> None:
    require_identities(reading())
    require_identities(reading(COUNTS.replace(duplicated=None, reordered=None)))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lost": -1}, "lost is -1: less than none"),
        ({"lost": 10**29}, "lost is 1.* more than can be counted"),
        ({"lost": 98_240}, "9 frames were sent, and 98248 are accounted for"),
        ({"received": 10**12}, "9 frames were sent"),
        ({"late": None}, "9 frames were sent, and 8 are accounted for"),
        ({"unattributed": 1}, "9 frames were sent"),
        ({"sent": 10}, "10 frames were intended, and 11 are"),
        ({"unsent_backpressure": 1}, "10 frames were intended"),
        ({"reordered": 7}, "7 frames are reordered, of 6 received"),
        ({"foreign": -1}, "foreign is -1"),
        ({"received": 0, "corrupted": 0, "late": 0, "lost": 9, "reordered": 0}, "2 frames came again, and none"),
    ],
)
def test_a_contradiction_is_named(changed: dict[str, int | None], said: str) -> None:
    wrong = COUNTS.replace(**changed)
    with pytest.raises(ValueError, match=f"^stream 0->1: {said}"):
        require_identities(reading(wrong))
    with pytest.raises(ValueError, match=f"^{said}"):
        require_identities(reading(total=wrong))
    assert contradiction_in(dict(wrong)) is not None


def test_sums_of_streams_and_arrivals_at_ports_are_held_against_each_other() -> None:
    with pytest.raises(ValueError, match=r"^received is 5, and 6 of all streams together"):
        require_identities(reading(total=COUNTS.replace(received=5, lost=2)))
    with pytest.raises(ValueError, match=r"^port t1: 10 frames arrived, and 9 are accounted for"):
        require_identities(reading(arrived=10))
    with pytest.raises(ValueError, match=r"^port t1: stale is -1"):
        require_identities(reading(stale=-1))
    require_identities(reading(arrived=10, foreign=None))
