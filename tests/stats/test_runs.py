"""Several runs of a configuration: median and range of each value, and never an average; intervals taken together."""

from __future__ import annotations

import math

from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy, Result, ResultVerdict, Spread
from nicbench.core.turn import ONCE, RunCounts, Runs
from nicbench.stats.runs import are_settled, count_runs, list_awaited, summarise_over_runs, verdict_words
from nicbench.stats.sample import Span, span_of


def result(configuration: str, run: int, values: dict[str, object], **more: object) -> Result:
    content = {
        "id": f"{configuration}/{run}/throughput/64",
        "test": "throughput",
        "method": "throughput",
        "configuration": configuration,
        "run": run,
        "parameters": {"frame_bytes": 64},
        "values": values,
        "trials": [f"t{run:04}"],
        **more,
    }
    return Result.model_validate(content)


def rate(value: float | None, **more: object) -> dict[str, object]:
    return {"value": value, "lower": value, "upper": None if value is None else value + 10.0, **more}


def test_one_run_has_nothing_over_runs() -> None:
    assert summarise_over_runs([result("a", 1, {"x_ns": 1}), result("b", 1, {"x_ns": 1})]) == ()


def test_each_configuration_has_its_median_least_and_greatest() -> None:
    runs = [result("a", run, {"ndr_frames_per_s": rate(value)}) for run, value in enumerate((30.0, 10.0, 90.0), 1)]
    a, b = summarise_over_runs([*runs, *(result("b", run, {"ndr_frames_per_s": rate(5.0)}) for run in (1, 2, 3))])
    assert a.values["ndr_frames_per_s"] == Spread(median=30.0, minimum=10.0, maximum=90.0, n=3, runs=3)
    assert (a.id, a.configuration, a.run, a.trials) == ("a/throughput/64", "a", None, ("t0001", "t0002", "t0003"))
    assert b.values["ndr_frames_per_s"] == Spread(median=5.0, minimum=5.0, maximum=5.0, n=3, runs=3)


def test_a_run_without_a_value_is_counted_and_not_taken_for_zero() -> None:
    nothing = result("a", 2, {"ndr_frames_per_s": rate(None, upper=7.0, reason_null="no load passed")})
    (over,) = summarise_over_runs([result("a", 1, {"ndr_frames_per_s": rate(30.0)}), nothing])
    assert over.values["ndr_frames_per_s"] == Spread(median=30.0, minimum=30.0, maximum=30.0, n=1, runs=2)
    (none,) = summarise_over_runs([nothing.replace(run=1), nothing])
    assert none.values["ndr_frames_per_s"] == Bounded(value=None, upper=7.0, reason_null="no load passed")


DEAD = rate(None, upper=7.0, reason_null=f"{PASSES_NOTHING}: no frame came back", passes_nothing=True)
BELOW = rate(None, upper=9.0, reason_null="no load passed")


def over_runs(*rates: dict[str, object], asked: Runs = ONCE) -> Result:
    """The result over runs with these rates, with statistics."""
    runs = [result("a", run, {"ndr_frames_per_s": each}) for run, each in enumerate(rates, 1)]
    (over,) = summarise_over_runs(runs, asked, main=lambda _: ("ndr_frames_per_s",), seed=1)
    return over


def test_a_device_that_is_dead_in_some_runs_counts_as_0_there_in_spread_and_statistics() -> None:
    spread = over_runs(rate(500.0), DEAD, DEAD, rate(504.0), rate(502.0)).values["ndr_frames_per_s"]
    assert (spread.median, spread.minimum, spread.maximum, spread.n, spread.runs) == (500.0, 0.0, 504.0, 5, 5)
    found = spread.statistics
    assert (found.n, found.median, found.mean, found.minimum) == (5, 500.0, 301.2, 0.0)
    mostly = over_runs(DEAD, DEAD, rate(504.0)).values["ndr_frames_per_s"]
    assert (mostly.median, mostly.n) == (0.0, 3)


