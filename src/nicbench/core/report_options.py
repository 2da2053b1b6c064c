"""The options of a bench file for the report of its run; they change nothing that is measured."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from nicbench.core.base import Frozen


class Layout(StrEnum):
    """The layout of a report; each is a file of that name in ``report/layouts``."""

    STUDY = "study"
    """From the question to the answer: for readers who want to know the outcome, and to repeat the measurement."""
    DATASHEET = "datasheet"
    """One sheet for each test: for readers who want the setup, the settings and the numbers side by side."""


Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300, pattern=r"^[^\n\r]*$")]
"""A text on one line, of at most 300 characters."""


class Revision(Frozen):
    """One entry of the revision history that the report's author wrote."""

    date: date
    text: Line


class ReportWishes(Frozen):
    """The section ``report`` of a bench file."""

    layout: Layout = Layout.STUDY
    title: Line | None = None
    """Title of the report in place of the run's title."""
    question: Line | None = None
    """The question that the run answers; without it, a question that is derived from the tests."""
    author: Line | None = None
    revisions: Annotated[tuple[Revision, ...], Field(max_length=100)] = ()


DEFAULT_WISHES = ReportWishes()
"""The options where the bench file has no section ``report``."""
