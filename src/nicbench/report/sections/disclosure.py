"""The disclosure section: machines, settings, versions and command lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nicbench.core.events import ConfigurationSet
from nicbench.report import facts as disclosed
from nicbench.report.document.blocks import Block, Cell, Code, FoldedBlocks
from nicbench.report.document.making import (
    NOTHING,
    badge,
    breakable,
    caption,
    cell,
    file_link,
    head,
    heading,
    heads,
    inlines,
    lines,
    name,
    paragraph,
    strong,
    table,
    word_heads,
    words,
)
from nicbench.report.facts import (
    columns,
    dut_shapes,
    host_name,
    known_rows,
    lab_shapes,
    of_configurations,
    plain,
    spans,
    tester_shapes,
    traffic_shapes,
)
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN, whole
from nicbench.report.sections.method import facts, in_turn
from nicbench.report.system_table import TunedRow
from nicbench.report.wording import capitalise
from nicbench.store.listing import INVENTORY

_SHOWN_CONFIGURATIONS = 10


def disclosure(report: Report) -> Iterator[Block]:
    """Yields everything known that a reader needs to judge the numbers."""
    plan = report.plan
    if plan is None:
        yield paragraph("The run ended before its plan was written: nothing more is known than the bench file says.")
    for whose, each in of_configurations(plan, "dut", "dut_disclosure") if plan else ():
        if each.dut_disclosure or each.dut:
            yield heading(2, f"Device under test{_of(whose)}")
            yield facts(disclosed.dut(each), shapes=dut_shapes(each))
    yield from queue_frames(report)
    for whose, each in of_configurations(plan, "cores") if plan else ():
        if each.cores:
            halved = each.cores.get("halved_cores")
            is_shared = disclosed.shares_cores(each)
            yield heading(2, f"Cores and their roles{_of(whose)} ", badge("shared cores") if is_shared else None)
            if each.cores.get("shared"):
                yield caption("There are fewer cores than roles: roles that share a core disturb one another.")
            elif halved:
                which = "; ".join(str(cpus) for cpus in halved)
                yield caption(
                    f"Tester and DUT have hyperthreads of one physical core (CPUs {which}): each slows the other down."
                )
            yield facts(each.cores)
    if report.inventory:
        yield from machines(report)
    elif clocks := _core_clock(report):
        yield paragraph(f"Core clock over all trials: {clocks}.")
    for whose, each in of_configurations(plan, "tester", "cores") if plan else ():
        if each.tester:
            yield heading(2, f"Tester{_of(whose)}")
            yield facts(disclosed.tester(each), shapes=tester_shapes(each))
    if report.configured is not None:
        yield from _configurations(report.configured)
    sent = [
        (
            _of(whose),
            {
                **disclosed.asked_options(each.traffic),
                "direction": [disclosed.direction(way, each.traffic) for way in each.addressing],
            },
        )
        for whose, each in (of_configurations(plan, "traffic", "addressing") if plan else ())
        if each.traffic or each.addressing
    ]
    for names, traffic in in_turn(sent):
        yield heading(2, f"Traffic{names}")
        yield facts(traffic, shapes=traffic_shapes())
    for whose, each in of_configurations(plan, "lab", "facts") if plan else ():
        if told := disclosed.lab(each):
            yield heading(2, f"{'Lab' if each.lab else 'Testbed'}{_of(whose)}")
            yield facts(told, shapes=lab_shapes(each))


def queue_frames(report: Report) -> Iterator[Block]:
    """Yields the frames that each queue of the DUT received, over all trials; nothing for a DUT of one queue."""
    ports: dict[int, list[int]] = {}
    for trial in report.known_trials.values():
        for number, queues in enumerate(trial.reading.dut_queues):
            before = ports.get(number, [0] * len(queues))
            ports[number] = [had + frames for had, frames in zip(before, queues, strict=False)]
    if not ports:
        return
    most = max(map(len, ports.values()))
    yield heading(2, "Frames by queue of the DUT")
    yield caption("Received over all trials, by the DUT’s own counters; in brackets the share of its port.")
    yield table(
        ((head("Port"), *heads(*(f"Queue {queue}" for queue in range(most)))),),
        (
            (
                name(f"d{port}"),
                *(cell(f"{whole(frames)} ({100 * frames / max(1, sum(queues)):.1f} %)") for frames in queues),
            )
            for port, queues in sorted(ports.items())
        ),
    )


def machines(report: Report) -> Iterator[Block]:
    """Yields the system configuration table, the declared facts, and the settings made for the test."""
    system = report.system
    hosts, rows = columns(report.inventory, host_name)
    yield heading(2, "System configuration", id="machines")
    clock = _clock_row(report, len(system.machines if system.rows else hosts))
    if system.rows:
        yield table(
            ((NOTHING, *map(head, system.machines)),),
            (
                *(
                    (_label(row.label or "Declared", is_declared=row.declared), *_cells(row.texts))
                    for row in system.rows
                ),
                *clock,
            ),
            "system",
        )
        several = "s" if len(system.machines) > 1 else ""
        if system.unknown:
            labels = ", ".join(label for label, _ in system.unknown)
            yield caption(f"Not reported by the machine{several}: {labels}.")
        number = len(known_rows(rows))
        yield caption(inlines(f"All {number} facts about the machine{several} are in ", file_link(INVENTORY), "."))
    else:
        told_rows = ((name(breakable(label)), *map(cell, texts)) for label, texts in rows)
        yield table(((NOTHING, *map(head, hosts)),), (*told_rows, *clock), "facts")
    if system.declared_things:
        yield heading(2, "Declared in the bench file")
        yield caption("Not machine-readable, and not checked by nicbench.")
        yield table(
            (),
            (
                (
                    _label(thing, is_declared=True),
                    cell(lines(f"{label}: {text}" if label else text for label, text in pairs)),
                )
                for thing, pairs in system.declared_things
            ),
            "facts",
        )
    yield from _hypervisors(report)
    yield from _tuned_settings(report.tuned)


def _hypervisors(report: Report) -> Iterator[Block]:
    """Yields the tables of each guest's hypervisor, as its administrator saved them."""
    for whose, told in report.plan.hypervisors.items() if report.plan else ():
        yield heading(2, f"Hypervisor of {whose}")
        yield caption(f"{told.kind}, from {', '.join(told.files)}: as saved; not checked by nicbench.")
        for each in told.tables:
            yield heading(3, capitalise(each.title))
            above = ((*map(head, each.heads),),) if each.heads else ()
            yield table(above, ((name(first), *map(cell, rest)) for first, *rest in each.rows), "facts")


