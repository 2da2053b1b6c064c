"""``nicbench check RUN --against RUN|TAG``: reports whether a run is worse than earlier ones, for people and CI."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nicbench.cli import completion
from nicbench.cli.options import DEFAULT_RUNS, Json, LakeOption, RunReference, RunsFolder, in_lake, tagged_runs
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
from nicbench.lake.place import Lake, find_lake
from nicbench.store.folder import RunFolder
from nicbench.store.listing import clean, open_run, path_of

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


def _check(
    run: RunReference,
    against: _Against,
    tolerance: _Tolerance = 5.0,
    force: _Force = False,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    lake: LakeOption = None,
    json: Json = False,
) -> None:
    opened = find_lake(runs_folder, lake)
    folder = open_run(in_lake(run, runs_folder, opened), runs_folder)
    measured = require_finished(folder)
    if isinstance(measured, str):
        raise CannotTellError(measured, place=str(folder.path), next_step="`nicbench resume` finishes a run")
    others = _others(in_lake(against, runs_folder, opened), runs_folder, folder, opened)
    objections = {other.name: why for other in others if (why := find_objections(measured, other))}
    reasons = tuple(dict.fromkeys(reason for why in objections.values() for reason in why))
    if reasons and not force:
        first, own = next(iter(objections.items()))
        more = f" (and {len(own) - 3} more)" if len(own) > 3 else ""
        others_too = f"; nor with {len(objections) - 1} more of the {len(others)} runs" if len(objections) > 1 else ""
        raise UsageError(
            f"is not comparable with {first}: {clean('; '.join(own[:3]))}{more}{others_too}",
            place=measured.name,
            next_step="name a run made in the same way, or add --force",
        )
    found = check_regressions(measured, others, tolerance / 100.0)
    changed = () if measured.folder.is_imported else find_differences(others[-1].folder, folder).settings
    error = _error(found, measured, others)
    if json:
        print_json(_document(found, measured, others, tolerance, reasons, changed, error))
        if error is not None:
            say(f"error: {error}")
            raise typer.Exit(error.exit_status)
        return
    _print(found, measured, others, reasons, changed)
    if error is not None:
        raise error


def _others(against: str, runs_folder: Path, folder: RunFolder, lake: Lake | None) -> list[FinishedRun]:
    """Opens the runs to compare with, oldest first.

    UsageError if none is found, CannotTellError if all are incomplete.
    """
    if path_of(against, runs_folder).exists():
        other = open_run(against, runs_folder)
        found = [require_finished(other)] if other.path != folder.path else []
    else:
        tagged = tagged_runs(against, runs_folder, lake, MOST_RUNS + 1)
        if not tagged:
            raise UsageError(
                "is neither a run nor a tag of any run",
                place=repr(against),
                next_step="`nicbench list` shows runs and tags; `nicbench tag RUN NAME` gives one",
            )
        found = [_open_complete(path) for path in tagged[-MOST_RUNS - 1 :] if path.resolve() != folder.path][
            -MOST_RUNS:
        ]
    if not found:
        raise UsageError("would be compared with itself", place=str(folder.path), next_step="name another run")
    for reason in found:
        if isinstance(reason, str):
            say(f"note: left out: {reason}")
    complete = [one for one in found if not isinstance(one, str)]
    if not complete:
        raise CannotTellError(
            "there is no complete run to compare with", place=against, next_step="name a finished run"
        )
    return complete


def _open_complete(path: Path) -> FinishedRun | str:
    """Opens a run as ``require_finished`` does; returns a sentence for a damaged run as well, which is one of many."""
    try:
        return require_finished(open_run(str(path), path.parent))
    except NicbenchError as error:
        return f"{path.name}: {error.message}"


def _error(found: Check, run: FinishedRun, others: list[FinishedRun]) -> NicbenchError | None:
    worse, unknown, every = found.rows_with(Outcome.WORSE), found.rows_with(Outcome.UNKNOWN), len(found.rows)
    if worse:
        return ThresholdError(
            f"{len(worse)} of {every} values are worse than before",
            place=run.name,
            next_step=f"nicbench diff {others[-1].name} {run.name}",
        )
    if not every or unknown:
        what = f"{len(unknown)} of {every} values cannot be compared" if every else "the runs have no value in common"
        return CannotTellError(
            f"{what}, so a regression cannot be ruled out",
            place=run.name,
            next_step="repeat what was disturbed or left out",
        )
    return None


def _document(
    found: Check,
    run: FinishedRun,
    others: list[FinishedRun],
    tolerance: float,
    reasons: tuple[str, ...],
    changed: tuple[Difference, ...],
    error: NicbenchError | None,
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "run": run.name,
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
    found: Check, run: FinishedRun, others: list[FinishedRun], reasons: tuple[str, ...], changed: tuple[Difference, ...]
) -> None:
    console = results()
    many = others[0].name if len(others) == 1 else f"{len(others)} runs, {others[0].name} to {others[-1].name}"
    print_line(f"{run.name} against {many}", console)
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
