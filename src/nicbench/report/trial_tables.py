"""The tables of trials for the appendix: trials in detail, where frames were lost, and the state of the hardware.

In detail: order, copies, corruption, variation and the rate over time, with one trial for each point measured. Losses:
a row for each trial with loss, a column for each place, from sender to receiver. Hardware: which counters rose, in how
many trials; temperatures and power.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nicbench.core.frame_size import label_of
from nicbench.core.judging import Reason
from nicbench.core.reading import Flows, HealthEvent, HealthLevel, Intervals, Measure, Reordering
from nicbench.core.result import Result, title_of_test
from nicbench.core.trial import OF_THE_TESTER, LossBeside, LossPlace, Purpose, Reading, Trial
from nicbench.report.document.blocks import Drawing
from nicbench.report.numbers import mpps
from nicbench.stats.ports import find_telling_trial

_WIDTH, _HEIGHT = 132, 26
_USUAL_N = 3


@dataclass(frozen=True, slots=True)
class Over100Ms:
    """The received frames of a stream over time, as a small drawing: the points of a line, and where frames were
    missing.
    """

    points: str
    missing: tuple[float, ...]
    interval_ns: int
    lowest_frames_per_s: float
    highest_frames_per_s: float


@dataclass(frozen=True, slots=True)
class DetailRow:
    """One trial. Numbers are summed over its streams, or are the maximum of them; unknown is None."""

    size: str
    frame_bytes: float
    trial: Trial
    checked_bytes: int | None
    maximum_extent: int | None
    mean_extent: float | None
    by_three_or_more: int | None
    n_reordered: tuple[int, ...]
    """Frames that arrived behind n or more with greater sequence numbers, for n from 1 on, where more than the usual
    three were asked for.
    """
    pdv_ns: float | None
    ipdv_mean_ns: float | None
    ipdv_maximum_ns: int | None
    flows: Flows | None
    over_time: Over100Ms | None


@dataclass(frozen=True, slots=True)
class DetailTable:
    """The trials behind the results of one test."""

    test: str
    rows: tuple[DetailRow, ...]


def detail_tables(
    results: Iterable[Result], tests: Mapping[str, str], trials: Mapping[str, Trial]
) -> tuple[DetailTable, ...]:
    """Returns a table for each test; ``tests`` maps the id of a result to the name of its test. Results whose engine
    reported no details have no row.
    """
    grouped: dict[str, list[DetailRow]] = {}
    for result in results:
        trial = find_telling_trial([trials[name] for name in result.trials if name in trials])
        if trial is not None and any(stream.flows for stream in trial.reading.streams):
            test = title_of_test(result, tests)
            grouped.setdefault(test, []).append(_row(trial))
    return tuple(DetailTable(test, tuple(rows)) for test, rows in grouped.items())


def _row(trial: Trial) -> DetailRow:
    streams = trial.reading.streams
    reorderings = [stream.reordering for stream in streams if stream.reordering]
    variations = [stream.variation for stream in streams if stream.variation]
    measured = sum(found.measured for found in reorderings)
    extents = sum((found.mean_extent or 0.0) * found.measured for found in reorderings)
    pairs = sum(found.pairs for found in variations)
    checked = [stream.checked_bytes for stream in streams if stream.checked_bytes is not None]
    return DetailRow(
        size=label_of(trial.parameters) or f"{trial.request.frame_bytes:g}",
        frame_bytes=trial.request.frame_bytes,
        trial=trial,
        checked_bytes=min(checked) if checked else None,
        maximum_extent=max((found.maximum_extent for found in reorderings), default=None),
        mean_extent=extents / measured if measured else None,
        by_three_or_more=sum(found.by_three_or_more for found in reorderings) if reorderings else None,
        n_reordered=_n_reordered(reorderings),
        pdv_ns=_pdv_ns(trial.reading),
        ipdv_mean_ns=sum(found.mean_ns * found.pairs for found in variations) / pairs if pairs else None,
        ipdv_maximum_ns=max((found.maximum_ns for found in variations), default=None),
        flows=_flows([stream.flows for stream in streams if stream.flows]),
        over_time=_sum_over_time([stream.intervals for stream in streams if stream.intervals]),
    )


def sparkline(over: Over100Ms) -> Drawing:
    """Returns the frames over time as a line in the colours of the page."""
    lowest, highest = (mpps(rate, 3) for rate in (over.lowest_frames_per_s, over.highest_frames_per_s))
    label = f"received frames in each {over.interval_ns / 1e6:g} ms, {lowest} to {highest} Mpps"
    missing = "".join(
        f'<line x1="{at}" x2="{at}" y1="0" y2="{_HEIGHT}" stroke="var(--series-2, #d55e00)" stroke-width="1"/>'
        for at in over.missing
    )
    line = f'<polyline points="{over.points}" fill="none" stroke="var(--series-1, #0072b2)" stroke-width="1.4"/>'
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return Drawing(f'<svg class="spark" {size} role="img" aria-label="{label}">{missing}{line}</svg>', label)


def _n_reordered(parts: list[Reordering]) -> tuple[int, ...]:
    """Returns the n-reordered frames of all streams; nothing where the column for three already says all."""
    most = max((len(part.n_reordered) for part in parts), default=0)
    padded = [(*part.n_reordered, *[0] * (most - len(part.n_reordered))) for part in parts]
    return tuple(map(sum, zip(*padded, strict=True))) if most > _USUAL_N else ()


def _pdv_ns(reading: Reading) -> float | None:
    """Returns the packet delay variation of RFC 8219, section 7.3.1: the 99.9th percentile less the minimum. The delay
    variation of each single frame is the PDV of RFC 5481.
    """
    tail = reading.latency.percentiles_ns.get("99.9") if reading.latency else None
    return None if tail is None or reading.latency is None else float(tail - reading.latency.minimum_ns)


def _flows(parts: list[Flows]) -> Flows | None:
    """Returns the flows of all streams together; the figures of single flows are those of the stream that they are
    taken from.
    """
    if not parts:
        return None
    names = ("flows", "silent", "with_loss", "with_reordering", "with_duplicates", "with_corruption")
    lossy = [part.most_lost for part in parts if part.most_lost]
    slow = [part.slowest for part in parts if part.slowest]
    return Flows(
        **{name: sum(getattr(part, name) for part in parts) for name in names},
        most_lost=max(lossy, key=lambda found: found[1]) if lossy else None,
        slowest=max(slow, key=lambda found: found[1]) if slow else None,
    )


def _sum_over_time(parts: list[Intervals]) -> Over100Ms | None:
    """Returns the sum of all streams over time. The last interval, which the end of the trial cuts short, is left out.
    None for fewer than two others or where nothing was received in them.
    """
    width_ns = max((part.interval_ns for part in parts), default=0)
    same = [part for part in parts if part.interval_ns == width_ns]
    length = max((len(part.received) for part in same), default=0)
    received = [sum(part.received[at] for part in same if at < len(part.received)) for at in range(length)]
    missing = [sum(part.missing[at] for part in same if at < len(part.missing)) for at in range(length)]
    received, missing = received[:-1], missing[:-1]
    if len(received) < 2 or max(received) == 0:
        return None
    step = _WIDTH / (len(received) - 1)
    top = max(received)
    points = " ".join(
        f"{at * step:.1f},{_HEIGHT - 2 - (_HEIGHT - 4) * count / top:.1f}" for at, count in enumerate(received)
    )
    per_s = 1e9 / width_ns
    return Over100Ms(
        points=points,
        missing=tuple(round(at * step, 1) for at, count in enumerate(missing) if count > 0),
        interval_ns=width_ns,
        lowest_frames_per_s=min(received) * per_s,
        highest_frames_per_s=top * per_s,
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A column: a place, the counters that cover it, and the frames lost there in all trials of the table."""

    name: str
    counters: tuple[str, ...]
    frames: int


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A trial; ``cells`` has the frames lost at each place, None where none was lost."""

    trial: Trial
    cells: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class LedgerTable:
    """All trials with loss whose path was read; ``faults`` says what is wrong with the counters of a trial."""

    places: tuple[Place, ...]
    rows: tuple[LedgerRow, ...]
    beside: tuple[tuple[str, LossBeside], ...]
    faults: tuple[tuple[str, str], ...]

    @property
    def lost(self) -> int:
        """The frames lost in all trials."""
        return sum(row.trial.reading.counts.lost for row in self.rows)

    @property
    def unexplained(self) -> int:
        """The lost frames of all trials that no counter explains; a surplus in one trial does not make
        up for another.
        """
        return sum(max(0, row.trial.reading.unexplained or 0) for row in self.rows)


def ledger_table(trials: Iterable[Trial]) -> LedgerTable | None:
    """Returns the table of losses; None where nothing was lost, or no counters were read. In calibration, frames end in
    a sink, which is no loss.
    """
    lossy = [
        trial
        for trial in trials
        if trial.request.purpose not in (*OF_THE_TESTER, Purpose.MEMBERSHIP)
        and trial.reading.unexplained is not None
        and (trial.reading.counts.lost > 0 or trial.reading.ledger_faults)
    ]
    if not lossy:
        return None
    by_place: dict[str, list[LossPlace]] = {}
    for trial in lossy:
        for row in _lost_places(trial):
            by_place.setdefault(place_name(row), []).append(row)
    # In a journal from before places had stages, the order is that in which places were met.
    names = sorted(by_place, key=lambda name: by_place[name][0].stage)
    return LedgerTable(
        places=tuple(
            Place(name, tuple(dict.fromkeys(row.counter for row in rows)), sum(row.frames for row in rows))
            for name, rows in ((name, by_place[name]) for name in names)
        ),
        rows=tuple(LedgerRow(trial, tuple(_at(trial, name) for name in names)) for trial in lossy),
        # Where everything is explained, these add nothing: a policer counts by itself what its driver counts too.
        beside=tuple(
            (trial.id, row) for trial in lossy if trial.reading.unexplained for row in trial.reading.ledger_beside
        ),
        faults=tuple((trial.id, fault) for trial in lossy for fault in trial.reading.ledger_faults),
    )


def place_name(row: LossPlace) -> str:
    """Returns the name of a place; the DUT's own counters, which share one place, go by their names."""
    backlog = re.fullmatch(r"softnet_backlog cpu(\d+)", row.counter)
    if backlog and row.place == "DUT":
        return f"DUT, backlog of CPU {backlog[1]}"
    return f"DUT, {row.counter}" if row.place == "DUT" else row.place


