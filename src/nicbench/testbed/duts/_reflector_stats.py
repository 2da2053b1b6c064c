"""Reads the statistics of the reflector (protocol/reflect.md, ``stats``). Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nicbench.core.trial import DutWork

SOURCE = "reflector: turns of its loop that moved a frame"
# The names in its events of what happens to a frame that it does not send on.
_DROPS = ("lost", "dropped_rate", "dropped_held_full", "dropped_at_end")


def parse_event(line: str) -> dict[str, Any]:
    """The event in a line; any other line, as a library may print it, is an event without a name."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def drops(stats: Mapping[str, Any]) -> dict[str, int]:
    """Frames that it did not send on, by direction and reason; some of them on purpose, as faults."""
    return {
        f"reflector d{way['from_port']} to d{way['to_port']} {name}": way[name]
        for way in stats["directions"]
        for name in _DROPS
    }


def count_overruns(stats: Mapping[str, Any]) -> dict[int, int]:
    """Frames that the ring towards the tester refused, by port."""
    refused: dict[int, int] = {}
    for way in stats["directions"]:
        refused[way["to_port"]] = refused.get(way["to_port"], 0) + way["dropped_transmit_full"]
    return refused


def work(stats: Mapping[str, Any]) -> DutWork:
    """Its cycles in turns that moved a frame, with the core's clock as it was probed last."""
    clock = stats.get("core_clock_hz")
    return DutWork(
        source=SOURCE,
        packets=sum(way["received"] for way in stats["directions"]),
        tsc_cycles=stats["busy_tsc_cycles"],
        tsc_hz=stats.get("tsc_hz"),
        counts_empty_polls=False,
        core_clock_hz=() if clock is None else (clock,),
    )


def failure_text(event: Mapping[str, Any]) -> str:
    """The message of an event ``failed``."""
    error = event.get("error") or {}
    text = str(error.get("message", "without a word"))
    return f"{text}; {error['next']}" if error.get("next") else text
