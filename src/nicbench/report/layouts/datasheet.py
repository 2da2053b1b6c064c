"""Results in little room: small charts side by side, and the tables of one kind, which differ in their load, as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from nicbench.core.described import Facts
from nicbench.core.lists import grouped, without_none
from nicbench.core.plan import Plan
from nicbench.core.table import Column
from nicbench.core.units import count_of
from nicbench.report import facts
from nicbench.report.answer.sentences import dut_name
from nicbench.report.cells import texts, value_of
from nicbench.report.document.blocks import Block, Cell, Figure, Group, Panel, Table, first_sentence
from nicbench.report.document.blocks import Row as BodyRow
from nicbench.report.document.making import (
    NOTHING,
    Part,
    caption,
    cell,
    code,
    head,
    heading,
    inlines,
    join_inlines,
    listing,
    mark,
    name,
    paragraph,
    row,
    set_tone,
    strong,
    table,
)
from nicbench.report.drawing.figures import Figures
from nicbench.report.facts import (
    Shapes,
    dut_shapes,
    host_name,
    label_of,
    method_shapes,
    plain,
    tester_shapes,
    traffic_shapes,
)
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN, basis_words
from nicbench.report.rates import rates_tables
from nicbench.report.section import Row, RunKnowledge, Section
from nicbench.report.sections import closing, comparing, opening
from nicbench.report.sections.editors import studies
from nicbench.report.sections.overview import basis_line, loss_line, point_table, size_table
from nicbench.report.sections.results import notes, other_results, result_table
from nicbench.report.sections.statistics import statistics
from nicbench.report.statistics import StatisticsView
from nicbench.report.study import procedure_of
from nicbench.report.system_table import tell
from nicbench.report.tables import CONFIGURATION, scale_units, side_by_side
from nicbench.report.tails import TailTable
from nicbench.report.wiring import wirings
from nicbench.report.wording import lower_first

_BITS: Final = frozenset({"megabits", "gigabits"})
"""The forms of bit rates: the further tables that there is room for have them."""
_MOST_CHARTS: Final = 3
"""The most small charts, which is one row of them on paper."""


def small_charts(report: Report, sections: Sequence[Section], figures: Figures) -> Iterator[Block]:
    """Yields the lead chart and the first charts of the other tests, small and side by side; one alone is wide."""
    found = _lead_charts(report, sections, figures)
    drawn = (section for section in sections if not (_is_of_several(section) and section.table.rates))
    found += [figure for section in drawn for figure in figures.of_section(section)[:1] if figure not in found]
    chosen = [figure for figure in found if len(figure.panels) == 1][:_MOST_CHARTS]
    if chosen:
        panels = tuple(_small(figure, is_alone=len(chosen) == 1) for figure in chosen)
        yield Figure(panels, look="multiples", title="Results as charts")


def _is_of_several(section: Section) -> bool:
    """Whether a section has the configurations of its test side by side."""
    return any(CONFIGURATION in row.result.parameters for row in section.rows)


def _lead_charts(report: Report, sections: Sequence[Section], figures: Figures) -> list[Figure]:
    """Returns the chart that shows how configurations differ, or else the lead of the page."""
    names = tuple(dict.fromkeys(row.result.configuration for section in report.sections for row in section.rows))
    if report.comparison is None and len(names) > 1:
        none = StatisticsView(0, 0, (), None, None, None)
        tables = rates_tables(sections, names, report.statistics or none)
        drawn = (figures.of_rates(each, each.goals[0]) for each in tables[:1])
        return without_none(drawn)
    return [figures.lead] if figures.lead else []


def _small(figure: Figure, *, is_alone: bool) -> Panel:
    panel = figure.panels[0]
    label = figure.title or panel.drawing.label
    said = first_sentence(figure.caption)
    return replace(
        panel,
        drawing=panel.drawing if is_alone else panel.narrow or panel.drawing,
        narrow=None,
        head=inlines(strong(label)),
        caption=inlines(f"{said}."),
    )


def compact_sections(
    sections: Iterable[Section], tails: Iterable[TailTable], *, rates_are_shown: bool
) -> Iterator[Block]:
    """Yields one table for all sections of a method that have the same columns, a heading row for each of them, and
    one for the long tails. Searched rates that the table by frame size has are left out.
    """
    shown = [section for section in sections if not section.is_bare]
    for _, members in groupby(shown, key=lambda section: (section.rows[0].result.method, section.table.part)):
        yield from _alike(list(members), is_shown=rates_are_shown)
    told = [tail for tail in tails if any(row.outside for row in tail.rows)]
    if told:
        yield from _tails(told)


def _beside(report: Report) -> tuple[Section, ...]:
    """Returns the sections, with the configurations of each test side by side."""
    if report.comparison:
        return report.comparison.sections
    results = [row.result for section in report.sections for row in section.rows]
    if len({result.configuration for result in results}) < 2 or any(result.run is not None for result in results):
        return report.sections
    tests = {row.result.id: section.test for section in report.sections for row in section.rows}
    return side_by_side(results, tests, known=RunKnowledge(report.plan))


def _alike(sections: Sequence[Section], *, is_shown: bool) -> Iterator[Block]:
    first = sections[0]
    if is_shown and len(sections) == 1 and first.table.rates is not None:
        yield from _further(first)
        return
    title = first.table.title if len(sections) == 1 else first.table.title.partition(" at ")[0]
    yield heading(2, title)
    if first.table.has_basis:
        yield caption(f"{first.table.basis_of} are {basis_words(first.scope)}.")
    if len(sections) == 1:
        yield result_table(_main(first), ((_cells(first, at), at.result) for at in first.brief or first.rows))
    else:
        yield _stacked(sections)
    if len(sections) == 1:
        yield from _further(first)
    else:
        yield from notes(list(dict.fromkeys(note for section in sections for note in section.notes)))
        yield from _doubts(sections)


def _doubts(sections: Sequence[Section]) -> Iterator[Block]:
    """Yields one line for all results that may not be relied on: how many they are, and where the reasons stand."""
    number = sum(len(section.doubts) for section in sections)
    if number:
        are = "result is" if number == 1 else "results are"
        yield caption(set_tone("*", "warn"), f" {number} {are} disturbed or incomplete; the layout “study” says why.")


def _further(section: Section) -> Iterator[Block]:
    """Yields what is remarkable in the rows of a section, and its further tables."""
    yield from notes(section.notes)
    yield from _doubts([section])
    for further in section.further:
        if _is_of_several(section) or not any(column.form in _BITS for column in further.table.columns):
            continue
        places = [at for at, column in enumerate(further.table.columns) if at == 0 or not column.is_minor]
        columns = [further.table.columns[at] for at in places]
        yield heading(2, f"{section.table.title}: {lower_first(further.table.title)}")
        yield caption(further.table.caption)
        yield result_table(columns, (([row.cells[at] for at in places], row.result) for row in further.rows))


def _main(section: Section) -> list[Column]:
    """Returns the columns of a section that are neither minor nor unknown in all rows."""
    results = [row.result for row in section.rows]
    return [
        column
        for at, column in enumerate(section.table.columns)
        if at == 0 or not (column.is_minor or all(value_of(result, column.value) is None for result in results))
    ]


def _cells(section: Section, of: Row) -> list[str]:
    chosen = {id(column) for column in _main(section)}
    return [text for column, text in zip(section.table.columns, of.cells, strict=True) if id(column) in chosen]


def _stacked(sections: Sequence[Section]) -> Table:
    """Returns the sections one above the other in one table, the title of each above its rows.

    Alone each section has the units that suit it; here a column has one unit, which suits all of them.
    """
    heads = [column.head for column in _main(sections[0])]
    results = [each.result for section in sections for each in section.brief or section.rows]
    scaled = scale_units(sections[0].table, results)
    columns = [column for column in scaled.columns if column.head in heads]
    cells_of = zip(*(texts(column, results) for column in columns), strict=True)

    def rows() -> Iterator[BodyRow]:
        for section in sections:
            label = Cell(inlines(section.table.title), len(columns), is_head=True, words=True)
            yield replace(row(label, look="about"), begins_group=True)
            for each in section.brief or section.rows:
                cells = next(cells_of)
                yield row(
                    name(cells[0], mark(each.result)),
                    *(cell(strong(text) if column.is_main else text)
                      for column, text in zip(columns[1:], cells[1:], strict=True)),
                )  # fmt: skip

    return table(([head(column.head, column.unit) for column in columns],), rows(), "result")


def _tails(tails: Sequence[TailTable]) -> Iterator[Block]:
    """Yields one table of the long tails of all loads: the share of the frames that took longer than each bound."""
    bounds = tails[0].bounds
    alike = [tail for tail in tails if tail.bounds == bounds]
    yield heading(2, "Long tail")
    yield caption(f"The share of {alike[0].what} that took longer than each bound.")

    def rows() -> Iterator[BodyRow]:
        for tail in alike:
            label = Cell(inlines(f"At {tail.load}"), len(bounds) + 1, is_head=True, words=True)
            yield replace(row(label, look="about"), begins_group=True)
            for each in tail.rows:
                yield row(name(each.name, mark(each.result)), *(cell(share) for _, share in each.outside))

    yield table(([head("Frame"), *(head(f"> {bound} µs") for bound in bounds)],), rows(), "result")


Tell = Callable[[Facts], str | None]


_COMPILERS = ("gcc", "clang", "rustc")


CardRow = tuple[str, tuple[Part, ...]]
"""A label, and a text for each machine, or one for the whole test."""


class Card(NamedTuple):
    """A table of facts; ``unknown`` are the labels of facts that were looked for and not found."""

    machines: tuple[str, ...]
    rows: tuple[CardRow, ...]
    unknown: tuple[str, ...] = ()


def _drivers(key: str) -> Tell:
    """Returns a function that says what the drivers of the test's interfaces disclose under ``key``."""

    def tell(facts: Facts) -> str | None:
        known = facts.get("drivers")
        found = known.items() if isinstance(known, Mapping) else ()
        told = [
            " ".join(
                str(driver[part]) for part in (key, "version") if driver.get(part) and (part == key or key == "name")
            )
            for _, driver in found
            if isinstance(driver, Mapping) and driver.get(key)
        ]
        return ", ".join(dict.fromkeys(told)) or None

    return tell