def _tuned_settings(rows: Sequence[TunedRow]) -> Iterator[Block]:
    """Yields the settings that were changed for the test, and those that were asked for but not changed."""
    if not rows:
        return
    changed = [row for row in rows if row.changed]
    others = [row for row in rows if not row.changed]
    yield heading(2, "Settings made for the test")
    yield caption(
        f"{len(changed)} of {len(rows)} settings were changed, verified by reading them back, and read again during "
        "the test."
    )
    if changed:
        yield _tuned_table(changed)
        commands = dict.fromkeys(command for row in changed for command in row.commands)
        if commands:
            yield caption("By these commands:")
            yield Code("\n".join(commands))
    if others:
        went_wrong = any(row.wrong for row in others)
        yield FoldedBlocks(inlines(f"Not changed: {len(others)}"), (_tuned_table(others),), is_open=went_wrong)


def _tuned_table(rows: Iterable[TunedRow]) -> Block:
    return table(
        (word_heads("Setting", "Where", "Before", "During the test", "Outcome", "Requested by"),),
        (
            (
                name(row.setting, words=True),
                words(row.place),
                words(row.before),
                words(row.during),
                words(strong(row.outcome, "warn") if row.wrong else row.outcome),
                words(row.source),
            )
            for row in rows
        ),
    )


def _label(label: str, *, is_declared: bool) -> Cell:
    return name(label, " ", badge("declared") if is_declared else None)


def _cells(texts: Iterable[str | None]) -> tuple[Cell, ...]:
    """Returns the cells of a row; adjacent machines with the same text (mostly namespaces of one host) share a cell."""
    return tuple(cell(UNKNOWN if text is None else text, columns=width) for text, width in spans(tuple(texts)))


def _configurations(configured: Sequence[ConfigurationSet]) -> Iterator[Block]:
    """Yields what clients set: each configuration is a file of the run folder, as it came."""
    yield heading(2, "Traffic")
    if not configured:
        yield paragraph("Clients set no configuration.")
        return
    rows = table(
        (heads("Configuration", "Ports", "Flows", "File"),),
        (
            (name(str(each.number)), cell(whole(each.ports)), cell(whole(each.flows)), cell(file_link(each.file)))
            for each in configured
        ),
        "facts",
    )
    yield paragraph("Clients said what was sent, by configurations of the Open Traffic Generator API.")
    title = inlines(f"Configurations: {len(configured)}")
    yield FoldedBlocks(title, (rows,), is_open=len(configured) <= _SHOWN_CONFIGURATIONS, is_detail=True)


def _clock_row(report: Report, machines: int) -> tuple[tuple[Cell, ...], ...]:
    rows = []
    if clocks := _core_clock(report):
        text = f"{clocks}, probed before and after each trial on the worker’s core"
        rows.append((name("Core clock over all trials"), cell(text, columns=machines)))
    return tuple(rows)


def _core_clock(report: Report) -> str:
    if report.core_clock_hz is None:
        return ""
    return " to ".join(plain("x_hz", hz) for hz in report.core_clock_hz)


def _of(whose: str) -> str:
    return f" ({whose})" if whose else ""
