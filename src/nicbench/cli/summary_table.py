"""The table printed at the end of a run: throughput, latency and verdict per frame size. Units in the headers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nicbench.cli.editors_table import print_studies
from nicbench.cli.fitting import Shown, escaped, print_fitted
from nicbench.cli.imported_table import print_imported_table
from nicbench.model.frame_size import label_of, size_words
from nicbench.model.imported import NOT_MEASURED
from nicbench.model.ports import PortFigures
from nicbench.model.rate import PASSES_NOTHING, Bounded, LimitedBy
from nicbench.model.result import Result, ResultVerdict, Summary
from nicbench.model.spread import Spread
from nicbench.report.editors.answer import briefs as editors_in_brief
from nicbench.report.editors.study import studies
from nicbench.report.grids import Crossing, GridTable
from nicbench.report.growth import runs_lines
from nicbench.report.imported import errata_words
from nicbench.report.tables import Section, sections, side_by_side, with_tables
from nicbench.units import format_mpps

_RATE = "_frames_per_s"
_NO_GOALS = frozenset({"load_frames_per_s", "ceiling_frames_per_s", "line_rate_frames_per_s"})
_CEILING = "ceiling_frames_per_s"
MEDIANS = "; each number is the median of several runs, between the least and the greatest"
_OWN_LATENCY = "tester_latency_p50_ns"
_MOST_LINES: Final = 6
"""Of disturbances, and of ways between ports: a terminal is no report."""
_LIMITS = {LimitedBy.DUT: "DUT", LimitedBy.TESTER: "tester", LimitedBy.LINE_RATE: "line rate"}
_STYLES = {
    ResultVerdict.VALID: "green",
    ResultVerdict.DISTURBED: "yellow",
    ResultVerdict.INCOMPLETE: "red",
    ResultVerdict.IMPORTED: "cyan",
}
_UNSPOILT = (ResultVerdict.VALID, ResultVerdict.IMPORTED)


def print_summary(console: Console, summary: Summary) -> None:
    """Prints one row per frame size; the latencies are those at the highest load that was measured."""
    compared = summary.beside_each_other
    own = with_tables()
    rates = [result for result in compared if _goals(result) and result.method not in own]
    latencies = [result for result in compared if result.method == "latency" and "latency_p50_ns" in result.values]
    console.print(f"\n[bold]{escape(summary.title)}[/bold]: {_verdict(summary.verdict)}")
    if summary.imported is not None:
        said = f"{NOT_MEASURED}; the numbers are those of {summary.imported.named}"
        console.print(said, markup=False, soft_wrap=True)
    others = [result for result in compared if result.imported and result.method not in own]
    if others:
        print_imported_table(console, others)
    elif rates or latencies:
        bases = ", ".join(dict.fromkeys(result.scope for result in (*rates, *latencies)))
        print_fitted(
            console,
            _columns(rates, latencies),
            caption=escape(_rates_are(bases) + (MEDIANS if summary.over_runs else "")),
        )
    print_studies(console, studies(summary.counted, {}, summary.configurations))
    in_grids: set[str] = set()
    every = side_by_side(compared, {})
    for section in every:
        title = _title(section, every)
        if section.grids and section.brief:
            for table in map(partial(_grid_table, section, title), section.grids):
                console.print(table)
        else:
            _print_section(console, section, title)
        spoilt = [row for row in section.rows if section.grids and row.result.verdict not in _UNSPOILT]
        in_grids |= {row.result.id for row in spoilt}
        if spoilt:
            console.print(f"* {len(spoilt)} of {len(section.rows)} are disturbed or incomplete; the report says why")
    for line in runs_lines(summary):
        console.print(line, markup=False, soft_wrap=True)
    _print_few(
        console, [f"{result.id}: {_ways(result.by_port)}" for result in summary.counted if result.by_port is not None]
    )
    _print_few(console, _disturbances([result for result in summary.counted if result.id not in in_grids]))
    _print_few(
        console, [f"{result.id}: erratum: {text}" for result in summary.results for text in errata_words(result)]
    )
    _print_few(
        console,
        [
            f"{result.id}: near the tester's own limit: {near.text}"
            for result in summary.counted
            for near in result.near_tester_limit or ()
        ],
    )


def _disturbances(results: Sequence[Result]) -> list[str]:
    """What spoilt a round is said by every result that came of it, and here once."""
    about: dict[str, list[str]] = {}
    for result in results:
        for disturbance in result.disturbances:
            of_round = bool(result.trials) and result.trials[0].startswith("r")
            about.setdefault(disturbance if of_round else f"{result.id}: {disturbance}", []).append(result.id)
    return [
        text if text.startswith(f"{ids[0]}: ") else f"{ids[0] if len(ids) == 1 else f'{len(ids)} results'}: {text}"
        for text, ids in about.items()
    ]


def _print_few(console: Console, lines: Sequence[str]) -> None:
    """The first of many lines."""
    for line in lines[:_MOST_LINES]:
        console.print(f"  {line}", markup=False, soft_wrap=True)
    if len(lines) > _MOST_LINES:
        console.print(f"  ... and {len(lines) - _MOST_LINES} more like these; the report has them all")


def headline(summary: Summary) -> str | None:
    """The first rate of the first result, for a list of runs; of each configuration, where several are compared."""
    of_editors = studies(summary.counted, {}, summary.configurations)
    if of_editors:
        return editors_in_brief(of_editors)
    if not summary.configurations:
        return _headline(summary.over_runs or summary.counted)
    by_name = {
        name: [result for result in summary.beside_each_other if result.configuration == name]
        for name in summary.configurations
    }
    return "; ".join(f"{name}: {text}" for name, results in by_name.items() if (text := _headline(results))) or None


def _headline(results: Sequence[Result]) -> str | None:
    own, tables = sections(results, {}), with_tables()
    if own and not any(_goals(result) and result.method not in tables for result in results):
        return (own[0].sentence or "").partition(", and ")[0] or None  # the report has the rest
    for result in results:
        for goal in _goals(result):
            at = f" at {size_words(result.parameters)}" if "frame_bytes" in result.parameters else ""
            rate = result.values[goal.lower() + _RATE]
            if isinstance(rate, Bounded) and rate.passes_nothing:
                return f"{PASSES_NOTHING}{at}"
            if isinstance(rate, Bounded) and rate.value is None and rate.upper is not None:
                return f"{goal} < {format_mpps(rate.upper)} Mpps{at}"
            if isinstance(rate, Spread):
                return f"{goal} {_at_least(rate)} Mpps{at} (median of {rate.n} runs)"
            if not isinstance(rate, Bounded) or rate.value is None:
                return f"no {goal} was found{at}"
            return f"{goal} {_at_least(rate)} Mpps{at}"
    return None


def _columns(rates: Sequence[Result], latencies: Sequence[Result]) -> list[Shown]:
    """A row for each frame size; rates and verdict have room before anything else."""
    goals = list(dict.fromkeys(goal for result in rates for goal in _goals(result)))
    own = _of_the_tester(rates, latencies)
    heads: list[tuple[tuple[str, ...], int, bool]] = [(("frame", "[bytes]"), 0, True)]
    for goal in goals:
        heads += [((goal, "[Mpps]"), 0, True), (("of line", "rate [%]"), 3, True), (("limited", "by"), 2, False)]
    if _CEILING in own:
        heads.append((("tester", "[Mpps]"), 4, True))
    if latencies:
        heads += [(("latency", "p50 [us]"), 1, True), (("", "p99.9 [us]"), 1, True)]
    if _OWN_LATENCY in own:
        heads.append((("tester", "p50 [us]"), 4, True))
    heads.append((("", "verdict"), 0, False))
    rows = [
        [*head, *_row(size, goals, of_rates, of_latencies, own)]
        for size in dict.fromkeys(label_of(result.parameters) for result in (*rates, *latencies))
        for head, of_rates, of_latencies in _by_configuration(rates, latencies)
        if _first(of_rates, size) or _first(of_latencies, size)
    ]
    if len({result.configuration for result in (*rates, *latencies)}) > 1:
        heads.insert(0, (("", "configuration"), 0, False))
    cells = zip(*rows, strict=True)
    return [
        Shown(escaped(*head), tuple(column), rank, right)
        for (head, rank, right), column in zip(heads, cells, strict=True)
    ]


def _by_configuration(
    rates: Sequence[Result], latencies: Sequence[Result]
) -> list[tuple[list[str], list[Result], list[Result]]]:
    """What stands before its rows, where there are several, and its results."""
    names = list(dict.fromkeys(result.configuration for result in (*rates, *latencies)))
    return [
        (
            [escape(name)] if len(names) > 1 else [],
            [result for result in rates if result.configuration == name],
            [result for result in latencies if result.configuration == name],
        )
        for name in names
    ]


def _title(section: Section, every: Sequence[Section]) -> str:
    """With the name of the test where another test has such a table as well."""
    title = section.table.title
    several = len({each.test for each in every if each.table.title == title}) > 1
    return f"{section.test}: {title}" if several else title


def _print_section(console: Console, section: Section, title: str) -> None:
    """The table of a method that brings its own, as in the report; rows that sum others up stand for them."""
    rows = section.brief
    if not rows:
        count = len(section.rows)
        said = f"{count} rows are" if count > 1 else "1 row is"
        console.print(f"[dim italic]{escape(title)}: {said} in the report[/]", soft_wrap=True)
        return
    columns = [
        Shown(
            escaped(*_head_lines(column.head), *([f"[{column.unit}]"] if column.unit else [])),
            escaped(*(row.cells[number] for row in rows)),
            rank=0 if number == 0 or column.is_main else 2,
        )
        for number, column in enumerate(section.table.columns)
    ]
    verdicts = tuple(_verdict(row.result.verdict) for row in rows)
    columns.append(Shown(("verdict",), verdicts, rank=0, right=False))
    basis = _rates_are(section.scope) if section.table.has_basis else ""
    print_fitted(console, columns, title=escape(title), caption=escape(basis))
    if len(rows) < len(section.rows):
        console.print(f"  the report has all {len(section.rows)} results of which these are the main ones")
    _print_few(console, section.notes)


def _head_lines(head: str) -> list[str]:
    """A heading of many words on two lines."""
    words = head.split(" ")
    half = len(words) // 2
    return [head] if len(words) < 3 else [" ".join(words[:half]), " ".join(words[half:])]


def _grid_table(section: Section, title: str, grid: GridTable) -> Table:
    """Loads down, what they were measured with across; a star where a cell rests on a disturbed trial."""
    title = f"{title}, {grid.title}" if grid.title else title
    cell = section.table.grid.cell if section.table.grid else None
    what = "" if cell is None or (cell.head == section.table.title and not grid.title) else f": {cell.head.lower()}"
    unit = f"{what} [{cell.unit}]" if cell else ""
    table = Table(header_style="bold", title=escape(f"{title}{unit}"), title_justify="left", title_style="bold")
    table.caption, table.caption_justify = escape(_rates_are(section.scope)), "left"
    table.add_column(escape(grid.corner), justify="right")
    for heads in zip(*grid.heads, strict=True):
        table.add_column(escape("\n".join(heads)), justify="right")
    for head, crossings in grid.rows:
        table.add_row(escape(head), *(_crossing(crossing) for crossing in crossings))
    return table


def _ways(figures: PortFigures) -> str:
    """All ways together, and the best and the worst of them."""
    both = figures.combined
    shares = [way.loss_ratio for way in figures.ways]
    least, most = (f"{100 * loss:.3g}" for loss in (min(shares), max(shares)))
    each = f"{least} %" if least == most else f"{least} to {most} %"
    return (
        f"{len(figures.ways)} ways, sum of ports {format_mpps(both.received_frames_per_s)} of "
        f"{format_mpps(both.offered_frames_per_s)} Mpps, loss {100 * both.loss_ratio:.3g} %, on each way {each} "
        f"(trial {figures.trial})"
    )


def _rates_are(scope: str) -> str:
    """Below a table: what its rates are of."""
    return f"Rates are {scope}"


def _crossing(crossing: Crossing | None) -> str:
    if crossing is None:
        return "-"
    verdict = crossing.result.verdict
    star = "" if verdict in _UNSPOILT else f" [{_STYLES[verdict]}]*[/]"
    return f"{escape(crossing.text)}{star}"


def _of_the_tester(rates: Sequence[Result], latencies: Sequence[Result]) -> frozenset[str]:
    """Which of the tester's own limits are known for some size: they stand beside what was measured."""
    places = ((_CEILING, rates), (_OWN_LATENCY, latencies))
    return frozenset(name for name, results in places if any(result.values.get(name) for result in results))


