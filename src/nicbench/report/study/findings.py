"""Key findings: the sentences that the results say, each with the table that holds its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nicbench.report import answer, compared_answer
from nicbench.report.comparison import LatencyBeside
from nicbench.report.editors import answer as editors_answer
from nicbench.report.editors.compared import compared_sentences
from nicbench.report.editors.study import Study
from nicbench.report.model import LatencyTable, Report, ThroughputTable
from nicbench.report.rates import RatesTable
from nicbench.report.study.anchors import anchor
from nicbench.report.tables import Section

_MOST = 12
"""A list of more is not what is key."""


@dataclass(frozen=True, slots=True)
class Place:
    """A table of the page: its id and its heading."""

    id: str
    heading: str


_DIFFERENCES: Final = Place("differences", "Differences between configurations")


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence; ``place`` is the table that it is from, None where it is from several."""

    text: str
    place: Place | None = None


def findings(report: Report) -> tuple[Finding, ...]:
    """What the answer does not say: its details, then every test of which nothing was said."""
    origins = dict(_origins(report))
    told = [Finding(sentence, origins.get(_plain(sentence))) for sentence in report.details]
    said = {_plain(report.headline), *(_plain(finding.text) for finding in told)}
    places = {finding.place for finding in told} | {origins.get(_plain(report.headline))}
    rest = [] if report.comparison or report.studies else list(_of_tests(report))
    told += [one for one in rest if one.place not in places and _plain(one.text) not in said]
    return tuple(told[:_MOST])


def _plain(sentence: str) -> str:
    """Without its subject, so that what is said of the same thing in two ways is known as one."""
    return sentence.removeprefix("It ").removesuffix(".")


def _origins(report: Report) -> Iterator[tuple[str, Place]]:
    """Which table a sentence is from."""
    yield from _origins_beside(report)
    if report.statistics is not None and report.statistics.differences:
        for study in report.studies:
            for text in compared_sentences(study, report.statistics):
                yield _plain(text), _DIFFERENCES
    for study in report.studies:
        for text in editors_answer.answers(report.studies):
            if text.removeprefix(f"{study.test}: ") in editors_answer.sentences(study):
                yield _plain(text), place_of_study(study)
    for section in reversed(report.sections):
        for row in section.rows:
            if sentence := section.sentence_of(row):
                yield _plain(sentence), place_of_section(section)
        if section.sentence:
            yield _plain(section.sentence), place_of_section(section)
            subjects = (answer.subject_of(report.plan), answer.subject_in(report.plan, section.configuration))
            yield from (
                (f"{subject} {section.sentence}", place_of_section(section)) for subject in dict.fromkeys(subjects)
            )
    for throughput in reversed(report.throughput):
        several = len(configurations_of(report)) > 1
        for text in answer.sentences_of_throughput(report.plan, throughput):
            yield _plain(text), place_of_throughput(throughput, several=several)
    for latency in reversed(report.latency):
        if said := answer.sentence_of_latency(latency):
            yield _plain(said), place_of_latency(latency)


def _origins_beside(report: Report) -> Iterator[tuple[str, Place]]:
    """Of configurations, or of several runs."""
    compared = report.comparison
    if compared is None:
        return
    for rates in compared.rates:
        for text in compared_answer.sentences_of_rates(rates):
            yield _plain(text), place_of_rates(rates)
    for latencies in compared.latencies[:1]:
        if said := compared_answer.sentence_of_latencies(latencies, compared):
            yield _plain(said), place_of_latencies(latencies)


def _of_tests(report: Report) -> Iterator[Finding]:
    """Where results are of several configurations, each sentence says of which."""
    several = len(configurations_of(report)) > 1
    tests = {table.test for table in report.throughput}
    for throughput in report.throughput:
        whose = f"“{throughput.configuration}”" if several else None
        for text in answer.sentences_of_throughput(report.plan, throughput, whose)[:1]:
            named = f"{throughput.test}: {text}" if len(tests) > 1 else text
            yield Finding(named, place_of_throughput(throughput, several=several))
    for latency in report.latency:
        if said := answer.sentence_of_latency(latency):
            named = f"“{latency.configuration}”: {said}" if several else said
            yield Finding(named, place_of_latency(latency))
    for section in report.sections:
        if section.sentence:
            whose = f"“{section.configuration}”" if several else "It"
            yield Finding(f"{whose} {section.sentence}.", place_of_section(section))


def configurations_of(report: Report) -> tuple[str, ...]:
    """Those of the tables of single runs, in their order; more than one where an import brought several."""
    rates = [table.configuration for table in report.throughput]
    others = [table.configuration for table in report.latency] + [each.configuration for each in report.sections]
    return tuple(dict.fromkeys([*rates, *others]))


def place_of_section(section: Section) -> Place:
    """Of a section that a method brings."""
    return Place(anchor(section.table.title, section.test, section.configuration), section.table.title)


def place_of_study(study: Study) -> Place:
    """Of how many streams were sustained."""
    return Place(anchor("sustained", study.test), "Streams sustained")


def place_of_rates(table: RatesTable) -> Place:
    """Of rates side by side."""
    return Place(anchor("rates", table.test), "Throughput")


def place_of_latencies(table: LatencyBeside) -> Place:
    """Of latencies side by side."""
    return Place(anchor("latencies", table.test, table.load), f"Latency at {table.load}")


def place_of_throughput(table: ThroughputTable, *, several: bool = False) -> Place:
    """Of the rates of a test; of ``several`` configurations the heading says of which."""
    heading = f"Throughput ({table.configuration})" if several else "Throughput"
    return Place(anchor("throughput", table.test, table.configuration), heading)


def place_of_latency(table: LatencyTable) -> Place:
    """Of a table of latencies at one load."""
    return Place(anchor("latency", table.test, table.load, table.configuration), f"Latency at {table.load}")
