"""What the reference forwarder says of itself (protocol/reflect.md, ``stats``), as numbers. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nicbench.model.trial import DutWork

SOURCE = "reflector: turns of its loop that moved a frame"
# What it does with a frame instead of sending it on, in the words of its events.
_DROPS = ("lost", "dropped_rate", "dropped_held_full", "dropped_at_end")


def event_of(line: str) -> dict[str, Any]:
    """An event; a line that is none (a library's chatter) is an event without a name."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def drops(stats: Mapping[str, Any]) -> dict[str, int]:
    """Frames that it kept from going on, by direction and reason; on purpose, where they are faults."""
    return {
        f"reflector d{way['from_port']} to d{way['to_port']} {name}": way[name]
        for way in stats["directions"]
        for name in _DROPS
    }


def not_taken(stats: Mapping[str, Any]) -> dict[int, int]:
    """Frames that the ring towards the tester refused, by port."""
    refused: dict[int, int] = {}
    for way in stats["directions"]:
        refused[way["to_port"]] = refused.get(way["to_port"], 0) + way["dropped_transmit_full"]
    return refused


def work(stats: Mapping[str, Any]) -> DutWork:
    """Its cycles while it moved frames; the core's clock is as it was timed last."""
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
    """Of an event ``failed``."""
    error = event.get("error") or {}
    text = str(error.get("message", "without a word"))
    return f"{text}; {error['next']}" if error.get("next") else text
