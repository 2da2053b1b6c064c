"""The first sections: title, question, answer with its verdict, and key findings."""

from __future__ import annotations

from collections.abc import Iterator

from nicbench.core.units import count_of
from nicbench.report import study as found
from nicbench.report.document.blocks import Block, Group, Inlines, Listing, Note, Verdict
from nicbench.report.document.making import Part, badge, heading, inlines, link, paragraph, strong, tone_of
from nicbench.report.model import Report
from nicbench.report.study import questions


def header(report: Report) -> Iterator[Block]:
    """Yields the lines below the title: when and by whom the run was measured, and its description."""
    imported = "imported " if report.imported else ""
    started = f" · {imported}{report.started}" if report.started else ""
    yield paragraph(strong("nicbench"), f"{started} · run {report.run_id}", role="eyebrow")
    revision = report.wishes.revision
    issued = f"Revision {revision.number}, {revision.date:%Y-%m-%d}" if revision else None
    told = report.wishes
    sponsored = f"Sponsored by {told.sponsor}" if told.sponsor else None
    if by := " · ".join(text for text in (told.author, told.contact, issued, sponsored) if text):
        yield paragraph(by, role="author")
    if report.description:
        yield paragraph(report.description, role="description")


def footer(report: Report) -> Inlines:
    """Returns the text of the footer: the publisher's disclaimer and licence, which nicbench made the page, and where
    the raw numbers are.
    """
    licence = f"Licence: {report.wishes.licence}." if report.wishes.licence else ""
    told = " ".join([*_paragraphs(report.wishes.disclaimer or ""), licence]).strip()
    made = f"{told} " if told else ""
    made += f"Made by nicbench {report.nicbench_version or ''} from the run folder {report.run_id} alone. "
    if report.imported:
        source = report.imported.source
        return inlines(
            f"{made}Imported: not measured by nicbench; the numbers of {source.named} are in its {source.file}."
        )
    return inlines(made)


def foreign(report: Report) -> Inlines:
    """Returns the note that precedes every statement about imported numbers; empty for measured ones."""
    return inlines(strong("Imported: not measured by nicbench.")) if report.imported else ()


def table_name(kind: str, test: str, configuration: str, *, several: bool) -> str:
    """Returns the title of a table, with the test if there are several, and the configuration unless default."""
    of_test = f": {test}" if several else ""
    return f"{kind}{of_test}{'' if configuration == 'default' else f' ({configuration})'}"


def imported_note(report: Report) -> Iterator[Block]:
    """Yields the note at the top of an imported report that nicbench did not measure the numbers, and who did."""
    if report.imported:
        yield Note((paragraph(strong(report.imported.sentence)),))


def answer(report: Report) -> Iterator[Block]:
    """Yields the first sentence, the verdict, and notes on how far the answer can be trusted."""
    yield paragraph(report.headline, role="answer")
    verdict = report.verdict.value
    badges = (badge(verdict, tone_of(verdict)), *map(badge, report.labels))
    yield Verdict(badges, inlines(report.verdict_text, " ", *_deviations(report)))
    if report.changed_files:
        changed = f" {'; '.join(report.changed_files)}."
        yield Note((paragraph(strong("This folder is not as the run left it:"), changed),))
    if report.statements:
        yield Note(tuple(map(paragraph, report.statements)))


def _deviations(report: Report) -> tuple[Part, ...]:
    number = len(report.plan.deviations) if report.plan else 0
    words = f"{count_of(number, 'deviation')} from the standards"
    return (link(words, "#deviations"), ".") if number else ()


def about(report: Report) -> Iterator[Block]:
    """Yields what the author says of the report itself: what it is about, and for whom it was written."""
    told = report.wishes
    if told.about:
        yield Group((heading(1, "About this report", id="about"), *map(paragraph, _paragraphs(told.about))))
    if told.audience:
        yield Group((heading(1, "Audience", id="audience"), *map(paragraph, _paragraphs(told.audience))))


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def question(report: Report) -> Iterator[Block]:
    """Yields the question that the run was to answer."""
    if asked := _questions(report):
        texts = (paragraph(text, role="question") for text in asked)
        yield Group((heading(1, "Question", id="question"), *texts), "opening")


def findings(report: Report) -> Iterator[Block]:
    """Yields the key findings, each with a link to the table that holds its numbers."""
    if told := found.findings(report):
        items = tuple(
            inlines(each.text, " ", link(f"Table: {each.place.heading}", f"#{each.place.id}") if each.place else None)
            for each in told
        )
        yield Group((heading(1, "Key findings", id="findings"), Listing(items, look="findings")), "opening")


def _questions(report: Report) -> tuple[str, ...]:
    compared = report.comparison.names if report.comparison and report.comparison.compares else ()
    methods = [result.method for result in report.other_results]
    return questions(report.plan, report.wishes, methods, compared or _imported_beside(report))


def _imported_beside(report: Report) -> tuple[str, ...]:
    """Returns the configurations that an import brought, which its plan does not list."""
    of_studies = next((study.configurations for study in report.studies if study.compares), ())
    return of_studies or (found.configurations_of(report) if report.imported else ())
