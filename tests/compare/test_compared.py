"""Two sides at a point: what is matched, what may be claimed, and in which words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from nicbench.compare.claims import Basis, PointComparison, compare_sides
from nicbench.compare.matching import summarise_points, unfinished_summary
from nicbench.compare.points import Side, comparable_number, main_values_of, quantity_of, seed_of
from nicbench.core.registry import find
from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy, Result, ResultVerdict, Spread, Value
from nicbench.core.turn import ONCE
from nicbench.core.units import Quantity
from nicbench.methods.base import Method

SEED = 7


def result(value: Value, run: int, size: int = 64) -> Result:
    return Result(
        id=f"throughput/{size}",
        test="throughput",
        method="throughput",
        run=run,
        scope="per port",
        parameters={"frame_bytes": size},
        values={"ndr_frames_per_s": value},
    )


def rate(megapackets: float, width: float = 0.01, limit: LimitedBy = LimitedBy.DUT) -> Bounded:
    upper = None if limit is not LimitedBy.DUT else 1e6 * megapackets + 1e6 * width
    return Bounded(value=1e6 * megapackets, lower=1e6 * megapackets, upper=upper, limited_by=limit)


def side(name: str, values: Sequence[Value], size: int = 64) -> Side:
    return Side(name, tuple(result(value, run, size) for run, value in enumerate(values, start=1)))


def one(first: Sequence[Value], second: Sequence[Value], *, in_rounds: bool = False) -> PointComparison:
    (found,) = compare_sides([side("a", first), side("b", second)], seed=SEED, in_rounds=in_rounds).all
    return found


FIVE = (2.00, 2.01, 2.02, 2.03, 2.04)


def test_a_difference_that_the_runs_show_is_claimed() -> None:
    found = one([rate(2 * value) for value in FIVE], [rate(value) for value in FIVE])
    assert (found.claim.basis, found.claim.higher, found.better) == (Basis.RUNS, "a", "a")
    assert found.sentence == "with 64-byte frames, “a” is 2.00 times as fast as “b” [1.97, 2.03]"
    assert found.comparison.first.sample.median == pytest.approx(4.04)
    assert "median 4.040 Mpps of 5 runs of “a”" in found.arithmetic
    assert "Mann-Whitney U 25, p = 0.0079 (two-sided, exact)" in found.arithmetic


def test_a_difference_below_the_width_of_the_searches_is_not() -> None:
    """Each run finds a rate of 2 Mpps within 0.2: one of 2.1 is not told from it, however well runs repeat."""
    found = one([rate(1.05 * value, 0.2) for value in FIVE], [rate(value, 0.2) for value in FIVE])
    assert (found.claim.basis, found.claim.higher) == (Basis.SEARCHES_OVERLAP, None)
    assert found.sentence.endswith("the runs differ by less than the intervals within which their rates were found")


def test_a_side_that_passed_all_there_was_is_at_least_so_much_better() -> None:
    found = one([rate(2 * value, limit=LimitedBy.TESTER) for value in FIVE], [rate(value) for value in FIVE])
    assert found.claim.is_at_least
    assert found.sentence.endswith("[1.97, 2.03], or more: no load that was offered was too much for “a”")


def test_nothing_is_better_than_a_side_that_may_do_more() -> None:
    found = one([rate(2 * value) for value in FIVE], [rate(value, limit=LimitedBy.TESTER) for value in FIVE])
    assert found.claim.basis is Basis.SEARCHES_OVERLAP


@pytest.mark.parametrize(
    ("first", "second", "basis", "said"),
    [
        ([rate(4)], [rate(2)], Basis.INTERVALS, "“a” has 1.99 to 2.01 times the NDR of “b”"),
        ([rate(2)], [rate(4)], Basis.INTERVALS, "“b” has 1.99 to 2.01 times the NDR of “a”"),
        ([rate(2, 1.0)], [rate(2.5)], Basis.INTERVALS_OVERLAP, "their intervals overlap"),
        ([rate(4), rate(2)], [rate(2.5), rate(3)], Basis.INTERVALS_OVERLAP, "their intervals overlap"),
        ([Bounded(value=4e6)], [Bounded(value=2e6)], Basis.TOO_FEW, "there is no interval"),
        (
            [Bounded(value=4e6)] * 3,
            [Bounded(value=2e6)] * 3,
            Basis.TOO_FEW,
            "3 runs and 3 runs are too few to show a difference of any size",
        ),
    ],
    ids=["apart", "the other", "overlap", "runs overlap", "bare", "three"],
)
def test_with_few_runs_only_intervals_of_searches_tell(
    first: Sequence[Value], second: Sequence[Value], basis: Basis, said: str
) -> None:
    found = one(first, second)
    assert found.claim.basis is basis
    assert said in found.sentence
    assert (found.claim.higher is None) is not basis.is_shown


@pytest.mark.parametrize("runs", [1, 5])
def test_nothing_is_claimed_from_disturbed_results_and_no_test_is_made(runs: int) -> None:
    first, second = side("a", [rate(2 * value) for value in FIVE[:runs]]), side("b", [rate(v) for v in FIVE[:runs]])
    marked = first.results[0].replace(verdict=ResultVerdict.DISTURBED)
    found = compare_sides([Side("a", (marked, *first.results[1:])), second], seed=SEED)
    (one,) = found.all
    assert (one.claim.basis, one.claim.higher, one.better, one.claim.disturbed) == (Basis.DISTURBED, None, None, ("a",))
    assert one.sentence.endswith("differ, but no difference can be claimed: results of “a” were disturbed")
    assert (one.p_corrected, one.could_show, one.holds_together, found.tests) == (None, None, False, 0)
    assert found.shown == ()


def test_runs_made_in_rounds_are_compared_in_pairs_where_there_are_enough() -> None:
    drifting = [1.0 + number for number in range(6)]
    beside = [value * 1.02 for value in drifting]
    of_rounds = one([rate(value, 0.001) for value in beside], [rate(value, 0.001) for value in drifting],
                    in_rounds=True)  # fmt: skip
    assert of_rounds.comparison.kind.is_paired
    assert of_rounds.claim.higher == "a"
    assert one([rate(value) for value in beside], [rate(value) for value in drifting]).claim.higher is None
    few = one([rate(value) for value in beside[:5]], [rate(value) for value in drifting[:5]], in_rounds=True)
    assert not few.comparison.kind.is_paired


def test_all_comparisons_of_a_call_are_corrected_together_and_their_number_is_said() -> None:
    sides = [
        Side(name, tuple(result(rate(times * value), run, size) for size in (64, 512, 1518)
                         for run, value in enumerate(FIVE, start=1)))
        for name, times in (("a", 2.0), ("b", 1.0))
    ]  # fmt: skip
    found = compare_sides(sides, seed=SEED)
    assert [one.p_corrected for one in found.all] == [pytest.approx(3 * 2 / 252)] * 3
    assert all(one.holds_together for one in found.all)
    assert found.rule[-1] == (
        "3 comparisons were tested; if nothing differed, 0.05 x 3 = 0.15 of them would be expected to look like a "
        "difference. 3 show a difference; corrected for all of them together (Holm) 3 do."
    )


def test_a_point_that_one_side_lacks_is_named() -> None:
    found = compare_sides([side("a", [rate(1)]), side("b", [rate(1)], size=128)], seed=SEED)
    assert found.all == ()
    assert [(name, point.circumstances) for name, point in found.only] == [
        ("a", "with 64-byte frames"),
        ("b", "with 128-byte frames"),
    ]


def test_the_bad_one_of_three_cards_of_one_type_is_told_from_both_others() -> None:
    """Each card has five runs in a machine of its own; the second passes 5 % less."""
    runs = {"card one": 1.0, "card two": 0.95, "card three": 1.0}
    sides = [side(name, [rate(share * value) for value in FIVE]) for name, share in runs.items()]
    found = {
        frozenset((one.comparison.first.name, one.comparison.second.name)): one.claim.higher
        for one in compare_sides(sides, seed=SEED).all
    }
    assert found[frozenset(("card one", "card two"))] == "card one"
    assert found[frozenset(("card three", "card two"))] == "card three"
    assert found[frozenset(("card one", "card three"))] is None


def test_many_sides_are_each_compared_with_the_first() -> None:
    sides = [side(name, [rate(1)]) for name in "abcdef"]
    found = compare_sides(sides, seed=SEED)
    assert [(one.comparison.first.name, one.comparison.second.name) for one in found.all] == [(x, "a") for x in "bcdef"]
    assert len(compare_sides(sides[:5], seed=SEED).all) == 10
    assert any("each is compared with the first" in sentence for sentence in found.rule)


def test_a_run_that_warms_up_is_no_part_of_a_comparison() -> None:
    warm = result(rate(9), 0).replace(warm_up=True)
    of_a = side("a", [rate(1)])
    (found,) = compare_sides([Side("a", (warm, *of_a.results)), side("b", [rate(1)])], seed=SEED).all
    assert found.comparison.first.sample.n == 1


def test_the_seed_is_of_the_runs_whatever_their_order() -> None:
    assert seed_of("one", "other") == seed_of("other", "one") != seed_of("one")
    assert seed_of("20261122-120000-demo") == 2690674239


RATES = (2.0e6, 2.2e6, 2.4e6, 2.6e6)


def results(rates: tuple[float, ...] = RATES) -> tuple[Result, ...]:
    return tuple(
        Result(
            id=f"default/{run}/throughput/64",
            test="throughput",
            method="throughput",
            run=run,
            parameters={"frame_bytes": 64},
            values={"ndr_frames_per_s": Bounded(value=rate, lower=rate, upper=rate + 1), "line_rate_frames_per_s": 1e7},
        )
        for run, rate in enumerate(rates, start=1)
    )


def spread(found: tuple[Result, ...]) -> Spread:
    (over,) = found
    value = over.values["ndr_frames_per_s"]
    assert isinstance(value, Spread)
    return value


def test_main_values_have_statistics_and_the_seed_follows_from_the_run() -> None:
    found = spread(summarise_points(results(), ONCE, "a-run")).statistics
    assert (found.n, found.mean, found.median) == (4, pytest.approx(2.3e6), pytest.approx(2.3e6))
    assert found.median_interval.seed == seed_of("a-run")
    assert summarise_points(results(), ONCE, "a-run")[0].values["line_rate_frames_per_s"] == 1e7


def test_a_main_value_that_never_differs_has_them_too() -> None:
    value = spread(summarise_points(results((2e6, 2e6, 2e6)), ONCE, "a-run"))
    assert (value.minimum, value.maximum, value.n, value.runs) == (2e6, 2e6, 3, 3)
    assert value.statistics.sample_standard_deviation == 0.0


def test_a_run_that_goes_on_has_its_runs_so_far() -> None:
    summary = unfinished_summary(results(), None, "a-run", "A run")
    assert summary.verdict is ResultVerdict.INCOMPLETE
    assert spread(summary.over_runs) == spread(summarise_points(results(), ONCE, "a-run"))


NEITHER = {"ratio", "requests", "throughput_and_cpu", "information_rate_bits_per_s", "outcome"}
"""A service's rate should be what was agreed, neither less nor more."""


