"""From two readings of the hardware to what rose in between. Pure; whether it spoils a trial is ``judge``'s."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nicbench.core.reading import HealthEvent, HealthLevel, MachineHealth, Measure
from nicbench.measure.health.base import Counter, Energy, Level, Speed, Value


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Values by host at one time (monotonic seconds), what could not be read, and how long it took."""

    at_s: float
    values: Mapping[str, tuple[Value, ...]]
    unread: tuple[str, ...] = ()
    took_ms: float = 0.0


def compare(before: Snapshot, after: Snapshot) -> MachineHealth:
    """Events and levels of what lies between the two."""
    events: list[HealthEvent] = []
    levels: list[HealthLevel] = []
    for host, values in after.values.items():
        earlier = {_name(value): value for value in before.values.get(host, ())}
        for value in values:
            was = earlier.get(_name(value))
            events.extend(_events(host, value, was))
            levels.extend(_levels(host, value, was, after.at_s - before.at_s))
    return MachineHealth(
        events=tuple(events),
        levels=tuple(levels),
        unread=tuple(dict.fromkeys((*before.unread, *after.unread))),
        reading_ms=round(before.took_ms + after.took_ms, 1),
    )


def _name(value: Value) -> tuple[type[Value], str, str]:
    # The words of a speed hold the speed itself.
    return type(value), value.where, value.what if isinstance(value, Counter) else ""


def _events(host: str, value: Value, was: Value | None) -> Iterator[HealthEvent]:
    if isinstance(value, Counter) and isinstance(was, Counter) and value.value > was.value:
        grown = value.value - was.value
        yield HealthEvent(
            host=host, where=value.where, what=value.what, measure=value.measure, amount=grown, unit=value.unit
        )
    if isinstance(value, Speed) and isinstance(was, Speed) and value.value < was.value:
        yield HealthEvent(
            host=host,
            where=value.where,
            what=f"PCIe link went from {was.what} to {value.what}",
            measure=value.measure,
            amount=1.0 - value.value / was.value,
            unit="share",
        )
    if isinstance(value, Level) and value.limit and value.value > value.limit:
        yield HealthEvent(
            host=host,
            where=value.where,
            what=f"{value.value:.1f} {value.unit}, its limit is {value.limit:.1f} {value.unit}",
            measure=Measure.TEMPERATURE,
            amount=value.value / value.limit,
            unit="share",
        )


def _levels(host: str, value: Value, was: Value | None, elapsed_s: float) -> Iterator[HealthLevel]:
    if isinstance(value, Level):
        yield HealthLevel(host=host, where=value.where, value=value.value, unit=value.unit, limit=value.limit)
    if isinstance(value, Energy) and isinstance(was, Energy) and elapsed_s > 0:
        joules = value.joules - was.joules
        if joules < 0:
            # The register is 32 bits wide; one that does not say where it wraps tells nothing.
            joules = joules + value.range_j if value.range_j else -1.0
        if joules >= 0:
            yield HealthLevel(host=host, where=value.where, value=round(joules / elapsed_s, 1), unit="W")
