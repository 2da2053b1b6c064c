"""The text of a study: the question of a run, the procedure of each test, and how to repeat the run.

The question is the author's, or else one for each method in the order of the tests. Each procedure is in plain words
with the options of the test. Repeating is described by prerequisites, adaptations, and the spread to be expected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nicbench.core.plan import Plan, PlannedTest, ReportWishes
from nicbench.core.registry import find
from nicbench.methods.base import Method
from nicbench.report import disclosure
from nicbench.report.answer.sentences import subject_of
from nicbench.report.facts import Shapes, label_of, method_shapes, plain
from nicbench.report.model import Report


@dataclass(frozen=True, slots=True)
class Procedure:
    """The procedure of one test; ``parameters`` are its options with all defaults filled in."""

    title: str
    text: str
    parameters: Mapping[str, Any]
    shapes: Shapes
    """What the method declares of its options."""


def procedures(report: Report) -> tuple[Procedure, ...]:
    """Returns a procedure for each test of the plan, once for each set of options that configurations give it."""
    return tuple(_procedures(report))


def _procedures(report: Report) -> Iterator[Procedure]:
    if report.plan is None:
        return
    for names, plan in disclosure.of_configurations(report.plan, "tests"):
        for test in plan.tests:
            options = disclosure.in_bits(test.options) if report.endpoints else test.options
            whose = f" ({names})" if names else ""
            title = f"Test “{test.name}”{whose}"
            parameters = {"method": test.method, **disclosure.asked_options(options)}
            yield Procedure(title, text_of(test), parameters, method_shapes(test.method))


def text_of(test: PlannedTest) -> str:
    """Returns the procedure from the plan; plans from before 2026-11 lack it, so the method's own text is used."""
    if test.procedure:
        return test.procedure
    known = find("nicbench.methods", Method).get(test.method)
    return known.procedure(test.options) if known else test.description or label_of(test.method)


_SIMULATED = "simulated"


def prerequisites(plan: Plan | None) -> tuple[str, ...]:
    """Returns a sentence for each thing that the machines need before the first command."""
    return tuple(_prerequisites(plan)) if plan else ()


def _prerequisites(plan: Plan) -> Iterator[str]:
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


def adaptations(plan: Plan | None, report: Report) -> tuple[str, ...]:
    """Returns a sentence for each part of the bench file that is specific to these machines."""
    return tuple(_adaptations(plan, report)) if plan else ()


def _adaptations(plan: Plan, report: Report) -> Iterator[str]:
    if plan.simulated:
        yield "Nothing: the same seed gives the same numbers on every machine."
        return
    if plan.lab is not None:
        yield (
            f"Nothing in the bench file: its lab ({plan.lab.get('kind')}) is made on the spot. The numbers "
            "are those of this machine; another machine gives others."
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


def spread(report: Report) -> tuple[str, ...]:
    """Returns sentences on how far the results of a repeat may differ without anything being wrong."""
    return tuple(_spread(report))


def _spread(report: Report) -> Iterator[str]:
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
        yield "One run does not show how well it repeats: with several (runs: 5) the report has their spread."
    searched = any(section.table.rates is not None for section in report.sections)
    if searched and (precision := _precision(report)):
        yield (
            f"Rates were searched to within {precision} and are given with their interval: where the intervals of a "
            "frame size overlap, two runs agree."
        )


def _precision(report: Report) -> str | None:
    tests: Any = report.plan.tests if report.plan else ()
    found = [
        search["precision"]
        for test in tests
        if isinstance(search := test.options.get("search"), Mapping) and isinstance(search.get("precision"), float)
    ]
    return plain("precision_ratio", max(found)) if found else None


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
    subject = f"{subject[:1].lower()}{subject[1:]}" if subject.startswith(_OPENINGS) else subject
    made = [question.format(subject=subject) for question in asked if question]
    if len(compared) > 1:
        names = " and ".join((", ".join(f"“{name}”" for name in compared[:-1]), f"“{compared[-1]}”"))
        made.append(f"How do {names} differ?")
    return tuple(made)
