"""What a built-in data set says of itself: whose figures they are, how they are read, and what in them cannot be so.

Each is a TOML file in ``sets``, its name the data set's. Several may read parts of one table (``where``).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from pydantic import Field, model_validator

from nicbench.errors import UsageError
from nicbench.model.base import Frozen
from nicbench.problems import suggest

_FOLDER: Final = files("nicbench.reference")


class Reading(Frozen):
    """How ``nicbench import`` reads the table: each field is the option of that name, with its words."""

    method: str
    form: str = "plain"
    columns: Mapping[str, str] = Field(default_factory=dict)
    units: Mapping[str, str] = Field(default_factory=dict)
    given: Mapping[str, str] = Field(default_factory=dict)
    where: Mapping[str, str] = Field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    link_speed: str | None = None
    errata: bool = False


class DeclaredErratum(Frozen):
    """A printed cell that figures of other tables contradict, which no look at its own row finds.

    It ``stands`` where it could be so by itself. ``line`` is the table's, counted from 1, the heading's; ``column`` its
    heading there. ``metric`` is what the figure is, in a table with a figure on each row.
    """

    line: int = Field(ge=2)
    column: str
    metric: str | None = None
    printed: str
    computed: str | None
    reason: str
    stands: bool = False


class DataSet(Frozen):
    """One built-in data set. It has either a ``reading`` or ``why_not``: the reason for which no method takes it."""

    name: str
    title: str
    year: int
    source: str
    about: str
    table: str
    where: Mapping[str, str] = Field(default_factory=dict)
    """Of a data set without a reading: only rows with this text."""
    notes: tuple[str, ...] = ()
    reading: Reading | None = None
    why_not: str | None = None
    errata: tuple[DeclaredErratum, ...] = ()

    @model_validator(mode="after")
    def _is_read_or_says_why_not(self) -> DataSet:
        if (self.reading is None) == (self.why_not is None):
            raise ValueError("a data set has either a `reading` or a `why_not`")
        return self

    def content(self) -> bytes:
        """Its table, a CSV, as it is kept."""
        return (_FOLDER / "data" / self.table).read_bytes()

    @property
    def rows_wanted(self) -> Mapping[str, str]:
        """Which rows of the table are its own: columns and the text that they have."""
        return self.reading.where if self.reading else self.where


@cache
def data_sets() -> Mapping[str, DataSet]:
    """All that are built in, by name."""
    found = {}
    for file in (_FOLDER / "sets").iterdir():
        name, end, _ = file.name.rpartition(".toml")
        if end:
            found[name] = DataSet.model_validate({"name": name, **tomllib.loads(file.read_text("utf-8"))})
    return MappingProxyType(dict(sorted(found.items())))


def data_set(name: str) -> DataSet:
    """UsageError where there is none of that name."""
    known = data_sets()
    if name not in known:
        raise UsageError(f"there is no built-in data set {name!r}", next_step=suggest(name, tuple(known), "data set"))
    return known[name]
