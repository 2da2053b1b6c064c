"""The revision history: when a run was started, resumed, finished or imported, and what its author wrote of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from nicbench.core.events import Event, RunFinished, RunStarted
from nicbench.core.report_options import ReportWishes

# Points in time as people read them.


def label_of_time(wall_time: str) -> str:
    """An ISO time as people read it; anything else as it is, for it only labels."""
    try:
        moment = datetime.fromisoformat(wall_time)
    except ValueError:
        return wall_time
    return f"{moment.astimezone(UTC) if moment.tzinfo else moment:%Y-%m-%d %H:%M}{' UTC' if moment.tzinfo else ''}"


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """One line; ``when`` is empty where the journal does not tell."""

    when: str
    what: str


def revision_rows(events: Iterable[Event], wishes: ReportWishes, *, imported: bool) -> tuple[RevisionRow, ...]:
    """The journal's first, in its order, then the author's."""
    rows = [row for event in events if (row := _row(event, imported=imported))]
    rows += [RevisionRow(f"{each.date:%Y-%m-%d}", each.text) for each in wishes.revisions]
    return tuple(rows)


def _row(event: Event, *, imported: bool) -> RevisionRow | None:
    if isinstance(event, RunStarted):
        verb = "Imported" if imported else "Resumed" if event.resumed else "Started"
        return RevisionRow(label_of_time(event.wall_time), f"{verb} by nicbench {event.nicbench_version}")
    if isinstance(event, RunFinished) and not imported:
        end = "Finished" if event.complete else "Ended before everything was measured"
        return RevisionRow(label_of_time(event.wall_time) if event.wall_time else "", f"{end}: {event.verdict.value}")
    return None