def test_a_rate_below_a_bound_is_missing_beside_one_of_a_dead_device() -> None:
    spread = over_runs(DEAD, BELOW, rate(30.0)).values["ndr_frames_per_s"]
    assert (spread.median, spread.n, spread.runs) == (15.0, 2, 3)
    assert not spread.passes_nothing
    nothing = over_runs(DEAD, BELOW).values["ndr_frames_per_s"]
    assert isinstance(nothing, Spread)
    assert (nothing.passes_nothing, nothing.n) == (True, 1)


def test_a_device_that_is_dead_in_every_run_passes_nothing_with_its_reason() -> None:
    value = over_runs(DEAD, DEAD).values["ndr_frames_per_s"]
    assert isinstance(value, Bounded)
    assert value.passes_nothing
    assert value.upper == 7.0


def test_runs_go_on_while_a_device_is_dead_in_some_of_them() -> None:
    good = [rate(500.0 + run) for run in range(6)]
    until = Runs(at_least=3, until_ratio=0.1, at_most=9, confidence_ratio=0.95)
    assert are_settled([over_runs(*good, asked=until)])
    over = over_runs(*good, DEAD, asked=until)
    assert not are_settled([over])
    (awaited,) = list_awaited([over])
    assert "the interval is" in awaited.width, "a run in which nothing passed has a value"


def test_what_is_the_same_in_all_runs_stays_as_it_is_and_words_that_differ_are_none() -> None:
    values = [{"line_rate_frames_per_s": 5.0, "source": "tsc", "why": why} for why in ("x", "y")]
    (over,) = summarise_over_runs([result("a", run, each) for run, each in enumerate(values, 1)])
    assert over.values == {"line_rate_frames_per_s": 5.0, "source": "tsc", "why": None}


def test_the_worst_verdict_stands_and_each_disturbance_says_its_run() -> None:
    spoilt = result("a", 2, {"x_ns": 3}, verdict=ResultVerdict.DISTURBED, disturbances=["held up"])
    (over,) = summarise_over_runs([result("a", 1, {"x_ns": 1}), spoilt])
    assert (over.verdict, over.disturbances) == (ResultVerdict.DISTURBED, ("run 2: held up",))


def test_the_line_rate_is_claimed_where_it_was_passed_in_every_run() -> None:
    line = Bounded(value=1.5e6, lower=1.5e6, limited_by=LimitedBy.LINE_RATE)
    none = Bounded(value=None, upper=1000.0, limited_by=LimitedBy.DUT, reason_null="frames were lost")
    assert Spread.of([line, line], 2).is_line_rate
    for values in ([line, none], [line, Bounded(value=None, limited_by=LimitedBy.LINE_RATE)], [line]):
        some = Spread.of(values, 2)
        assert (some.is_line_rate, some.limited_by) == (False, None)


def test_a_median_that_rests_on_an_open_interval_is_a_lower_bound() -> None:
    closed, open_ended = Bounded(value=5.0, lower=5.0, upper=6.0), Bounded(value=4.0, lower=4.0)
    assert Spread.of([closed, open_ended], 2).at_least
    assert not Spread.of([closed, closed, Bounded(value=9.0)], 3).at_least
    above = Bounded(value=9.0, lower=9.0)
    assert Spread.of([closed, above], 2).at_least  # the median is the mean of both
    assert not Spread.of([closed, closed, above], 3).at_least


def test_the_interval_of_several_runs_holds_all_of_theirs() -> None:
    assert span_of([Bounded(value=3.0, lower=3.0, upper=4.0), Bounded(value=5.0, lower=5.0, upper=6.0)]) == Span(
        3.0, 6.0
    )
    assert span_of([Bounded(value=3.0, upper=4.0), Bounded(value=None, upper=2.0)]) == Span(0.0, 4.0)
    assert span_of([Bounded(value=3.0, upper=4.0), Bounded(value=None)]) is None
    assert span_of([Bounded(value=3.0)]) == Span(3.0, math.inf)
    assert span_of([Bounded(value=3.0, limited_by=LimitedBy.LINE_RATE)]) == Span(3.0, 3.0)


