"""Last stage: the summary. What was measured is kept, also where the run broke off."""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.model.result import Result, ResultVerdict, Summary


def summarise(title: str, results: Sequence[Result], *, complete: bool) -> Summary:
    """The run is disturbed where one result is, incomplete where it broke off or a result says so."""
    verdicts = {result.verdict for result in results}
    if not complete or ResultVerdict.INCOMPLETE in verdicts:
        verdict = ResultVerdict.INCOMPLETE
    elif ResultVerdict.DISTURBED in verdicts:
        verdict = ResultVerdict.DISTURBED
    else:
        verdict = ResultVerdict.VALID
    return Summary(title=title, verdict=verdict, results=tuple(results))
