"""Skims a journal for a list of runs: title, start, methods and counts, without checking every line of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json

from nicbench.core.errors import NicbenchError
from nicbench.store import reading

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Limit in bytes; a longer line is skipped."""
_PREFIX: Final = b'{"event":"'
_READ: Final = frozenset({b"run_started", b"result_ready", b"test_started"})
"""Events whose content a list needs; of the others it needs only the number."""


@dataclass(frozen=True, slots=True)
class Skimmed:
    """What a list needs of a journal. ``started`` is the wall time as written; ``trouble`` why it cannot be read."""

    title: str | None = None
    started: str | None = None
    nicbench_version: str | None = None
    trials: int = 0
    results: int = 0
    methods: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    trouble: str | None = None


def skim(journal: Path) -> Skimmed:
    """Reads what a list shows of a journal. Torn or damaged lines are skipped; opening the run reports them."""
    first: dict[str, Any] = {}
    trials, results = 0, set[str]()
    methods, configurations = dict[str, None](), dict[str, None]()
    try:
        with reading.opened(journal) as stream:
            while line := stream.readline(LONGEST_LINE):
                kind, event = _event(line)
                if kind == "trial_finished":
                    trials += 1
                elif kind == "run_started" and not first:
                    first = event
                elif kind == "test_started":
                    methods[str(event.get("method"))] = None
                elif kind == "result_ready" and isinstance(result := event.get("result"), dict):
                    results.add(json.dumps(result.get("id")))
                    configurations[str(result.get("configuration") or "default")] = None
    except FileNotFoundError:
        return Skimmed()
    except NicbenchError as error:
        return Skimmed(trouble=f"{journal.name} {error.message}")
    except OSError as error:
        return Skimmed(trouble=str(error))
    return Skimmed(
        title=_text(first.get("title")),
        started=_text(first.get("wall_time")),
        nicbench_version=_text(first.get("nicbench_version")),
        trials=trials,
        results=len(results),
        methods=tuple(methods),
        configurations=tuple(configurations),
    )


def _event(line: bytes) -> tuple[str, dict[str, Any]]:
    """Returns an event's kind, and its content where a list needs it.

    Lines that nicbench wrote begin with the kind; others are parsed.
    """
    if line.startswith(_PREFIX):
        kind = line[len(_PREFIX) : len(_PREFIX) + 32].partition(b'"')[0]
        if kind not in _READ:
            return kind.decode(errors="replace") if line.endswith(b"\n") else "", {}
    try:
        event = from_json(line, allow_inf_nan=False)
    except (ValueError, RecursionError):
        return "", {}
    return (str(event.get("event")), event) if isinstance(event, dict) else ("", {})


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
