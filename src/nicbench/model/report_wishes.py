"""What a bench file says of the report that is made of its run; it changes nothing of what is measured."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from nicbench.model.base import Frozen


class Layout(StrEnum):
    """How a report is laid out; each is a template of its name in ``report/templates/layouts``."""

    STUDY = "study"
    """From the question to the answer: for whoever wants to know, and to repeat it."""
    DATASHEET = "datasheet"
    """A sheet for each test: for whoever wants the setup, the settings and the numbers beside each other."""


Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300, pattern=r"^[^\n\r]*$")]
"""Text on one line."""


class Revision(Frozen):
    """A line of the revision history that its author wrote."""

    date: date
    text: Line


class ReportWishes(Frozen):
    """The key ``report`` of a bench file."""

    layout: Layout = Layout.STUDY
    title: Line | None = None
    """In the place of the run's title."""
    question: Line | None = None
    """What the run was to find out; without it, one that is made of its tests."""
    author: Line | None = None
    revisions: Annotated[tuple[Revision, ...], Field(max_length=100)] = ()


DEFAULT_WISHES = ReportWishes()
"""Of a bench file that says nothing of its report."""
