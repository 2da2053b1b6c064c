"""A run as pages watch it: what its journal has said so far, and how it stands now. Several pages share one."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from nicbench.core.errors import NicbenchError
from nicbench.store import files, manifest
from nicbench.store.files import JOURNAL
from nicbench.store.marks import Now, is_asked_to_stop, read_now
from nicbench.web.answers import json_line
from nicbench.web.controller import find_writer
from nicbench.web.cpu_use import CpuUse
from nicbench.web.moments import Item, item_of
from nicbench.web.tail import Tail

_SILENT_S: Final = 120.0
"""A run whose controller cannot be seen, and that is silent for so much longer than its trial, counts as killed."""
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