def _lost_places(trial: Trial) -> tuple[LossPlace, ...]:
    return tuple(row for row in trial.reading.ledger if not row.unsent)


def _at(trial: Trial, name: str) -> int | None:
    frames = [row.frames for row in _lost_places(trial) if place_name(row) == name]
    return sum(frames) if frames else None


@dataclass(frozen=True, slots=True)
class EventRow:
    """One counter of one component: how much it rose in all trials, in which trials, and how many of them it made
    invalid.
    """

    event: HealthEvent
    amount: float
    trials: tuple[str, ...]
    invalid_count: int

    @property
    def is_harmless(self) -> bool:
        """Whether it has no threshold, because it indicates no loss."""
        return self.event.measure is Measure.FEC_CORRECTED


@dataclass(frozen=True, slots=True)
class LevelRow:
    """A temperature or power: the lowest and the highest value over the trials."""

    level: HealthLevel
    least: float
    greatest: float


@dataclass(frozen=True, slots=True)
class MachineTable:
    """What the checks of the hardware saw; ``reading_ms`` is the mean time for reading the counters in a trial."""

    events: tuple[EventRow, ...]
    levels: tuple[LevelRow, ...]
    unread: tuple[str, ...]
    trials: int
    reading_ms: float | None


def machine_table(trials: Iterable[Trial]) -> MachineTable | None:
    """Returns the table of the hardware; None where it was not read: in a simulated run, or in a journal of an older
    version.
    """
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
    # A share belongs to one trial, so the worst one stands for all.
    amount = max(amounts) if event.unit == "share" else sum(amounts)
    return EventRow(
        event, amount, tuple(trial.id for trial, _ in rows), sum(_makes_invalid(trial, event) for trial, _ in rows)
    )


def _makes_invalid(trial: Trial, event: HealthEvent) -> bool:
    reasons = (Reason.HARDWARE, Reason.LINK_CHANGED)
    return any(
        finding.reason in reasons and finding.threshold == event.measure.value for finding in trial.verdict.findings
    )