def _row(
    size: str | None,
    goals: Sequence[str],
    rates: Sequence[Result],
    latencies: Sequence[Result],
    own: frozenset[str],
) -> list[str]:
    rate = _first(rates, size)
    latency = _first(sorted(latencies, key=_load, reverse=True), size)
    cells = ["-" if size is None else size]
    for goal in goals:
        name = goal.lower()
        value = rate.values.get(name + _RATE) if rate else None
        share = rate.values.get(f"{name}_percent_of_line_rate") if rate else None
        limit = value.limited_by if isinstance(value, Bounded | Spread) else None
        cells += [
            escape(_interval(value)),
            _two_decimals(share),
            _LIMITS[limit] if limit else "-",
        ]
    if _CEILING in own:
        ceiling = rate.values.get(_CEILING) if rate else None
        ceiling = ceiling.median if isinstance(ceiling, Spread) else ceiling
        cells.append(format_mpps(ceiling) if isinstance(ceiling, int | float) else "-")
    if latencies:
        cells += [_microseconds(latency, "latency_p50_ns"), _microseconds(latency, "latency_p99_9_ns")]
    if _OWN_LATENCY in own:
        cells.append(_microseconds(latency, _OWN_LATENCY))
    verdicts = [result.verdict for result in (rate, latency) if result is not None]
    worst = max(verdicts, key=list(ResultVerdict).index)
    return [*cells, _verdict(worst)]


