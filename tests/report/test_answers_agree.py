"""Over random comparisons, no two statements about one pair differ: answer, finding, claim and what it would need."""

from __future__ import annotations

import random
import re

from nicbench.compare.claims import Basis, compare_sides
from nicbench.compare.points import Side
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict, Summary
from nicbench.report.answer.of_comparison import _compare_two
from nicbench.report.answer.of_run import sentences
from nicbench.report.editors import compared_sentences, count_of, studies
from nicbench.report.statistics import statistics_view

from . import _editors

NAMES = ("wide", "narrow")
STUDIES = 15
PAIRS = 30
"""At least: pairs are drawn until each basis was one's."""
NO_CLAIM = "no difference can be claimed"
NOTHING = "no difference is shown"


def frames_of(draw: random.Random) -> tuple[Result, ...]:
    """Two configurations that bear between one and four editors' rates, in one to six runs."""
    capacity = {name: draw.choice((30.0, 48.0, 60.0, 96.0, 120.0)) for name in NAMES}
    return tuple(
        result
        for run in range(1, draw.choice((1, 2, 3, 5, 6)) + 1)
        for name in NAMES
        for count in range(1, 5)
        for result in _editors.of_round(
            name,
            "read",
            [(min(24.0, capacity[name] * draw.uniform(0.97, 1.03) / count), None)] * count,
            run,
            _editors.TARGET,
        )
    )


def held(answer: str, name: str) -> int:
    """How many editors the answer says that a configuration sustained in every run."""
    said = re.search(rf"“{name}” sustained (?:at least )?(\d+|not even|fewer)", answer)
    assert said is not None, answer
    return int(said[1]) if said[1].isdigit() else 0


def test_a_finding_about_editors_never_contradicts_the_answer(draw: random.Random) -> None:
    claimed = 0
    for _ in range(STUDIES):
        results = frames_of(draw)
        (study,) = studies(results, {})
        summary = Summary(title="x", verdict=ResultVerdict.VALID, results=results, configurations=NAMES)
        view = statistics_view(summary, {}, None, "2026-11-22T120000Z-agree")
        assert view is not None
        answer = sentences(study)[0]
        (finding,) = compared_sentences(study, view)
        (way,) = study.ways
        medians = [way.at[name, count_of(way)].over.median_frames_per_s for name in NAMES]
        better = re.search(r"“(\w+)” is [\d.,]+ times faster", finding)
        if better:
            claimed += 1
            other = next(name for name in NAMES if name != better[1])
            assert held(answer, better[1]) >= held(answer, other), (answer, finding)
        elif medians[0] == medians[1]:
            assert NOTHING in finding
        else:
            assert NOTHING not in finding
            assert NO_CLAIM in finding
            assert "runs of each" in finding or "too many runs gave the same value" in finding, finding
    assert 0 < claimed < STUDIES


def rates_of(draw: random.Random, level: float, runs: int) -> list[Bounded | float]:
    width = draw.choice((0.0, 0.005, 0.05))
    found: list[Bounded | float] = []
    for _ in range(runs):
        value = round(1e6 * level * draw.gauss(1.0, 0.01))
        found.append(
            Bounded(value=value, lower=value, upper=value * (1.0 + width), limited_by=LimitedBy.DUT) if width else value
        )
    return found


def test_answer_difference_and_arithmetic_say_the_same_of_each_pair(draw: random.Random) -> None:
    bases: set[Basis] = set()
    wanted = {Basis.RUNS, Basis.INTERVALS, Basis.NOT_BY_RUNS, Basis.SEARCHES_OVERLAP}
    for number in range(10 * PAIRS):
        if number >= PAIRS and wanted <= bases:
            break
        runs, ratio = draw.randint(1, 8), draw.choice((1.0, 1.01, 1.05, 2.0))
        sides = [
            Side(name, tuple(result_of(value, run) for run, value in enumerate(rates_of(draw, level, runs), 1)))
            for name, level in zip(NAMES, (2.0 * ratio, 2.0), strict=True)
        ]
        (one,) = compare_sides(sides, seed=7).all
        (turned,) = compare_sides(sides[::-1], seed=7).all
        answer, finding = _compare_two(one), one.sentence
        bases.add(one.claim.basis)
        assert one.claim.basis is turned.claim.basis
        assert (one.claim.higher, one.better) == (turned.claim.higher, turned.better)
        if one.claim.basis.is_shown:
            assert NO_CLAIM not in f"{answer} {finding}"
            assert NOTHING not in f"{answer} {finding}"
            assert f"“{one.claim.higher}”" in answer
            assert one.better is not None
            assert f"“{one.better}”" in finding
        else:
            assert "times" not in f"{answer} {finding}"
            medians = one.comparison.first.sample.median, one.comparison.second.sample.median
            assert (NO_CLAIM in finding) is (medians[0] != medians[1])
        needed = re.search(r"about ([\d,]+) runs of each would show it", finding)
        if needed:
            assert f"about {needed[1]} runs of each are needed" in (one.could_show or "")
    assert wanted <= bases


def result_of(value: Bounded | float, run: int) -> Result:
    return Result(
        id="throughput/64",
        test="throughput",
        method="throughput",
        run=run,
        scope="per port",
        parameters={"frame_bytes": 64},
        values={"ndr_frames_per_s": value},
    )
