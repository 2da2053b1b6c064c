"""What is said of a rate whose trials agree, of one whose trials do not, of a loss at any load, and of a queue."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.result import Bounded, LimitedBy, LossFloor, Queue, Result
from nicbench.report.answer.of_run import brief
from nicbench.report.answer.sentences import answers_of
from nicbench.report.cells import text_of
from nicbench.report.section import Section
from nicbench.report.tables import sections

DUT = LimitedBy.DUT
SHARP = Bounded(value=200_420.0, lower=200_420.0, upper=200_880.0, limited_by=DUT)
ZONE = Bounded(
    value=41_300.0, lower=41_300.0, upper=57_600.0, limited_by=DUT, some=55_200.0, half=47_100.0, shared_core=True
)
OPEN = Bounded(value=41_300.0, lower=41_300.0, limited_by=LimitedBy.TESTER, some=55_200.0, half=50_000.0)
FLOOR = Bounded(
    value=6_900.0,
    lower=6_520.0,
    upper=7_300.0,
    loss_floor=LossFloor(
        ratio=1.0e-4, lower=0.97e-4, upper=1.03e-4, trials=40, trial_s=1.0, up_to_frames_per_s=136_000.0
    ),
)
NEVER_SURE = Bounded(value=None, upper=57_600.0, some=55_200.0, limited_by=DUT, reason_null="frames were lost")
LOSSY = Bounded(value=None, reason_null="too much is lost", loss_floor=FLOOR.loss_floor)
QUEUED = Bounded(
    value=100_000.0,
    lower=100_000.0,
    upper=100_500.0,
    limited_by=DUT,
    queue=Queue(frames=10_000, burst_frames_per_s=109_700.0, trial_s=1.0),
)


def searched(*rates: Bounded, goal: str = "ndr", **more: Any) -> Section:
    """The table of a throughput test with a rate of each frame size."""
    results = [
        Result(
            id=f"t/{64 * 2**place}",
            test="t",
            method="throughput",
            scope="per port",
            parameters={"frame_bytes": 64 * 2**place},
            values={f"{goal}_frames_per_s": rate, "line_rate_frames_per_s": 1.488e7, **more},
        )
        for place, rate in enumerate(rates)
    ]
    (section,) = sections(results, {})
    return section


def said(section: Section) -> list[str]:
    return [text.replace("\u00a0", " ").replace("\u202f", " ") for text in answers_of(section, "It")]


LIMITED = " Limited by the device under test (DUT)."


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (
            SHARP,
            f"It passes 200.4 kpps of 64-byte frames at the NDR, and no load from 200.9 kpps on (NDR).{LIMITED}",
        ),
        (
            ZONE,
            (
                "It passes 41 to 58 kpps of 64-byte frames at the NDR: every trial up to 41 kpps, none above 58 kpps, "
                f"by what other programs leave of the CPU; half of the trials passed at 47 kpps (NDR).{LIMITED}"
            ),
        ),
        (
            OPEN,
            (
                "It passes at least 41.3 kpps of 64-byte frames at the NDR: every trial up to 41.3 kpps, some up to "
                "55.2 kpps; half of the trials passed at 50.0 kpps (NDR). Limited by the tester: the DUT may do more."
            ),
        ),
        (
            FLOOR,
            (
                "It loses 0.0100 % (0.0097 to 0.0103 %) of the 64-byte frames at any load up to 136.0 kpps; a rate at "
                "the NDR then depends on the length of the trial: half of the 1 s trials lose nothing at 6.9 kpps "
                "(NDR)."
            ),
        ),
        (
            NEVER_SURE,
            (
                "It passes no load of 64-byte frames at the NDR in every trial: some up to 55.2 kpps, none above 57.6 "
                f"kpps (NDR).{LIMITED}"
            ),
        ),
        (LOSSY, "It loses 0.0100 % (0.0097 to 0.0103 %) of the 64-byte frames at any load (no NDR)."),
        (
            QUEUED,
            (
                "It passes 100.0 kpps of 64-byte frames at the NDR and without a growing queue, and no load from 100.5 "
                f"kpps on (NDR); a queue of 10 000 frames let 109.7 kpps through 1 s without loss.{LIMITED}"
            ),
        ),
    ],
    ids=[
        "sharp",
        "zone",
        "zone without an end",
        "loss at any load",
        "zone from 0",
        "loss at any load, no rate",
        "queue",
    ],
)
def test_a_sentence_says_what_trials_showed(rate: Bounded, words: str) -> None:
    assert said(searched(rate)) == [words]


@pytest.mark.parametrize(
    ("rate", "cells"),
    [
        (SHARP, ("200.4", "200.4 to 200.9", "DUT", "200.4 .. 200.9")),
        (ZONE, ("41 to 58", "half at 47, some to 55", "DUT", "41 to 58")),
        (OPEN, ("≥ 41.3", "half at 50.0, some to 55.2", "tester", "≥ 41.3")),
        (FLOOR, ("6.9", "6.5 to 7.3; 0.0100 % lost", "loss at any load", "")),
        (NEVER_SURE, ("< 57.6", "some to 55.2", "DUT", "< 57.6")),
        (QUEUED, ("100.0", "100.0 to 100.5; 109.7 for 1 s", "DUT", "100.0 .. 100.5")),
    ],
    ids=["sharp", "zone", "zone without an end", "loss at any load", "zone from 0", "queue"],
)
def test_cells_have_the_zone_and_as_many_digits_as_it_gives(rate: Bounded, cells: tuple[str, ...]) -> None:
    section = searched(rate)
    (row,) = section.rows
    shown = [cell.replace("\u202f", " ") for cell in row.cells[1:4]]
    span = next(column for column in section.table.overview if column.aspect == "span")
    assert (*shown, text_of(span.replace(form="kpps", unit="kpps"), row.result)) == (
        *cells[:3],
        cells[3] or "6.5 .. 6.9 .. 7.3",
    )


def test_larger_frames_have_their_zone_too_and_a_list_of_runs_has_it_of_the_smallest() -> None:
    section = searched(ZONE, ZONE)
    assert said(section)[1] == "With 128-byte frames it passes 41 to 58 kpps at the NDR."
    assert brief([section]) == "NDR 41 to 58 kpps at 64 bytes"
    assert said(searched(SHARP, FLOOR))[1].startswith("It loses 0.0100 % (0.0097 to 0.0103 %) of the 128-byte frames")


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (100_000.0, 120_000.0, "100 to 120"),
        (123_000.0, 148_000.0, "120 to 150"),
        (2.0 - 1e-8, 3.0 + 1e-8, "2.0 to 3.0"),
        (120.99999999, 121.60000001, "121.0 to 121.6"),
        (430.7, 433.1, "430 to 434"),
        (1_999_000.0, 2_001_000.0, "1.999 to 2.001"),
    ],
)
def test_a_bound_is_rounded_outwards_and_never_for_an_error_of_the_arithmetic(
    lower: float, upper: float, text: str
) -> None:
    (row,) = searched(Bounded(value=lower, lower=lower, upper=upper, limited_by=DUT)).rows
    assert row.cells[2] == text