def _compiler(facts: Facts) -> str | None:
    software = facts.get("software")
    known = software if isinstance(software, Mapping) else {}
    return ", ".join(f"{name} {known[name]}" for name in _COMPILERS if known.get(name)) or None


_SETUP: Final[Mapping[str, Tell]] = {
    "Server": partial(tell, "Machine"),
    "CPU": partial(tell, "Processors"),
    "RAM": partial(tell, "Memory"),
    "Memory modules": partial(tell, "Memory modules"),
    "BIOS": partial(tell, "BIOS"),
    "Network adapter (NIC)": partial(tell, "Network adapters"),
    "NIC firmware": _drivers("firmware"),
    "NIC driver": _drivers("name"),
    "Operating system": partial(tell, "Operating system"),
    "Kernel": partial(tell, "Kernel"),
    "Hypervisor": partial(tell, "Hypervisor"),
    "Compiler": _compiler,
}
_SETTINGS: Final[Mapping[str, Tell]] = {
    "BIOS settings": partial(tell, "BIOS settings"),
    "Boot parameters": partial(tell, "Kernel command line"),
    "Power policy": partial(tell, "Power policy"),
    "Frequency policy": partial(tell, "Frequency policy"),
    "C-states": partial(tell, "C-states"),
    "Simultaneous multithreading (SMT)": partial(tell, "SMT"),
    "CPUs set apart": partial(tell, "CPUs set apart"),
    "Interrupts": partial(tell, "Interrupts"),
    "Huge pages": partial(tell, "Huge pages"),
}
_MAY_NOT_APPLY: Final = frozenset({"Hypervisor", "CPUs set apart"})


