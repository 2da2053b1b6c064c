"""``nicbench check RUN|TAG --against RUN|TAG``: reports whether runs are worse than earlier ones, for people and CI."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nicbench.cli import completion
from nicbench.cli.options import DEFAULT_RUNS, Json, LakeOption, RunOrTag, RunsFolder, runs_called
from nicbench.cli.output import FORMAT, print_json, print_line, results, say
from nicbench.compare.regressions import (
    MOST_RUNS,
    Check,
    FinishedRun,
    Outcome,
    Row,
    check_regressions,
    find_objections,
    require_finished,
)
from nicbench.compare.run_differences import NOT_RECORDED, Difference, find_differences, shorten_apart
from nicbench.core.errors import CannotTellError, NicbenchError, ThresholdError, UsageError
from nicbench.core.units import figures, round_up
from nicbench.lake.place import find_lake
from nicbench.store.listing import clean, open_run

_MOST_DIFFERENCES: Final = 12
_LONGEST_VALUE: Final = 60
_WIDE: Final = 132
"""The number of characters of a line from which on the table does not break names apart."""

_Against = Annotated[
    str,
    typer.Option(
        "--against",
        metavar="RUN|TAG",
        help="The run to compare with, or a tag for all its runs.",
        autocompletion=completion.runs_and_tags,
    ),
]


def _percent(text: str | float) -> float:
    """Reads a percentage: 5, "5%", "5 %"."""
    try:
        percent = float(str(text).strip().removesuffix("%"))
    except ValueError:
        percent = math.nan
    if not 0.0 <= percent <= 100.0:
        raise typer.BadParameter(f"{text!r} is no percentage from 0 to 100: write --tolerance 5")
    return percent


_Tolerance = Annotated[
    float,
    typer.Option("--tolerance", metavar="PERCENT", parser=_percent, help="Ignore changes up to this size."),
]
_Force = Annotated[
    bool, typer.Option("--force", help="Compare runs that are not comparable anyway, and say why they are not.")
]
_Junit = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write the outcome as JUnit XML, too: a case each value.")
]


def _check(
    run: RunOrTag,
    against: _Against,
    tolerance: _Tolerance = 5.0,
    force: _Force = False,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    lake: LakeOption = None,
    junit: _Junit = None,
    json: Json = False,
) -> None:
    opened = find_lake(runs_folder, lake)
    measured = _open_complete(runs_called(run, runs_folder, opened, MOST_RUNS), run)
    paths = {one.folder.path for one in measured}
    named = runs_called(against, runs_folder, opened, MOST_RUNS + len(paths))
    before = [path for path in named if path.resolve() not in paths][-MOST_RUNS:]
    if not before:
        raise UsageError("would be compared with itself", place=run, next_step="name another run")
    others = _open_complete(before, against)
    each = {other.name: [text for one in measured for text in find_objections(one, other)] for other in others}
    objections = {name: why for name, why in each.items() if why}
    reasons = tuple(dict.fromkeys(reason for why in objections.values() for reason in why))
    if reasons and not force:
        first, own = next(iter(objections.items()))
        more = f" (and {len(own) - 3} more)" if len(own) > 3 else ""
        others_too = f"; nor with {len(objections) - 1} more of the {len(others)} runs" if len(objections) > 1 else ""
        raise UsageError(
            f"is not comparable with {first}: {clean('; '.join(own[:3]))}{more}{others_too}",
            place=measured[-1].name,
            next_step="name a run made in the same way, or add --force",
        )
    found = check_regressions(measured, others, tolerance / 100.0)
    newest = measured[-1].folder
    changed = () if newest.is_imported else find_differences(others[-1].folder, newest).settings
    error = _error(found, measured, others)
    if junit is not None:
        _write_junit(junit, found, measured)
    if json:
        print_json(_document(found, measured, others, tolerance, reasons, changed, error))
        if error is not None:
            say(f"error: {error}")
            raise typer.Exit(error.exit_status)
        return
    _print(found, measured, others, reasons, changed)
    if error is not None:
        raise error


def _open_complete(paths: Sequence[Path], named: str) -> list[FinishedRun]:
    """Opens the finished runs, oldest first; of several, damaged and incomplete ones are left out, with a note.

    CannotTellError if none is left; NicbenchError where the only one cannot be opened.
    """
    found = []
    for path in paths:
        try:
            one = require_finished(open_run(str(path), path.parent))
        except NicbenchError as error:
            if len(paths) == 1:
                raise
            one = f"{path.name}: {error.message}"
        if not isinstance(one, str):
            found.append(one)
        elif len(paths) > 1:
            say(f"note: left out: {one}")
        else:
            raise CannotTellError(one, place=str(path), next_step="`nicbench resume` finishes a run")
    if not found:
        raise CannotTellError("there is no complete run to compare", place=named, next_step="name a finished run")
    return found


def _write_junit(path: Path, found: Check, runs: Sequence[FinishedRun]) -> None:
    from nicbench.export.formats.reports import Case, junit_of  # imported here, as few checks write a file
    from nicbench.store.files import make_folder, writing_atomically

    outcomes: dict[Outcome, Literal["passed", "failure", "skipped"]] = {
        Outcome.WORSE: "failure",
        Outcome.UNKNOWN: "skipped",
    }
    cases = []
    for row in found.rows:
        what, value, before, after, change, _, why = _cells(row)
        detail = f"{before} before, {after} now ({change})"
        outcome = outcomes.get(row.judgement.outcome, "passed")
        cases.append(Case(what, value, outcome, f"{row.judgement.outcome}: {why}", detail))
    make_folder(path.parent)
    with writing_atomically(path) as stream:
        stream.write(junit_of("nicbench check", cases, {"run_id": ", ".join(run.name for run in runs)}))


def _names(runs: Sequence[FinishedRun]) -> str:
    return runs[0].name if len(runs) == 1 else f"{len(runs)} runs, {runs[0].name} to {runs[-1].name}"


def _error(found: Check, runs: Sequence[FinishedRun], others: Sequence[FinishedRun]) -> NicbenchError | None:
    worse, unknown, every = found.rows_with(Outcome.WORSE), found.rows_with(Outcome.UNKNOWN), len(found.rows)
    if worse:
        return ThresholdError(
            f"{len(worse)} of {every} values are worse than before",
            place=_names(runs),
            next_step=f"nicbench diff {others[-1].name} {runs[-1].name}",
        )
    if not every or unknown:
        what = f"{len(unknown)} of {every} values cannot be compared" if every else "the runs have no value in common"
        return CannotTellError(
            f"{what}, so a regression cannot be ruled out",
            place=_names(runs),
            next_step="repeat what was disturbed or left out",
        )
    return None


def _document(
    found: Check,
    runs: Sequence[FinishedRun],
    others: Sequence[FinishedRun],
    tolerance: float,
    reasons: tuple[str, ...],
    changed: tuple[Difference, ...],
    error: NicbenchError | None,
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "run": runs[-1].name,
        "runs": [run.name for run in runs],
        "against": [other.name for other in others],
        "tolerance_percent": tolerance,
        "outcome": Outcome.WORSE if found.rows_with(Outcome.WORSE) else Outcome.UNKNOWN if error else "not worse",
        "exit_status": error.exit_status if error else 0,
        "not_comparable": list(reasons),
        "values": [_plain(row) for row in found.rows],
        "new": [point.words for point in found.new],
        "differences": [
            {
                "path": row.path,
                "places": list(row.places),
                "before": None if row.values[0] is NOT_RECORDED else row.values[0],
                "after": None if row.values[1] is NOT_RECORDED else row.values[1],
                "why": row.why,
            }
            for row in changed
        ],
    }


def _plain(row: Row) -> dict[str, Any]:
    judgement = row.judgement
    change = judgement.change_ratio
    return {
        "point": row.point.words,
        "test": row.point.point.test,
        "method": row.point.point.method,
        "configuration": row.point.configuration,
        "scope": row.point.point.scope,
        "parameters": row.point.point.parameters,
        "value": row.value.name,
        "label": row.value.quantity.name,
        "unit": row.value.base_unit,
        "outcome": judgement.outcome,
        "before": judgement.before,
        "after": judgement.after,
        "before_below": judgement.before_below,
        "after_below": judgement.after_below,
        "change_percent": None if change is None else 100.0 * change,
        "why": judgement.why,
    }


def _side_in_words(median: float | None, below: float | None) -> str:
    if below is not None:
        return f"< {figures(round_up(below))}"
    return "-" if median is None else figures(median)


def _cells(row: Row) -> tuple[str, ...]:
    judgement = row.judgement
    change = "-" if judgement.change_ratio is None else f"{100.0 * judgement.change_ratio:+.1f} %"
    before = _side_in_words(judgement.before, judgement.before_below)
    after = _side_in_words(judgement.after, judgement.after_below)
    unit = f" [{row.value.base_unit}]" if row.value.base_unit else ""
    label = f"{row.value.quantity.name}{unit}"
    return row.point.words, label, before, after, change, judgement.outcome.value, judgement.why


def _print_rows(console: Console, rows: Sequence[tuple[str, ...]]) -> None:
    """Prints a table; on a narrow terminal, where it would break names apart, a few lines for each value."""
    if console.width < _WIDE:
        for what, value, before, after, change, outcome, why in rows:
            console.print(f"[bold]{what}[/]", soft_wrap=True)
            console.print(f"  {value}: {before} before, {after} now ({change}): {outcome}", soft_wrap=True)
            console.print(f"  {why}", soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in ("what", "value", "before", "now", "change", "", "why"):
        table.add_column(head, overflow="fold", justify="right" if head in ("before", "now", "change") else "left")
    for row in rows:
        table.add_row(*row)
    if rows:
        console.print(table)


def _print(
    found: Check,
    runs: Sequence[FinishedRun],
    others: Sequence[FinishedRun],
    reasons: tuple[str, ...],
    changed: tuple[Difference, ...],
) -> None:
    console = results()
    print_line(f"{_names(runs)} against {_names(others)}", console)
    for reason in reasons:
        print_line(f"not comparable, forced: {clean(reason)}", console)
    counts = {outcome: len(found.rows_with(outcome)) for outcome in Outcome}
    counted = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count) or "nothing to compare"
    console.print(f"{len(found.rows)} values: {counted}\n")
    _print_rows(console, [tuple(escape(clean(cell)) for cell in _cells(row)) for row in found.rows])
    if found.new:
        console.print(escape(f"\nnot measured before: {clean('; '.join(point.words for point in found.new))}"))
    if changed and (counts[Outcome.WORSE] or counts[Outcome.BETTER] or counts[Outcome.DIFFERENT]):
        count = "1 setting" if len(changed) == 1 else f"{len(changed)} settings"
        whom = "" if len(others) == 1 else f" from {others[-1].name}, the newest of {len(others)},"
        console.print(f"\nWhat differs{whom} and may explain it ({count}):", soft_wrap=True)
        for setting in changed[:_MOST_DIFFERENCES]:
            old, new = shorten_apart(setting.values, setting.path, _LONGEST_VALUE)
            where = f" ({', '.join(setting.places)})" if setting.places else ""
            text = f"  {setting.path}{where}: {old} before, {new} now; {setting.why}"
            print_line(clean(text), console)


COMMANDS = {"check": _check}
