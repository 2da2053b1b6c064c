"""Runs that warm up, and runs until their mean is known: how many are made, what counts, and the same when killed."""

from __future__ import annotations

import html
import io
import random
import re
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from nicbench import report
from nicbench.cli.summary_table import print_summary
from nicbench.core.events import IntervalsChecked, TurnFinished, TurnStarted
from nicbench.core.result import Spread, Summary
from nicbench.stages import plan as plan_stage
from nicbench.stats.runs import list_awaited
from nicbench.store.folder import RunFolder

from . import simulated_bench
from .simulated_bench import GROWING, make_folder, measured, nothing_told, run_in_child, run_whole, trial_lines


class Reference(simulated_bench.Reference):
    """The run that nobody killed, and what it found."""

    @property
    def found(self) -> Summary:
        found = self.folder.summary()
        assert found is not None
        return found

    def writes_where_it_decides(self) -> list[int]:
        """Numbers of writes about a decision, before and after it."""
        about = [number for number, event in enumerate(self.events, 1) if isinstance(event, IntervalsChecked)]
        return sorted({number for check in about for number in (check - 1, check, check + 1)})


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    folder = make_folder(tmp_path_factory.mktemp("whole"), GROWING)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(plan_stage, "collect", nothing_told)
        run_whole(folder)
    return Reference(folder)


def test_whole_pairs_are_made_until_every_main_value_is_known_closely(reference: Reference) -> None:
    checked = [event for event in reference.events if isinstance(event, IntervalsChecked)]
    assert [event.runs for event in checked] == [2, 4, 6]
    assert [event.reached for event in checked] == [False, False, True]
    made = reference.found.runs
    assert (made.made, made.reached, made.asked.at_most) == (6, True, 8)
    values = list_awaited(reference.found.over_runs)
    assert [one.place for one in values] == ["fast: sweep, 64 bytes", "slow: sweep, 64 bytes"]
    assert all(one.of_mean.reached and (one.of_mean.width_ratio or 0.0) <= 0.008 for one in values)
    assert all((one.spread.n, one.spread.runs) == (6, 6) for one in values)


def test_a_run_that_warms_up_is_first_and_kept_and_counts_for_nothing(reference: Reference) -> None:
    begun = [event for event in reference.events if isinstance(event, TurnStarted)]
    assert [event.warm_up for event in begun] == [True, True] + [False] * 12
    assert {event.configuration for event in begun[:2]} == {"fast", "slow"}
    assert all(event.of == 18 and event.at_most for event in begun)
    found = reference.found
    assert {result.run for result in found.results if result.warm_up} == {1}
    assert len(found.results) == len(found.counted) + 2
    (over,) = (result for result in found.over_runs if result.configuration == "slow")
    spread = over.values["returned_percent"]
    counted = [result.values["returned_percent"] for result in found.counted if result.configuration == "slow"]
    assert isinstance(spread, Spread)
    assert (spread.minimum, spread.maximum) == (min(counted), max(counted))  # type: ignore[type-var]
    rows = pq.read_table(reference.folder.path / "trials.parquet").to_pylist()
    assert {row["run"] for row in rows if row["warm_up"]} == {1}


def test_the_cap_ends_it_and_the_summary_says_what_was_not_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_stage, "collect", nothing_told)
    folder = make_folder(tmp_path, GROWING.replace("at_most: 8", "at_most: 3"))
    run_whole(folder)
    found = folder.summary()
    assert (found.runs.made, found.runs.reached) == (3, False)
    last = [event for event in folder.journal.events() if isinstance(event, IntervalsChecked)][-1]
    assert last.text.startswith("not reached: the interval is ")
    assert "wide after 3 runs; 0.8 % was asked" in last.text
    assert f"95 % confidence interval of the mean: {last.text}." in text_of(folder)
    printed = io.StringIO()
    print_summary(Console(file=printed, width=500, color_system=None), found)
    assert "n = 3 of at most 3 runs of each configuration, after 1 to warm up" in printed.getvalue()
    assert last.text in printed.getvalue()


