"""The health of the machines' hardware over a run: what rose, in how many trials; temperatures and power."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nicbench.core.reading import HealthEvent, HealthLevel, Measure
from nicbench.core.trial import Trial
from nicbench.core.verdict import Reason


@dataclass(frozen=True, slots=True)
class EventRow:
    """One counter of one part: by how much it rose in all trials, in which, and how many of these it spoilt."""

    event: HealthEvent
    amount: float
    trials: tuple[str, ...]
    spoilt: int

    @property
    def is_harmless(self) -> bool:
        """Whether it has no threshold, for it loses nothing."""
        return self.event.measure is Measure.FEC_CORRECTED


@dataclass(frozen=True, slots=True)
class LevelRow:
    """A temperature or power: the least and the greatest over the trials."""

    level: HealthLevel
    least: float
    greatest: float


@dataclass(frozen=True, slots=True)
class MachineTable:
    """What the gate saw; ``reading_ms`` is the mean time that its readings took a trial."""

    events: tuple[EventRow, ...]
    levels: tuple[LevelRow, ...]
    unread: tuple[str, ...]
    trials: int
    reading_ms: float | None


def machine_table(trials: Iterable[Trial]) -> MachineTable | None:
    """None where nobody asked: a simulated run, a journal of before."""
    asked = [(trial, trial.reading.machine) for trial in trials if trial.reading.machine is not None]
    if not asked:
        return None
    events: dict[tuple[str, str, str], list[tuple[Trial, HealthEvent]]] = {}
    levels: dict[tuple[str, str, str], list[HealthLevel]] = {}
    for trial, machine in asked:
        for event in machine.events:
            events.setdefault((event.host, event.where, event.what), []).append((trial, event))
        for level in machine.levels:
            levels.setdefault((level.host, level.where, level.unit), []).append(level)
    times = [machine.reading_ms for _, machine in asked if machine.reading_ms is not None]
    return MachineTable(
        events=tuple(_event_row(rows) for rows in events.values()),
        levels=tuple(
            LevelRow(rows[0], min(row.value for row in rows), max(row.value for row in rows))
            for rows in levels.values()
        ),
        unread=tuple(dict.fromkeys(reason for _, machine in asked for reason in machine.unread)),
        trials=len(asked),
        reading_ms=sum(times) / len(times) if times else None,
    )


def _event_row(rows: list[tuple[Trial, HealthEvent]]) -> EventRow:
    event = rows[0][1]
    amounts = [one.amount for _, one in rows]
    # A share is of one trial: the worst of them stands for all.
    amount = max(amounts) if event.unit == "share" else sum(amounts)
    return EventRow(
        event, amount, tuple(trial.id for trial, _ in rows), sum(_spoilt(trial, event) for trial, _ in rows)
    )


def _spoilt(trial: Trial, event: HealthEvent) -> bool:
    reasons = (Reason.HARDWARE, Reason.LINK_CHANGED)
    return any(
        finding.reason in reasons and finding.threshold == event.measure.value for finding in trial.verdict.findings
    )
