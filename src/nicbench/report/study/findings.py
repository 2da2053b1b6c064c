"""Key findings: sentences that follow from the results, each with the table that holds its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nicbench.core.turn import DEFAULT
from nicbench.report.answer import of_comparison, of_studies
from nicbench.report.answer.of_run import in_order
from nicbench.report.answer.sentences import answers_of, subject_in, subject_of
from nicbench.report.document.finishing import anchor
from nicbench.report.editors.compared import compared_sentences
from nicbench.report.editors.study import Study
from nicbench.report.model import Report
from nicbench.report.rates import RatesTable
from nicbench.report.section import Section

_MOST = 12
"""Maximum number of findings in the list, so that it has only key ones."""


@dataclass(frozen=True, slots=True)
class Place:
    """A table of the page: its id and its heading."""

    id: str
    heading: str


_DIFFERENCES: Final = Place("differences", "Differences between configurations")


@dataclass(frozen=True, slots=True)
class Finding:
    """One key finding; ``place`` is the table that it comes from, None where it comes from several."""

    text: str
    place: Place | None = None


def findings(report: Report) -> tuple[Finding, ...]:
    """Returns the details of the answer, then a sentence for every test that answer and details do not mention."""
    origins = dict(_origins(report))
    told = [Finding(sentence, origins.get(_plain(sentence))) for sentence in report.details]
    said = {_plain(report.headline), *(_plain(finding.text) for finding in told)}
    places = {finding.place for finding in told} | {origins.get(_plain(report.headline))}
    rest = [] if report.comparison or report.studies else list(_of_tests(report))
    told += [one for one in rest if one.place not in places and _plain(one.text) not in said]
    return tuple(told[:_MOST])


def _plain(sentence: str) -> str:
    """Removes the subject "It" and the full stop, so that equal statements in different places are recognised."""
    return sentence.removeprefix("It ").removesuffix(".")


def _origins(report: Report) -> Iterator[tuple[str, Place]]:
    """Yields each known sentence with the table that it comes from."""
    yield from _origins_beside(report)
    if report.statistics is not None and report.statistics.differences:
        for study in report.studies:
            for text in compared_sentences(study, report.statistics):
                yield _plain(text), _DIFFERENCES
    for study in report.studies:
        for text in of_studies.answers(report.studies):
            if text.removeprefix(f"{study.test}: ") in of_studies.sentences(study):
                yield _plain(text), place_of_study(study)
    for section in reversed(report.sections):
        for row in section.rows:
            if sentence := section.sentence_of(row):
                yield _plain(sentence), place_of_section(section)
        if section.sentence:
            yield _plain(section.sentence), place_of_section(section)
        subjects = (subject_of(report.plan), subject_in(report.plan, section.configuration), "It")
        for subject in dict.fromkeys(subjects):
            yield from ((_plain(text), place_of_section(section)) for text in answers_of(section, subject))


def _origins_beside(report: Report) -> Iterator[tuple[str, Place]]:
    """Yields the sentences that compare configurations or runs, with their tables."""
    compared = report.comparison
    if compared is None:
        return
    for rates in compared.rates:
        for text in of_comparison.sentences_of_rates(rates):
            yield _plain(text), place_of_rates(rates)
    for section in compared.sections:
        if said := of_comparison.statement_of_each(section, compared):
            yield _plain(said), place_of_section(section)


def _of_tests(report: Report) -> Iterator[Finding]:
    """Yields a finding for each section; where there are several configurations, it names its own."""
    several = len(configurations_of(report)) > 1
    tests = {section.test for section in report.sections if section.table.rates is not None}
    for section in in_order(report.sections):
        stands_alone = section.table.statement is not None
        subject = f"“{section.configuration}”" if several else subject_of(report.plan) if section.table.rates else "It"
        for text in answers_of(section, subject)[:1]:
            said = f"“{section.configuration}”: {text}" if several and stands_alone else text
            named = f"{section.test}: {said}" if section.table.rates is not None and len(tests) > 1 else said
            yield Finding(named, place_of_section(section))


def configurations_of(report: Report) -> tuple[str, ...]:
    """Returns the configurations of the tables of single runs, in order; an import can bring several."""
    return tuple(dict.fromkeys(section.configuration for section in in_order(report.sections)))


def place_of_section(section: Section) -> Place:
    """Returns the place of the section of a method."""
    title, name = section.table.title, section.configuration
    return Place(anchor(title, section.test, name), title if name == DEFAULT else f"{title} ({name})")


def place_of_study(study: Study) -> Place:
    """Returns the place of the table of streams sustained."""
    return Place(anchor("sustained", study.test), "Streams sustained")


def place_of_rates(table: RatesTable) -> Place:
    """Returns the place of the table of rates side by side."""
    return Place(anchor("rates", table.test), table.title)