def test_one_run_after_one_to_warm_up_is_shown_apart_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_stage, "collect", nothing_told)
    bench = GROWING.replace("{warm_up: 1, at_least: 2, at_most: 8, until: 0.8 %}", "{warm_up: 1}")
    folder = make_folder(tmp_path, without(bench))
    run_whole(folder)
    found = folder.summary()
    assert (found.over_runs, len(found.counted), len(found.results)) == ((), 1, 2)
    page = text_of(folder)
    assert "n = 1 run, after 1 to warm up" in page
    assert "Load sweep (run 1 (warm-up))" in page
    assert "Load sweep (run 2)" in page


def without(bench: str) -> str:
    """A bench file without its configurations."""
    return bench[: bench.index("configurations:")] + bench[bench.index("tests:") :]


def text_of(folder: RunFolder) -> str:
    """What a reader of the report sees, without markup."""
    text = report.build(folder.path).read_text(encoding="utf-8")
    text = re.sub(r"<(style|svg)\b.*?</\1>", " ", text, flags=re.DOTALL).replace("<wbr>", "")
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_the_report_says_how_many_runs_there_were_and_how_closely_each_mean_is_known(reference: Reference) -> None:
    page = text_of(reference.folder)
    for text in (
        "They took turns: slow 1 (warm-up), fast 1 (warm-up), fast 2, slow 2,",
        "n = 6 of at most 8 runs of each configuration, after 1 to warm up, which is part of no statistics.",
        "95 % confidence interval of the mean: reached: the widest interval is",
        "fast: sweep, 64 bytes returned 6 ",
        "Load sweep (slow, run 1 (warm-up))",
        "Load sweep (slow, run 7)",
    ):
        assert text in page


def test_a_run_that_broke_off_says_so_and_what_is_known_so_far(
    reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_stage, "collect", nothing_told)
    folder = make_folder(tmp_path, GROWING)
    decision = reference.writes_where_it_decides()[4]  # the second
    assert run_in_child(folder, kill_at=f"{decision}:after") == -signal.SIGKILL
    page = text_of(RunFolder.open(folder.path))
    assert "of at most 18 planned results are here" in page
    assert "n = 4 of at most 8 runs of each configuration" in page
    assert "95 % confidence interval of the mean: the run ended early; so far not reached: the interval is" in page


@pytest.mark.slow
def test_killed_where_it_decides_it_comes_to_the_same_decision(
    reference: Reference, draw: random.Random, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_stage, "collect", nothing_told)
    write = draw.choice(reference.writes_where_it_decides())
    check_killed(f"{write}:{draw.choice(('before', 'torn', 'after'))}", reference, tmp_path)


@pytest.mark.acceptance
def test_killed_at_each_journal_write_it_resumes_to_the_same_bytes(
    reference: Reference, draw: random.Random, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_stage, "collect", nothing_told)
    for write in range(1, len(reference.events) + 1):
        check_killed(f"{write}:{draw.choice(('before', 'torn', 'after'))}", reference, tmp_path)


def check_killed(kill_at: str, reference: Reference, parent: Path) -> None:
    folder = make_folder(parent, GROWING)
    assert run_in_child(folder, kill_at=kill_at) == -signal.SIGKILL
    assert run_in_child(folder) == 0
    again = RunFolder.open(folder.path)
    assert measured(again) == reference.summary, kill_at
    assert trial_lines(again) == reference.trials, kill_at
    ended = [event for event in again.journal.events() if isinstance(event, TurnFinished)]
    assert len({(event.configuration, event.run) for event in ended}) == len(ended) == 14, kill_at
    checked = [event.runs for event in again.journal.events() if isinstance(event, IntervalsChecked)]
    assert checked == [2, 4, 6], kill_at
