"""How a stranger repeats a run: what it takes, what has to be adapted, and how far apart repeats may lie. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nicbench.core.plan import Plan
from nicbench.report.facts import plain
from nicbench.report.model import Report

_SIMULATED = "simulated"


def prerequisites(plan: Plan | None) -> tuple[str, ...]:
    """What the machines need before the first command; a sentence each."""
    return tuple(_prerequisites(plan)) if plan else ()


def _prerequisites(plan: Plan) -> Iterator[str]:
    if plan.simulated:
        yield "Nothing but nicbench: no frame leaves the program, and no rights of root are needed."
        return
    yield (
        "Debian 12 with the packages that nicbench doctor names, and the rights of root: it changes the machines, "
        "and undoes what it changed."
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
    """What of the bench file is of these machines alone; a sentence each."""
    return tuple(_adaptations(plan, report)) if plan else ()


def _adaptations(plan: Plan, report: Report) -> Iterator[str]:
    if plan.simulated:
        yield "Nothing: the same seed gives the same numbers on every machine."
        return
    if plan.lab is not None:
        yield (
            f"Nothing in the bench file: its lab ({plan.lab.get('kind')}) is made on the spot. The numbers are of the "
            "machine, and another one has others."
        )
    else:
        yield "In the bench file hosts, ports (interface or PCI address) and links: they are those of these machines."
    if report.tuned:
        yield (
            "Settings that the machine does not have are named when they are applied; the table of settings above "
            "says what was changed here."
        )
    if plan.declared:
        yield "What is declared: no program checks it."


def spread(report: Report) -> tuple[str, ...]:
    """How far a repeat may be off without anything being wrong; a sentence each."""
    return tuple(_spread(report))


def _spread(report: Report) -> Iterator[str]:
    plan = report.plan
    if plan is not None and plan.simulated:
        yield "None: every number is the same."
        return
    compared = report.comparison
    if compared is not None and compared.runs > 1:
        yield (
            f"Here {compared.runs} runs were made: beneath each number stand the least and the greatest of them, and a "
            "repeat on the same machine is expected between them, or little outside."
        )
    elif report.studies:
        yield (
            "The tables above have every run by itself; a repeat on the same machines is expected between the least "
            "and the greatest of them, or little outside."
        )
    else:
        yield "One run does not tell how well it repeats: ask for several (runs: 5), and the report has their spread."
    searched = any(section.table.rates is not None for section in report.sections)
    if searched and (precision := _precision(report)):
        yield (
            f"Rates were searched to within {precision}, and stand with the interval that holds them: where the "
            "intervals of a frame size overlap, the runs agree."
        )


def _precision(report: Report) -> str | None:
    tests: Any = report.plan.tests if report.plan else ()
    found = [
        search["precision"]
        for test in tests
        if isinstance(search := test.options.get("search"), Mapping) and isinstance(search.get("precision"), float)
    ]
    return plain("precision_ratio", max(found)) if found else None