def setup(report: Report) -> Card:
    """Returns the setup table: server, CPU, RAM, BIOS, NIC, operating system, kernel, compiler, firmware, driver, DPDK
    and test configuration.
    """
    machines, rows, unknown = _of_machines(report.inventory, _SETUP)
    told = [row for plan in _plans(report) for row in _plan_setup(*plan)]
    in_kernel = all(plan.tester.get("options", {}).get("driver") == facts.XDP for _, plan in _plans(report))
    if report.plan and not in_kernel and not any(label.startswith("DPDK") for label, _ in told):
        unknown.append("DPDK")
    return Card(machines, (*rows, *told, *_declared(report), *_hypervisors(report)), tuple(unknown))


def settings(report: Report) -> Card:
    """Returns the settings table: BIOS, boot parameters, settings of DUT and tester, command lines, other
    optimisations, and the settings of each test.
    """
    machines, rows, unknown = _of_machines(report.inventory, _SETTINGS)
    told = [row for plan in _plans(report) for row in _plan_settings(*plan)]
    tests = [row for plan in _plans(report, "tests") for row in _test_settings(*plan, in_bits=bool(report.endpoints))]
    return Card(machines, (*rows, *told, *_tuned(report), *tests), tuple(unknown))


def _of_machines(
    inventory: Mapping[str, Any], subjects: Mapping[str, Tell]
) -> tuple[tuple[str, ...], list[CardRow], list[str]]:
    """Returns the machines, a row for each known subject, and the unknown subjects; machines that are alike share a
    column.
    """
    columns = grouped(
        (
            tuple(_told(tell, known if isinstance(known, Mapping) else {}) for tell in subjects.values()),
            host_name(host),
        )
        for host, known in inventory.items()
    )
    rows: list[CardRow] = []
    unknown = []
    for number, label in enumerate(subjects):
        texts = tuple(column[number] for column in columns)
        if any(texts):
            rows.append((label, texts))
        elif label not in _MAY_NOT_APPLY:
            unknown.append(label)
    return tuple(" and ".join(names) for names in columns.values()), rows, unknown


