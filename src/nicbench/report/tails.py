"""Results by ports: one table for each test, with every direction between two ports, the sum of all, and every port."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from nicbench.core.frame_size import label_of, size_words
from nicbench.core.lists import grouped
from nicbench.core.pattern import Pattern
from nicbench.core.plan import Plan
from nicbench.core.reading import PortFigures
from nicbench.core.result import Result, name_of_test, title_of_test
from nicbench.core.table import Column
from nicbench.core.units import count_of
from nicbench.report.cells import number_in, text_of, texts, with_unit
from nicbench.report.numbers import UNKNOWN, percent, trim
from nicbench.report.section import load_words
from nicbench.stats.intervals import Chance, chance_of_all


class PortsTable(NamedTuple):
    """One test. ``scope`` says what its rates elsewhere are the rates of; ``pattern`` is the traffic pattern in the
    words of the RFC. ``rows`` have the name of a point and its figures.
    """

    test: str
    scope: str
    pattern: str | None
    rows: Sequence[tuple[str, PortFigures]]


def ports_tables(results: Iterable[Result], tests: Mapping[str, str], plan: Plan | None) -> tuple[PortsTable, ...]:
    """Returns a table for each test; ``tests`` maps the id of a result to the name of its test. A result of a single
    direction has no row, and results of one trial, such as its captures, have one together.
    """
    of_trials = grouped(
        ((title_of_test(result, tests), result.by_port.trial), result) for result in results if result.by_port
    )
    rows = []
    for (test, _), (first, *others) in of_trials.items():
        scope = " or ".join(dict.fromkeys((first.scope, *(other.scope for other in others))))
        rows += [((test, scope), (_name_by_ports(first), first.by_port))] if first.by_port else []
    pattern = _pattern(plan)
    return tuple(PortsTable(test, scope, pattern, members) for (test, scope), members in grouped(rows).items())


def _name_by_ports(result: Result) -> str:
    """Returns the frame size of a result and, where it has one, its load: "64 bytes, 50 %"."""
    size = size_words(result.parameters) if label_of(result.parameters) else result.id
    load = result.parameters.get("load_percent")
    return f"{size}, {load:g} %" if isinstance(load, int | float) else size


def _pattern(plan: Plan | None) -> str | None:
    written = plan.traffic.get("pattern") if plan else None
    return Pattern(written).words if written in list(Pattern) else None


_BOUND = re.compile(r"(bin_to|bin_over|outside)_(\d+)_ns_(per_100_million|frames|messages)")
_SCALED, _FRAMES, _MESSAGES = "per_100_million", "frames", "messages"
_SCALED_TO = 1e8
_SIZE = Column("frame_bytes", "Frame", unit="bytes", form="text")
_MIX = Column("mix", "Frame", form="text")


SLOWEST_OF: Final = (10, 100, 1000)
"""Numbers of frames or messages that are waited for together."""


class TailRow(NamedTuple):
    """One frame size of one configuration; cells are in the order of the table's ``bins`` and ``bounds``."""

    name: str
    frames: str
    bins: tuple[str, ...]
    outside: tuple[tuple[str, str], ...]
    """For each bound, the count outside it and the percentage of all frames that it is."""
    counts: tuple[tuple[str, float], ...]
    slowest: tuple[tuple[Chance | None, ...], ...]
    """For each number of ``SLOWEST_OF`` the chance that its slowest is within each bound; None: unknown."""
    result: Result


class TailTable(NamedTuple):
    """One latency test at one load; ``bins`` and ``bounds`` are headings, in microseconds. ``what`` says what is
    counted, and ``most`` is the highest possible count.
    """

    test: str
    load: str
    what: str
    most: float
    bins: tuple[str, ...]
    bounds: tuple[str, ...]
    rows: tuple[TailRow, ...]

    @property
    def plain(self) -> str:
        """What is counted, not scaled: "frames" or "messages"."""
        return _MESSAGES if self.what == _MESSAGES else _FRAMES


def tail_tables(results: Iterable[Result], tests: Mapping[str, str]) -> tuple[TailTable, ...]:
    """Returns a table for each test and load; ``tests`` maps the id of a result to the name of its test. Results
    without bins have no row.
    """
    shown = grouped(
        ((name_of_test(result, tests), load_words(result.parameters)), result)
        for result in results
        if _bounds_ns([result])
    )
    return tuple(_table(test, load, members) for (test, load), members in shown.items())


