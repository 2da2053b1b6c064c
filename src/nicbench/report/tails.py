"""The long tail: frames, or messages, in each latency bin and outside each bound.

Configurations stand side by side, or below one another. Counts are shown as they were counted, beside the number of
timed frames. Frames are scaled to 100 million only where every row timed that many, so that no frame of a short trial
stands for thousands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nicbench.core.result import Result, name_of_test
from nicbench.core.table import Column
from nicbench.report.cells import number_in, text_of, texts, with_unit
from nicbench.report.numbers import UNKNOWN, percent, trim
from nicbench.report.section import load_words

_BOUND = re.compile(r"(bin_to|bin_over|outside)_(\d+)_ns_(per_100_million|frames|messages)")
_SCALED, _FRAMES, _MESSAGES = "per_100_million", "frames", "messages"
_SCALED_TO = 1e8
_SIZE = Column(value="frame_bytes", head="Frame", unit="bytes", form="text")
_MIX = Column(value="mix", head="Frame", form="text")


@dataclass(frozen=True, slots=True)
class TailRow:
    """One frame size of one configuration; cells are in the order of the table's ``bins`` and ``bounds``."""

    name: str
    frames: str
    bins: tuple[str, ...]
    outside: tuple[tuple[str, str], ...]
    """For each bound, the count outside it and the percentage of all frames that it is."""
    counts: tuple[tuple[str, float], ...]
    result: Result


@dataclass(frozen=True, slots=True)
class TailTable:
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


def tail_tables(results: Iterable[Result], tests: Mapping[str, str]) -> tuple[TailTable, ...]:
    """Returns a table for each test and load; ``tests`` maps the id of a result to the name of its test. Results
    without bins have no row.
    """
    grouped: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if _bounds_ns([result]):
            test = name_of_test(result, tests)
            grouped.setdefault((test, load_words(result.parameters)), []).append(result)
    return tuple(_table(test, load, members) for (test, load), members in grouped.items())


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
    frames = texts(Column(value=timed, head="", form="whole"), results)
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
                result=result,
            )
            for number, result in enumerate(results)
        ),
    )


def _columns(results: Sequence[Result], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the cells of each result."""
    columns = [texts(Column(value=name, head="", form="whole"), results) for name in names]
    return list(zip(*columns, strict=True))


def _share(count: float | None, of: float | None) -> str:
    return UNKNOWN if count is None or not of else f"{percent(100 * count / of)} %"


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
        several = "" if streams == 1 else "s"
        size = f"{result.parameters['message_bytes']} bytes, {streams} {what}{several} a sender"
    elif result.parameters.get("mix"):
        size = text_of(_MIX, result)
    else:
        size = with_unit(_SIZE, text_of(_SIZE, result))
    return f"{result.configuration}, {size}" if several_configurations else size
