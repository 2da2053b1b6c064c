"""The page of a proof: which card, driver and kernel, and a line for each thing that was tried."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from nicbench import __version__
from nicbench.core.proof import Outcome, Proof
from nicbench.report.document.blocks import Cell, Document, Fact, Facts, Row, Table, Tone
from nicbench.report.document.finishing import finish_document, palette
from nicbench.report.document.making import (
    about_row,
    badge,
    breakable_code,
    inlines,
    paragraph,
    table,
    word_heads,
    words,
)
from nicbench.report.html import style, write_html

_TONES: Final[dict[Outcome, Tone]] = {
    Outcome.PROVEN: "good",
    Outcome.FAILED: "bad",
    Outcome.ABSENT: "quiet",
    Outcome.UNTRIED: "warn",
}


def write_page(proof: Proof) -> str:
    """Returns the page as HTML that needs no other file."""
    return write_html(document_of(proof))


def document_of(proof: Proof) -> Document:
    """Returns the page as blocks: how much was proven, of what, and every finding by ability."""
    counts = {outcome: len(proof.with_outcome(outcome)) for outcome in Outcome}
    told = ", ".join(f"{number} {outcome.words}" for outcome, number in counts.items() if number)
    devices = " and ".join(f"{port.driver} ({port.card or 'no PCI card'})" for port in proof.ports)
    return finish_document(
        Document(
            title=f"Proof of {devices}",
            language="en",
            generator=f"nicbench {__version__}",
            author="nicbench",
            header=(paragraph(told, role="answer"),),
            contents=(),
            blocks=(_facts_of(proof), _table_of(proof)),
            footer=inlines(f"nicbench {__version__}"),
            palette=palette(style()),
            is_brief=True,
        ),
        has_contents=False,
    )


def _facts_of(proof: Proof) -> Facts:
    ports = [
        Fact(
            inlines("the first port" if number == 0 else "the second port"),
            inlines(
                f"driver {port.driver} {port.driver_version or ''}, firmware {port.firmware or 'not known'}, "
                f"card {port.card or 'none'}"
            ),
        )
        for number, port in enumerate(proof.ports)
    ]
    machine = {True: "virtual: its cards may be emulated", False: "not virtual", None: "not known"}
    return Facts(
        (
            *ports,
            Fact(inlines("way of the frames"), inlines("a cable" if proof.loop == "cable" else "a loop plug")),
            Fact(inlines("machine"), inlines(machine[proof.in_virtual_machine])),
            Fact(inlines("kernel"), inlines(f"Linux {proof.kernel}")),
            Fact(inlines("made"), inlines(f"{proof.made_at}, in {proof.took_s:.0f} s")),
        )
    )


def _table_of(proof: Proof) -> Table:
    """Returns every finding, below a line with its ability."""
    rows: list[Row | tuple[Cell, ...]] = []
    for ability, found in groupby(proof.findings, key=lambda each: each.name.partition(".")[0]):
        rows.append(about_row(ability.capitalize().replace("_", " "), 3))
        for each in found:
            outcome = badge(each.outcome.words, _TONES[each.outcome])
            rows.append((words(breakable_code(each.name.partition(".")[2])), words(outcome), words(each.seen)))
    return table([word_heads("What", "Outcome", "Seen")], rows)
