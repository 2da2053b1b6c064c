"""The origin of imported results and the values that their source printed: kept in summary.json beside the values."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from nicbench.core.base import Frozen

NOT_MEASURED: Final = "imported: not measured by nicbench"
"""How imported results are marked wherever they are shown."""


class PrintedValue(Frozen):
    """A value as its source printed it, with a decimal point and without thousands separators, and its unit."""

    text: str
    unit: str | None = None


class Erratum(Frozen):
    """A printed value that is implausible. ``computed`` is what would be consistent; ``place`` is line:column.

    ``computed`` is None where no consistent value can be computed: a negative latency is simply impossible. A value
    that ``stands`` is possible by itself but contradicts other tables of its source: it is listed and marked, and used
    as printed.
    """

    value: str
    place: str
    printed: str
    computed: str | None
    reason: str
    stands: bool = Field(default=False, exclude_if=lambda stands: not stands)
    """Written in summaries from format 1.4 on."""


class ImportedRow(Frozen):
    """The origin of one result: its line in the file, the printed values, and which of them are implausible."""

    line: int
    printed: dict[str, PrintedValue]
    computed: tuple[str, ...] = ()
    """Names of values that the source does not print, and that follow from values that it does print."""
    errata: tuple[Erratum, ...] = ()


class ImportedFile(Frozen):
    """One of the source files of an import, kept in the run folder as it was given."""

    file: str
    sha256: str


class ImportCheck(Frozen):
    """One kind of consistency check on the printed figures of an import: ``what`` was compared, and how many times."""

    what: str
    comparisons: int


class ImportOrigin(Frozen):
    """The origin of an imported run: source and file. ``file`` lies in the run folder as it was given, ``raw/NAME``."""

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
    """All source files but the first, where there are several. Since format 1.4."""

    checks: tuple[ImportCheck, ...] = Field(default=(), exclude_if=lambda checks: checks == ())
    """The consistency checks that the printed figures underwent. Since format 1.5."""

    @property
    def named(self) -> str:
        """Describes the source: "Vendor, performance report (2019)"."""
        source = self.source or "a source that was not named"
        return f"{source} ({self.year})" if self.year is not None else source
