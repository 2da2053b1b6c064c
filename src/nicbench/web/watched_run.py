"""Follows a file of lines as it grows, a journal or the log of a monitor: whole lines, from where it stopped last."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from nicbench.core.errors import NicbenchError
from nicbench.stats.cpu import BUSY, CpuStates, add_times
from nicbench.store import files, manifest
from nicbench.store.files import JOURNAL
from nicbench.store.marks import is_asked_to_stop
from nicbench.store.monitor_samples import LogParser, Row
from nicbench.store.now import Now, read_now
from nicbench.web.answers import json_line
from nicbench.web.controller import find_writer
from nicbench.web.moments import Item, item_of

_MOST_BYTES: Final = 4 * 2**20
"""How much is read at one time, so that the first trials of a long run are shown before its last are read."""


class Tail:
    """Reads what was appended since; begins again where the file was replaced or is shorter than it was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._identity: tuple[int, int] | None = None

    def read(self) -> tuple[list[bytes], bool]:
        """Returns whole lines that are new, and whether they begin the file anew. Empty where it cannot be read."""
        try:
            stream = files.open_file(self._path)
        except (OSError, NicbenchError):
            return [], False
        with stream:
            found = os.fstat(stream.fileno())
            identity = (found.st_dev, found.st_ino)
            anew = self._identity not in (None, identity) or found.st_size < self._offset
            if anew:
                self._offset = 0
            self._identity = identity
            stream.seek(self._offset)
            read = stream.read(_MOST_BYTES)
            end = read.rfind(b"\n")
            if end < 0 and len(read) == _MOST_BYTES:  # one line that is longer than all this: up to the limit of a line
                read += stream.readline(files.LONGEST_LINE_BYTES)
                end = read.rfind(b"\n")
            whole = read[: end + 1]
        self._offset += len(whole)
        return whole.splitlines(), anew


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


_SILENT_S: Final = 120.0
"""A run whose controller cannot be seen, and that is silent for this much longer than its trial lasts, counts as
killed.
"""
_LOOK_S: Final = 0.4
_STATE_S: Final = 1.0
"""How often a journal is looked at, and processes for who writes it, however many pages there are."""
_MOST_WATCHED: Final = 8
"""How many runs are kept in memory, so that a second page of one opens at once."""
REPORT: Final = "report.html"