def _table(test: str, load: str, results: Sequence[Result]) -> TailTable:
    bounds_ns = _bounds_ns(results)
    bounds = [trim(bound_ns / 1e3) for bound_ns in bounds_ns]
    between = [f"{lower} to {upper}" for lower, upper in pairwise(bounds)]
    unit = _unit(results)
    timed = "timed_messages" if unit == _MESSAGES else "timed_frames"
    names = [f"bin_to_{bound_ns}_ns" for bound_ns in bounds_ns] + [f"bin_over_{bounds_ns[-1]}_ns"]
    bins = (f"to {bounds[0]}", *between, f"over {bounds[-1]}")
    inside = _columns(results, [f"{name}_{unit}" for name in names])
    beyond = [f"outside_{bound_ns}_ns_{unit}" for bound_ns in bounds_ns]
    outside = _columns(results, beyond)
    whole = [_SCALED_TO if unit == _SCALED else number_in(result, timed) for result in results]
    shares = [
        tuple(_share(number_in(result, name), of) for name in beyond) for result, of in zip(results, whole, strict=True)
    ]
    frames = texts(Column(timed, "", form="whole"), results)
    several = len({result.configuration for result in results}) > 1
    return TailTable(
        test=test,
        load=load,
        what="frames of 100 million" if unit == _SCALED else unit,
        most=max((of for of in whole if of), default=1.0),
        bins=bins,
        bounds=tuple(bounds),
        rows=tuple(
            TailRow(
                name=_name(result, several),
                frames=frames[number],
                bins=inside[number],
                outside=tuple(zip(outside[number], shares[number], strict=True)),
                counts=tuple(
                    (head, count)
                    for head, name in zip(bins, names, strict=True)
                    if (count := number_in(result, f"{name}_{unit}")) is not None
                ),
                slowest=tuple(
                    tuple(_chance(number_in(result, name), whole[number], several) for name in beyond)
                    for several in SLOWEST_OF
                ),
                result=result,
            )
            for number, result in enumerate(results)
        ),
    )


def _columns(results: Sequence[Result], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the cells of each result."""
    columns = [texts(Column(name, "", form="whole"), results) for name in names]
    return list(zip(*columns, strict=True))


def _share(count: float | None, of: float | None) -> str:
    return UNKNOWN if count is None or not of else f"{percent(100 * count / of)} %"


def _chance(outside: float | None, of: float | None, number: int) -> Chance | None:
    """Returns the chance that the slowest of several is not among those outside a bound."""
    if outside is None or not of or outside > of:
        return None
    return chance_of_all(round(of) - round(outside), round(of), number)


def _unit(results: Sequence[Result]) -> str:
    """Returns what the bins of these results count: messages, frames, or frames of 100 million."""
    names = [name for result in results for name in result.values]
    if any(name.endswith(_MESSAGES) for name in names if _BOUND.fullmatch(name)):
        return _MESSAGES
    timed = [number_in(result, "timed_frames") for result in results]
    is_scaled = any(_BOUND.fullmatch(name) and name.endswith(_SCALED) for name in names)
    return _SCALED if is_scaled and all(count is None or count >= _SCALED_TO for count in timed) else _FRAMES


def _bounds_ns(results: Sequence[Result]) -> list[int]:
    """Returns the bounds, in nanoseconds, for which any of the results has a value, lowest first."""
    found = (_BOUND.fullmatch(name) for result in results for name in result.values)
    return sorted({int(match[2]) for match in found if match})


def _name(result: Result, several_configurations: bool) -> str:
    if "message_bytes" in result.parameters:
        streams = result.parameters.get("streams", 1)
        what = "queue pair" if result.parameters.get("transport") == "rdma" else "stream"
        size = f"{result.parameters['message_bytes']} bytes, {count_of(streams, what)} a sender"
        if "senders" not in result.parameters:
            names = ("port", "transport", "load")
            size = ", ".join(str(result.parameters[name]) for name in ("message", *names) if name in result.parameters)
    elif result.parameters.get("mix"):
        size = text_of(_MIX, result)
    else:
        size = with_unit(_SIZE, text_of(_SIZE, result))
    return f"{result.configuration}, {size}" if several_configurations else size
