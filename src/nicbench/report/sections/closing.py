"""The last sections: how to repeat the run, the source of imported numbers, revision history and glossary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nicbench import __version__
from nicbench.report.disclosure import command
from nicbench.report.document.blocks import Block, Code, Definitions, FoldedBlocks
from nicbench.report.document.inlines import Part, breakable, code, file_link, inlines, join_inlines
from nicbench.report.document.tables import (
    caption,
    cell,
    head,
    heading,
    heads,
    listing,
    name,
    paragraph,
    table,
    word_heads,
    words,
)
from nicbench.report.glossary import OF_FRAMES, OF_ROUNDS
from nicbench.report.imported import ErratumRow
from nicbench.report.model import Report
from nicbench.report.study.sentences import adaptations, prerequisites, spread


def repeat(report: Report) -> Iterator[Block]:
    """Yields everything that another person needs to repeat the run."""
    yield heading(2, "Prerequisites")
    yield listing(prerequisites(report.plan) or (inlines("What ", code("nicbench doctor"), " names."),))
    yield heading(2, "Commands")
    yield listing(_steps(report), ordered=True)
    if report.variables:
        yield heading(2, "Environment of the tools")
        yield FoldedBlocks(inlines(f"All variables: {len(report.variables)}"), (_variables(report),), is_detail=True)
    yield heading(2, "What to adapt")
    yield listing(adaptations(report.plan, report) or ("Not known: the plan was not written.",))
    if report.configured is None:
        yield heading(2, "Expected spread")
        yield listing(spread(report))
    yield FoldedBlocks(inlines("The bench file"), (Code(report.bench_text),), is_open=True, is_detail=True)


def _variables(report: Report) -> Block:
    """Returns every variable that tools were passed, and where where not all had it."""
    differ = any(row.where for row in report.variables)
    return table(
        (word_heads("Variable", "Value", *(("Where",) if differ else ())),),
        (
            (name(breakable(row.name)), cell(code(row.value)), *((words(row.where or "everywhere"),) if differ else ()))
            for row in report.variables
        ),
        "facts",
    )


def _steps(report: Report) -> Iterator[Part]:
    version = report.nicbench_version or "that made this report"
    yield inlines(
        f"In a clone of nicbench’s repository, at version {version}: ",
        code("make install"),
        ". The program is ",
        code(".venv/bin/nicbench"),
        "; ",
        code("nicbench doctor"),
        " lists what the machine lacks.",
    )
    yield inlines(
        "Save the bench file below as ",
        code("bench.yaml"),
        " and check it, which changes nothing: ",
        code("nicbench validate bench.yaml"),
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
        " lists the settings that differ between two runs; ",
        code("nicbench compare"),
        " shows both results side by side.",
    )


def source(report: Report) -> Iterator[Block]:
    """Yields the source of imported results and how far to trust them; nothing for a run that nicbench measured."""
    if report.imported is None:
        return
    told = report.imported.source
    yield heading(2, "Origin", id="tested")
    names = (told.file, *(more.file for more in told.more_files))
    files = (join_inlines(", ", map(file_link, names)), f", read as {told.format}, {told.rows} results")
    rows: tuple[tuple[str, tuple[Part, ...]], ...] = (
        ("Source", (told.source or "not named",)),
        ("Year", (str(told.year or "not named"),)),
        ("Device", (told.device or "not named",)),
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
    yield FoldedBlocks(inlines("How the file was read"), (*line, Code(report.bench_text)))


def errata(report: Report) -> Iterator[Block]:
    """Yields the table of printed values in the source that cannot be correct."""
    if report.imported and report.imported.errata:
        yield heading(2, "Errata of the source", id="errata")
        yield caption("Printed values that cannot be correct. They are shown as printed, and marked †.")
        yield errata_table(report.imported.errata)


def errata_table(rows: Sequence[ErratumRow]) -> Block:
    """Returns the errata table, a row for each wrong cell of the source."""
    return table(
        (
            (
                *word_heads("Result", "Column"),
                *heads("Printed", "Computed"),
                *word_heads("Reason"),
                head("Line and column"),
            ),
        ),
        (
            (
                name(row.point, words=True),
                words(row.name),
                cell(row.printed),
                cell(row.computed),
                words(row.reason),
                cell(row.place, tone="quiet"),
            )
            for row in rows
        ),
    )


def revisions(report: Report) -> Iterator[Block]:
    """Yields the revision history: when the run was measured and by which version, and the author's later revisions."""
    yield table(
        (word_heads("When", "What"),),
        (
            *((name(row.when or "not known"), words(row.what)) for row in report.revisions),
            (name("this page"), words(f"Made by nicbench {__version__}")),
        ),
        "result",
    )


def glossary(report: Report) -> Iterator[Block]:
    """Yields definitions of technical terms; the finished document leaves out those that it does not use."""
    entries = OF_ROUNDS if report.rounds else OF_FRAMES
    yield Definitions(tuple((inlines(word), inlines(meaning)) for word, meaning in entries.items()))
