"""Where imported results come from, and what their source printed: kept in summary.json beside the values."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from nicbench.core.base import Frozen

NOT_MEASURED: Final = "imported: not measured by nicbench"
"""How imported results are marked wherever they are shown."""


class PrintedValue(Frozen):
    """A value as its source printed it, with a decimal point and without marks between thousands; and its unit."""

    text: str
    unit: str | None = None


class Erratum(Frozen):
    """A printed value that is implausible. ``computed`` is what it would have to be; ``place`` is line:column.

    None where nothing can be computed: a negative latency is just impossible. One that ``stands`` could be so by
    itself, and other tables of its source contradict it: it is listed and marked, and counted as it is printed.
    """

    value: str
    place: str
    printed: str
    computed: str | None
    reason: str
    stands: bool = Field(default=False, exclude_if=lambda stands: not stands)
    """In summaries from format 1.4 on."""


class ImportedRow(Frozen):
    """The origin of one result: its line in the file, the printed values, and which of them are implausible."""

    line: int
    printed: dict[str, PrintedValue]
    computed: tuple[str, ...] = ()
    """Names of values that the source does not print, and that follow from those it does."""
    errata: tuple[Erratum, ...] = ()


class ImportedFile(Frozen):
    """One of the files that an import was made of, in the run folder as it was given."""

    file: str
    sha256: str


class ImportCheck(Frozen):
    """One kind of comparison that an import made of printed figures: ``what`` was compared, and how many times."""

    what: str
    comparisons: int


class ImportOrigin(Frozen):
    """Of a whole run: the source and the file. ``file`` lies in the run folder as it was given, ``raw/NAME``."""

    statement: str = NOT_MEASURED
    source: str | None
    year: int | None
    device: str | None
    method: str
    format: str
    file: str
    sha256: str
    rows: int
    ignored_columns: tuple[str, ...] = ()
    more_files: tuple[ImportedFile, ...] = Field(default=(), exclude_if=lambda files: files == ())
    """Since format 1.4, where there are several: all but the first."""

    checks: tuple[ImportCheck, ...] = Field(default=(), exclude_if=lambda checks: checks == ())
    """Since format 1.5: what the figures were held against."""

    @property
    def named(self) -> str:
        """Describes the source: "Vendor, performance report (2019)"."""
        source = self.source or "a source that was not named"
        return f"{source} ({self.year})" if self.year is not None else source
