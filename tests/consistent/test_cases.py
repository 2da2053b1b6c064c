"""Contradictions that were found in drawn runs, each with the least that shows it."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.result import Bounded, NearLimit, Result, ResultVerdict, Spread, Summary
from nicbench.core.units import format_digits, name_in_words
from nicbench.methods.throughput import goals_of
from nicbench.report.answer.of_run import verdict_text
from nicbench.report.overview import join_by_size
from nicbench.report.rates import _loosest, _percent_change
from nicbench.report.section import caveat
from nicbench.report.tables import sections
from nicbench.stats.runs import summarise_over_runs


def result(run: int = 1, **changes: Any) -> Result:
    given = {
        "id": f"default/{run}/throughput/64",
        "test": "throughput",
        "method": "throughput",
        "run": run,
        "scope": "per port",
        "parameters": {"frame_bytes": 64},
        "values": {"ndr_frames_per_s": Bounded(value=1e6 + run, lower=1e6, upper=2e6)},
        "trials": (f"t000{run}",),
    }
    return Result(**{**given, **changes})


def test_what_is_near_the_testers_limit_in_one_run_names_the_run() -> None:
    near = (NearLimit(value="ndr_frames_per_s", limit="ceiling_frames_per_s", text="1 Mpps are 99 %"),)
    (over,) = summarise_over_runs([result(1), result(2, near_tester_limit=near)])
    assert [each.text for each in over.near_tester_limit or ()] == ["run 2: 1 Mpps are 99 %"]


def test_a_run_in_which_nothing_was_measured_is_of_the_same_point_as_the_others() -> None:
    empty = {"values": {"ndr_frames_per_s": Bounded(value=None, reason_null="none")}, "trials": ()}
    (over,) = summarise_over_runs([result(1, **empty), result(2, scope="sum of 2 ports")])
    value = over.values["ndr_frames_per_s"]
    assert over.scope == "sum of 2 ports"
    assert isinstance(value, Spread)
    assert (value.n, value.runs) == (1, 2)


def test_results_of_warm_up_runs_are_in_no_count() -> None:
    warm = result(1, warm_up=True)
    results = (warm, result(2, verdict=ResultVerdict.DISTURBED), result(3, verdict=ResultVerdict.INCOMPLETE))
    summary = Summary(title="x", verdict=ResultVerdict.INCOMPLETE, results=results)
    said = verdict_text(summary, None, "run", complete=True)
    assert said == "Everything planned was tried. 1 of 2 results have no value. 1 of 2 are disturbed."
    by_rounds = verdict_text(summary, None, "run", complete=True, by_rounds=True)
    assert by_rounds.startswith("In rounds of 2 of 2 results")


def test_runs_without_a_rate_are_below_the_greatest_of_their_bounds() -> None:
    bounds = [Bounded(value=None, upper=upper) for upper in (3e5, 5e5, 4e5)]
    assert _loosest(bounds).upper == 5e5


@pytest.mark.parametrize(
    ("factor", "text"), [(1.05, "+5 %"), (1.0 - 1e-7, "\u22120.00001 %"), (63.8, "+6\u202f280 %"), (0.5, "\u221250 %")]
)
def test_a_change_in_percent_is_no_power_of_ten(factor: float, text: str) -> None:
    assert _percent_change(factor) == text


def test_a_goal_has_the_same_name_with_and_without_the_options_of_its_test() -> None:
    found = [result(values={f"{key}_frames_per_s": Bounded(value=1.0) for key in ("ndr", "half")})]
    assert {goal.name for goal in goals_of(found, {})} == {"NDR", "half"}


@pytest.mark.parametrize("written", ["inf", "\ufffdinf", 10**400, float("nan"), -1, [0.1], None])
def test_a_loss_ratio_that_is_none_is_not_known(written: object) -> None:
    found = [result(values={"ndr_frames_per_s": Bounded(value=1.0)})]
    (goal,) = goals_of(found, {"search": {"goals": {"NDR": written}}})
    assert (goal.name, goal.loss_ratio) == ("NDR", None)


def test_a_sentence_of_a_disturbed_result_says_what_it_rests_on() -> None:
    values = {"maximum_forwarding_rate_frames_per_s": 1e6, "rate_at_maximum_load_frames_per_s": 1e6}
    found = result(method="maximum-forwarding-rate", values=values, verdict=ResultVerdict.DISTURBED)
    (section,) = sections([found], {})
    assert section.sentence == f"{section.claim}. Not reliable: the trials were disturbed"


def test_a_run_without_a_result_does_not_hide_that_another_was_disturbed() -> None:
    runs = [result(1, verdict=ResultVerdict.DISTURBED), result(2), result(3, verdict=ResultVerdict.INCOMPLETE)]
    (section,) = sections(summarise_over_runs(runs), {})
    assert section.rows[0].result.verdict is ResultVerdict.INCOMPLETE
    assert (section.sentence_of(section.rows[0]) or caveat(section.rows)).endswith(
        "Not reliable: the trials of 1 run were disturbed"
    )


def test_a_table_of_sums_and_of_single_ports_says_which_is_which() -> None:
    of_ports = {"maximum_forwarding_rate_frames_per_s": 2e6}
    sums = result(
        id="most/64",
        test="most",
        method="maximum-forwarding-rate",
        scope="sum of 2 ports",
        parameters={"frame_bytes": 64, "size": "64"},
        values=of_ports,
    )
    joined = join_by_size(sections([result(), sums], {}))
    assert joined.basis == "per port (throughput) or the sum of 2 ports (maximum forwarding rate)"


def test_names_and_shares_are_words_and_digits() -> None:
    assert name_in_words("recovery_time_ms") == "recovery time"
    assert name_in_words("ndr_frames_per_s") == "NDR"
    assert format_digits(1e-05, 6) == "0.00001"
