"""The appendix of a run of workloads: every round, every tool, what the tool reported and what interfaces counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from nicbench.report.bonds import BondRow
from nicbench.report.document.blocks import Block, Cell, FoldedBlocks, Group, Listing, Row
from nicbench.report.document.inlines import breakable, code, inlines, join_inlines, lines, set_tone, superscript
from nicbench.report.document.tables import (
    NOTHING,
    caption,
    cell,
    head,
    heading,
    heads,
    name,
    paragraph,
    row,
    table,
    word_heads,
    words,
)
from nicbench.report.rounds import JobRow, RoundGroup, RoundRow


def rounds(groups: Sequence[RoundGroup]) -> Iterator[Block]:
    """Yields every round of every test, folded."""
    if not groups:
        return
    told = caption(
        "A round is tools that run at the same time. Of each: what it was asked, what it said (payload, what the "
        "receiver counted; MB/s are 10",
        superscript("6"),
        " bytes), when its client began after the first of the round, and where its output is in the run folder. "
        "Interfaces count whole frames, headers and acknowledgements included, from before the first tool was started "
        "until after the last had ended.",
    )
    yield Group((heading(2, "Rounds", id="rounds"), told, *map(_group, groups)), "trials")


def _group(group: RoundGroup) -> Block:
    """Returns the rounds of a test: one table of those of which nothing else is to be said, and the others each."""
    invalid = (
        (", ", set_tone(f"{group.invalid_count} in which something was wrong", "warn")) if group.invalid_count else ()
    )
    summary = inlines(f"{group.test}: {len(group.rounds)} rounds", *invalid)
    plain = [one for one in group.rounds if one.valid and not (one.findings or one.failure or one.bonds)]
    apart = [one for one in group.rounds if one not in plain]
    return FoldedBlocks(summary, (*_together(plain), *map(_round, apart)), is_detail=True)


def _together(rounds: Sequence[RoundRow]) -> Iterator[Block]:
    """Yields a table of all tools of these rounds and one of what interfaces counted, each round below its name."""
    if not rounds:
        return
    yield _tools(rounds, several=True)
    if any(one.counted for one in rounds):
        yield _counted(rounds, several=True)
    spent = [(one, text) for one in rounds for text in one.cpu]
    if spent:
        yield FoldedBlocks(
            inlines("CPUs of each round"),
            tuple(caption(f"{one.id}: CPUs of {text}.") for one, text in spent),
            "remarks",
        )
    files = tuple(block for one in rounds for block in _files(one.jobs))
    yield FoldedBlocks(inlines("Command lines and files"), files, "remarks")


def _round(one: RoundRow) -> Block:
    verdict = set_tone("valid", "good") if one.valid else set_tone("invalid", "warn")
    summary = inlines(f"{one.id}: {one.what} ", verdict)
    return FoldedBlocks(summary, tuple(_parts(one)), "round", is_open=not one.valid)


def _parts(one: RoundRow) -> Iterator[Block]:
    if one.findings:
        yield Listing(tuple(inlines(set_tone(text, "warn")) for text in one.findings))
    yield _tools((one,), several=False)
    if one.counted:
        yield _counted((one,), several=False)
    if one.failure:
        yield paragraph(f"Link failure: {one.failure}.")
    for bond in one.bonds:
        yield from _bond(bond)
    yield from (caption(f"CPUs of {text}.") for text in one.cpu)
    yield FoldedBlocks(inlines("Command lines and files"), tuple(_files(one.jobs)), "remarks")


_COLUMNS: Final = 6


def _tools(rounds: Sequence[RoundRow], *, several: bool) -> Block:
    def rows() -> Iterator[Row]:
        for one in rounds:
            if several:
                yield _about(one)
            yield from (row(*_job(job), look="invalid" if job.failure else "") for job in one.jobs)

    titles = (
        head("Ends"),
        *word_heads("Tool", "Asked", "What it said"),
        head("Began", "s"),
        head("Took", "s"),
    )
    return replace(table((titles,), rows()), title="their tools" if several else "")


def _about(one: RoundRow) -> Row:
    """Returns the row above those of a round: its name, and what was played in it."""
    label = Cell(inlines(f"{one.id}: {one.what}"), _COLUMNS, is_head=True, words=True)
    return replace(row(label, look="about"), begins_group=True)


def _job(job: JobRow) -> tuple[Cell, ...]:
    said = (*((job.failure,) if job.failure else ()), *job.figures)
    return (
        name(job.ends),
        words(f"{job.tool} {job.version}"),
        words(job.asked),
        words(lines(said)),
        cell(job.began),
        cell(job.took),
    )


def _counted(rounds: Sequence[RoundRow], *, several: bool) -> Block:
    def rows() -> Iterator[Row]:
        for one in rounds:
            if several and one.counted:
                yield _about(one)
            for counted in one.counted:
                bytes_of = (counted.said_sent, counted.counted_sent, counted.said_received, counted.counted_received)
                yield row(name(counted.endpoint), *map(cell, bytes_of), words(counted.others or "none"))

    ways = heads("by the tools", "by the interface")
    above = (
        (NOTHING, head("Sent [bytes]", columns=2), head("Received [bytes]", columns=2), NOTHING),
        (head("Port"), *ways, *ways, *word_heads("Other counters that rose")),
    )
    return replace(table(above, rows()), title="what interfaces counted" if several else "")


def _bond(bond: BondRow) -> Iterator[Block]:
    yield table(
        (
            (
                head(f"Bond {bond.title}", words=True, columns=2),
                head("Whole round [bytes]", columns=2),
                head("Sent until its midst [bytes]", columns=2),
            ),
            (
                head("Port"),
                *word_heads("State"),
                *heads("sent", "received", "payload, predicted", "frames, counted"),
            ),
        ),
        (
            (
                name(port.name),
                words(port.state),
                *map(cell, (port.sent, port.received, port.predicted, port.counted)),
            )
            for port in bond.ports
        ),
    )
    yield caption(bond.verdict)
    if bond.connections:
        summary = f"Connections in the midst of the round: {len(bond.connections)}"
        yield FoldedBlocks(inlines(summary), tuple(map(caption, bond.connections)), "remarks")


def _files(jobs: Sequence[JobRow]) -> Iterator[Block]:
    for job in jobs:
        yield from (caption(code(line)) for line in job.commands)
        yield caption(join_inlines(", ", map(breakable, job.files)))
