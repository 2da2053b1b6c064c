"""The text of a study around its results: question, key findings, procedures, and how to repeat the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from nicbench.core.plan import Plan, PlannedTest, ReportWishes
from nicbench.core.registry import find
from nicbench.core.turn import DEFAULT
from nicbench.core.units import and_list
from nicbench.methods.base import Method
from nicbench.report.answer import of_comparison, of_run
from nicbench.report.answer.of_run import in_order
from nicbench.report.answer.sentences import answers_of, subject_in, subject_of
from nicbench.report.document.finishing import anchor
from nicbench.report.editors import Study, compared_sentences
from nicbench.report.facts import label_of, plain
from nicbench.report.model import Report
from nicbench.report.rates import RatesTable
from nicbench.report.section import Section
from nicbench.report.wording import lower_first


def procedure_of(test: PlannedTest) -> str:
    """Returns the procedure of a test, from the plan or else from its method."""
    if test.procedure:
        return test.procedure
    known = find("nicbench.methods", Method).get(test.method)
    return known.procedure(test.options) if known else test.description or label_of(test.method)


def prerequisites(plan: Plan | None) -> Iterator[str]:
    """Yields a sentence for each thing that the machines need before the first command."""
    if plan is None:
        return
    if plan.simulated:
        yield "Only nicbench: no frame leaves the program, and root is not needed."
        return
    yield (
        "Debian 12 with the packages that nicbench doctor lists, and root: the run changes settings of the machines "
        "and restores them."
    )
    options = plan.tester.get("options")
    wanted = [("tester", options if isinstance(options, Mapping) else {}), ("DUT", plan.dut)]
    for whose, part in wanted:
        if part.get("huge_pages"):
            memory = part.get("memory")
            much = f"{plain('memory_bytes', memory)} of huge pages" if isinstance(memory, int) else "huge pages"
            yield f"For the {whose} {much}: sysctl vm.nr_hugepages=512, for instance, gives 1 GiB of pages of 2 MiB."
    if plan.lab is None and plan.facts.get("links"):
        yield f"The ports cabled as they are here: {', '.join(map(str, plan.facts['links']))}."


def adaptations(plan: Plan | None, report: Report) -> Iterator[str]:
    """Yields a sentence for each part of the bench file that is specific to these machines."""
    if plan is None:
        return
    if plan.simulated:
        yield "Nothing: the same seed gives the same numbers on every machine."
        return
    if plan.lab is not None:
        yield (
            f"Nothing in the bench file: its lab ({plan.lab.get('kind')}) is made on the spot. Another machine gives "
            "other numbers."
        )
    else:
        yield (
            "The hosts, ports (interface or PCI address) and links in the bench file: they are specific to these "
            "machines."
        )
    if report.tuned:
        yield (
            "Settings that a machine does not have are reported when they are applied; the table of settings above "
            "lists what was changed here."
        )
    if plan.declared:
        yield "The declarations in the bench file: no program checks them."


def spread(report: Report) -> Iterator[str]:
    """Yields sentences on how far the results of a repeat may differ without anything being wrong."""
    plan = report.plan
    if plan is not None and plan.simulated:
        yield "None: every number is the same."
        return
    compared = report.comparison
    if compared is not None and compared.runs > 1:
        yield (
            f"{compared.runs} runs were made: the lowest and the highest stand beneath each number. A repeat on the "
            f"same "
            "machine should lie between them, or little outside."
        )
    elif report.studies:
        yield (
            "The tables above have every run; a repeat on the same machines should lie between the lowest and the "
            "highest, or little outside."
        )
    else:
        yield "One run shows no spread; several do (runs: 5)."
    if any(section.table.rates is not None for section in report.sections):
        yield "Where the intervals of a frame size overlap, two runs agree."


_OPENINGS = ("The ", "This ")


def questions(
    plan: Plan | None, wishes: ReportWishes, methods: Iterable[str], compared: Sequence[str] = ()
) -> tuple[str, ...]:
    """Returns the questions that the run answers.

    They are the author's question, or else one for each method and one about what compared configurations differ in.
    ``methods`` are those of the results, used where the plan was not written; ``compared`` are configurations.
    """
    if wishes.question:
        return (wishes.question,)
    kinds = find("nicbench.methods", Method)
    tests = [(test.method, test.options) for test in plan.tests] if plan else [(kind, {}) for kind in methods]
    asked = dict.fromkeys(kinds[kind].question_of(options) for kind, options in tests if kind in kinds)
    subject = "the DUT" if len(compared) > 1 and plan and not plan.compared else subject_of(plan)
    subject = lower_first(subject) if subject.startswith(_OPENINGS) else subject
    made = [question.format(subject=subject) for question in asked if question]
    if len(compared) > 1:
        names = and_list([f"“{name}”" for name in compared])
        made.append(f"How do {names} differ?")
    return tuple(made)


_MOST = 12
"""Maximum number of findings in the list, so that it has only key ones."""


class Place(NamedTuple):
    """A table of the page: its id and its heading."""

    id: str
    heading: str


_DIFFERENCES: Final = Place("differences", "Differences between configurations")


class Finding(NamedTuple):
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
        for text in of_run.answers(report.studies):
            if text.removeprefix(f"{study.test}: ") in of_run.sentences(study):
                yield _plain(text), place_of_study(study)
    for section in reversed(report.sections):
        place = _place_of(section, report)
        for row in section.rows:
            if sentence := section.sentence_of(row):
                yield _plain(sentence), place
        if section.sentence:
            yield _plain(section.sentence), place
        subjects = (subject_of(report.plan), subject_in(report.plan, section.configuration), "It")
        for subject in dict.fromkeys(subjects):
            yield from ((_plain(text), place) for text in answers_of(section, subject))


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
            yield Finding(named, _place_of(section, report))


def configurations_of(report: Report) -> tuple[str, ...]:
    """Returns the configurations of the tables of single runs, in order; an import can bring several."""
    return tuple(dict.fromkeys(section.configuration for section in in_order(report.sections)))


def _place_of(section: Section, report: Report) -> Place:
    """Returns the place of the numbers of a single run: its own section, or the one of all configurations."""
    if any(section is each for each in report.own_sections):
        return place_of_section(section)
    beside = report.comparison.rates if report.comparison and section.table.rates is not None else ()
    rates = next((table for table in beside if table.test == section.test), None)
    return place_of_rates(rates) if rates else place_of_section(replace(section, configuration=DEFAULT))


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
