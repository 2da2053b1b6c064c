"""Tables fitted to their results: names in units and titles filled in, and units that suit the magnitudes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from nicbench.core.base import Frozen, change_parts
from nicbench.core.frame_size import label_of
from nicbench.core.judging import Reason
from nicbench.core.lists import grouped
from nicbench.core.registry import find
from nicbench.core.result import Bounded, Result, ResultVerdict, Spread, Value, name_of_test
from nicbench.core.table import Column, FurtherTable, Grid, ResultTable
from nicbench.core.trial import Trial
from nicbench.core.turn import DEFAULT
from nicbench.core.units import SCALES, Form, suitable_form
from nicbench.methods.base import Method, tables_of
from nicbench.report.cells import number_in, text_of, texts, value_of, with_unit
from nicbench.report.numbers import UNKNOWN
from nicbench.report.section import (
    LOAD,
    Among,
    Further,
    Row,
    RowNote,
    RunKnowledge,
    Section,
    Siblings,
    grid_tables,
    load_words,
    names_in,
    place_columns,
)
from nicbench.report.timing import Timing


def fill_in(table: ResultTable, parameters: Mapping[str, Any]) -> ResultTable:
    """Returns the table with the names in its units and its title replaced by the parameters that all results share."""
    known = defaultdict(lambda: UNKNOWN, {LOAD: load_words(parameters), **parameters})

    def fill(name: str, part: Any) -> Any:
        if isinstance(part, Frozen | tuple):
            return change_parts(part, fill)
        return part.format_map(known) if name in ("unit", "title") and part and "{" in part else part

    return change_parts(table, fill)


def scale_units(table: ResultTable, results: Sequence[Result]) -> ResultTable:
    """Returns the table with units that suit the magnitudes of each value, in charts and sentences as well.

    The greatest decides. Where the least is not a thousandth of it, the unit is chosen as for a hundredth of the
    greatest: a reader takes in 4.88 µs next to 6210 µs, not 0.00488 ms.
    """
    greatest: dict[str, float] = {}
    least: dict[str, float] = {}
    printed: dict[str, str | None] = {}
    for result in results:
        for name, value in result.values.items():
            magnitude = _magnitude(value)
            greatest[name] = max(greatest.get(name, 0.0), magnitude)
            if magnitude:
                least[name] = min(least.get(name, magnitude), magnitude)
        if result.imported:
            printed |= {name: found.unit for name, found in result.imported.printed.items()}
    greatest |= {name: greatest[name] / 100 for name, small in least.items() if small * 1000 < greatest[name]}
    goals = [goal.value for goal in table.rates.goals] if table.rates else []
    greatest |= dict.fromkeys(goals, max((greatest.get(value, 0.0) for value in goals), default=0.0))  # one axis

    for columns in (table.columns, *(one.columns for one in table.further)):
        greatest |= _from_neighbours(columns, {name for name, value in greatest.items() if value}, greatest)

    def form_of(column: Column, magnitude: float) -> Form:
        """Returns a column's form; for imported results the unit that their source prints, if it has it."""
        form = suitable_form(column.form, magnitude)
        return form if printed.get(column.value) != column.unit or form == "megabits" else column.form

    def convert(name: str, part: Any, together: float | None = None) -> Any:
        if isinstance(part, Column):
            form = form_of(part, together or greatest.get(part.value, 0.0))
            if form not in SCALES or (form, SCALES[form].unit) == (part.form, part.unit):
                return part
            return part.replace(form=form, unit=SCALES[form].unit)
        if name == "y" and isinstance(part, tuple):  # the lines of one plot share its axis
            together = max((greatest.get(column.value, 0.0) for column in part), default=0.0)
        return change_parts(part, partial(convert, together=together)) if isinstance(part, Frozen | tuple) else part

    return change_parts(table, convert)


def _from_neighbours(columns: Sequence[Column], filled: Set[str], greatest: Mapping[str, float]) -> dict[str, float]:
    """Returns magnitudes for columns that no result fills: each has that of the nearest one of its form, the ones
    before it first, so that an empty p99 stands in the unit of the median beside it.
    """
    found: dict[str, float] = {}
    for number, column in enumerate(columns):
        if column.value not in filled and column.form in SCALES:
            others = (*reversed(columns[:number]), *columns[number + 1 :])
            near = next((one for one in others if one.form == column.form and one.value in filled), None)
            found |= {} if near is None else {column.value: greatest[near.value]}
    return found


