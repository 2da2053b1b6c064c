"""What to add to ``nicbench import`` where a table does not say enough: suggestions, which nobody follows unasked.

A column that only holds speeds of links is the link; one of texts that names a device, or that tells apart rows with
the same frame size, is what is compared; any other unknown column is left out. What cannot be guessed stands in
capitals, to be filled in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Final

from nicbench.core.errors import Problem, UsageError, WrongFileError
from nicbench.core.frozen import frozen
from nicbench.core.registry import find
from nicbench.core.result import Bounded, Erratum, ImportCheck, ImportedRow, Result, ResultVerdict
from nicbench.core.table import ImportTable
from nicbench.core.units import l2_bits_per_s
from nicbench.importing.cells import Sheet
from nicbench.importing.columns import (
    LINK,
    AssignedColumn,
    Assignment,
    ImportOptions,
    add_given_columns,
    assign,
    is_number,
    nearest_column,
    parse_link,
    plain,
    scope_of,
)
from nicbench.importing.languages import DEVICES
from nicbench.importing.plausible import Comparison, Finding, compare_figures, find_contradicting_shares, plausible_rows
from nicbench.importing.printed_statistics import compare_statistics
from nicbench.importing.rows import Figure, ReadRow, find_same_points, read_rows
from nicbench.methods.base import Method, Values

_DEVICES: Final = frozenset({"card", "device", "nic", "adapter", "dut", "product", "model", "configuration"})
"""Words of a heading whose column names what was measured."""


def with_flags(assignment: Assignment, sheet: Sheet, table: ImportTable) -> list[Problem]:
    """The problems of an assignment, those of unknown columns with the option that would settle each."""
    places = {head.position: index for index, head in reversed(list(enumerate(sheet.heads)))}
    known = [one.index for one in assignment.columns]
    keys = [one.index for one in assignment.columns if one.column.tells_apart]
    unknown = [sheet.heads[places[problem.position]].text for problem in assignment.problems]
    has_main = any(one.column.value in table.any_of for one in assignment.columns) or any(
        nearest_column(head, table.columns) for head in unknown
    )
    return [
        problem
        if problem.flags or places[problem.position] in known
        else replace(problem, flags=_flags_for_unknown(sheet, places[problem.position], keys, table, has_main=has_main))
        for problem in assignment.problems
    ]


def _flags_for_unknown(
    sheet: Sheet, index: int, keys: Sequence[int], table: ImportTable, *, has_main: bool
) -> tuple[str, ...]:
    """``keys`` are the columns that tell rows apart: what is compared repeats their values. A column of numbers is
    never taken for another one: a similar name does not justify importing a drop rate as a frame rate. It is to be
    named then, and so is every one where none is the method's own: they are what the table is about.
    """
    head = sheet.heads[index].text
    texts = [text for row in sheet.rows if (text := row[index].text)]
    if texts and all(map(_is_link, texts)):
        return "--column", f"{head}={LINK.name}"
    if any(not is_number(text) for text in texts):
        if (_DEVICES | DEVICES).intersection(plain(head).split()):
            return "--configuration", head
        points = [tuple(row[key].text for key in keys) for row in sheet.rows]
        if len(set(points)) < len(points) and len(set(texts)) < len(texts):
            return "--configuration", head
        return "--ignore", head
    if not has_main or nearest_column(head, table.columns) is not None:
        return "--column", f"{head}=NAME"
    return "--ignore", head


def likely_method(heads: Sheet, methods: Mapping[str, type[Method]]) -> str | None:
    """The method with the most columns of these headings, which has what it needs; None where none fits."""
    best: tuple[tuple[int, bool], str] | None = None
    for name, method in methods.items():
        table = method.imports()
        if table is None:
            continue
        try:
            found = assign(heads, table, ImportOptions())
        except UsageError:
            continue
        own = [one for one in found.columns if one.column is not LINK]
        values = {one.column.value for one in own}
        fits = bool(values.intersection(table.any_of)) and all(
            column.value in values for column in table.columns if column.is_required
        )
        rank = (len(own), name == "throughput")  # of equals, that which most tables are of
        if fits and (best is None or rank > best[0]):
            best = (rank, name)
    return best[1] if best else None


def _is_link(text: str) -> bool:
    try:
        parse_link(text)
    except ValueError:
        return False
    return True


_NOT_IN_NAMES = frozenset({"size", "load_of", "link", "duplex"})


@frozen
class ImportedResults:
    """The results of an import; ``columns`` maps the file's columns, ``ignored`` lists those not used; ``checks`` are
    the comparisons made.
    """

    results: tuple[Result, ...]
    columns: tuple[AssignedColumn, ...]
    ignored: tuple[str, ...]
    checks: tuple[ImportCheck, ...] = ()

    @property
    def errata(self) -> tuple[tuple[Result, Erratum], ...]:
        """Every erratum with its result."""
        return tuple(
            (result, erratum) for result in self.results if result.imported for erratum in result.imported.errata
        )


def importable() -> dict[str, type[Method]]:
    """Returns the methods whose results can be imported, by kind."""
    return {kind: method for kind, method in find("nicbench.methods", Method).items() if method.imports() is not None}


def method_of(kind: str) -> type[Method]:
    """Returns the method of this kind; UsageError if it does not exist or takes no imports."""
    methods = importable()
    if kind not in methods:
        exists = kind in find("nicbench.methods", Method)
        why = f"results of `{kind}` cannot be imported" if exists else f"there is no method `{kind}`"
        raise UsageError(why, place="--method", next_step=f"it is one of {', '.join(f'`{name}`' for name in methods)}")
    return methods[kind]


def import_results(
    sheet: Sheet, path: str, method: type[Method], options: ImportOptions, beside: Sequence[type[Method]] = ()
) -> ImportedResults:
    """Converts a sheet to results; WrongFileError lists everything wrong with the file, named ``path``.

    Columns that only methods ``beside`` this one know are left to them.
    """
    table = method.imports()
    if table is None:
        raise UsageError(f"results of `{method.kind}` cannot be imported")
    chosen = add_given_columns(sheet, options)
    others = tuple(known for other in beside if (known := other.imports()) is not None)
    assignment = assign(chosen, table, options, others)
    if assignment.problems:
        raise WrongFileError(path, with_flags(assignment, chosen, table))
    rows, problems = read_rows(chosen, assignment, table, options)
    if problems:
        raise WrongFileError(path, problems)
    keys = [_key(row, table) for row in rows]
    problems = find_same_points(rows, keys)
    findings, checks, contradictions = _check(rows, table)
    problems += contradictions
    if not options.errata:
        problems += [_to_problem(finding) for of_row in findings for finding in of_row]
    problems += _check_not_empty(rows, table, assignment.columns)
    if problems:
        raise WrongFileError(path, problems)
    names = {one.column.value for one in assignment.columns}
    results = [_result(row, method, names, options, of_row) for row, of_row in zip(rows, findings, strict=True)]
    return ImportedResults(tuple(results), assignment.columns, assignment.ignored, checks)


def _check(
    rows: Sequence[ReadRow], table: ImportTable
) -> tuple[list[list[Finding]], tuple[ImportCheck, ...], list[Problem]]:
    """Makes every comparison; returns the findings of each row, what was compared, and targets that contradict."""
    compared = [compare_figures(row, table) for row in rows]
    findings = [[one.finding for one in of_row if one.finding is not None] for of_row in compared]
    plausible = plausible_rows(rows, findings)
    problems, shares = find_contradicting_shares(plausible, table)
    made = [one for of_row in compared for one in of_row]
    made += [Comparison("targets of an instance with those of rows before")] * shares
    for index, comparison in compare_statistics(plausible, table):
        made.append(comparison)
        found = {finding.value for finding in findings[index]}
        if comparison.finding is not None and comparison.finding.value not in found:
            findings[index].append(comparison.finding)
    counted = Counter(comparison.what for comparison in made)
    checks = tuple(ImportCheck(what=what, comparisons=number) for what, number in counted.items())
    return findings, checks, problems


def _key(row: ReadRow, table: ImportTable) -> tuple[object, ...]:
    """Returns what identifies a row among all others."""
    figures = [row.figures.get(column.value) for column in table.columns if column.tells_apart]
    texts = [row.texts.get(column.value) for column in table.columns if column.tells_apart]
    return (row.configuration, row.frame_bytes, row.link, *(one.value if one else None for one in figures), *texts)


def _to_problem(finding: Finding) -> Problem:
    figure = finding.figure
    computed = f"; computed: {finding.computed}" if finding.computed else ""
    return Problem(
        figure.cell.position,
        f"{figure.name} {figure.words()} cannot be: {finding.reason}{computed}",
        "correct it, or take what is printed and list it as an erratum: --errata",
    )


def _check_not_empty(rows: Sequence[ReadRow], table: ImportTable, columns: Sequence[AssignedColumn]) -> list[Problem]:
    """Returns a problem where no row has a main figure; single rows may lack one."""
    main = [one for one in columns if one.column.value in table.any_of]
    if any(one.key in row.figures for row in rows for one in main):
        return []
    if any(table.shares_of_counts({name: figure.value for name, figure in row.figures.items()}) for row in rows):
        return []
    if not main:
        main = [one for one in columns if one.column.quantity == "count"]
    wanted = " or ".join(f"`{one.column.name}`" for one in main)
    return [Problem(rows[0].first.position, f"no row has a {wanted}", "see that the right rows and columns are chosen")]


def _result(
    row: ReadRow, method: type[Method], names: set[str], options: ImportOptions, findings: Sequence[Finding]
) -> Result:
    """Builds the result of a row; ``names`` are the values with a column in the file, unknown where the row has
    none.
    """
    table = method.imports() or ImportTable(columns=(), any_of=())
    parameters = _parameters(row, table)
    values: Values = {name: None for name in names if name in _main_values(table)}
    values |= {name: figure.value for name, figure in row.figures.items() if ":" not in name and name not in parameters}
    values |= {name: text for name, text in row.texts.items() if name not in parameters}
    wrong = {finding.value for finding in findings}
    values |= {rate: values.get(rate) for rate, share in table.shares if share in values}
    computed = _compute_missing(values, row, table, wrong)
    values |= computed
    for name in dict.fromkeys(column.value for column in table.columns if column.bound is not None):
        if name in values:
            values[name] = _to_bounded(name, values[name], row.figures)
    parameters, values = method.from_import(parameters, values)
    ports = row.link.ports if row.link is not None and row.link.ports is not None else options.ports
    return Result(
        id=_identifier(method.kind, row.configuration, parameters),
        test=method.kind,
        method=method.kind,
        configuration=row.configuration,
        scope=scope_of(ports),
        parameters=parameters,
        values=values,
        verdict=ResultVerdict.IMPORTED,
        imported=ImportedRow(
            line=row.line,
            printed={name: figure.printed for name, figure in row.figures.items()},
            computed=tuple(computed),
            errata=tuple(_erratum(finding) for finding in findings),
        ),
    )


def _main_values(table: ImportTable) -> frozenset[str]:
    """Returns the values that a result always has, if unknown; columns of details may be missing."""
    return frozenset(name for name in (*table.any_of, *(share for _, share in table.shares)) if "{" not in name)


def _parameters(row: ReadRow, table: ImportTable) -> dict[str, Any]:
    """Returns what identifies the point: the frame size, and the columns that the method declares."""
    parameters = {}
    if row.frame_bytes is not None:
        parameters = {"frame_bytes": row.frame_bytes, "size": str(row.frame_bytes)}
    if row.load_of is not None:
        parameters["load_of"] = row.load_of
    if row.link is not None:
        parameters["link"] = str(row.link)
    for column in table.columns:
        figure = row.figures.get(column.value)
        if column.tells_apart and figure is not None:
            whole = column.quantity == "count" and figure.value.is_integer()
            parameters[column.value] = int(figure.value) if whole else figure.value
        elif column.tells_apart and column.value in row.texts:
            parameters[column.value] = row.texts[column.value]
    return parameters


def _compute_missing(values: Values, row: ReadRow, table: ImportTable, wrong: Set[str]) -> dict[str, float]:
    """Computes what the source does not print: line rate, shares of it, rates from shares, bit rates, shares of counts.

    ``wrong`` are the values that are implausible. A rate that is above the line rate only by its rounding is all of it.
    """
    found = {}
    printed = _number(values.get(table.line_rate or ""))
    # The printed line rate is used where it is right, so that its own rounding does not turn 100 % into 99.99 %.
    line_rate = row.line_rate_frames_per_s if printed is None or table.line_rate in wrong else printed
    if table.line_rate and line_rate is not None and values.get(table.line_rate) is None:
        found[table.line_rate] = line_rate
    for rate_name, share_name in table.shares:
        rate, share = _number(values.get(rate_name)), _number(values.get(share_name))
        if line_rate and rate is not None and share is None:
            computed = 100.0 * rate / line_rate
            found[share_name] = computed if rate_name in wrong or table.overload else min(computed, 100.0)
        elif line_rate and rate is None and share is not None:
            found[rate_name] = line_rate * share / 100.0
    for rate_name, bits_name in table.bit_rates:
        rate = _number(values.get(rate_name, None))
        if rate is not None and row.frame_bytes is not None and values.get(bits_name) is None:
            if line_rate and rate_name not in wrong and not table.overload:
                rate = min(rate, line_rate)
            found[bits_name] = l2_bits_per_s(rate, row.frame_bytes)
    if not any(_number(values.get(name)) is not None for name in table.any_of):
        counted = {name: number for name, value in values.items() if (number := _number(value)) is not None}
        found |= table.shares_of_counts(counted)
    return found


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _to_bounded(name: str, value: object, figures: dict[str, Figure]) -> Bounded:
    lower, upper = (figures.get(f"{name}:{part}") for part in ("lower", "upper"))
    known = _number(value)
    return Bounded(
        value=known,
        lower=lower.value if lower else None,
        upper=upper.value if upper else None,
        reason_null="the source has no figure" if known is None else None,
    )


def _identifier(test: str, configuration: str, parameters: dict[str, Any]) -> str:
    """Builds an identifier like that of a measured result."""
    parts = [
        f"{value:g}" if isinstance(value, float) else str(value)
        for name, value in parameters.items()
        if name not in _NOT_IN_NAMES
    ]
    named = "" if configuration == "default" else f" ({configuration})"
    return "/".join((test, *parts)) + named


def _erratum(finding: Finding) -> Erratum:
    position = finding.figure.cell.position
    return Erratum(
        value=finding.value,
        place=f"{position.line}:{position.column}",
        printed=finding.figure.words(),
        computed=finding.computed,
        reason=finding.reason,
    )
