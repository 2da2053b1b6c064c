"""A journal skimmed for a list of runs: who, when, how much, without checking every line of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json

from nicbench.errors import NicbenchError
from nicbench.store import reading

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of a line that is still looked at; a longer one is passed over."""
_PREFIX: Final = b'{"event":"'
_READ: Final = frozenset({b"run_started", b"result_ready", b"test_started"})
"""The events that a list needs more of than their number."""


@dataclass(frozen=True, slots=True)
class Skimmed:
    """``started`` is wall time as it stands there; ``trouble`` says why the file cannot be read."""

    title: str | None = None
    started: str | None = None
    nicbench_version: str | None = None
    trials: int = 0
    results: int = 0
    methods: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    trouble: str | None = None


def skim(journal: Path) -> Skimmed:
    """What a list shows of it. A line that is torn or damaged is passed over: opening the run says which."""
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
    """Its kind, and its content where a list needs it. Our own lines begin with the kind: the others are parsed."""
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
