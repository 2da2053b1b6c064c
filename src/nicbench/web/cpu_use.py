"""What the CPUs of a run's machines did over time: from the log of its monitors as it grows, later from their table."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nicbench.core.errors import NicbenchError
from nicbench.stats.cpu import BUSY, CpuStates, add_times
from nicbench.store.monitor_samples import LogParser, Row
from nicbench.web.tail import Tail

_LOG: Final = "monitor.ndjson"
_TABLE: Final = "monitor.parquet"
_STATES: Final = {f"cpu_{state}_ns": state for state in (*BUSY, "idle", "iowait", "steal")}
_INTERRUPTS: Final = "cpu_interrupts"
_METRICS: Final = (*_STATES, _INTERRUPTS)
_MOST_POINTS: Final = 600
"""The most points of a chart; of more, neighbours are averaged."""


AfterS = Callable[[int, int | None], float]
"""Says how long after the first session of a run another one began: by its number among those that were watched, from
1, or by its wall time in nanoseconds where that is known."""


@dataclass(slots=True)
class _Moment:
    """One sample of one machine."""

    session: int
    at_s: float
    interval_ns: int
    cpus: dict[str, dict[str, int]] = field(default_factory=dict)
    interrupts: int | None = None

    def add(self, metric: str, of: str, value: int | None) -> None:
        """Takes one value; one that could not be read is unknown."""
        if value is None:
            return
        if metric == _INTERRUPTS:
            self.interrupts = (self.interrupts or 0) + value
        else:
            self.cpus.setdefault(of, {})[_STATES[metric]] = value


class CpuUse:
    """The samples of a run, read on as its monitors write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._begin_anew()

    def machines(self, after_s: AfterS) -> list[dict[str, Any]]:
        """Returns columns for each machine, by its name."""
        with self._lock:
            if (self._folder / _TABLE).is_file():
                self._read_table()
            else:
                self._read_log()
            by_host = {host: list(moments.values()) for host, moments in sorted(self._hosts.items())}
            walls = tuple(self._walls)
        begun = {number: after_s(number, wall_ns) for number, wall_ns in enumerate(walls, start=1)}
        return [{"host": host, **_columns(moments, begun)} for host, moments in by_host.items() if moments]

    def _begin_anew(self) -> None:
        self._hosts: dict[str, dict[tuple[int, int], _Moment]] = {}
        self._tail = Tail(self._folder / _LOG)
        self._walls: list[int | None] = []
        self._parser = LogParser([], [], frozenset(_METRICS), self._walls)
        self._table: tuple[int, int] | None = None

    def _read_log(self) -> None:
        while True:
            lines, anew = self._tail.read()
            if anew:
                self._begin_anew()
            if not lines:
                return
            for line in lines:
                self._add(self._parser.rows_of(line))

    def _read_table(self) -> None:
        """Reads the table, once: it is written where a session of the run ends; the next session's log is added."""
        from nicbench.store import monitor_samples  # imported here: a run that goes on has no table, and needs none

        found = (self._folder / _TABLE).stat()
        log = self._folder / _LOG
        stamp = (found.st_mtime_ns, log.stat().st_size if log.is_file() else 0)
        if stamp == self._table:
            return
        self._begin_anew()
        self._table = stamp
        try:
            samples = monitor_samples.read(self._folder, _METRICS)
        except NicbenchError:
            return  # the report says that the table is damaged
        if samples is not None:
            self._walls += samples.walls
            for batch in samples.table.to_batches():
                self._add(zip(*(column.to_pylist() for column in batch.columns), strict=True))

    def _add(self, rows: Iterable[Row]) -> None:
        for session, host, at_s, time_ns, interval_ns, _, metric, of, _, value in rows:
            moments = self._hosts.setdefault(host, {})
            moment = moments.setdefault((session, time_ns), _Moment(session, at_s, interval_ns))
            moment.add(metric, of, value)


def _columns(moments: Sequence[_Moment], begun: Mapping[int, float]) -> dict[str, list[float | None]]:
    step = max(1, -(-len(moments) // _MOST_POINTS))
    parts = [moments[begin : begin + step] for begin in range(0, len(moments), step)]
    rows = [_row(part, begun) for part in parts]
    names = ("at_s", "mean", "busiest", "softirq", "stolen", "interrupts")
    return {name: [row[number] for row in rows] for number, name in enumerate(names)}


def _row(part: Sequence[_Moment], begun: Mapping[int, float]) -> tuple[float | None, ...]:
    """Returns time, shares of all CPUs busy, of the busiest, in softirq and stolen, and interrupts per second."""
    each = [CpuStates(states) for moment in part for states in moment.cpus.values()]
    together = add_times(each)
    busiest = [share for states in each if (share := states.share(*BUSY)) is not None]
    counted = [moment for moment in part if moment.interrupts is not None]
    over_s = sum(moment.interval_ns for moment in counted) / 1e9
    interrupts = sum(moment.interrupts or 0 for moment in counted) / over_s if over_s > 0 else None
    shares = (together.share(*BUSY), max(busiest, default=None), together.share("softirq"), together.share("steal"))
    at_s = part[-1].at_s + begun.get(part[-1].session, 0.0)
    return (round(at_s, 2), *(None if share is None else round(share, 4) for share in shares), interrupts)
