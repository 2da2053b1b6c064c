"""A sheet for each test: the report with the results of that test alone. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from nicbench.core.result import name_of_test
from nicbench.report.comparison import Comparison
from nicbench.report.model import Report


@dataclass(frozen=True, slots=True)
class Sheet:
    """One test; ``report`` has what is of this test, and everything that is of the run."""

    test: str
    method: str
    report: Report


def sheets(report: Report) -> tuple[Sheet, ...]:
    """In the order of the plan; tests that gave nothing are left out."""
    planned = {test.name: test.method for plan in (report.plan.each if report.plan else ()) for test in plan.tests}
    found = dict.fromkeys([*planned, *_tests_of(report)])
    made = (Sheet(test, planned.get(test, ""), _of_test(report, test)) for test in found)
    return tuple(sheet for sheet in made if _has_results(sheet.report))


def _tests_of(report: Report) -> Iterator[str]:
    """Whose results there are; of an imported run the plan may call its test otherwise."""
    for tables in (report.sections, report.tails, report.ports, report.studies):
        yield from (table.test for table in tables)
    compared = report.comparison
    for besides in (compared.rates, compared.sections, compared.tails) if compared else ():
        yield from (table.test for table in besides)
    yield from (name_of_test(result, {}) for result in report.other_results)


def _of_test(report: Report, test: str) -> Report:
    compared = report.comparison
    beside = _compared(compared, test) if compared else None
    alone = compared is None  # each run by itself is for the study
    return replace(
        report,
        tails=tuple(table for table in report.tails if alone and table.test == test),
        sections=tuple(section for section in report.sections if alone and section.test == test),
        ports=tuple(table for table in report.ports if table.test == test),
        studies=tuple(study for study in report.studies if study.test == test),
        other_results=tuple(result for result in report.other_results if name_of_test(result, {}) == test),
        comparison=beside,
        statistics=None,  # told once, below the sheets: all comparisons are corrected together
    )


def _compared(compared: Comparison, test: str) -> Comparison:
    return replace(
        compared,
        rates=tuple(table for table in compared.rates if table.test == test),
        tails=tuple(table for table in compared.tails if table.test == test),
        sections=tuple(section for section in compared.sections if section.test == test),
    )


def _has_results(report: Report) -> bool:
    compared = report.comparison
    beside = compared and (compared.rates or compared.tails or compared.sections)
    return bool(beside or report.runs_by_themselves or report.studies or report.other_results or report.ports)