ASKED = Runs(warm_up=1, at_least=2, at_most=9, until_ratio=0.05, confidence_ratio=0.95)


def of_runs(*values: float | None, configuration: str = "a") -> tuple[Result, ...]:
    """The first warms up."""
    runs = [
        result(configuration, run, {"ndr_frames_per_s": rate(value), "line_rate_frames_per_s": 5.0}, warm_up=run == 1)
        for run, value in enumerate(values, 1)
    ]
    return summarise_over_runs(runs, ASKED, lambda _: ("ndr_frames_per_s",))


def test_a_run_that_warms_up_is_part_of_nothing() -> None:
    (over,) = of_runs(1.0, 100.0, 102.0)
    found = over.values["ndr_frames_per_s"]
    assert isinstance(found, Spread)
    assert (found.minimum, found.maximum, found.n, found.runs) == (100.0, 102.0, 2, 2)
    assert over.trials == ("t0002", "t0003")
    assert of_runs(1.0, 100.0) == ()  # one run that counts


def test_main_values_alone_have_the_interval_of_their_mean() -> None:
    (over,) = of_runs(1.0, 100.0, 102.0)
    (one,) = list_awaited([over])
    assert (one.name, one.place) == ("ndr_frames_per_s", "a: throughput, 64 bytes")
    assert one.of_mean.mean == 101.0
    assert one.of_mean.upper is not None
    assert math.isclose(one.of_mean.upper - 101.0, 12.7062047364, rel_tol=1e-9)  # t of one degree, s / sqrt(2) = 1
    assert over.values["line_rate_frames_per_s"] == 5.0


def test_what_is_the_same_in_all_runs_is_known_and_what_some_lack_is_not() -> None:
    assert are_settled(of_runs(1.0, 100.0, 100.0))
    some = of_runs(1.0, 100.0, None, 100.0)
    assert not are_settled(some)
    assert verdict_words(ASKED, 3, some) == (
        "not reached: only 2 of 3 runs have a value after 3 runs; 5 % was asked (a: throughput, 64 bytes, NDR)"
    )
    assert are_settled(of_runs(1.0, None, None)), "what no run has is not waited for"


def test_the_widest_interval_decides_and_is_named() -> None:
    over = (*of_runs(1.0, 100.0, 100.5, 100.2), *of_runs(1.0, 100.0, 110.0, 104.0, configuration="b"))
    assert not are_settled(over)
    assert verdict_words(ASKED, 3, over).startswith(
        "not reached: the interval is 23.9 % wide after 3 runs; 5 % was asked"
    )
    assert verdict_words(ASKED, 3, over).endswith("(b: throughput, 64 bytes, NDR)")
    narrow = verdict_words(ASKED, 3, of_runs(1.0, 100.0, 100.5, 100.2))
    assert narrow == "reached: the widest interval is 1.25 % wide after 3 runs; 5 % was asked"


def test_what_was_made_is_said_where_there_is_more_to_say_than_the_results_do() -> None:
    results = [result(name, run, {"x_ns": run}, warm_up=run == 1) for name in "ab" for run in (1, 2, 3)]
    assert count_runs(Runs(at_least=3, at_most=3), results, (), complete=True) is None
    warm = Runs(warm_up=1, at_least=2, at_most=2)
    assert count_runs(warm, results, (), complete=True) == RunCounts(asked=warm, made=2)
    assert count_runs(ASKED, results, (), complete=True) == RunCounts(asked=ASKED, made=2, reached=True)
    assert count_runs(ASKED, results[:-1], (), complete=False) == RunCounts(asked=ASKED, made=1, reached=False)


def test_only_intervals_that_do_not_touch_are_told_apart() -> None:
    assert Span(5.0, 6.0).is_above(Span(3.0, 4.0))
    assert not Span(4.0, 6.0).is_above(Span(3.0, 4.0))
    assert Span(6.0, 8.0).times(Span(3.0, 4.0)) == (1.5, 8.0 / 3.0)
    assert Span(6.0, math.inf).times(Span(3.0, 4.0)) == (1.5, math.inf)