def _magnitude(value: Value) -> float:
    """Returns the number by which the unit is chosen; for a rate with only an upper bound, that bound."""
    if isinstance(value, Bounded):
        value = value.upper if value.value is None else value.value
    elif isinstance(value, Spread):
        value = value.magnitude
    return abs(value) if isinstance(value, int | float) else 0.0


_MOST_RUNS: Final = 8
"""The most sentences about single runs; the others stand with their runs."""


def notes_of(results: Iterable[Result], table: ResultTable) -> tuple[RowNote, ...]:
    """Returns each note once."""
    return tuple(dict.fromkeys(note for note, _ in _notes_in(results, table)))


def notes_beside(
    over: Sequence[Result], single: Sequence[Result], table: ResultTable, name: Callable[[Result], str]
) -> tuple[RowNote, ...]:
    """Returns the notes on several configurations; ``name`` gives the name of a row. Where runs differ in what they
    say, each run has its own note.
    """
    rows = grouped((note, name(result)) for note, result in _notes_in(over, table))
    notes = [
        note if len(named) == len(over) else RowNote(note.about, f"{note.text} ({'; '.join(named)})")
        for note, named in rows.items()
    ]
    settled = {(result.configuration, note.about, name(result)) for note, result in _notes_in(over, table)}
    of_runs = [
        RowNote(f"{note.about}, {name(result)}, run {result.run}", note.text)
        for note, result in _notes_in(single, table)
        if result.run is not None and (result.configuration, note.about, name(result)) not in settled
    ]
    more = len(of_runs) - _MOST_RUNS
    rest = [RowNote("", f"{more} more notes stand with each run by itself, below")] if more > 0 else []
    return (*notes, *of_runs[:_MOST_RUNS], *rest)


def _notes_in(results: Iterable[Result], table: ResultTable) -> list[tuple[RowNote, Result]]:
    results = tuple(results)
    found = ((about, result.values.get(value), result) for value, about in table.notes for result in results)
    return [(RowNote(about, text), result) for about, text, result in found if isinstance(text, str)]


_CAUSES: Final = MappingProxyType(
    {
        Reason.DISTURBED: "the tester's worker stalled",
        Reason.DUT_DISTURBED: "other programs used the DUT's CPU",
        Reason.CLOCK_STEP: "the clock moved",
        Reason.UNSENT: "the tester sent less than the load",
        Reason.RECEIVE_OVERRUN: "the tester's own receive side overflowed",
        Reason.TRANSMIT_REFUSED: "the kernel threw away frames that the tester had sent",
        Reason.LINK_CHANGED: "a link went up or down",
        Reason.LATE: "frames came back after the drain",
        Reason.PEER_FAILED: "the other end failed",
        Reason.TESTER_FAILED: "the tester failed",
        Reason.HARDWARE: "a link, a bus or the cooling had errors",
        Reason.CONTRADICTED: "a port's counters contradict the tools",
        Reason.CHANGED: "somebody changed the path of the frames",
        Reason.HEALTH: "the tester's health could not be read",
    }
)


class _Group(NamedTuple):
    """What the results of one section share; ``apart`` has the values of the parameters in its table's ``apart_by``."""

    method: str
    part: str | None
    test: str
    configuration: str
    scope: str
    apart: tuple[Any, ...]

    @property
    def table(self) -> tuple[str, str | None]:
        """The key of its table among the tables of all methods."""
        return self.method, self.part


