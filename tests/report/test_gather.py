"""The numbers of a report are the run's, and a run that ended early still gives one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.events import CeilingFound, Note, ResultReady, RunStarted
from nicbench.core.plan import Plan, PlannedTest
from nicbench.core.registry import find
from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy, Result, ResultVerdict, Summary
from nicbench.core.trial import Purpose
from nicbench.methods.base import Method
from nicbench.report.answer.of_run import verdict_text
from nicbench.report.drawing.charts import points_of, rates_by_size_caption, rates_by_size_chart
from nicbench.report.drawing.kit import WIDE
from nicbench.report.gather import _statements, gather
from nicbench.report.model import Report
from nicbench.report.timing import tail
from nicbench.store import RunFolder

from ._documents import page_of
from ._sections import rate_of, searched, timed
from ._synthetic_plan import synthetic_plan


def test_goals_carry_their_name_and_loss_ratio_from_the_plan(view: Report) -> None:
    rates = searched(view).table.rates
    goals = [(goal.value, goal.name, goal.loss_ratio) for goal in rates.goals]

    assert goals == [("ndr_frames_per_s", "NDR", 0.0), ("pdr_frames_per_s", "PDR", 0.005)]


def test_the_answer_is_made_of_the_smallest_frames_numbers(view: Report) -> None:
    ndr = rate_of(searched(view).rows[0])
    assert ndr.value is not None

    assert view.headline.startswith("This machine's kernel IP forwarding passes ")
    assert f"{ndr.value / 1e3:.0f}\u00a0kpps of 64-byte frames without loss, and no load from " in view.headline
    assert "With at most 0.5\u202f% lost it passes " in view.headline
    assert view.headline.endswith("Limited by the device under test (DUT).")


def tail_of(view: Report) -> tuple[dict[str, Any], tuple[tuple[float, float], ...]]:
    """The values of the smallest frames at the first load, and the points of their tail."""
    section = timed(view)[0]
    size, points = section.timing.tails[0]
    assert size == "64 B"
    return dict(section.rows[0].result.values), points


def test_a_tail_falls_from_every_frame_to_the_last_one(view: Report) -> None:
    values, points = tail_of(view)

    assert points[0] == (values["latency_minimum_ns"], 1.0)
    assert points[-1][0] == values["latency_maximum_ns"]
    assert points[-1][1] == pytest.approx(1 / values["timed_frames"])
    latencies, shares = zip(*points, strict=True)
    assert list(latencies) == sorted(latencies)
    assert list(shares) == sorted(shares, reverse=True)


def test_the_tail_meets_the_percentiles_of_the_table(view: Report) -> None:
    values, points = tail_of(view)
    p99 = values["latency_p99_ns"]

    assert max(share for latency, share in points if latency > p99 * 1.02) <= 0.01
    assert min(share for latency, share in points if latency < p99 * 0.98) >= 0.01


def test_a_damaged_histogram_costs_the_tail_only(view: Report) -> None:
    latency = next(trial.reading.latency for trial in view.known_trials.values() if trial.reading.latency)

    assert tail(latency.replace(histogram="AAAA")) == ()
    assert tail(None) == ()


def test_the_core_clock_is_a_range_over_all_trials(view: Report) -> None:
    clocks = [hz for trial in view.known_trials.values() for hz in trial.reading.health.core_clock_hz or ()]

    assert view.core_clock_hz == (min(clocks), max(clocks))


def test_trials_with_losses_are_in_the_ledger(view: Report) -> None:
    lost = [trial.id for trial in view.known_trials.values() if trial.reading.counts.lost]

    assert [trial.id for trial in view.ledger] == lost != []


def test_a_run_cut_short_shows_what_there_is_as_incomplete(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    run.measure((64, 128), latency=False)

    view = gather(RunFolder.open(run.folder.path))

    assert view.verdict is ResultVerdict.INCOMPLETE
    assert "2 of 21 planned results are here" in view.verdict_text
    assert f"nicbench resume {run.folder.run_id}" in view.verdict_text
    assert [row.cells[0] for row in searched(view).rows] == ["64", "128"]


def test_a_summary_that_a_resumed_run_left_behind_is_not_believed(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    run.measure((64,), latency=False)
    folder = RunFolder.open(run.finish(ResultVerdict.VALID))
    folder.journal.append(Note(text="resumed"))

    assert gather(folder).verdict is ResultVerdict.INCOMPLETE


def test_a_run_that_measured_nothing_says_so(synthetic: Any, tmp_path: Path) -> None:
    view = gather(synthetic.SyntheticRun(tmp_path).folder)

    assert view.headline == "Nothing was measured: the run ended before its first result."
    assert (view.sections, view.groups) == ((), {})


def test_a_disturbed_run_says_how_many_results_are(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    run.measure((64, 128), latency=False, disturbed_size=64)

    view = gather(RunFolder.open(run.finish(ResultVerdict.DISTURBED)))

    assert "behind 1 of 2 results" in view.verdict_text
    assert [sum(not one.verdict.valid for one in trials) for trials in view.groups.values()][1] == 1


def test_a_run_that_tried_everything_says_what_has_no_value_and_asks_for_no_resume() -> None:
    lost = Bounded(value=None, reason_null="no PDR was found")
    results = (
        Result(id="a", method="latency", parameters={}, values={"x": lost}, verdict=ResultVerdict.INCOMPLETE),
        Result(id="b", method="latency", parameters={}, values={"x": 1}, verdict=ResultVerdict.DISTURBED),
    )
    planned = PlannedTest(name="latency", method="latency", description="", options={}, points=2, estimate_s=1.0)
    plan = Plan(run_id="r", title="t", nicbench_version="0", seed=1, tests=(planned,))

    text = verdict_text(Summary(title="t", verdict=ResultVerdict.INCOMPLETE, results=results), plan, "r")

    assert text == (
        "Everything planned was tried. 1 of 2 results have no value (no PDR was found). 1 of 2 are disturbed."
    )


def test_frames_that_ended_in_the_testers_own_sink_are_not_in_the_ledger(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    trial = run.trial("calibration", 64, 1e6, Purpose.TESTER_LATENCY, 0, knee=1e5)
    assert trial.reading.counts.lost

    assert gather(run.folder).ledger == ()


def test_frames_that_were_lost_without_a_dut_are_told_above_all_results(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    run.trial("calibration", 64, 1e4, Purpose.TESTER_LATENCY, 0)
    assert not any("cable" in statement for statement in gather(run.folder).statements)
    lost = run.trial("calibration", 128, 1e4, Purpose.TESTER_LATENCY, 1, knee=5e3).reading.counts.lost

    (told,) = (statement for statement in gather(run.folder).statements if "cable" in statement)
    assert told.startswith(f"{lost} of 10000 frames of 128 bytes were lost over a cable in the DUT’s place")


def test_a_folder_that_was_changed_says_so(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    path = run.finish()
    (path / "inventory.json").write_text("{}")

    assert gather(RunFolder.open(path)).changed_files == ("inventory.json was changed after the run had finished",)


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (
            Bounded(value=14.88e6, lower=14.88e6, limited_by=LimitedBy.LINE_RATE),
            "passes the line rate of 64-byte frames, 14.88\u00a0Mpps, without loss (NDR). Limited by the line rate.",
        ),
        (
            Bounded(
                value=None,
                upper=1000.0,
                limited_by=LimitedBy.DUT,
                reason_null=f"{PASSES_NOTHING}: it is dead",
                passes_nothing=True,
            ),
            "passes nothing of 64-byte frames (NDR: it is dead). Limited by the device under test (DUT).",
        ),
        (
            Bounded(value=0.9e6, lower=0.9e6, limited_by=LimitedBy.TESTER),
            (
                "passes at least 900\u00a0kpps of 64-byte frames without loss (NDR). "
                "Limited by the tester: the DUT may do more."
            ),
        ),
        (
            Bounded(value=None, upper=1000.0, reason_null="frames were lost at every load"),
            "lost frames at every load of 64-byte frames that was tried (NDR below 1.00\u00a0kpps).",
        ),
        (
            Bounded(value=None, upper=515e3, limited_by=LimitedBy.DUT),
            (
                "lost frames at every load of 64-byte frames that was tried "
                "(NDR below 515\u00a0kpps). Limited by the device under test (DUT)."
            ),
        ),
        (
            Bounded(value=None, reason_null="no trial was made"),
            "has no NDR for 64-byte frames (no trial was made).",
        ),
    ],
    ids=["at line rate", "dead", "the tester is the limit", "nothing passes", "only an upper bound", "not tried"],
)
def test_the_answer_never_says_more_than_is_known(synthetic_run: Callable[..., Any], rate: Bounded, words: str) -> None:
    run = synthetic_run()
    run.publish(
        "throughput",
        Result(
            id="throughput/64",
            method="throughput",
            scope="per port",
            parameters={"frame_bytes": 64},
            values={"ndr_frames_per_s": rate},
        ),
    )

    assert gather(run.folder).headline == f"This machine's kernel IP forwarding {words}"


def test_a_ceiling_learnt_later_replaces_the_calibrated_one(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    for ceiling, calibrated in ((9e5, True), (8e5, False)):
        run.folder.journal.append(
            CeilingFound(frame_bytes=64, ceiling_frames_per_s=ceiling, calibrated=calibrated, text="")
        )

    assert [row.ceiling_frames_per_s for row in gather(run.folder).ceilings] == [8e5]


def test_results_of_a_method_the_report_does_not_know_are_kept(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    result = Result(id="burst/64", method="burst", parameters={"frame_bytes": 64}, values={"burst_frames": 31})
    run.folder.journal.append(ResultReady(test="burst", result=result))

    assert gather(run.folder).other_results == (result,)


def test_a_resumed_run_with_shared_cores_is_labelled(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    run.folder.journal.append(
        RunStarted(run_id="r", title="t", nicbench_version="0", wall_time="later", seed=1, resumed=True)
    )

    view = gather(run.folder)
    assert view.labels == ("shared cores", "resumed")
    assert view.started == "2026-01-31 12:00 UTC"


@pytest.mark.parametrize(("halved", "labels"), [(["0-1"], ("shared cores",)), ([], ())])
def test_hyperthreads_of_one_physical_core_are_not_presented_as_separate_cores(
    synthetic_run: Callable[..., Any], halved: list[str], labels: tuple[str, ...]
) -> None:
    run = synthetic_run()
    cores = {"worker": 0, "dut": [1], "housekeeping": [], "shared": False, "halved_cores": halved}
    run.folder.write_json("plan.json", run.plan().replace(cores=cores))

    assert gather(run.folder).labels == labels
    page = page_of(run.finish())
    assert ("hyperthreads of one physical core (CPUs 0-1)" in page) is bool(halved)


@pytest.fixture
def partly_below(synthetic_run: Callable[..., Any]) -> Report:
    """Two sizes: of the NDR only an upper bound at one of them, of the PDR an interval at one."""
    run = synthetic_run()
    below = Bounded(value=None, upper=515e3, limited_by=LimitedBy.DUT)
    for size, rates in (
        (64, {"ndr_frames_per_s": below, "pdr_frames_per_s": Bounded(value=931e3, lower=931e3, upper=941e3)}),
        (128, {"ndr_frames_per_s": below}),
    ):
        run.publish(
            "throughput",
            Result(
                id=f"throughput/{size}",
                method="throughput",
                scope="per port",
                parameters={"frame_bytes": size},
                values={**rates, "line_rate_frames_per_s": 14e6},
            ),
        )
    return gather(run.folder)


def test_a_rate_known_only_from_above_is_drawn_below_its_bound_and_one_point_makes_no_line(
    partly_below: Report,
) -> None:
    points = points_of(searched(partly_below))

    assert [(point["size"], point["goal"], point["rate"]) for point in points.below] == [
        ("64", "NDR", 515.0),
        ("128", "NDR", 515.0),
    ]
    drawn = rates_by_size_chart(searched(partly_below), WIDE)
    assert "line" not in {layer["mark"]["type"] for layer in drawn["layer"]}


def test_the_caption_names_only_what_is_drawn(partly_below: Report, view: Report) -> None:
    caption = rates_by_size_caption(searched(partly_below))

    assert "A hollow point with an arrow" in caption
    assert "line rate" not in caption
    assert "ceiling" not in caption
    assert "hollow" not in rates_by_size_caption(searched(view))


def test_what_is_said_of_one_configuration_alone_has_its_name() -> None:
    wide = synthetic_plan("run", "links").replace(
        configuration="wide", statements=("One machine.", "Links of 400 Mb/s.")
    )
    narrow = wide.replace(configuration="narrow", statements=("One machine.", "Links of 150 Mb/s."))
    both = wide.replace(compared=("wide", "narrow"), others=(narrow,))
    assert _statements(both) == ("One machine.", "“wide”: Links of 400 Mb/s.", "“narrow”: Links of 150 Mb/s.")
    assert _statements(wide) == wide.statements
    assert _statements(None) == ()


SOURCE = Path(__file__).parents[2] / "src/nicbench"
ROOMS = ("report", "export", "compare", "cli", "importing/folder.py")


def files() -> Iterator[Path]:
    for room in ROOMS:
        path = SOURCE / room
        yield from (path,) if path.is_file() else sorted(path.rglob("*.py"))


def comparisons_with_a_method(tree: ast.AST) -> Iterator[int]:
    """The lines on which a name or attribute called ``method`` is held against a name that is written there."""
    kinds = set(find("nicbench.methods", Method))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        asks = any(
            (isinstance(side, ast.Attribute) and side.attr == "method")
            or (isinstance(side, ast.Name) and side.id == "method")
            for side in sides
        )
        written = [part.value for side in sides for part in ast.walk(side) if isinstance(part, ast.Constant)]
        constants = any(isinstance(side, ast.Name) and side.id.isupper() for side in sides)
        if asks and (constants or any(isinstance(text, str) and text in kinds for text in written)):
            yield node.lineno


@pytest.mark.parametrize("path", tuple(files()), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_method_is_known_by_its_name(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert list(comparisons_with_a_method(tree)) == []


@pytest.mark.parametrize(
    "code",
    [
        'result.method == "throughput"',
        'method != "latency"',
        'row.method in ("soak", "reset")',
        "result.method == METHOD",
    ],
)
def test_the_search_finds_what_it_looks_for(code: str) -> None:
    assert list(comparisons_with_a_method(ast.parse(code))) == [1]


def test_two_results_may_be_asked_whether_they_are_of_one_method() -> None:
    assert list(comparisons_with_a_method(ast.parse("one.method != other.method"))) == []
