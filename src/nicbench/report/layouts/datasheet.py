"""The cards of a datasheet: its setup table and its settings table.

The functions are pure. What is not known is left out and named as unknown, never invented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from nicbench.core.described import Facts
from nicbench.core.plan import Plan
from nicbench.report import facts
from nicbench.report.answer.sentences import dut_name
from nicbench.report.document.blocks import Block, Cell, Group
from nicbench.report.document.making import (
    NOTHING,
    caption,
    cell,
    code,
    head,
    heading,
    join_inlines,
    name,
    paragraph,
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
from nicbench.report.numbers import UNKNOWN
from nicbench.report.sections import closing, comparing, opening
from nicbench.report.sections.compact import compact_sections, small_charts
from nicbench.report.sections.editors import studies
from nicbench.report.sections.overview import basis_line, loss_line, point_table, size_table
from nicbench.report.sections.results import other_results
from nicbench.report.sections.statistics import statistics
from nicbench.report.system_table import tell
from nicbench.report.wiring import wirings

Tell = Callable[[Facts], str | None]


_COMPILERS = ("gcc", "clang", "rustc")


@dataclass(frozen=True, slots=True)
class CardRow:
    """One fact: one text for each machine, or one text for the whole test, or lines of code."""

    label: str
    texts: tuple[str | None, ...] = ()
    text: str = ""
    code: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Card:
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
    if report.plan and not in_kernel and not any(row.label.startswith("DPDK") for row in told):
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
    columns: dict[tuple[str | None, ...], list[str]] = {}
    for host, known in inventory.items():
        told = tuple(_told(tell, known if isinstance(known, Mapping) else {}) for tell in subjects.values())
        columns.setdefault(told, []).append(host_name(host))
    rows, unknown = [], []
    for number, label in enumerate(subjects):
        texts = tuple(column[number] for column in columns)
        if any(texts):
            rows.append(CardRow(label, texts=texts))
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
        yield CardRow(f"DPDK{whose}", text=", ".join(f"{name} {text}" for name, text in dpdk.items()))
    tester = " ".join(str(part) for part in (known.get("engine"), known.get("version")) if part)
    drivers = dict.fromkeys(str(port["driver"]) for port in plan.tester.get("ports") or () if port.get("driver"))
    if tester or drivers:
        in_kernel = plan.tester.get("options", {}).get("driver") == facts.XDP
        how = "frames made and judged in the kernel (xdp), " if in_kernel else ""
        driven = f", {how}ports driven by {', '.join(drivers)}" if drivers else ""
        text = f"{tester or 'tester'}{driven}"
        yield CardRow(f"Tester{whose}", text=text)
    if name := dut_name(plan):
        version = plan.dut_disclosure.get("version")
        yield CardRow(f"Device under test (DUT){whose}", text=f"{name}{f', {version}' if version else ''}")
    for _, made in wirings(plan.replace(others=())):
        yield CardRow(f"Test configuration{whose}", text=f"{f'{made.around}. ' if made.around else ''}{made.words}")


def _declared(report: Report) -> Iterator[CardRow]:
    for declared, pairs in report.system.declared_things:
        text = "; ".join(f"{label}: {said}" if label else said for label, said in pairs)
        yield CardRow(f"{declared} (declared)", text=text)


def _hypervisors(report: Report) -> Iterator[CardRow]:
    for whose, told in report.plan.hypervisors.items() if report.plan else ():
        for each in told.tables:
            named = [": ".join(row) for row in each.rows] if not each.heads else []
            listed = [", ".join(filter(None, row)) for row in each.rows] if each.heads else []
            yield CardRow(f"Hypervisor of {whose} ({told.kind}): {each.title}", text="; ".join((*named, *listed)))


def _plan_settings(whose: str, plan: Plan) -> Iterator[CardRow]:
    disclosed = plan.dut_disclosure
    options = {name: value for name, value in plan.dut.items() if name not in ("kind", "name")}
    if text := _listed(_mapping(disclosed.get("settings_in_effect"))) or _listed(options, dut_shapes(plan)):
        yield CardRow(f"Settings of the DUT{whose}", text=text)
    if text := _listed(_mapping(disclosed.get("settings"))):
        yield CardRow(f"Kernel settings of the DUT{whose}", text=text)
    if code := tuple(_code(disclosed.get("command")) + _code(disclosed.get("commands"), each=True)):
        yield CardRow(f"Command line of the DUT{whose}", code=code)
    if mapped := disclosed.get("port_queue_core_map"):
        yield CardRow(f"Port, queue and core{whose}", text="; ".join(map(str, mapped)))
    if text := _listed(_mapping(plan.tester.get("options")), tester_shapes(plan)):
        yield CardRow(f"Settings of the tester{whose}", text=text)
    if arguments := _code(plan.tester.get("eal_arguments")):
        yield CardRow(f"EAL arguments of the tester{whose}", code=tuple(arguments))
    if text := _listed(plan.traffic, traffic_shapes()):
        yield CardRow(f"Traffic{whose}", text=text)


def _test_settings(whose: str, plan: Plan, *, in_bits: bool) -> Iterator[CardRow]:
    for planned in plan.tests:
        options = facts.in_bits(planned.options) if in_bits else planned.options
        text = _listed({"method": planned.method, **options}, method_shapes(planned.method))
        yield CardRow(f"Test “{planned.name}”{whose}", text=text)
    if plan.command:
        yield CardRow(f"Command{whose}", code=(" ".join(facts.command(plan)),))


def _tuned(report: Report) -> Iterator[CardRow]:
    """Yields the row "Other optimisations": what was changed for the test."""
    changed = [row for row in report.tuned if row.changed]
    if changed:
        yield CardRow(
            "Other optimisations",
            text="; ".join(f"{row.setting} of {row.place}: {row.during} (before: {row.before})" for row in changed),
        )


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
    yield Group((heading(1, "Results", id="results"), *(results or (paragraph("No test gave a result."),))))
    if report.statistics:
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
    yield from small_charts(report, figures)
    if compared is None:
        yield from compact_sections(report)
    else:
        yield from comparing.compared_configurations(compared, report)
        yield from comparing.over_axes(compared, figures)
        yield from comparing.rates(compared, report, figures)
        yield from comparing.every_value(compared, report, figures)
    yield from other_results(report.other_results)


def _card(card: Card) -> Iterator[Block]:
    """Yields a table of facts with a row for each fact and a column for each machine."""
    width = max(len(card.machines), 1)
    above = ((NOTHING, *map(head, card.machines)),) if card.machines else ()
    yield table(above, ((name(row.label), *_texts(row, width)) for row in card.rows), "system")
    if card.unknown:
        yield caption(f"Not known: {', '.join(card.unknown)} ({len(card.unknown)}).")


def _texts(row: CardRow, width: int) -> tuple[Cell, ...]:
    if row.texts and len(set(row.texts)) > 1:
        return tuple(cell(text or UNKNOWN) for text in row.texts)
    if row.texts:
        return (cell(row.texts[0], columns=width),)
    return (cell(join_inlines("; ", map(code, row.code)) if row.code else row.text, columns=width),)


def _small_print(report: Report) -> Iterator[Block]:
    """Yields the deviations and the history, a paragraph each."""
    if report.plan and report.plan.deviations:
        yield heading(2, "Deviations from the standards", id="deviations")
        yield caption(f"{'; '.join(report.plan.deviations)}.")
    history = "; ".join(f"{row.when or 'not known'}: {row.what}" for row in report.revisions)
    yield caption(strong("Revision history:"), f" {history}.")