def _goals(result: Result) -> list[str]:
    """Names of the rates a search found, in capitals: values with an interval."""
    return [
        name.removesuffix(_RATE).upper()
        for name, value in result.values.items()
        if name.endswith(_RATE) and isinstance(value, Bounded | Spread) and name not in _NO_GOALS
    ]


def _first(results: Sequence[Result], size: str | None) -> Result | None:
    return next((result for result in results if label_of(result.parameters) == size), None)


def _load(result: Result) -> float:
    return float(result.parameters.get("load_percent", 0.0))


def _interval(value: object) -> str:
    if isinstance(value, Spread):
        runs = f" ({value.n} of {value.runs} runs)" if value.n < value.runs else ""
        if value.minimum == value.maximum:
            return f"{_at_least(value)}{runs}"
        return f"{format_mpps(value.minimum)} .. {_at_least(value)} .. {format_mpps(value.maximum)}{runs}"
    if not isinstance(value, Bounded):
        return "none"
    if value.passes_nothing:
        return PASSES_NOTHING
    if value.value is None:
        return "none" if value.upper is None else f"< {format_mpps(value.upper)}"
    if value.at_least:
        return _at_least(value)
    rate = format_mpps(value.value)
    lower = "" if value.lower in (None, value.value) else f"{format_mpps(value.lower or 0.0)} .. "
    upper = "" if value.upper is None else f" .. {format_mpps(value.upper)}"
    return f"{lower}{rate}{upper}"  # a search reports the highest load that passed: then value and lower bound are one


def _at_least(value: Bounded | Spread) -> str:
    """Line rate is as much as there can be; any other rate that nothing exceeded may be higher."""
    rate = format_mpps((value.median if isinstance(value, Spread) else value.value) or 0.0)
    return f"line rate, {rate}" if value.is_line_rate else f"{'>= ' if value.at_least else ''}{rate}"


def _microseconds(result: Result | None, name: str) -> str:
    value = result.values.get(name) if result else None
    if isinstance(value, Spread):
        return f"{value.median / 1000.0:.1f}"
    return f"{value / 1000.0:.1f}" if isinstance(value, int | float) else "-"


def _two_decimals(value: object) -> str:
    value = value.median if isinstance(value, Spread) else value
    return f"{value:.2f}" if isinstance(value, int | float) else "-"


def _verdict(verdict: ResultVerdict) -> str:
    return f"[{_STYLES[verdict]}]{verdict.value}[/]"
