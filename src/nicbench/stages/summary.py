"""Last stage: the summary. What was measured is kept, also where the run broke off."""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.bench_file.models import BenchFile
from nicbench.model.result import Result, ResultVerdict, Summary
from nicbench.stats.runs import over_runs


def summarise(bench: BenchFile, results: Sequence[Result], *, complete: bool) -> Summary:
    """The run is disturbed where one result is, incomplete where it broke off or a result says so."""
    verdicts = {result.verdict for result in results}
    if not complete or ResultVerdict.INCOMPLETE in verdicts:
        verdict = ResultVerdict.INCOMPLETE
    elif ResultVerdict.DISTURBED in verdicts:
        verdict = ResultVerdict.DISTURBED
    else:
        verdict = ResultVerdict.VALID
    return Summary(
        title=bench.title,
        verdict=verdict,
        results=tuple(results),
        configurations=tuple(each.configuration for each in bench.compared),
        over_runs=over_runs(results),
    )
