"""The loss ledger as a table: a row for each trial with loss, a column for each place, from sender to receiver."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from nicbench.core.trial import LossBeside, LossPlace, Purpose, Trial

_OF_THE_TESTER = (Purpose.CEILING, Purpose.TESTER_LATENCY)


@dataclass(frozen=True, slots=True)
class Place:
    """A column: where, by which counters, and how many in all trials of the table."""

    name: str
    counters: tuple[str, ...]
    frames: int


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A trial; ``cells`` are frames by place, None where none was lost there."""

    trial: Trial
    cells: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class LedgerTable:
    """All trials with loss whose path was read; ``faults`` are what is wrong with the counters of a trial."""

    places: tuple[Place, ...]
    rows: tuple[LedgerRow, ...]
    beside: tuple[tuple[str, LossBeside], ...]
    faults: tuple[tuple[str, str], ...]

    @property
    def lost(self) -> int:
        """In all of them."""
        return sum(row.trial.reading.counts.lost for row in self.rows)

    @property
    def unexplained(self) -> int:
        """In all of them; what was counted too often in one does not make up for another."""
        return sum(max(0, row.trial.reading.unexplained or 0) for row in self.rows)


def ledger_table(trials: Iterable[Trial]) -> LedgerTable | None:
    """None where nothing was lost, or nobody could count. In calibration frames end in a sink, which is no loss."""
    lossy = [
        trial
        for trial in trials
        if trial.request.purpose not in _OF_THE_TESTER
        and trial.reading.unexplained is not None
        and (trial.reading.counts.lost > 0 or trial.reading.ledger_faults)
    ]
    if not lossy:
        return None
    by_place: dict[str, list[LossPlace]] = {}
    for trial in lossy:
        for row in _lost(trial):
            by_place.setdefault(place_name(row), []).append(row)
    # A journal of before places had stages keeps the order in which it met them.
    names = sorted(by_place, key=lambda name: by_place[name][0].stage)
    return LedgerTable(
        places=tuple(
            Place(name, tuple(dict.fromkeys(row.counter for row in rows)), sum(row.frames for row in rows))
            for name, rows in ((name, by_place[name]) for name in names)
        ),
        rows=tuple(LedgerRow(trial, tuple(_at(trial, name) for name in names)) for trial in lossy),
        # Where everything is explained they add nothing: a policer counts by itself what its driver counts too.
        beside=tuple(
            (trial.id, row) for trial in lossy if trial.reading.unexplained for row in trial.reading.ledger_beside
        ),
        faults=tuple((trial.id, fault) for trial in lossy for fault in trial.reading.ledger_faults),
    )


def place_name(row: LossPlace) -> str:
    """Its place in words; the DUT's own counters, which have one place, by their names."""
    backlog = re.fullmatch(r"softnet_backlog cpu(\d+)", row.counter)
    if backlog and row.place == "DUT":
        return f"DUT, backlog of CPU {backlog[1]}"
    return f"DUT, {row.counter}" if row.place == "DUT" else row.place


def _lost(trial: Trial) -> tuple[LossPlace, ...]:
    return tuple(row for row in trial.reading.ledger if not row.unsent)


def _at(trial: Trial, name: str) -> int | None:
    frames = [row.frames for row in _lost(trial) if place_name(row) == name]
    return sum(frames) if frames else None