def _told(tell: Tell, facts: Facts) -> str | None:
    try:
        return tell(facts)
    except (AttributeError, KeyError, TypeError, ValueError):  # a fact in an unexpected form
        return None


def _plans(report: Report, *parts: str) -> tuple[tuple[str, Plan], ...]:
    """Returns each plan that differs in ``parts``, with the suffix that its labels get: "" or " (configuration)"."""
    if report.plan is None:
        return ()
    found = facts.of_configurations(report.plan, *(parts or ("dut", "dut_disclosure", "tester", "traffic")))
    return tuple((f" ({name})" if name else "", plan) for name, plan in found)


def _plan_setup(whose: str, plan: Plan) -> Iterator[CardRow]:
    engine = plan.tester.get("engine")
    known = engine if isinstance(engine, Mapping) else {}
    versions = {
        "tester": known.get("dpdk") or plan.tester.get("dpdk"),
        "DUT": version if str(version := plan.dut_disclosure.get("version") or "").startswith("DPDK") else None,
    }
    dpdk = {name: str(text).removeprefix("DPDK ") for name, text in versions.items() if text}
    if dpdk:
        yield (f"DPDK{whose}", (", ".join(f"{name} {text}" for name, text in dpdk.items()),))
    tester = " ".join(str(part) for part in (known.get("engine"), known.get("version")) if part)
    drivers = dict.fromkeys(str(port["driver"]) for port in plan.tester.get("ports") or () if port.get("driver"))
    if tester or drivers:
        in_kernel = plan.tester.get("options", {}).get("driver") == facts.XDP
        how = "frames made and judged in the kernel (xdp), " if in_kernel else ""
        driven = f", {how}ports driven by {', '.join(drivers)}" if drivers else ""
        text = f"{tester or 'tester'}{driven}"
        yield (f"Tester{whose}", (text,))
    if name := dut_name(plan):
        version = plan.dut_disclosure.get("version")
        yield (f"Device under test (DUT){whose}", (f"{name}{f', {version}' if version else ''}",))
    for _, made in wirings(plan.replace(others=())):
        yield (f"Test configuration{whose}", (f"{f'{made.around}. ' if made.around else ''}{made.words}",))


