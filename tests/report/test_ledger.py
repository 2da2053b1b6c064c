"""The ledger's table and the hardware's: places from sender to receiver, what rose and what it made invalid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.reading import HealthEvent, HealthLevel, MachineHealth, Measure
from nicbench.core.trial import LossBeside, LossPlace, Purpose, Trial
from nicbench.report.sections.trials import ledger_table, machine_table


def trial(run: Any, name: str, *rows: LossPlace, lost: int, purpose: Purpose = Purpose.SEARCH, **more: Any) -> Trial:
    one: Trial = run.trial("throughput", 64, 1e6, purpose, 0, knee=1e5)
    counts = one.reading.counts.replace(lost=lost)
    left = lost - sum(row.frames for row in rows if not row.unsent)
    reading = one.reading.replace(counts=counts, ledger=rows, unexplained=left, **more)
    return one.replace(id=name, reading=reading)


def place(name: str, stage: int, frames: int, *, unsent: bool = False) -> LossPlace:
    return LossPlace(place=name, counter=f"counter of {name}", frames=frames, stage=stage, unsent=unsent)


def test_places_stand_from_sender_to_receiver_whatever_trial_met_them_first(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    ring, queue = place("receive ring", 15, 5), place("queue", 3, 7)
    table = ledger_table(
        [
            trial(run, "t0001", ring, lost=5),
            trial(run, "t0002", place("transmit ring", 1, 9, unsent=True), queue, lost=10),
            trial(run, "t0003", lost=0),
            trial(run, "t0004", lost=50, purpose=Purpose.CEILING),
        ]
    )
    assert table is not None
    assert [(column.name, column.frames) for column in table.places] == [("queue", 7), ("receive ring", 5)]
    assert [(row.trial.id, row.cells) for row in table.rows] == [("t0001", (None, 5)), ("t0002", (7, None))]
    assert (table.lost, table.unexplained) == (15, 3)


def test_faults_and_counters_beside_are_told_by_trial(synthetic_run: Callable[..., Any]) -> None:
    beside = LossBeside(place="XDP program of d0", counter="xdp_drops", frames=4, why="whose they were it does not say")
    faulty = trial(synthetic_run(), "t0007", lost=4, ledger_faults=("d0 rx ran backwards",), ledger_beside=(beside,))
    table = ledger_table([faulty])
    assert table is not None
    assert table.faults == (("t0007", "d0 rx ran backwards"),)
    assert table.beside == (("t0007", beside),)


def test_nothing_lost_gives_no_table(synthetic_run: Callable[..., Any]) -> None:
    assert ledger_table([trial(synthetic_run(), "t0001", lost=0)]) is None


def test_the_hardwares_table_says_what_rose_how_often_and_what_was_invalid(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()

    def seen(name: str, amount: float, degrees: float, verdict: Verdict) -> Trial:
        event = HealthEvent(
            host="DUT", where="eth2", what="BadTLP", measure=Measure.PCIE_CORRECTED, amount=amount, unit="errors"
        )
        level = HealthLevel(host="DUT", where="module of eth2", value=degrees, unit="C", limit=70.0)
        machine = MachineHealth(events=(event,) if amount else (), levels=(level,), reading_ms=12.0)
        return trial(run, name, lost=0, machine=machine).replace(verdict=verdict)

    finding = Finding(reason=Reason.HARDWARE, threshold="pcie_corrected_share", value=1.0, limit=0.1, text="many")
    table = machine_table(
        [
            seen("t1", 0, 41.0, Verdict()),
            seen("t2", 2, 40.0, Verdict()),
            seen("t3", 900, 44.5, Verdict(findings=(finding,))),
        ]
    )
    assert table is not None
    (row,) = table.events
    assert (row.amount, row.trials, row.invalid_count) == (902, ("t2", "t3"), 1)
    assert [(one.least, one.greatest) for one in table.levels] == [(40.0, 44.5)]
    assert (table.trials, table.reading_ms) == (3, 12.0)


def test_a_run_whose_hardware_nobody_asked_has_no_such_table(synthetic_run: Callable[..., Any]) -> None:
    assert machine_table([trial(synthetic_run(), "t0001", lost=0)]) is None
