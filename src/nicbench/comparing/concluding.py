"""What results come to over the runs, of a run that ended or one that goes on: the same for summary, report, export."""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.comparing.seeds import seed_of
from nicbench.methods.base import main_values, told_over_runs
from nicbench.model.plan import Plan
from nicbench.model.result import Result, ResultVerdict, Summary
from nicbench.model.runs import ONCE, Runs
from nicbench.stats.growth import runs_made
from nicbench.stats.runs import over_runs


def concluded(results: Sequence[Result], asked: Runs, run_id: str) -> tuple[Result, ...]:
    """Each point over all runs of its configuration, its main values with their statistics."""
    return told_over_runs(over_runs(results, asked, main_values, seed_of(run_id)))


def so_far(results: Sequence[Result], plan: Plan | None, run_id: str, title: str) -> Summary:
    """The summary of a run that wrote none, or goes on: what there is, and ``incomplete``."""
    asked = plan.runs if plan else ONCE
    over = concluded(results, asked, run_id)
    return Summary(
        title=title,
        verdict=ResultVerdict.INCOMPLETE,
        results=tuple(results),
        configurations=plan.compared if plan else (),
        over_runs=over,
        runs=runs_made(asked, results, over, complete=False),
    )