def _declared(report: Report) -> Iterator[CardRow]:
    for declared, pairs in report.system.declared_things:
        text = "; ".join(f"{label}: {said}" if label else said for label, said in pairs)
        yield (f"{declared} (declared)", (text,))


def _hypervisors(report: Report) -> Iterator[CardRow]:
    for whose, told in report.plan.hypervisors.items() if report.plan else ():
        for each in told.tables:
            named = [": ".join(row) for row in each.rows] if not each.heads else []
            listed = [", ".join(filter(None, row)) for row in each.rows] if each.heads else []
            yield (f"Hypervisor of {whose} ({told.kind}): {each.title}", ("; ".join((*named, *listed)),))


def _plan_settings(whose: str, plan: Plan) -> Iterator[CardRow]:
    disclosed = facts.dut(plan)
    options = {name: value for name, value in plan.dut.items() if name not in ("kind", "name")}
    if text := _listed(_mapping(disclosed.get("settings_in_effect"))) or _listed(options, dut_shapes(plan)):
        yield (f"Settings of the DUT{whose}", (text,))
    if text := _listed(_mapping(disclosed.get("settings"))):
        yield (f"Kernel settings of the DUT{whose}", (text,))
    if commands := _code(disclosed.get("command")) + _code(disclosed.get("commands"), each=True):
        yield (f"Command line of the DUT{whose}", (_lines(commands),))
    if mapped := disclosed.get("port_queue_core_map"):
        yield (f"Port, queue and core{whose}", ("; ".join(map(str, mapped)),))
    if text := _listed(_mapping(plan.tester.get("options")), tester_shapes(plan)):
        yield (f"Settings of the tester{whose}", (text,))
    if arguments := _code(plan.tester.get("eal_arguments")):
        yield (f"EAL arguments of the tester{whose}", (_lines(arguments),))
    if text := _listed(plan.traffic, traffic_shapes()):
        yield (f"Traffic{whose}", (text,))


def _test_settings(whose: str, plan: Plan, *, in_bits: bool) -> Iterator[CardRow]:
    for planned in plan.tests:
        options = facts.in_bits(planned.options) if in_bits else planned.options
        text = _listed({"method": planned.method, **options}, method_shapes(planned.method))
        yield (f"Test “{planned.name}”{whose}", (text,))
    if plan.command:
        yield (f"Command{whose}", (_lines([" ".join(facts.command(plan))]),))


def _tuned(report: Report) -> Iterator[CardRow]:
    """Yields the row "Other optimisations": what was changed for the test."""
    changed = [row for row in report.tuned if row.changed]
    if changed:
        texts = (f"{row.setting} of {row.place}: {row.during} (before: {row.before})" for row in changed)
        yield "Other optimisations", ("; ".join(texts),)


def _listed(values: Mapping[str, Any], shapes: Shapes = MappingProxyType({})) -> str:
    """Returns every value that was asked for, preceded by its label, on one line."""
    told = ((name, plain(name, value, shapes.get(name))) for name, value in _asked(values).items())
    return "; ".join(f"{label_of(name, shapes.get(name))}: {text}" for name, text in told if text)


