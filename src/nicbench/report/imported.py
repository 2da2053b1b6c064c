"""What a report says about results that nicbench did not measure: who measured them, and which of them
cannot be right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nicbench.core.registry import find
from nicbench.core.result import ImportOrigin, Result, Summary
from nicbench.methods.base import Method
from nicbench.report.numbers import trim, whole


@dataclass(frozen=True, slots=True)
class ErratumRow:
    """One printed value that cannot be right; ``point`` names the result, ``name`` the column of the value."""

    point: str
    name: str
    place: str
    printed: str
    computed: str
    reason: str


@dataclass(frozen=True, slots=True)
class ImportedView:
    """What is said about imported results; ``computed`` are the columns that nicbench added to those of the source."""

    source: ImportOrigin
    errata: tuple[ErratumRow, ...]
    computed: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The sentence that stands above everything else."""
        return f"Imported: not measured by nicbench. The numbers are those of {self.source.named}."

    @property
    def checked(self) -> str:
        """How far nicbench vouches for the imported results."""
        said = f"What nicbench did: it converted units {self._compared}. {self._found}"
        return f"{said} How the numbers were measured it cannot know."

    @property
    def _compared(self) -> str:
        if not self.source.rows:
            return "and found no figures to compare"
        if not self.source.checks:  # of a summary that was written before checks were counted
            return (
                "and looked for figures that exceed the line rate, are negative, or contradict one another by more "
                "than their rounding"
            )
        compared = "; ".join(f"{one.what}: {whole(one.comparisons)}" for one in self.source.checks)
        return f"and compared, within the rounding of the printed digits, so many {compared}"

    @property
    def _found(self) -> str:
        if not self.errata:
            return "It found no contradiction."
        return "One cell is an erratum." if len(self.errata) == 1 else f"{len(self.errata)} cells are listed as errata."

    @property
    def added(self) -> str | None:
        """A sentence about the values that the source does not print; None where none was computed."""
        if not self.computed:
            return None
        return f"Computed by nicbench from what the source prints: {', '.join(self.computed)}."


def imported_view(summary: Summary) -> ImportedView | None:
    """Returns what is said about imported results; None where the results were measured."""
    if summary.imported is None:
        return None
    method = summary.imported.method
    computed = (name for result in summary.results if result.imported for name in result.imported.computed)
    return ImportedView(
        source=summary.imported,
        errata=errata_rows(summary.results),
        computed=tuple(dict.fromkeys(value_name(method, name) for name in computed)),
    )


def value_name(method: str, value: str) -> str:
    """Returns the name of a value of imported results, as its column has it: "PDR, lower", "frames outside 20 µs"."""
    known = find("nicbench.methods", Method).get(method)
    table = known.imports() if known else None
    plain, _, part = value.partition(":")
    for column in table.columns if table else ():
        before, bound, after = column.value.partition("{bound}")
        if column.value == plain and column.bound in (None, "value"):
            return f"{column.name}, {part}" if part else column.name
        if bound and plain.startswith(before) and plain.endswith(after):
            return column.name.format(bound=f"{trim(int(plain[len(before) : -len(after)]) / 1e3)} µs")
    return value


def errata_words(result: Result) -> tuple[str, ...]:
    """Returns a sentence for each erratum of a result, for the terminal."""
    return tuple(
        f"{value_name(result.method, erratum.value)} is printed as {erratum.printed}"
        f"{f', computed {erratum.computed}' if erratum.computed else ''}: {erratum.reason}"
        for erratum in (result.imported.errata if result.imported else ())
    )


def errata_rows(results: Sequence[Result]) -> tuple[ErratumRow, ...]:
    """Returns a row for every value of these results that cannot be right."""
    return tuple(
        ErratumRow(
            point=result.id.partition("/")[2] or result.id,
            name=value_name(result.method, erratum.value),
            place=erratum.place,
            printed=erratum.printed,
            computed=erratum.computed or "\u2013",
            reason=erratum.reason,
        )
        for result in results
        if result.imported
        for erratum in result.imported.errata
    )