def sections(
    results: Iterable[Result],
    tests: Mapping[str, str],
    added: Column | None = None,
    single: Sequence[Result] = (),
    known: RunKnowledge | None = None,
) -> tuple[Section, ...]:
    """Returns one section for each test and configuration, in the order of the results.

    ``tests`` maps a result's id to its test, ``added`` is a column in addition to the method's own, and ``single`` has
    the results of single runs where ``results`` are over several runs.
    """
    known = known or RunKnowledge()
    methods = find("nicbench.methods", Method)
    results = tuple(results)
    used = dict.fromkeys(result.method for result in results)
    tables = {(kind, table.part): table for kind in used if kind in methods for table in tables_of(methods[kind])}
    groups = grouped(
        (_group_of(result, table, tests), result)
        for result in results
        if (table := tables.get((result.method, result.parameters.get("part")))) is not None
    )
    found = []
    said = set()
    fitted = []
    for group, unordered in sorted(groups.items(), key=_place_in(methods, groups)):
        method = methods[group.method]
        members = [_with_table_values(method, result, known.trials) for result in unordered]
        table = _fit(tables[group.table], method, members, added, _options_of(group.test, known))
        fitted.append((group, members, table))
    siblings = Siblings((group.table, table, members) for group, members, table in fitted)
    for group, members, table in fitted:
        method, among = methods[group.method], partial(siblings.among, group.table)
        grids = grid_tables(members, table.grid, among) if table.grid else ()
        members = members if grids else _by_size(members)
        rows = _rows(members, table, known.trials, among)
        if added is None:
            notes = notes_of(members, table)
        else:
            of = (group.method, group.part, group.test)
            runs = [one for one in single if (one.method, one.parameters.get("part"), name_of_test(one, tests)) == of]
            notes = notes_beside(members, runs, table, partial(_name_of, _telling(table, members)))
        section = Section(group.test, group.configuration, group.scope, table, rows, notes, grids)
        # A study has shown all that editors measured; what is left are details.
        chosen = () if table.editors else method.select_for_terminal(tuple(members))
        caption = (*group.table, table.caption, group.scope)
        found.append(
            replace(
                section,
                brief=_rows(chosen, table, known.trials, among) if len(chosen) < len(members) else section.sums or rows,
                further=tuple(_further(further, members, known.trials, among) for further in table.further),
                search_notes=tuple(_search_notes(table, rows)),
                says_caption=caption not in said,
                known=known,
                timing=_timing(rows, known) if table.times_frames and not rows[0].result.imported else None,
            )
        )
        said.add(caption)
    return tuple(found)


def _timing(rows: Sequence[Row], known: RunKnowledge) -> Timing | None:
    """Returns how frames were timed, from the first known trial of each row."""
    of_rows = (
        (row, next((known.trials[name] for name in row.result.trials if name in known.trials), None)) for row in rows
    )
    timed = tuple((str(row.result.parameters.get("size")), trial) for row, trial in of_rows if trial is not None)
    return Timing(timed, simulated=bool(known.plan and known.plan.simulated)) if timed else None


def _group_of(result: Result, table: ResultTable, tests: Mapping[str, str]) -> _Group:
    return _Group(
        method=result.method,
        part=table.part,
        test=name_of_test(result, tests),
        configuration=result.configuration,
        scope=result.scope if table.has_basis else "",
        apart=tuple(result.parameters.get(name) for name in table.apart_by),
    )


def _options_of(test: str, known: RunKnowledge) -> Mapping[str, Any]:
    """Returns the options that the plan has for the test of this name."""
    planned = known.plan.tests if known.plan else ()
    return next((one.options for one in planned if one.name == test), {})


def _with_table_values(method: type[Method], result: Result, trials: Mapping[str, Trial]) -> Result:
    """Returns the result with what tables show as well: values that its method computes, its frame size in words."""
    values = {**method.table_values(result, trials), **result.values}
    label = label_of(result.parameters)
    size = {} if label is None else {"size": label}
    return result.replace(values=values, parameters={**size, **result.parameters})


def _fit(
    table: ResultTable,
    method: type[Method],
    results: Sequence[Result],
    added: Column | None,
    options: Mapping[str, Any],
) -> ResultTable:
    """Returns the table adapted to these results: words, columns, and units that suit their magnitudes."""
    imports = method.imports() if results[0].imported else None
    if imports is not None:  # somebody else measured: how nicbench measures is not said
        table = table.replace(caption=imports.caption or table.title, notes=(), clean_sentence=None, statement=None)
    table = _with_column(method.table_for(table, results, options), added)
    table = table.replace(
        columns=_known_columns(table.columns, results, imported=imports is not None),
        further=tuple(
            one.replace(columns=_known_columns(one.columns, results, imported=imports is not None))
            for one in table.further
        ),
    )
    if imports is not None:
        names = {column.value for column in table.columns} | {LOAD}
        said = tuple(text for text in table.sentences if names_in(text) <= names)
        table = table.replace(sentences=said)
    return scale_units(fill_in(table, results[0].parameters), results)