class WatchedRun:
    """The items of a journal (JSON texts, in order) and the state of the run.

    ``generation`` counts how often the journal was replaced: items of another generation are void.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.items: list[str] = []
        self.generation = 0
        self._tail = Tail(folder / JOURNAL)
        self._lock = threading.Lock()
        self._ended: Item | None = None
        self._sessions: list[datetime] = []
        self._looking = threading.Lock()
        self._looked = self._stated = -_STATE_S
        self._more = False
        self._state: dict[str, Any] = {}
        self.cpus = CpuUse(folder)

    def look(self, *, now: bool = False) -> tuple[bool, dict[str, Any]]:
        """Returns whether there is more to read at once, and the state; many pages together look as often as one.

        ``now``: whenever the last look was.
        """
        with self._looking:
            moment = time.monotonic()
            if now or self._more or moment - self._looked >= _LOOK_S:
                self._looked = moment
                self._more = self.advance()
                if now or self._more or moment - self._stated >= _STATE_S:
                    self._stated, self._state = moment, self.state()
            return self._more, self._state

    def advance(self) -> bool:
        """Reads what the journal has got since; returns whether there is more to read at once."""
        with self._lock:
            lines, anew = self._tail.read()
            if anew:
                self.generation += 1
                self.items, self._sessions, self._ended = [], [], None
            for line in lines:
                item = item_of(line)
                if item is not None:
                    self._note(item)
                    self.items.append(json_line(item))
            return bool(lines)

    def _note(self, item: Item) -> None:
        """Remembers where sessions begin and whether the run ended, and counts times from the first session's start."""
        if item["k"] == "run":
            self._ended = None
            with contextlib.suppress(ValueError, TypeError):
                self._sessions.append(datetime.fromisoformat(item["at"]))
        elif item["k"] == "end":
            self._ended = item
        elif "at" in item:
            item["at"] = round(item["at"] + self.after_s(len(self._sessions)), 3)

    def machines(self) -> list[dict[str, Any]]:
        """Returns what the CPUs of each machine did, in columns, by the time since the first session began."""
        while self.advance():
            pass
        return self.cpus.machines(self.after_s)

    def after_s(self, session: int, wall_ns: int | None = None) -> float:
        """Returns how long after the first session another began, by wall time; a resumed run has several.

        ``session`` is its number, from 1; ``wall_ns`` counts where it is known.
        """
        if wall_ns is not None and self._sessions:
            return wall_ns / 1e9 - self._sessions[0].timestamp()
        known = self._sessions[:session]
        try:
            return (known[-1] - known[0]).total_seconds() if known else 0.0
        except TypeError:  # one time has a zone, the other none
            return 0.0

    def state(self) -> dict[str, Any]:
        """Returns how the run stands: finished, running, stopped, killed, or silent where nobody here can know."""
        ended = self._ended
        is_kept = (self.folder / manifest.NAME).is_file()
        writer = None if is_kept or ended is not None else find_writer(self.folder)
        found: dict[str, Any] = {"report": (self.folder / REPORT).is_file()}
        now = None if is_kept or ended is not None else read_now(self.folder)
        if writer is not None:
            found |= {"state": "running", "can_stop": writer.is_ours, "asked": is_asked_to_stop(self.folder)}
        elif ended is not None:
            found |= {"state": "finished" if ended["complete"] else "stopped", "verdict": ended["verdict"]}
        elif not self.folder.is_dir():
            found |= {"state": "gone"}
        elif is_kept:  # an imported run, whose journal has no end
            found |= {"state": "finished"}
        else:
            lasts_s = _SILENT_S + (2.0 * _duration_s(now) if now is not None else 0.0)
            found |= {"state": "silent" if self._quiet_s() < lasts_s else "killed", "can_stop": False}
        if now is not None and found["state"] in ("running", "silent"):
            since_s = time.time() - now.began_s
            share, left = now.estimate.share_done(since_s), now.estimate.text(since_s)
            found |= {"now": _shown(now.event), "share": round(share, 3), "left": left}
        return found

    def _quiet_s(self) -> float:
        """Returns for how long the journal did not grow, by the clock of this machine."""
        try:
            return max(0.0, time.time() - (self.folder / JOURNAL).stat().st_mtime)
        except OSError:
            return 0.0


def _duration_s(now: Now) -> float:
    """Returns how long the trial or round takes that has begun; 0 where none has."""
    value = now.event.get("duration_s")
    return float(value) if isinstance(value, int | float) else 0.0


def _shown(event: dict[str, Any]) -> dict[str, Any]:
    """What a page shows of what has begun, each as text or number."""
    parameters = event.get("parameters")
    point = parameters if isinstance(parameters, dict) else {}
    named = {name: event.get(name) for name in ("event", "test", "purpose", "duration_s", "repeat", "text", "jobs")}
    shown = {name: value for name, value in named.items() if isinstance(value, str | int | float)}
    load = event.get("load_frames_per_s")
    size = point.get("mix") or (f"{point['frame_bytes']} bytes" if point.get("frame_bytes") is not None else None)
    return shown | {name: value for name, value in (("load", load), ("point", size)) if isinstance(value, str | float)}


class WatchedRuns:
    """The runs that are or were watched last."""

    def __init__(self) -> None:
        self._runs: OrderedDict[Path, WatchedRun] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, folder: Path) -> WatchedRun:
        """Returns the run of a folder, which begins to be watched where it was not."""
        with self._lock:
            found = self._runs.pop(folder, None) or WatchedRun(folder)
            self._runs[folder] = found
            while len(self._runs) > _MOST_WATCHED:
                self._runs.popitem(last=False)
            return found


def title_of(folder: Path) -> str:
    """Returns the title for the head of the page; the folder's name where the journal does not begin with one."""
    try:
        with files.open_file(folder / JOURNAL) as stream:
            first = item_of(stream.readline(1_000_000))
    except (OSError, NicbenchError):
        return folder.name
    return str(first["title"]) if first is not None and first["k"] == "run" else folder.name
