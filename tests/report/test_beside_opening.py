"""A comparison opens with its verdict, one sentence, one chart and one table; nothing is claimed that is not shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from nicbench.compare.entries import Entry, compare_settings
from nicbench.compare.matching import match_points
from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy, Result, ResultVerdict
from nicbench.report.comparison_page import document
from nicbench.report.document.blocks import Block, Group, Table, plain
from nicbench.report.entries import Page, page_of
from nicbench.report.html import write_html

SIZES = (64, 512, 1518)


def entry(name: str, rates: Sequence[tuple[float, float]]) -> Entry:
    results = tuple(
        Result(
            id=f"{name}/throughput/{size}",
            test="throughput",
            method="throughput",
            scope="per port",
            parameters={"frame_bytes": size},
            values={
                "ndr_frames_per_s": Bounded(
                    value=lower * 1e6, lower=lower * 1e6, upper=upper * 1e6, limited_by=LimitedBy.DUT
                )
            },
        )
        for size, (lower, upper) in zip(SIZES, rates, strict=True)
    )
    return Entry(name=name, run_id=f"run of {name}", title=name, results=results, is_named=True)


def page(*entries: Entry) -> Page:
    found = match_points(entries)
    return page_of(found, (), compare_settings(found.entries), title="a comparison")


BEFORE = entry("before", [(1.0, 1.01), (0.5, 0.51), (0.2, 0.21)])
FASTER = entry("after", [(2.0, 2.02), (1.0, 1.02), (0.2, 0.21)])


def first_screen(of: Page) -> Group:
    opening = document(of).blocks[0]
    assert isinstance(opening, Group)
    return opening


def tables_in(block: Block) -> list[Table]:
    if isinstance(block, Group):
        return [table for each in block.blocks for table in tables_in(each)]
    return [block] if isinstance(block, Table) else []


def test_the_answer_is_one_sentence_with_the_factor_and_the_rates() -> None:
    said = page(BEFORE, FASTER).report.headline.replace("\u00a0", " ")
    assert said == (
        "With 64-byte frames, “after” passes 1.98 to 2.02 times as much at the NDR as “before”: 2.00 Mpps against "
        "1.000 Mpps (NDR, one run each), and their intervals do not overlap."
    )


def test_where_intervals_overlap_the_answer_says_that_no_difference_can_be_claimed_and_why() -> None:
    said = page(BEFORE, entry("same", [(1.0, 1.01)] * 3)).report.headline
    assert said.startswith("No difference can be claimed with 64-byte frames: “before” passes")
    assert said.endswith("and their intervals overlap.")


def test_the_table_has_every_size_with_both_rates_the_change_and_the_verdict() -> None:
    (shown,) = tables_in(first_screen(page(BEFORE, FASTER)))
    rows = [[plain(cell.inlines).replace("\u00a0", " ") for cell in row.cells] for row in shown.body]
    assert [row[0] for row in rows] == ["NDR [Mpps], at the NDR", "64 B", "512 B", "1518 B"]
    assert rows[1][-1] == "+98 to +102 % better"
    assert rows[3][-1].endswith("no difference shown")


def test_the_other_way_round_it_is_worse() -> None:
    (shown,) = tables_in(first_screen(page(FASTER, BEFORE)))
    assert plain(shown.body[1].cells[-1].inlines).endswith("worse")


@pytest.mark.parametrize(("others", "badge"), [((FASTER,), "difference shown"), ((BEFORE,), "no difference claimed")])
def test_the_verdict_stands_beside_how_many_values_differ(others: tuple[Entry, ...], badge: str) -> None:
    other = entry("other", [(1.0, 1.01), (0.5, 0.51), (0.2, 0.21)]) if others == (BEFORE,) else others[0]
    written = write_html(document(page(BEFORE, other)))
    assert badge in written
    assert ("is claimed in 2 of the 3 values below: better in 2" in written) is (badge == "difference shown")


def test_everything_below_the_first_screen_is_folded_but_the_heading_of_the_results() -> None:
    _, *below = document(page(BEFORE, FASTER)).blocks
    looks = {block.look for block in below if isinstance(block, Group)}
    assert looks == {"folded", ""}


def test_of_many_entries_the_first_sentence_claims_no_more_than_the_rule_of_claims() -> None:
    rates = [(0.5, 0.51)] * 3
    spoilt = entry("spoilt", [(3.0, 3.02)] * 3)
    results = tuple(one.replace(verdict=ResultVerdict.DISTURBED) for one in spoilt.results)
    said = page(BEFORE, entry("slow", rates), replace(spoilt, results=results)).report.headline
    assert "No difference of the highest to the others can be claimed: disturbed" in said
    assert page(BEFORE, entry("slow", rates), FASTER).report.headline.endswith("to pass more than all others.")


def with_rates(name: str, found: Bounded, **more: float) -> Entry:
    made = entry(name, [(1.0, 1.01)] * 3)
    values = {"ndr_frames_per_s": found, **more}
    return replace(made, results=tuple(one.replace(values=values) for one in made.results))


def test_of_many_entries_the_first_sentence_leaves_none_out_and_calls_no_bound_the_least() -> None:
    nothing = with_rates(
        "dead",
        Bounded(value=None, upper=10.0, reason_null=f"{PASSES_NOTHING}: no frame came back", passes_nothing=True),
    )
    below = with_rates("low", Bounded(value=None, upper=1e5, reason_null="frames were lost at 100000 frames/s"))
    open_ = with_rates("open", Bounded(value=9e5, lower=9e5, limited_by=LimitedBy.TESTER))
    made = page(BEFORE, FASTER, nothing)
    said = made.report.headline
    assert "“after” passes the most" in said
    assert "“dead” passes nothing (NDR, 3 entries)" in said
    assert "“before” the least of those whose rate is known: " in said
    assert said.endswith("The highest is shown to pass more than all others.")
    assert {cell.text for table in made.tables for cell in table.rows["dead"]} == {PASSES_NOTHING}
    said = page(BEFORE, open_, below, nothing).report.headline
    assert "the least of" not in said
    assert "“open” passes at least 900\u00a0kpps" in said
    assert "“low” passes less than 100\u00a0kpps" in said
    assert "(NDR, 4 entries)" in said
    assert said.endswith("shown to pass more than 2 of the others; no difference to the remaining one is shown.")


def latencies(name: str, runs: int, median_ns: int) -> Entry:
    found = tuple(
        Result(
            id=f"latency/{run}",
            test="latency",
            method="latency",
            scope="per port",
            run=run,
            parameters={"frame_bytes": 64, "load_of": "NDR", "load_percent": 50.0},
            values={"latency_p50_ns": median_ns, "latency_p99_9_ns": median_ns},
        )
        for run in range(1, runs + 1)
    )
    return Entry(name=name, run_id=f"run of {name}", title=name, results=found, is_named=True)


def test_a_latency_that_is_equal_in_all_runs_is_not_said_to_be_of_one_of_them() -> None:
    assert "median of 5 runs" in page(latencies("old", 5, 20_000), latencies("new", 5, 30_000)).report.headline
    said = page(latencies("old", 5, 20_000), latencies("new", 1, 30_000)).report.headline
    assert "medians: 5 runs of “old” and 1 run of “new”" in said


def test_a_rate_that_is_the_line_rate_is_called_so_in_the_first_sentence() -> None:
    full = with_rates("full", Bounded(value=2e6, lower=2e6, limited_by=LimitedBy.LINE_RATE))
    assert "the line rate, 2.00\u00a0Mpps against 1.000\u00a0Mpps" in page(BEFORE, full).report.headline
