"""Last stage: the summary. What was measured is kept, also where the run broke off."""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.bench_file.models import BenchFile
from nicbench.compare.merged_summary import summarise_points
from nicbench.core.result import Result, ResultVerdict, Summary
from nicbench.stats.runs import runs_made


def summarise(bench: BenchFile, results: Sequence[Result], run_id: str, *, complete: bool) -> Summary:
    """The run is disturbed where one result is, incomplete where it broke off or a result says so.

    What warmed up is kept, and nothing rests on it.
    """
    verdicts = {result.verdict for result in results if not result.warm_up}
    if not complete or ResultVerdict.INCOMPLETE in verdicts:
        verdict = ResultVerdict.INCOMPLETE
    elif ResultVerdict.DISTURBED in verdicts:
        verdict = ResultVerdict.DISTURBED
    else:
        verdict = ResultVerdict.VALID
    over = summarise_points(results, bench.runs, run_id)
    return Summary(
        title=bench.title,
        verdict=verdict,
        results=tuple(results),
        configurations=tuple(each.configuration for each in bench.compared),
        over_runs=over,
        runs=runs_made(bench.runs, results, over, complete=complete),
    )
