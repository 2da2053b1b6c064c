"""The revision history: when a run was started, resumed, finished or imported, and the author's revisions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from nicbench.core.events import Event, RunFinished, RunStarted
from nicbench.core.plan import ReportWishes

# Points in time as people read them.


def label_of_time(wall_time: str) -> str:
    """Returns an ISO time in readable form; text that is no ISO time is returned unchanged."""
    try:
        moment = datetime.fromisoformat(wall_time)
    except ValueError:
        return wall_time
    return f"{moment.astimezone(UTC) if moment.tzinfo else moment:%Y-%m-%d %H:%M}{' UTC' if moment.tzinfo else ''}"


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """One line of the revision history; ``when`` is empty where the journal has no time."""

    when: str
    what: str


def revision_rows(events: Iterable[Event], wishes: ReportWishes, *, imported: bool) -> tuple[RevisionRow, ...]:
    """Returns the revisions from the journal in their order, followed by those of the author."""
    rows = [row for event in events if (row := _row(event, imported=imported))]
    rows += [
        RevisionRow(f"{each.date:%Y-%m-%d}", f"Revision {each.number}: {each.text}" if each.number else each.text)
        for each in wishes.revisions
    ]
    return tuple(rows)


def _row(event: Event, *, imported: bool) -> RevisionRow | None:
    if isinstance(event, RunStarted):
        verb = "Imported" if imported else "Resumed" if event.resumed else "Started"
        return RevisionRow(label_of_time(event.wall_time), f"{verb} by nicbench {event.nicbench_version}")
    if isinstance(event, RunFinished) and not imported:
        end = "Finished" if event.complete else "Ended before everything was measured"
        return RevisionRow(label_of_time(event.wall_time) if event.wall_time else "", f"{end}: {event.verdict.value}")
    return None
