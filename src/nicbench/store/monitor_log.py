"""Reads monitor.ndjson line by line, as it was written or as it grows; ``monitor_samples`` says what its lines are.

It needs no tables, so that a page can follow a monitor without loading what writes them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_core import from_json

from nicbench.core.machine import MonitorCost

Row = tuple[int, str, float, int, int, str | None, str, str, str, int | None]
"""Session, host, seconds since the session began, time, interval (both ns), trial, metric, of what, kind, value."""
Costs = list[tuple[str, MonitorCost]]
"""The costs of monitors, by host; a host has one for each session."""
NO_LINE: Final = (LookupError, TypeError, ValueError, ArithmeticError)
"""What a line that no monitor wrote may raise."""


@dataclass
class _Host:
    """What the log has said of a host so far."""

    series: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    trial: str | None = None
    ahead_ns: int = 0


@dataclass
class LogParser:
    """Adds what it reads to ``sessions`` (when each began), ``walls`` (the same by wall time, None where it is not
    known) and ``costs``. Sessions that are there already are skipped.

    ``metrics`` are those of which rows are wanted, None for all. Invalid lines (a crash) are skipped.
    """

    sessions: list[int]
    costs: Costs
    metrics: frozenset[str] | None = None
    walls: list[int | None] = field(default_factory=list)
    begun: set[tuple[int, str]] = field(default_factory=set)
    """Each trial or round that began, with its session: one that was not finished begins again in a later session."""
    _began_ns: int = -1
    _known_before: bool = True
    _hosts: dict[str, _Host] = field(default_factory=dict)

    def rows_of(self, text: bytes) -> Iterable[Row]:
        """Takes a line, and returns its rows: none where it is no sample."""
        line = _object(text)
        if isinstance(line.get("began_ns"), int) and line["began_ns"] != self._began_ns:
            self._began_ns, self._hosts = line["began_ns"], {}
            self._known_before = self._began_ns in self.sessions
            if not self._known_before:
                self.sessions.append(self._began_ns)
                wall_ns = line.get("wall_ns")
                self.walls.append(wall_ns if isinstance(wall_ns, int) else None)
        host = line.get("host")
        found: list[Row] = []
        if not self._known_before and isinstance(host, str):
            with contextlib.suppress(*NO_LINE):
                found += self._line(line, host, self._hosts.setdefault(host, _Host()))
        return found

    def _line(self, line: dict[str, Any], host: str, known: _Host) -> Iterator[Row]:
        if "trial" in line:
            known.trial = (
                None if line["trial"] is None else f"{'r' if line.get('is_round') else 't'}{line['trial']:04d}"
            )
            if known.trial is not None:
                self.begun.add((len(self.sessions), known.trial))
        elif "ahead_ns" in line:
            known.ahead_ns = int(line["ahead_ns"])
        elif "cost" in line:
            self.costs.append((host, MonitorCost.model_validate(line["cost"])))
        elif isinstance(line.get("event"), dict):
            yield from self._event(line["event"], host, known)

    def _event(self, event: dict[str, Any], host: str, known: _Host) -> Iterator[Row]:
        if event.get("event") == "ready":
            known.series, known.trial = {}, None
        elif event.get("event") == "series":
            for each in event["series"]:
                known.series[each["series"]] = (each["metric"], each["of"], each["kind"])
        elif event.get("event") == "sample":
            time_ns, interval_ns = event["time_ns"], event["interval_ns"]
            at_s = (time_ns + known.ahead_ns - self._began_ns) / 1e9
            for series, value in event["values"]:
                named = known.series.get(series)
                if named is None or (self.metrics is not None and named[0] not in self.metrics):
                    continue
                yield (len(self.sessions), host, at_s, time_ns, interval_ns, known.trial, *named, value)


def _object(text: bytes) -> dict[str, Any]:
    try:
        line = from_json(text, allow_inf_nan=False)
    except (ValueError, RecursionError):
        return {}
    return line if isinstance(line, dict) else {}
