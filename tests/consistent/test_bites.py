"""Reports that contradict themselves are found: each change of one place makes the checks of it fail."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from nicbench.cli import summary_table
from nicbench.core.result import ResultVerdict
from nicbench.export.formats import reports
from nicbench.report import cells
from nicbench.report.answer import sentences
from nicbench.report.sections import method, results, trials
from nicbench.report.sections import opening as opening_section
from nicbench.store.folder import RunFolder

from ._checks import contradictions
from ._running import draw_frames, run_drawn
from ._tester import Nature
from ._whole import Whole

TIMES = {"duration": "1 s", "drain": "10 ms", "settle": "1 ms"}
BENCH = {
    "nicbench": 1,
    "title": "Found out",
    "lab": {"kind": "simulated", "link": "1 Gb/s"},
    "dut": {"kind": "simulated"},
    "monitor": "off",
    "tests": [
        {
            "name": "throughput",
            "method": "throughput",
            "frame_bytes": [64, 512],
            "search": {"goals": {"NDR": "0 %"}, "precision": "5 %", "maximum_trials": 12},
            "trial": TIMES,
        },
        {
            "name": "latency",
            "method": "latency",
            "at": "throughput",
            "loads": ["100 %"],
            "frame_bytes": [64, 512],
            "trial": TIMES,
        },
    ],
}
DISTURBED = Nature(capacity_frames_per_s=100_000.0, tester_frames_per_s=900_000.0, stolen=0.4, rare_loss=1e-5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of which some results are disturbed, and some are not: the first of twenty seeds that makes one."""
    for seed in range(3, 23):
        with pytest.MonkeyPatch.context() as patch:
            draw_frames(patch, random.Random(seed), DISTURBED)
            bench = json.dumps({**BENCH, "seed": seed})
            made = asyncio.run(run_drawn(tmp_path_factory.mktemp("runs"), bench, "Found out"))
        summary = made.summary()
        assert summary is not None
        if {ResultVerdict.DISTURBED, ResultVerdict.VALID} <= {one.verdict for one in summary.results}:
            return made
    raise AssertionError("no run has both")


def test_the_run_itself_contradicts_nothing(folder: RunFolder) -> None:
    assert contradictions(Whole(folder)) == []


def _swapped_interval(patch: pytest.MonkeyPatch) -> None:
    def swapped(rate: Any, write: Callable[[float], str]) -> str:
        return f"{write(rate.upper)} to {write(rate.lower)}" if rate.upper and rate.lower else "none"

    patch.setattr(cells, "interval", swapped)


def _no_marks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(results, "mark", lambda result: ())


def _another_ceiling(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(method, "mpps", lambda rate, decimals: "0.000")


def _always_valid(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(summary_table, "_verdict", lambda verdict: "valid")


def _lower_latencies(patch: pytest.MonkeyPatch) -> None:
    write = cells.microseconds
    patch.setattr(cells, "_FORMS", {**cells._FORMS, "microseconds": lambda value: write(value / 2)})


def _no_loss(patch: pytest.MonkeyPatch) -> None:
    table = results.result_table

    def without(columns: Any, rows: Any, **more: Any) -> Any:
        kept = [at for at, column in enumerate(columns) if "Lost" not in column.head]
        return table(
            [columns[at] for at in kept], [([texts[at] for at in kept], result) for texts, result in rows], **more
        )

    patch.setattr(results, "result_table", without)


def _all_pass_in_junit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reports, "_UNRELIABLE", ())


def _rounded_terminal(patch: pytest.MonkeyPatch) -> None:
    write = summary_table.texts
    patch.setattr(
        summary_table, "texts", lambda column, found: [text.replace("1", "7") for text in write(column, found)]
    )


def _fewer_trials(patch: pytest.MonkeyPatch) -> None:
    every = trials.every_trial

    def all_but_one(groups: Any, **more: Any) -> Any:
        return every({test: members[1:] for test, members in groups.items()}, **more)

    patch.setattr(trials, "every_trial", all_but_one)


def _another_answer(patch: pytest.MonkeyPatch) -> None:
    writer = sentences.writer

    def higher(column: Any, values: Any) -> Any:
        own = writer(column, values)
        return own._replace(nearest=lambda number: own.nearest(number * 1.5))

    patch.setattr(sentences, "writer", higher)


def _an_identifier(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(opening_section, "badge", lambda text, *more: opening_badge(f"limited_by {text}", *more))


opening_badge = opening_section.badge


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (_swapped_interval, "tables_say_what_was_measured"),
        (_no_marks, "tables_say_what_was_measured"),
        (_another_ceiling, "one_ceiling_for_one_size"),
        (_always_valid, "verdicts_agree"),
        (_lower_latencies, "tables_say_what_was_measured"),
        (_no_loss, "every_latency_has_its_loss_and_verdict"),
        (_all_pass_in_junit, "verdicts_agree"),
        (_rounded_terminal, "the_terminal_has_the_numbers_of_the_results"),
        (_fewer_trials, "counts_add_up"),
        (_another_answer, "sentences_have_the_numbers_of_the_tables"),
        (_an_identifier, "the_text_is_fit_to_read"),
    ],
)
def test_a_change_of_one_place_is_found(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, change: Callable[[pytest.MonkeyPatch], None], check: str
) -> None:
    change(monkeypatch)
    found = contradictions(Whole(folder))
    assert any(text.startswith(f"{check}:") for text in found), found