def _known_columns(columns: Iterable[Column], results: Sequence[Result], *, imported: bool) -> tuple[Column, ...]:
    """Returns the columns without optional ones that no result fills; of imported results, any column is optional."""
    return tuple(
        column
        for column in columns
        if not (column.is_optional or imported) or any(text != UNKNOWN for text in texts(column, results))
    )


def _by_size(results: Sequence[Result]) -> list[Result]:
    """Returns the results by frame size, with configurations of one size together, where each has one row."""
    points = [(label_of(one.parameters), one.configuration, one.parameters.get(CONFIGURATION)) for one in results]
    if any(point[0] is None for point in points) or max(Counter(points).values()) > 1:
        return list(results)
    return sorted(results, key=lambda result: number_in(result, "frame_bytes") or 0.0)


def _further(table: FurtherTable, results: Sequence[Result], trials: Mapping[str, Trial], among: Among) -> Further:
    rows = _rows(results, table, trials, among)
    return Further(table, tuple(row for row in rows if any(cell != UNKNOWN for cell in row.cells[1:])))


def _search_notes(table: ResultTable, rows: Iterable[Row]) -> Iterable[str]:
    """Yields what the searches note on how the values of rows were found, each once with the sizes that it is about."""
    told = grouped(
        ("; ".join(row.result.disturbances), row.cells[0])
        for row in rows
        if table.search_notes and row.result.disturbances and row.result.verdict is not ResultVerdict.INCOMPLETE
    )
    for text, sizes in told.items():
        *most, last = sizes
        named = ", ".join((*most, with_unit(table.columns[0], last)))
        yield f"{table.search_notes} at {named}: {text}"


def _place_in(
    methods: Mapping[str, type[Method]], grouped: Mapping[_Group, Any]
) -> Callable[[tuple[_Group, Any]], tuple[int, int, int]]:
    """Returns the key that sorts sections: by the first result of their test, then in the order of the method."""
    tests: dict[tuple[str, str], int] = {}
    for number, group in enumerate(grouped):
        tests.setdefault((f"{group.method} {group.test}", group.configuration), number)
    order = {group: number for number, group in enumerate(grouped)}

    def place(item: tuple[_Group, Any]) -> tuple[int, int, int]:
        group, _ = item
        parts = [table.part for table in tables_of(methods[group.method])]
        return tests[f"{group.method} {group.test}", group.configuration], parts.index(group.part), order[group]

    return place


def side_by_side(
    results: Iterable[Result],
    tests: Mapping[str, str],
    single: Iterable[Result] = (),
    known: RunKnowledge | None = None,
) -> tuple[Section, ...]:
    """Returns one section for each test, with its configurations side by side: as one more column, level of the grid,
    line of the curve or bar. Where there is only one configuration, returns the same as ``sections``.

    ``single`` has the results of single runs where ``results`` are over several runs.
    """
    results = tuple(results)
    names = tuple(dict.fromkeys(result.configuration for result in results))
    if len(names) < 2:
        return sections(results, tests, known=known)
    named = map(_with_configuration, results)
    return sections(named, tests, _CONFIGURATION, tuple(map(_with_configuration, single)), known)


CONFIGURATION: Final = "configuration"
"""The name of the column and parameter that results get where configurations stand side by side."""
_CONFIGURATION: Final = Column(CONFIGURATION, "Configuration", form="text")


def _with_configuration(result: Result) -> Result:
    """Returns the result with its configuration as a parameter, which tables can show."""
    parameters = {**result.parameters, CONFIGURATION: result.configuration}
    return result.replace(parameters=parameters, configuration=DEFAULT)


def configuration_of(result: Result) -> str:
    """Returns the configuration of a result, whether it comes from ``side_by_side`` or not."""
    return str(result.parameters.get(CONFIGURATION, result.configuration))