def result_with(method: str, values: dict[str, Value], **parameters: Any) -> Result:
    return Result(id="a", test="a", method=method, parameters=parameters, values=values)


def test_every_method_says_which_way_its_main_columns_are_better() -> None:
    silent = {
        column.value
        for method in find("nicbench.methods", Method).values()
        for table in method.tables()
        for column in table.columns
        if column.is_main and column.better is None
    }
    assert silent <= NEITHER


@pytest.mark.parametrize(
    ("method", "values", "parameters", "number", "quantity"),
    [
        ("throughput", {"ndr_frames_per_s": Bounded(value=2.5e6)}, {}, 2.5, Quantity("NDR", "Mpps", True, "fast")),
        ("latency", {"latency_p50_ns": 1500.0}, {}, 1.5, Quantity("median latency", "µs", False)),
        ("frames", {"sum_frames_per_s": 24.0}, {"part": "runs"}, 24.0, Quantity("sum", "fps", True, "fast")),
        (
            "request-response",
            {"transactions_per_s": 9e3},
            {"part": "rates"},
            9e3,
            Quantity("rate", "transactions/s", True, "fast"),
        ),
        ("back-to-back", {"back_to_back_frames": 12}, {}, 12.0, Quantity("back-to-back value", "frames", True)),
        ("soak", {"loss_percent": 0.5}, {}, 0.5, Quantity("loss", "%", False)),
    ],
    ids=lambda found: found if isinstance(found, str) else "",
)
def test_values_come_in_the_unit_of_the_methods_column(
    method: str, values: dict[str, Value], parameters: dict[str, Any], number: float, quantity: Quantity
) -> None:
    found = result_with(method, values, **parameters)
    main = {value.name: value for value in main_values_of(found)}
    (name,) = values
    if name in main:
        assert main[name].number_of(found) == pytest.approx(number)
    assert quantity_of(found, name) == quantity


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (Bounded(value=None, upper=1.0, reason_null=f"{PASSES_NOTHING} at any load", passes_nothing=True), 0.0),
        (Bounded(value=None, reason_null="every trial was disturbed"), None),
        (Spread(median=2.0, minimum=1.0, maximum=3.0, n=3, runs=3), 2.0),
        ("words", None),
        (float("nan"), None),
        (7, 7.0),
    ],
)
def test_what_is_a_number(value: Value, number: float | None) -> None:
    assert comparable_number(value) == number


def test_a_method_that_is_not_known_has_no_main_values() -> None:
    found = result_with("of-tomorrow", {"rate_frames_per_s": 1.0})
    assert main_values_of(found) == ()
    assert quantity_of(found, "rate_frames_per_s") == Quantity("rate frames per s", "")
