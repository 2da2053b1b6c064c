"""The revision history: when a run was started, resumed, finished or imported, and the author's revisions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from nicbench.core.events import Event, RunFinished, RunStarted
from nicbench.core.plan import ReportWishes
from nicbench.core.registry import find
from nicbench.core.result import Erratum, ImportOrigin, Result, Summary
from nicbench.methods.base import Method
from nicbench.report.numbers import trim, whole

# Points in time as people read them.


def label_of_time(wall_time: str) -> str:
    """Returns an ISO time in readable form; other text is returned unchanged."""
    try:
        moment = datetime.fromisoformat(wall_time)
    except ValueError:
        return wall_time
    return f"{moment.astimezone(UTC) if moment.tzinfo else moment:%Y-%m-%d %H:%M}{' UTC' if moment.tzinfo else ''}"


def revision_rows(events: Iterable[Event], wishes: ReportWishes, *, imported: bool) -> tuple[tuple[str, str], ...]:
    """Returns the revisions from the journal in their order, followed by those of the author: when ("" where the
    journal has no time), and what.
    """
    rows = [row for event in events if (row := _row(event, imported=imported))]
    rows += [
        (f"{each.date:%Y-%m-%d}", f"Revision {each.number}: {each.text}" if each.number else each.text)
        for each in wishes.revisions
    ]
    return tuple(rows)


def _row(event: Event, *, imported: bool) -> tuple[str, str] | None:
    if isinstance(event, RunStarted):
        verb = "Imported" if imported else "Resumed" if event.resumed else "Started"
        return (label_of_time(event.wall_time), f"{verb} by nicbench {event.nicbench_version}")
    if isinstance(event, RunFinished) and not imported:
        end = "Finished" if event.complete else "Ended before everything was measured"
        return (label_of_time(event.wall_time) if event.wall_time else "", f"{end}: {event.verdict.value}")
    return None


class ImportedView(NamedTuple):
    """The note on imported results; ``computed`` are the columns that nicbench added to those of the source."""

    source: ImportOrigin
    errata: tuple[tuple[Result, Erratum], ...]
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
    """Returns the note on imported results; None where the results were measured."""
    if summary.imported is None:
        return None
    computed = (
        value_name(result.method, name)
        for result in summary.results
        if result.imported
        for name in result.imported.computed
    )
    return ImportedView(
        source=summary.imported,
        errata=errata_of(summary.results),
        computed=tuple(dict.fromkeys(computed)),
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
        for _, erratum in errata_of([result])
    )


def errata_of(results: Iterable[Result]) -> tuple[tuple[Result, Erratum], ...]:
    """Returns every value of these results that cannot be right."""
    return tuple((result, erratum) for result in results if result.imported for erratum in result.imported.errata)
