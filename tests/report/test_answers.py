"""The sentences of a report: no two contradict each other, and each is in the unit of its table."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from nicbench.compare.claims import Basis, compare_sides
from nicbench.compare.points import Side
from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict, Summary
from nicbench.core.trial import Health, Purpose, Reading, Trial, TrialRequest
from nicbench.report.answer.of_comparison import _compare_two
from nicbench.report.answer.of_run import sentences
from nicbench.report.answer.sentences import brief, headline, reliability, statement_of, verdict_text
from nicbench.report.editors import compared_sentences, count_of, studies
from nicbench.report.numbers import basis_words
from nicbench.report.statistics import statistics_view
from nicbench.report.tables import sections

from . import _editors

NAMES = ("wide", "narrow")
STUDIES = 25
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
        better = re.search(r"“(\w+)” is [\d.,]+ times as fast", finding)
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
    found = []
    for _ in range(runs):
        value = round(1e6 * level * draw.gauss(1.0, 0.01))
        found.append(
            Bounded(value=value, lower=value, upper=value * (1.0 + width), limited_by=LimitedBy.DUT) if width else value
        )
    return found


def test_answer_difference_and_arithmetic_say_the_same_of_each_pair(draw: random.Random) -> None:
    bases = set()
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


def result(method: str, parameters: dict[str, Any], values: dict[str, Any], number: int = 1) -> Result:
    return Result(
        id=f"t/{number}",
        method=method,
        scope="per port",
        parameters=parameters,
        values=values,
        verdict=ResultVerdict.VALID,
    )


def test_a_slow_rate_is_in_megabits_in_heading_and_sentence_and_a_port_is_named_once() -> None:
    about = {"part": "ports", "mode": "10 Mb/s", "at_once": "each port alone", "port": "port 1"}
    (section,) = sections([result("stream", about, {"throughput_bits_per_s": 6.86e6})], {})
    assert section.sentence == "moves 6.86\u00a0Mb/s over port 1 (10 Mb/s)"
    assert [column.unit for column in section.table.columns if column.head == "Throughput"] == ["Mb/s"]


def test_a_fast_rate_stays_in_gigabits() -> None:
    about = {"part": "ports", "mode": "25 Gb/s", "at_once": "each port alone", "port": "eth0"}
    (section,) = sections([result("stream", about, {"throughput_bits_per_s": 23.5e9})], {})
    assert section.sentence == "moves 23.5\u00a0Gb/s over port eth0 (25 Gb/s)"


def test_a_sweep_over_link_modes_says_of_which_mode_its_figure_is() -> None:
    def of(mode: str, share: float, number: int) -> Result:
        about = {"size": "64", "mode": mode, "ports": 2, "load_percent": 100.0, "load_of": "line rate"}
        return result("load-sweep", about, {"returned_percent": share}, number)

    (section,) = sections([of("10 Mb/s", 99.0, 1), of("100 Mb/s", 27.0, 2)], {})
    first, _, worst = section.sentence.partition("; at worst it ")
    assert first.endswith("of 64-byte frames intact at 100\u00a0% of line rate (10 Mb/s)")
    assert worst.startswith("returns 27")
    assert worst.endswith("(100 Mb/s)")


def test_no_latency_without_the_loss_beside_it() -> None:
    """At the PDR frames are lost: those that came back say nothing of those that did not."""
    about = {"size": "64", "frame_bytes": 64, "load_percent": 100.0, "load_of": "PDR"}
    found = {"latency_p50_ns": 20_000, "latency_p99_9_ns": 90_000, "loss_ratio": 0.0434}
    lossy = result("latency", about, found).replace(verdict=ResultVerdict.DISTURBED)
    (section,) = sections([lossy], {})
    (row,) = section.rows
    assert dict(zip([column.head for column in section.table.columns], row.cells, strict=True))["Lost"] == "4.34"
    assert statement_of(section) == (
        "At 100 % of the PDR, half of the 64-byte frames pass within 20.0\u00a0µs and 99.9 % within 90.0\u00a0µs. "
        "Frames lost in that trial: 4.34\u00a0%. Not reliable: the trials were disturbed."
    )
    (section,) = sections([result("latency", about, {**found, "loss_ratio": 0.0})], {})
    assert "ost" not in str(statement_of(section))


def test_a_basis_is_said_in_words() -> None:
    assert basis_words("sum of 2 ports") == "the sum of 2 ports"
    assert basis_words("per port") == "per port"


CUT = Finding(reason=Reason.TESTER_FAILED, threshold="tester_failed", value=1.0, limit=0.0, text="it was cut off")


def transmission(number: int, sent: int, lost: int, *findings: Finding) -> Trial:
    counts = Counts(intended=sent, sent=sent, received=sent - lost, lost=lost)
    return Trial(
        id=Trial.id_of(number),
        key=f"transmissions/{number}/0",
        test="transmissions",
        configuration="default",
        parameters={"transmission": number},
        repeat=0,
        request=TrialRequest(
            frame_bytes=64, load_frames_per_s=1, duration_s=1, drain_s=0.5, settle_s=0, purpose=Purpose.SERVED
        ),
        reading=Reading(
            transmit_ns=10**9, sending_ns=10**9, counts=counts, streams=(), ports=(), latency=None, health=Health()
        ),
        verdict=Verdict(findings=findings),
    )


MOST = (
    "The DUT lost 600 of the 4\u202f000 frames that clients sent in 2 transmissions (15 % of them, most in "
    "transmission 2: 20 % of its frames)."
)
CUT_OFF = (
    "The DUT lost none of the 1\u202f000 frames that clients sent through it. Transmission 3 was cut off: what was "
    "lost then is not known."
)
CALM, LOSSY, BROKEN = transmission(1, 1000, 0), transmission(2, 3000, 600), transmission(3, 500, 0, CUT)


@pytest.mark.parametrize(
    ("transmissions", "said"),
    [
        ((), "No frame was counted: clients sent none, or only such as nobody receives or that have no metrics."),
        (
            (CALM, BROKEN),
            CUT_OFF,
        ),
        ((CALM,), "The DUT lost none of the 1\u202f000 frames that clients sent through it."),
        ((LOSSY,), "The DUT lost 600 of the 3\u202f000 frames that clients sent through it (20 % of them)."),
        (
            (CALM, LOSSY),
            MOST,
        ),
    ],
)
def test_the_answer_counts_what_was_lost_over_all_transmissions(transmissions: tuple[Trial, ...], said: str) -> None:
    assert headline(transmissions, None) == said


def test_the_verdict_names_transmissions_that_were_disturbed_and_promises_no_repeat() -> None:
    said = verdict_text((CALM, LOSSY, BROKEN), has_ended=True)
    assert said.startswith("1 of 3 transmissions was disturbed or cut off: 3.")
    assert "repeat" not in said
    assert "None is repeated" in reliability((CALM, BROKEN))
    assert "nicbench resume" not in verdict_text((CALM,), has_ended=False)
    assert verdict_text((), has_ended=True) == "Clients started no flow."


def test_a_list_of_runs_says_how_much_was_lost_at_most() -> None:
    results = [
        Result(
            id=f"transmissions/{number}/1",
            test="transmissions",
            method="transmission",
            scope="per flow",
            parameters={"transmission": number, "flow": "f"},
            values={"loss_percent": loss},
            verdict=ResultVerdict.VALID,
            trials=(f"t000{number}",),
        )
        for number, loss in ((1, 0.0), (2, 20.0), (3, None))
    ]
    assert brief(results) == "3 transmissions, at most 20 % lost"
    assert brief(results[:1]) == "1 transmission, nothing lost"
    assert brief([results[0].replace(method="throughput")]) is None
