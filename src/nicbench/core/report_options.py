"""The options of a bench file for the report of its run; they change nothing that is measured."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from nicbench.core.base import Frozen


class Layout(StrEnum):
    """The layout of a report; each is a file of that name in ``report/layouts``."""

    STUDY = "study"
    """From the question to the answer: for readers who want to know the outcome, and to repeat the measurement."""
    DATASHEET = "datasheet"
    """One sheet for each test: for readers who want the setup, the settings and the numbers side by side."""


Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300, pattern=r"^[^\n\r]*$")]
"""A text on one line, of at most 300 characters."""


Paragraphs = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000)]
"""A text of several lines; an empty line begins a paragraph."""


def _number(value: Any) -> Any:
    """The number of a revision as text; ValueError for one whose last zeros YAML has dropped."""
    if isinstance(value, float):
        raise ValueError(f"{value} may have lost a zero at its end: write the number in quotes, as in `'{value}'`")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class Revision(Frozen):
    """One entry of the revision history that the report's author wrote."""

    number: Annotated[Line, BeforeValidator(_number)] | None = None
    """In quotes (`"1.0"`), as YAML drops zeros. Either all revisions have one or none has."""
    date: date
    """`2026-11-22`."""
    text: Line
    """What changed."""


def _check_history(revisions: tuple[Revision, ...]) -> tuple[Revision, ...]:
    """Gives the history back; ValueError where it is not in order, or its numbers are incomplete or not distinct."""
    numbers = [each.number for each in revisions]
    if any(numbers) and not all(numbers):
        raise ValueError("some revisions have a `number` and others have none: give one to each, or to none")
    twice = next((number for number in numbers if number and numbers.count(number) > 1), None)
    if twice is not None:
        raise ValueError(f"the number {twice} is that of two revisions: give each its own")
    if [each.date for each in revisions] != sorted(each.date for each in revisions):
        raise ValueError("the dates are not in order: write the oldest revision first")
    return revisions


class ReportWishes(Frozen):
    """The section ``report`` of a bench file."""

    layout: Layout = Layout.STUDY
    """`study`: from the question to the answer. `datasheet`: a sheet for each test."""
    title: Line | None = None
    """The heading of the report; without it the title of the file."""
    question: Line | None = None
    """The question of the run, in one sentence; without it one is made of the tests."""
    author: Line | None = None
    """Who is responsible for the report."""
    about: Paragraphs | None = None
    """The section “About this report” in the author's words. An empty line begins a paragraph."""
    audience: Paragraphs | None = None
    """The section “Audience”: for whom the report is written."""
    revisions: Annotated[tuple[Revision, ...], Field(max_length=100), AfterValidator(_check_history)] = ()
    """The revision history, oldest first. Number and date of the last entry stand below the title."""

    @property
    def revision(self) -> Revision | None:
        """The revision that the report is: the last one of its history; None where no revision has a number."""
        return self.revisions[-1] if self.revisions and self.revisions[-1].number else None


DEFAULT_WISHES = ReportWishes()
"""The options where the bench file has no section ``report``."""