def _with_column(table: ResultTable, column: Column | None) -> ResultTable:
    """Returns the table with one more column, by which a grid's columns and the lines and bars of charts
    differ, too.
    """
    if column is None:
        return table
    first, *rest = table.columns
    caption = f"{table.caption} {table.caption_beside}".strip()
    grid = table.grid and compared_grid(table.grid, column)
    curve = table.curve and table.curve.replace(lines=(*table.curve.lines, column))
    bars = table.bars and table.bars.replace(lines=(*table.bars.lines, column))
    plots = tuple(plot.replace(lines=(*plot.lines, column)) for plot in table.plots)
    return table.replace(
        columns=(first, column, *rest), grid=grid, curve=curve, bars=bars, plots=plots, caption=caption
    )


def compared_grid(grid: Grid, column: Column) -> Grid:
    """Returns the grid with the configurations as its rows, or as the last level above its columns."""
    if grid.compares_rows:
        return grid.replace(rows=column, across=(grid.rows, *grid.across))
    return grid.replace(across=(*grid.across, column))


def has_tables(method: str) -> bool:
    """Returns whether the results of a method have a section of their own."""
    known = find("nicbench.methods", Method).get(method)
    return known is not None and bool(tables_of(known))


def _rows(
    results: Sequence[Result], table: ResultTable | FurtherTable, trials: Mapping[str, Trial], among: Among
) -> tuple[Row, ...]:
    columns = [texts(column, results, among(column)) for column in table.columns]
    searched = isinstance(table, ResultTable) and table.search_notes is not None
    main = [column.value for column in table.columns if column.is_main]
    found = []
    for number, result in enumerate(results):
        is_empty = all(value_of(result, name) is None for name in main)
        doubt = _doubt(result, trials, searched=searched, is_empty=is_empty)
        found.append(Row(tuple(cells[number] for cells in columns), result, doubt))
    return tuple(found)


def _doubt(result: Result, trials: Mapping[str, Trial], *, searched: bool, is_empty: bool) -> str | None:
    """Returns why a result may not be relied on or lacks a value; None where neither applies. What a ``searched``
    result notes about its search stands elsewhere; a result that ``is_empty`` has no main value.
    """
    missing = "; ".join(dict.fromkeys(_reasons_null(result)))
    if result.verdict is ResultVerdict.INCOMPLETE:
        disturbances = "" if searched else "; ".join(result.disturbances)
        return disturbances or (f"not measured, because {missing}" if missing else result.verdict.value)
    if result.verdict is ResultVerdict.DISTURBED:
        why = _invalid_trials(result, trials) if searched else "; ".join(result.disturbances)
        return why or result.verdict.value
    if missing and is_empty:
        return f"nothing measured: {missing}"
    return missing if searched and missing else None


def _reasons_null(result: Result) -> Iterable[str]:
    return (value.reason_null for value in result.values.values() if isinstance(value, Bounded) and value.reason_null)


def _invalid_trials(result: Result, trials: Mapping[str, Trial]) -> str | None:
    """Returns how many trials behind a result were invalid, and the commonest reason; None where none was."""
    behind = [trials[name] for name in result.trials if name in trials]
    bad = [trial for trial in behind if not trial.verdict.valid]
    if not bad:
        return None
    commonest, count = Counter(reason for trial in bad for reason in trial.verdict.reasons).most_common(1)[0]
    of = f"{len(bad)} of its {len(behind)} trials {'was' if len(bad) == 1 else 'were'} invalid"
    times = "" if len(bad) == 1 else " in all of them" if count == len(bad) else f" in {count} of them"
    return f"{of}, and no valid repeat replaced them; {_CAUSES[commonest]}{times}"


def _telling(table: ResultTable, results: Sequence[Result]) -> tuple[Column, ...]:
    """Returns the columns that tell results of several configurations apart; at least that of the configuration."""
    candidates = place_columns(table.grid) if table.grid is not None else table.columns[:2]
    return tuple(
        column
        for column in candidates
        if column.value == _CONFIGURATION.value or len({text_of(column, result) for result in results}) > 1
    )


def _name_of(telling: Sequence[Column], result: Result) -> str:
    """Returns the name of a result by these columns, with the configuration in quotation marks."""
    told = (with_unit(column, text_of(column, result)) for column in telling)
    words = (
        f"“{text}”" if column.value == _CONFIGURATION.value else text
        for column, text in zip(telling, told, strict=True)
    )
    return ", ".join(words)
