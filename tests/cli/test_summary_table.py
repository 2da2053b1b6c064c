"""The table at the end of a run."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from tests.methods.known import run
from tests.methods.round_contexts import Laboratory, streamed
from tests.methods.test_throughput import Nothing

from nicbench.bench_file import load
from nicbench.cli.summary_table import ShownColumn, print_fitted, print_summary
from nicbench.core.errors import HostError, NicbenchError, NothingMeasuredError, ToolsFailedError
from nicbench.core.events import RoundFinished
from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy, NearLimit, Result, ResultVerdict, Spread, Summary
from nicbench.core.round import Figures, Job, JobOutcome
from nicbench.methods.base import main_values
from nicbench.methods.impairments import Impairments
from nicbench.methods.stream import Stream
from nicbench.report.answer.of_run import in_brief
from nicbench.stages.turns import find_nothing_measured
from nicbench.stats.runs import summarise_over_runs


def rate(**values: Bounded | Spread | float | None) -> Result:
    return Result(
        id="throughput/64",
        method="throughput",
        parameters={"frame_bytes": 64},
        values=dict(values),
        verdict=ResultVerdict.DISTURBED,
    )


def latency(load_percent: float, p50_ns: float | None) -> Result:
    return Result(
        id=f"latency/64/{load_percent:g}",
        method="latency",
        parameters={"frame_bytes": 64, "load_of": "NDR", "load_percent": load_percent},
        values={"latency_p50_ns": p50_ns, "latency_p99_9_ns": None},
        disturbances=("latency: [one] repeat",),
    )


def test_configurations_stand_beneath_each_other_with_their_medians() -> None:
    spread = Spread(median=400_000.0, minimum=390_000.0, maximum=410_000.0, n=2, runs=2, limited_by=LimitedBy.DUT)
    over = [
        rate(ndr_frames_per_s=spread).replace(configuration=name, id=f"{name}/throughput/64")
        for name in ("bare", "rules")
    ]
    names = ("rules", "bare")
    summary = Summary(title="x", verdict=ResultVerdict.VALID, results=(), configurations=names, over_runs=tuple(over))
    text = io.StringIO()
    print_summary(Console(file=text, width=150, color_system=None), summary)
    printed = text.getvalue()
    assert printed.index("rules") < printed.index("bare")
    assert printed.count("390 .. 400 .. 410") == 2
    assert "each number is the median of several runs" in printed
    said = "NDR 400 kpps at 64 bytes (median of 2 runs)"
    assert in_brief(summary) == f"rules: {said}; bare: {said}"


def shown(*results: Result) -> str:
    text = io.StringIO()
    summary = Summary(title="A [title] of its own", verdict=ResultVerdict.DISTURBED, results=results)
    print_summary(Console(file=text, width=150, color_system=None), summary)
    return text.getvalue()


INTERVAL = Bounded(value=0.41e6, lower=0.41e6, upper=0.42e6, limited_by=LimitedBy.DUT)


def test_a_rate_stands_with_its_interval_share_and_limit() -> None:
    table = shown(rate(ndr_frames_per_s=INTERVAL, ndr_percent_of_line_rate=2.756))
    for text in ("NDR", "[kpps]", "410 .. 420", "2.76", "DUT", "disturbed"):
        assert text in table


def test_a_rate_that_may_be_higher_says_at_least() -> None:
    at_least = Bounded(value=1e6, lower=1e6, upper=None, limited_by=LimitedBy.TESTER)
    table = shown(rate(pdr_frames_per_s=at_least))
    assert "≥ 1.00" in table
    assert "tester" in table


def test_a_dut_that_passes_line_rate_is_said_to() -> None:
    at_line_rate = Bounded(value=14.88e6, lower=14.88e6, limited_by=LimitedBy.LINE_RATE)
    assert "line rate, 14.88" in shown(rate(ndr_frames_per_s=at_line_rate))


def test_a_dut_that_passes_nothing_is_said_to() -> None:
    dead = Bounded(
        value=None,
        upper=1000.0,
        limited_by=LimitedBy.DUT,
        reason_null=f"{PASSES_NOTHING}: no frame came back",
        passes_nothing=True,
    )
    assert "passes nothing" in shown(rate(ndr_frames_per_s=dead))
    summary = Summary(title="t", verdict=ResultVerdict.VALID, results=(rate(ndr_frames_per_s=dead),))
    assert in_brief(summary) == "passes nothing at 64 bytes"


@pytest.mark.parametrize(
    ("rates", "cell", "said"),
    [
        ((500e3, 0.0, 0.0, 504e3, 502e3), "0 .. 500 .. 504", "NDR 500 kpps at 64 bytes (median of 5 runs)"),
        ((0.0, 0.0, 0.0, 504e3, 502e3), "0 .. 0 .. 504", "NDR 0 kpps at 64 bytes (median of 5 runs)"),
        ((0.0, 0.0), "passes nothing", "passes nothing at 64 bytes"),
        ((0.0, 0.0, None), "passes nothing (2 of 3 runs)", "passes nothing at 64 bytes"),
    ],
)
def test_runs_in_which_the_dut_passed_nothing_count_as_0(rates: tuple[float | None, ...], cell: str, said: str) -> None:
    dead = Bounded(value=None, upper=1000.0, reason_null=f"{PASSES_NOTHING}: no frame came back", passes_nothing=True)
    below = Bounded(value=None, upper=20_000.0, reason_null="frames were lost")
    values = [
        below if one is None else Bounded(value=one, lower=one, upper=1.01 * one) if one else dead for one in rates
    ]
    results = tuple(
        rate(ndr_frames_per_s=value).replace(run=run, trials=("t0001",)) for run, value in enumerate(values, 1)
    )
    over = summarise_over_runs(results)
    summary = Summary(title="t", verdict=ResultVerdict.VALID, results=results, over_runs=over)
    text = io.StringIO()
    print_summary(Console(file=text, width=150, color_system=None), summary)
    assert f"│ {cell} │" in " ".join(text.getvalue().split())
    assert in_brief(summary) == said


def test_a_rate_that_is_only_known_as_below_a_bound_is_listed_as_that() -> None:
    below = Bounded(value=None, upper=1001.0, limited_by=LimitedBy.DUT, reason_null="no load that was tried passed")
    summary = Summary(title="t", verdict=ResultVerdict.VALID, results=(rate(ndr_frames_per_s=below),))
    assert in_brief(summary) == "NDR < 1.01 kpps at 64 bytes"


def test_a_rate_that_was_not_found_is_none_and_not_zero() -> None:
    table = shown(
        rate(ndr_frames_per_s=Bounded(value=None, reason_null="nothing passed"), ndr_percent_of_line_rate=None)
    )
    assert "none" in table
    assert "0.000" not in table


def test_the_latency_is_that_at_the_highest_load() -> None:
    table = shown(rate(ndr_frames_per_s=INTERVAL), latency(50.0, 9_000.0), latency(100.0, 21_450.0))
    assert "21.5" in table
    assert "9.0" not in table


def test_the_testers_own_limits_stand_beside_what_was_measured_where_they_are_known() -> None:
    table = shown(
        rate(ndr_frames_per_s=INTERVAL, ceiling_frames_per_s=0.8777e6),
        latency(100.0, 21_450.0).replace(values={"latency_p50_ns": 21_450.0, "tester_latency_p50_ns": 8_120.0}),
    )
    assert "878" in table
    assert "8.1" in table
    assert table.count("tester") == 2
    assert "tester" not in shown(rate(ndr_frames_per_s=INTERVAL), latency(100.0, 21_450.0))


def test_a_result_near_the_testers_own_limit_says_so() -> None:
    near = NearLimit(value="ndr_frames_per_s", limit="ceiling_frames_per_s", text="0.41 Mpps are 99 % [of it]")
    table = shown(rate(ndr_frames_per_s=INTERVAL).replace(near_tester_limit=(near,)))
    assert "throughput/64: near the tester's own limit: 0.41 Mpps are 99 % [of it]" in table


def test_an_unknown_latency_is_a_dash() -> None:
    assert "\u2013" in shown(latency(100.0, None))


def test_titles_and_notes_are_shown_as_they_are() -> None:
    table = shown(latency(100.0, 1.0))
    assert "A [title] of its own" in table
    assert "latency: [one] repeat" in table


def test_the_headline_is_the_first_rate() -> None:
    summary = Summary(title="x", verdict=ResultVerdict.VALID, results=(rate(ndr_frames_per_s=INTERVAL),))
    assert in_brief(summary) == "NDR 410 kpps at 64 bytes"
    assert in_brief(summary.replace(results=())) is None


def test_a_method_that_brings_a_table_has_one_of_its_own_with_its_units() -> None:
    values = {
        "frame_rate_frames_per_s": Bounded(value=9.66e6, limited_by=LimitedBy.TESTER),
        "tsc_cycles_per_packet": 61.34,
        "cycles_source": "its own record",
    }
    result = Result(id="one/64", method="single-core", parameters={"frame_bytes": 64, "size": "64"}, values=values)
    table = shown(result)
    assert "Single core" in table
    assert "[Mpps]" in table
    assert "≥ 9.66" in table
    assert "61.3" in table
    assert "its own record" in table
    summary = Summary(title="x", verdict=ResultVerdict.VALID, results=(result,))
    assert str(in_brief(summary)).startswith("forwards at least 9.66")


def soaked(interval: int | str) -> Result:
    return Result(
        id=f"soak/64/{interval}",
        method="soak",
        parameters={"size": "64"},
        values={
            "interval": interval,
            "load_frames_per_s": 49_900.0,
            "offered_frames": 199_582,
            "lost_frames": 3,
            "loss_percent": 0.0015,
        },
        disturbances=("the worker was held up",),
    )


def test_a_soak_of_many_intervals_is_summed_up_on_the_terminal() -> None:
    table = shown(*map(soaked, range(1, 41)), soaked("all"))
    assert "the report has all 41 results of which these are the main ones" in table
    assert "worst: 1" in table
    assert "last: 40" in table
    assert len(table.splitlines()) < 40
    assert "35 more like these" in table


def test_nothing_is_cut_short_on_a_terminal_of_80_columns() -> None:
    text = io.StringIO()
    results = (rate(ndr_frames_per_s=INTERVAL, pdr_frames_per_s=INTERVAL), latency(100.0, 21_450.0), soaked("all"))
    summary = Summary(title="t", verdict=ResultVerdict.DISTURBED, results=results)
    print_summary(Console(file=text, width=80, color_system=None), summary)
    assert "…" not in text.getvalue()
    assert text.getvalue().count("410 .. 420") == 2
    assert "199\u202f582" in text.getvalue()


def test_equal_notes_of_goals_are_one_line_and_many_that_differ_in_numbers_are_one() -> None:
    def noted(size: int) -> Result:
        notes = (f"NDR: {size / 64:g} % wide", f"PDR: {size / 64:g} % wide")
        result = rate(ndr_frames_per_s=INTERVAL, pdr_frames_per_s=INTERVAL)
        return result.replace(id=f"throughput/{size}", disturbances=notes)

    assert "throughput/64: NDR, PDR: 1 % wide" in shown(noted(64))
    printed = shown(*(noted(64 * number) for number in range(1, 21)))
    assert "throughput/64: NDR, PDR: 1 % wide (and 19 more that differ in their numbers only)" in printed
    assert "more like these" not in printed


# Tables on a terminal of 80 columns: whatever does not fit, no number is cut short.

HEADS = ("Frame", "Throughput", "Overload", "Afterwards", "Recovery time", "Minimum", "Maximum", "Resolution", "Lost")


def printed(rows: int, width: int = 80) -> str:
    columns = [
        ShownColumn(
            (head, "[yellow]unit[/]"), tuple(f"{number}{row:02}45.678" for row in range(rows)), rank=min(number, 1)
        )
        for number, head in enumerate(HEADS)
    ]
    text = io.StringIO()
    print_fitted(Console(file=text, width=width, color_system=None), columns, title="A table", caption="per port")
    return text.getvalue()


def test_a_table_that_fits_has_every_column_beside_the_others() -> None:
    lines = printed(rows=2, width=200).splitlines()
    assert any(all(head in line for head in HEADS) for line in lines)


def test_few_rows_that_do_not_fit_are_laid_down_with_every_value_whole() -> None:
    table = printed(rows=3)
    assert all(f"{number}{row:02}45.678" in table for number in range(len(HEADS)) for row in range(3))
    assert "…" not in table
    assert max(map(len, table.splitlines())) <= 80


def test_of_many_rows_columns_are_left_out_by_name_and_the_first_ones_stay_whole() -> None:
    table = printed(rows=9)
    assert all(f"{number}{row:02}45.678" in table for number in (0, 1) for row in range(9))
    assert "…" not in table
    left_out = table.partition("The report also has: ")[2]
    assert "Lost unit" in left_out
    assert "Frame" not in left_out


def test_on_a_very_narrow_terminal_numbers_are_folded_and_not_cut() -> None:
    table = printed(rows=9, width=14)
    assert "…" not in table


# A run to its end without a figure: never status 0, and why, or the tool's last words, are told.

BENCH = """\
nicbench: 1
title: Streams
lab: {kind: clients}
dut: {kind: server}
tests: [{name: all, method: stream}]
"""
FRAMES = """\
nicbench: 1
title: Frames
lab: {kind: simulated}
dut: {kind: simulated}
tests: [{name: loss, method: impairments, rate: highest}]
"""
Outcome = Callable[[int, Job], JobOutcome]


@pytest.fixture
def ended(tmp_path: Path) -> Callable[[Outcome], NicbenchError | None]:
    """The error of a run of streams whose tools said this."""
    path = tmp_path / "bench.yaml"
    path.write_text(BENCH)
    bench = load(path)

    def end(outcome: Outcome) -> NicbenchError | None:
        laboratory = Laboratory(outcome, ports=2)
        finished = []
        laboratory.bus.subscribe(finished.append)
        results = asyncio.run(Stream("all", Stream.Options(at_once=("port", "all"))).run(laboratory.context))
        rounds = {event.round.key: event.round for event in finished if isinstance(event, RoundFinished)}
        assert results
        assert rounds
        return find_nothing_measured(bench, results, rounds, "runs/x")

    return end


@pytest.mark.parametrize(
    "last_words", ["unable to connect: Connection refused", "figures that cannot be so, which are refused: nan Mb/s"]
)
def test_where_every_tool_failed_the_status_is_4_with_its_last_words(
    last_words: str, ended: Callable[[Outcome], NicbenchError | None]
) -> None:
    error = ended(lambda number, job: JobOutcome(failure=f"iperf3, client on {job.client}: {last_words}"))
    assert isinstance(error, ToolsFailedError)
    assert isinstance(error, HostError)
    assert error.exit_status == 4
    assert last_words in error.message
    assert "attempts of the tools failed" in error.message
    assert "runs there by hand" in str(error.next_step)


def test_tools_that_told_nothing_of_use_end_with_5(ended: Callable[[Outcome], NicbenchError | None]) -> None:
    error = ended(lambda number, job: JobOutcome(figures=Figures(), began_s=0.0, took_s=1.0))
    assert isinstance(error, NothingMeasuredError)
    assert error.exit_status == 5


def test_frames_of_which_no_result_has_a_figure_end_with_5_and_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text(FRAMES)
    method = Impairments("loss", Impairments.Options(rate="highest"))
    results = asyncio.run(run(method, Nothing(ceiling=0.0, throughput=1e5)))
    error = find_nothing_measured(load(path), results, {}, "runs/x")
    assert isinstance(error, NothingMeasuredError)
    assert error.exit_status == 5
    assert "no result has a figure: the tester sends no more than 0 pps" in error.message
    below = results[0].replace(values={main_values(results[0])[0]: Bounded(value=None, upper=5.0)})
    assert below.verdict is ResultVerdict.INCOMPLETE
    assert find_nothing_measured(load(path), [below], {}, "runs/x") is None


def test_one_figure_is_a_measurement(ended: Callable[[Outcome], NicbenchError | None]) -> None:
    assert ended(lambda number, job: streamed(90e6 if job.client == "c00" else None)) is None


def test_a_run_that_came_to_its_end_has_nothing_to_resume(
    nicbench: Callable,
    run_is: Callable[..., None],  # type: ignore[type-arg]
) -> None:
    async def fail(_bench: object, folder: object, *_: object) -> None:
        raise ToolsFailedError("nothing was measured", place="the run folder", next_step="see the peers")

    run_is(fail)
    ended = nicbench("run", "bench.yaml")
    assert ended.status == 4
    assert "next: see the peers" in ended.stderr
    assert "nicbench resume" not in ended.stderr
