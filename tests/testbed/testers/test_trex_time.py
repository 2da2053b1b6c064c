"""For how long TRex's ports sent, by readings of their counters: pure."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.judging import Thresholds
from nicbench.measure.trial_verdict import Evidence, judge
from nicbench.testbed.testers._trex_traffic import SendingTime, sending_time, worst


def readings(begun: float, ended: float, frames: int, every_s: float = 0.002) -> dict[str, Any]:
    """Those of a port that sent evenly from ``begun`` to ``ended``, each reading taking a tenth of its interval."""

    def read(at: float) -> tuple[float, float, int]:
        share = min(1.0, max(0.0, (at - begun) / (ended - begun)))
        return (at - every_s / 20, at + every_s / 20, int(frames * share + 1e-9))

    all_of_them = [read(step * every_s) for step in range(int(2 * ended / every_s))]
    after = next(number for number, one in enumerate(all_of_them) if one[2] == frames)
    first = next(number for number, one in enumerate(all_of_them) if one[2] > 0)
    return {
        "none": all_of_them[first - 1],
        "beginning": all_of_them[first : first + 10],
        "ending": all_of_them[after - 10 : after],
        "last": all_of_them[after],
    }


@pytest.mark.parametrize("begun", [0.5, 0.5003, 0.5011, 0.5019])
@pytest.mark.parametrize("taken", [1.0, 1.0007, 1.067])
def test_the_time_is_known_better_than_the_readings_are_apart(begun: float, taken: float) -> None:
    time = sending_time(readings(begun, begun + taken, 20_000), 20_000 / taken, 1.0)
    assert time.taken_ns / 1e9 == pytest.approx(taken, abs=2e-4)
    assert time.overtime_ns / 1e9 == pytest.approx(taken - 1.0, abs=2e-4)
    assert time.uncertainty_ns <= 3_000_000


def test_a_burst_at_the_beginning_is_seen_by_what_it_takes_from_the_time() -> None:
    """50 ms of traffic leave at once, and the rest at its rate: the load was higher than asked."""
    burst = {
        "none": (0.999, 0.9991, 0),
        "beginning": [(1.001, 1.0011, 1020)],
        "ending": [(1.949, 1.9491, 19_990)],
        "last": (1.951, 1.9511, 20_000),
    }
    time = sending_time(burst, 20_000, 1.0)
    assert time.overtime_ns / 1e9 == pytest.approx(-0.05, abs=2e-3)
    assert time.uncertainty_ns >= 1_000_000  # when it began is known to the readings


def test_counters_that_could_not_be_read_in_time_leave_it_uncertain() -> None:
    late = readings(0.5, 1.5, 20_000) | {"ending": [(1.0, 1.0001, 10_000)], "last": (2.0, 2.0001, 20_000)}
    assert sending_time(late, 20_000, 1.0).uncertainty_ns >= 0.3e9


def test_a_reading_that_was_answered_late_does_not_blur_the_time() -> None:
    """The server answers nothing while it starts a transmission."""
    blurred = readings(0.5, 1.5, 20_000)
    before, after, frames = blurred["beginning"][0]
    blurred["beginning"][0] = (before - 0.02, after, frames)
    time = sending_time(blurred, 20_000, 1.0)
    assert time.taken_ns / 1e9 == pytest.approx(1.0, abs=2e-4)
    assert time.uncertainty_ns <= 3_000_000


def test_a_reading_after_the_end_says_nothing_of_the_beginning() -> None:
    """Where the server answered nothing for long, the first readings with frames are the last ones too."""
    stalled = readings(0.5, 1.5, 20_000)
    stalled["beginning"] = [stalled["beginning"][0], stalled["last"], (1.6, 1.6, 20_000)]
    time = sending_time(stalled, 20_000, 1.0)
    assert time.taken_ns / 1e9 == pytest.approx(1.0, abs=2e-4)


def test_a_port_that_sent_nothing_took_the_time_it_was_given() -> None:
    assert sending_time(
        {"none": (1.0, 1.1, 0), "beginning": [], "ending": [], "last": None}, 20_000, 2.0
    ) == SendingTime(2 * 10**9, 0, 0)


def test_the_port_that_missed_its_time_most_stands_for_all() -> None:
    short, long = SendingTime(10**9 - 300, -300, 5), SendingTime(10**9 + 200, 200, 5)
    assert worst([long, short]) == short


def test_a_port_whose_time_is_unknown_is_not_hidden_by_one_that_missed_its_time() -> None:
    known, unknown = SendingTime(1_001_000_000, 1_000_000, 100_000), SendingTime(1_000_200_000, 200_000, 300_000_000)
    time = worst([known, unknown])
    assert (time.taken_ns, time.overtime_ns, time.uncertainty_ns) == (1_001_000_000, 1_000_000, 300_000_000)
    evidence = Evidence(
        transmit_ns=time.taken_ns,
        intended=10**6,
        unsent_tester=0,
        overtime_ns=time.overtime_ns,
        time_uncertainty_ns=time.uncertainty_ns,
    )
    (finding,) = judge(evidence, Thresholds()).findings
    assert "is known to 30.0 % only" in finding.text
