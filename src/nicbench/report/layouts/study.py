"""The results section: every result, configurations side by side where there are several, then each run by itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from nicbench.report.document.blocks import Block, FoldedBlocks, Group, GroupLook
from nicbench.report.document.finishing import fold
from nicbench.report.document.making import heading, inlines, paragraph
from nicbench.report.drawing.figures import Figures
from nicbench.report.model import Report
from nicbench.report.sections import closing, comparing, opening, rounds, trials
from nicbench.report.sections.disclosure import disclosure
from nicbench.report.sections.editors import study_details
from nicbench.report.sections.method import method
from nicbench.report.sections.overview import overview
from nicbench.report.sections.results import other_results, ports, runs
from nicbench.report.sections.statistics import statistics
from nicbench.report.sections.watched import cpu_user_parts, failed_link_parts, watched_parts


def all_results(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields the blocks of all results in the order in which a reader needs them."""
    yield from study_details(report, figures)
    yield from comparing.injected_faults(report.injected)
    compared = report.comparison
    if compared is None:
        yield from runs(report, figures)
        yield from statistics(report, figures)
    else:
        yield from comparing.compared_configurations(compared, report)
        yield from comparing.over_axes(compared, figures)
        yield from comparing.rates(compared, report, figures)
        yield from comparing.every_value(compared, report, figures)
        yield from statistics(report, figures)
        if report.own_sections or report.own_tails:
            summary = inlines(f"Each run by itself: {', '.join(compared.order)}")
            yield FoldedBlocks(summary, tuple(runs(report, figures)), "runs", is_detail=True)
    yield from failed_link_parts(report.failed_links, figures)
    yield from other_results(report.other_results)


IS_BRIEF = False


def sections(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields the first screen, then a section for each step; a page folds all of them but the results' headings."""
    yield from opening.imported_note(report)
    yield from opening.about(report)
    yield _section("Answer", "answer", chain(opening.answer(report), overview(report, figures)), "opening")
    yield from opening.findings(report)
    yield from opening.question(report)
    yield _section("Results", "results", fold(_results(report, figures)), "")
    if report.imported:
        yield _section("Source", "method", closing.source(report))
        yield _section("How to import it again", "repeat", closing.how_it_was_read(report))
    else:
        yield _section("Method", "method", method(report))
        yield _section("Disclosure", "disclosure", disclosure(report))
        yield _section("How to repeat it", "repeat", closing.repeat(report))
    yield _section("Revision history", "revisions", closing.revisions(report))
    yield _section("Glossary", "glossary", closing.glossary(report))
    if appendix := tuple(_appendix(report)):
        yield _section("Appendix", "appendix", iter(appendix))


def _section(title: str, name: str, blocks: Iterator[Block], look: GroupLook = "folded") -> Block:
    return Group((heading(1, title, id=name), *blocks), look)


def _results(report: Report, figures: Figures) -> Iterator[Block]:
    if report.configured is not None and not report.groups:
        yield paragraph("Clients started no flow.")
    yield from all_results(report, figures)
    yield from ports(report.ports)
    yield from cpu_user_parts(report.cpu_users)
    yield from watched_parts(report.watched, figures)
    yield from closing.errata(report)


def _appendix(report: Report) -> Iterator[Block]:
    yield from trials.frame_by_frame(report.telling_trials, report.known_trials.values())
    yield from trials.hardware(report.known_trials.values())
    yield from trials.ledger(report.ledger, report.groups)
    yield from trials.every_trial(report.groups)
    yield from rounds.rounds(report.rounds)
