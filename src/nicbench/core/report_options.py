"""What a bench file says of the report that is made of its run; it changes nothing that is measured."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from nicbench.core.base import Frozen


class Layout(StrEnum):
    """How a report is laid out; each is a file of its name in ``report/layouts``."""

    STUDY = "study"
    """From the question to the answer: for whoever wants to know, and to repeat it."""
    DATASHEET = "datasheet"
    """A sheet for each test: for whoever wants the setup, the settings and the numbers beside each other."""


Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300, pattern=r"^[^\n\r]*$")]
"""A text on one line."""


class Revision(Frozen):
    """A line of the revision history that its author wrote."""

    date: date
    text: Line


class ReportWishes(Frozen):
    """The section ``report`` of a bench file."""

    layout: Layout = Layout.STUDY
    title: Line | None = None
    """Title of the report in place of the run's title."""
    question: Line | None = None
    """What the run was to find out; without it, one that is made of its tests."""
    author: Line | None = None
    revisions: Annotated[tuple[Revision, ...], Field(max_length=100)] = ()


DEFAULT_WISHES = ReportWishes()
"""Options where the bench file has no section ``report``."""
