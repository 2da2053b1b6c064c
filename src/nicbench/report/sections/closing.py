"""The glossary of a report: words that nicbench can explain; ``finishing`` leaves out those that a report lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nicbench import __version__
from nicbench.core.result import Erratum, Result
from nicbench.core.turn import DEFAULT
from nicbench.report.document.blocks import Block, Code, Definitions, FoldedBlocks
from nicbench.report.document.making import (
    Part,
    breakable,
    caption,
    cell,
    code,
    file_link,
    head,
    heading,
    heads,
    inlines,
    join_inlines,
    listing,
    name,
    paragraph,
    table,
    word_heads,
    words,
)
from nicbench.report.facts import command
from nicbench.report.imported import value_name
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN
from nicbench.report.study import adaptations, prerequisites, spread
from nicbench.store.files import BENCH

_OF_STATISTICS: Final = {
    "Bootstrap": (
        "An interval found by drawing from the measured runs with replacement; BCa corrects its ends for bias and "
        "skew (Efron 1987)."
    ),
    "Mann-Whitney U": ("A test by ranks whether one group’s values lie above another’s; it assumes no distribution."),
    "Cliff’s delta": ("How often a value of one group is above one of the other, less how often below: from −1 to 1."),
    "Holm": "A correction for many tests at once.",
}
_OF_CLOCKS: Final = {
    "TSC": "Time-stamp counter of the processor, of one fixed rate.",
}
OF_ROUNDS: Final = {
    "Round": "Tools that run at the same time. Several rounds make a result where they are repeated.",
    "Job": "One run of a tool: a client process and, at the other end, its server process.",
    "Port": "An interface of the host that is measured; clients lead to it over a link, several through a switch.",
    "Throughput": (
        "Payload: bytes that arrived at the program, in bits per second, without the headers of Ethernet, IP, TCP "
        "or UDP."
    ),
    "CPU": (
        "The share of all CPUs of a machine that was not idle, by its monitor; least and most are of single samples."
    ),
    "Limit": (
        "What held a throughput down, where figures show it: a link that was full, CPUs that had no time left, or a "
        "client that was slower than those beside it."
    ),
    "Retransmissions": "Segments that TCP sent again, by the sender’s kernel.",
    "Disturbed": (
        "A tool failed, clients did not begin together, or a hypervisor took a machine’s CPUs away, for longer than "
        "a threshold allows."
    ),
    **_OF_STATISTICS,
    **_OF_CLOCKS,
}
"""The words of a report on a run of workloads."""
OF_FRAMES: Final = {
    "DUT": ("Device under test: the tester sends frames into it and checks every frame that comes back."),
    "NDR": "No-drop rate: the highest rate without loss (the throughput of RFC 2544).",
    "PDR": "Partial-drop rate: the highest rate at which at most the stated share of frames is lost.",
    "kpps, Mpps": "Thousand and million frames per second.",
    "Line rate": "The most frames per second on the link: bit rate / ((frame + 20) × 8).",
    "Interval": (
        "From the highest load up to which every trial met the goal to the lowest from which on none did. “Some”, "
        "“half”: what some or half of the trials passed. “<”: every load failed."
    ),
    "Limited by": ("What kept the rate down: the DUT, the tester or the line rate. With “≥” the DUT may do more."),
    "p99.9": "The latency that 99.9 % of frames do not exceed.",
    "PDV": "Packet delay variation: p99.9 less the minimum (RFC 8219, 7.3.1).",
    "Share": (
        "A part of the frames, with its exact 95 % interval in brackets (Clopper and Pearson 1934), each frame a draw."
    ),
    "L1, L2": "L2 counts the frame with its FCS, L1 adds 20 bytes: preamble, delimiter and gap.",
    "Disturbed": "Other work took the processor from the tester or the DUT beyond a threshold.",
    **_OF_CLOCKS,
    **_OF_STATISTICS,
}
"""The words of a report on a run of frames that a tester sent."""


def repeat(report: Report) -> Iterator[Block]:
    """Yields everything that another person needs to repeat the run."""
    yield heading(2, "Prerequisites")
    yield listing(tuple(prerequisites(report.plan)) or (inlines("What ", code("nicbench doctor"), " names."),))
    if report.wishes.how_to:
        yield heading(2, "Steps of the author")
        yield listing(report.wishes.how_to, ordered=True)
    yield heading(2, "Commands")
    yield listing(_steps(report), ordered=True)
    if report.variables:
        yield heading(2, "Environment of the tools")
        yield FoldedBlocks(inlines(f"All variables: {len(report.variables)}"), (_variables(report),), is_detail=True)
    yield heading(2, "What to adapt")
    yield listing(tuple(adaptations(report.plan, report)) or ("Not known: the plan was not written.",))
    if report.configured is None:
        yield heading(2, "Expected spread")
        yield listing(spread(report))
    yield FoldedBlocks(inlines("The bench file"), (Code(report.bench_text, BENCH),), is_open=True, is_detail=True)


def _variables(report: Report) -> Block:
    """Returns every variable that tools were passed, and where where not all had it."""
    differ = any(row.where for row in report.variables)
    return table(
        (word_heads("Variable", "Value", differ and "Where"),),
        (
            (name(breakable(row.name)), cell(code(row.value)), differ and words(row.where or "everywhere"))
            for row in report.variables
        ),
        "facts",
    )


def _steps(report: Report) -> Iterator[Part]:
    version = report.nicbench_version or "that made this report"
    yield f"Install nicbench {version}."
    yield inlines(
        "Save the bench file below as ",
        code("bench.yaml"),
        ".",
    )
    plan = report.plan
    seed = f"; its seed is {plan.seed}" if plan else ""
    started = (". This run was started with ", code(" ".join(command(plan)))) if plan and plan.command else ()
    if report.configured is not None:
        yield inlines("Run ", code("nicbench serve bench.yaml"), seed, *started, ".")
        yield inlines(
            "Have the client's program send again, or set the configurations of this session, which are listed under "
            "“Traffic”, and start their flows."
        )
        return
    yield inlines("Run ", code("nicbench run bench.yaml"), seed, *started, ".")
    yield inlines(
        "Compare: ",
        code("nicbench diff RUN RUN"),
        " lists settings that differ, ",
        code("nicbench compare"),
        " shows both results.",
    )


def source(report: Report) -> Iterator[Block]:
    """Yields the source of imported results and how far to trust them; nothing for a run that nicbench measured."""
    if report.imported is None:
        return
    told = report.imported.source
    yield heading(2, "Origin", id="tested")
    names = (told.file, *(more.file for more in told.more_files))
    files = (join_inlines(", ", map(file_link, names)), f", read as {told.format}, {told.rows} results")
    devices = [name for name in dict.fromkeys(each.configuration for each in report.sections) if name != DEFAULT]
    rows: tuple[tuple[str, tuple[Part, ...]], ...] = (
        ("Source", (told.source or "not named",)),
        ("Year", (str(told.year or "not named"),)),
        ("Device", (told.device or ", ".join(devices) or "not named",)),
        ("File", files),
        ("SHA-256", (code(told.sha256),)),
    )
    if told.ignored_columns:
        rows += (("Columns left out", (", ".join(told.ignored_columns),)),)
    yield table((), ((name(label), cell(*parts)) for label, parts in rows), "facts")
    yield heading(2, "Reliability")
    yield paragraph(report.imported.checked)
    if report.imported.added:
        yield paragraph(report.imported.added)


def how_it_was_read(report: Report) -> Iterator[Block]:
    """Yields how the file was imported: the command and the bench file, folded."""
    plan = report.plan
    line = (paragraph(code(f"nicbench {' '.join(plan.command)}")),) if plan and plan.command else ()
    yield FoldedBlocks(inlines("How the file was read"), (*line, Code(report.bench_text, BENCH)))


def errata(report: Report) -> Iterator[Block]:
    """Yields the table of printed values in the source that cannot be correct."""
    if report.imported and report.imported.errata:
        yield heading(2, "Errata of the source", id="errata")
        yield caption("Printed values that cannot be correct. They are shown as printed, and marked †.")
        yield errata_table(report.imported.errata)


def errata_table(rows: Sequence[tuple[Result, Erratum]]) -> Block:
    """Returns the errata table, a row for each wrong cell of the source."""
    titles = (
        *word_heads("Result", "Column"),
        *heads("Printed", "Computed"),
        *word_heads("Reason"),
        head("Line and column"),
    )
    body = (
        (
            name(result.id.partition("/")[2] or result.id, words=True),
            words(value_name(result.method, erratum.value)),
            cell(erratum.printed),
            cell(erratum.computed or UNKNOWN),
            words(erratum.reason),
            cell(erratum.place, tone="quiet"),
        )
        for result, erratum in rows
    )
    return table((titles,), body)


def revisions(report: Report) -> Iterator[Block]:
    """Yields the revision history: when the run was measured and by which version, and the author's later revisions."""
    yield table(
        (word_heads("When", "What"),),
        (
            *((name(when or "not known"), words(what)) for when, what in report.revisions),
            (name("this page"), words(f"Made by nicbench {__version__}")),
        ),
        "result",
    )


def glossary(report: Report) -> Iterator[Block]:
    """Yields definitions of technical terms; the finished document leaves out those that it does not use."""
    entries = OF_ROUNDS if report.rounds else OF_FRAMES
    yield Definitions(tuple((inlines(word), inlines(meaning)) for word, meaning in entries.items()))