def _asked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values without those that nobody asked for."""
    inner = {name: _asked(value) if isinstance(value, Mapping) else value for name, value in values.items()}
    return {name: value for name, value in inner.items() if value is not None and value not in ("", [], {}, ())}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _lines(commands: Sequence[str]) -> Part:
    return join_inlines("; ", map(code, commands))


def _code(value: object, *, each: bool = False) -> list[str]:
    """Returns the lines of code of a value. A list of words is one command on one line, or with ``each`` a list of
    commands; a mapping has the commands of several hosts.
    """
    if isinstance(value, Mapping):
        return [line for inner in value.values() for line in _code(inner, each=each)]
    if isinstance(value, str):
        return [value]
    words: Iterable[object] = value if isinstance(value, list | tuple) else ()
    texts = [str(word) for word in words]
    return texts if each or not texts else [" ".join(texts)]


IS_BRIEF = True
"""Whether paper has the document in small type, without a table of contents."""


def sections(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields the answer, all results, the statistics, the setup, and in small print what there is to disclose."""
    yield from opening.imported_note(report)
    if introduced := tuple(opening.about(report)):
        yield from introduced
        yield Group((heading(1, "Answer", id="answer"), *opening.answer(report)))
    else:
        yield from opening.answer(report)
    results = tuple(_results(report, figures))
    told = () if report.imported else tuple(_how_measured(report))
    yield Group((heading(1, "Results", id="results"), *(results or (paragraph("No test gave a result."),)), *told))
    if report.statistics and not (report.comparison and report.comparison.runs == 1):
        yield Group((heading(1, "Statistics"), *statistics(report, figures)))
    if report.imported:
        yield Group((heading(1, "Source", id="method"), *closing.source(report)))
        if report.imported.errata:
            yield Group((heading(1, "Errata"), *closing.errata(report)))
    else:
        yield Group((heading(1, "Setup", id="setup"), *_card(setup(report))), "sheet")
        yield Group(
            (heading(1, "Disclosure", id="disclosure"), *_card(settings(report)), *_small_print(report)), "sheet"
        )


def _results(report: Report, figures: Figures) -> Iterator[Block]:
    shown, compared = report.overview, report.comparison
    yield from studies(report, figures)
    if shown.by_size is not None:
        yield size_table(shown.by_size)
        yield from basis_line(shown.by_size)
    if shown.points and compared is None:
        yield point_table(shown.points)
    yield from loss_line(report)
    sections = _beside(report)
    yield from small_charts(report, sections, figures)
    if compared is not None:
        yield from comparing.compared_configurations(compared, report)
        yield from comparing.over_axes(compared, figures)
        if shown.by_size is None:
            yield from comparing.rates(compared, report, figures)
    tails = compared.tails if compared else report.tails
    yield from compact_sections(sections, tails, rates_are_shown=shown.by_size is not None)
    yield from other_results(report.other_results)


def _how_measured(report: Report) -> Iterator[Block]:
    """Yields what was done, a line for each test, and how many samples were made; the setup stands below."""
    if report.plan is None:
        return
    yield heading(2, "How it was measured")
    planned = (test for plan in report.plan.each for test in plan.tests)
    lines = dict.fromkeys(first_sentence(inlines(procedure_of(test))) for test in planned)
    trials = report.known_trials.values()
    counted = [f"{count_of(len(trials), 'trial')}, {sum(not each.verdict.valid for each in trials)} of them invalid"]
    yield listing([f"{line}." for line in (*lines, *(counted if trials else ()))])


def _card(card: Card) -> Iterator[Block]:
    """Yields a table of facts with a row for each fact and a column for each machine."""
    width = max(len(card.machines), 1)
    above = ((NOTHING, *map(head, card.machines)),) if card.machines else ()
    yield table(above, ((name(label), *_texts(texts, width)) for label, texts in card.rows), "system")
    if card.unknown:
        yield caption(f"Not known: {', '.join(card.unknown)} ({len(card.unknown)}).")


def _texts(texts: Sequence[Part], width: int) -> tuple[Cell, ...]:
    if len(set(texts)) > 1:
        return tuple(cell(text or UNKNOWN) for text in texts)
    return (cell(texts[0], columns=width),)


def _small_print(report: Report) -> Iterator[Block]:
    """Yields the deviations and the history, a paragraph each."""
    if report.plan and report.plan.deviations:
        yield heading(2, "Deviations from the standards", id="deviations")
        yield caption(f"{'; '.join(report.plan.deviations)}.")
    history = "; ".join(f"{when or 'not known'}: {what}" for when, what in report.revisions)
    yield caption(strong("Revision history:"), f" {history}.")
