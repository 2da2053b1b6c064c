"""The long tail: frames in each latency bin and outside each bound, configurations beside each other (or beneath)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nicbench.model.result import Result, name_of_test
from nicbench.model.table import Column
from nicbench.report.cells import number_of, text_of, texts, with_unit
from nicbench.report.numbers import UNKNOWN, significant, trimmed

_PER_100_MILLION = re.compile(r"(bin_to|bin_over|outside)_(\d+)_ns_per_100_million")
_SIZE = Column(value="frame_bytes", head="Frame", unit="bytes", form="text")
_MIX = Column(value="mix", head="Frame", form="text")


@dataclass(frozen=True, slots=True)
class TailRow:
    """One frame size of one configuration; cells in the order of the table's ``bins`` and ``bounds``."""

    name: str
    frames: str
    bins: tuple[str, ...]
    outside: tuple[tuple[str, str], ...]
    """Each with the share of all frames that it is, in percent."""
    counts: tuple[tuple[str, float], ...]
    result: Result


@dataclass(frozen=True, slots=True)
class TailTable:
    """One latency test at one load. ``bins`` and ``bounds`` are headings, in microseconds."""

    test: str
    load: str
    bins: tuple[str, ...]
    bounds: tuple[str, ...]
    rows: tuple[TailRow, ...]


def tail_tables(results: Iterable[Result], tests: Mapping[str, str]) -> tuple[TailTable, ...]:
    """``tests`` maps a result's id to the name of its test. Results without bins have no row."""
    grouped: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.method == "latency" and _bounds_ns([result]):
            test = name_of_test(result, tests)
            grouped.setdefault((test, load_of(result)), []).append(result)
    return tuple(_table(test, load, members) for (test, load), members in grouped.items())


def _table(test: str, load: str, results: Sequence[Result]) -> TailTable:
    bounds_ns = _bounds_ns(results)
    bounds = [trimmed(bound_ns / 1e3) for bound_ns in bounds_ns]
    between = [f"{lower} to {upper}" for lower, upper in pairwise(bounds)]
    names = [f"bin_to_{bound_ns}_ns" for bound_ns in bounds_ns] + [f"bin_over_{bounds_ns[-1]}_ns"]
    bins = (f"to {bounds[0]}", *between, f"over {bounds[-1]}")
    inside = _columns(results, [f"{name}_per_100_million" for name in names])
    beyond = [f"outside_{bound_ns}_ns_per_100_million" for bound_ns in bounds_ns]
    outside = _columns(results, beyond)
    shares = [tuple(_share(number_of(result, name)) for name in beyond) for result in results]
    frames = texts(Column(value="timed_frames", head="", form="whole"), results)
    several = len({result.configuration for result in results}) > 1
    return TailTable(
        test=test,
        load=load,
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
                    if (count := number_of(result, f"{name}_per_100_million")) is not None
                ),
                result=result,
            )
            for number, result in enumerate(results)
        ),
    )


def _columns(results: Sequence[Result], names: Sequence[str]) -> list[tuple[str, ...]]:
    """The cells of each result."""
    columns = [texts(Column(value=name, head="", form="whole"), results) for name in names]
    return list(zip(*columns, strict=True))


def _share(per_100_million: float | None) -> str:
    return UNKNOWN if per_100_million is None else f"{significant(per_100_million / 1e6)} %"


def _bounds_ns(results: Sequence[Result]) -> list[int]:
    """The bounds that any of the results has a value for, lowest first."""
    found = (_PER_100_MILLION.fullmatch(name) for result in results for name in result.values)
    return sorted({int(match[2]) for match in found if match})


def _name(result: Result, several_configurations: bool) -> str:
    size = text_of(_MIX, result) if result.parameters.get("mix") else with_unit(_SIZE, text_of(_SIZE, result))
    return f"{result.configuration}, {size}" if several_configurations else size


def load_of(result: Result) -> str:
    """The load of a latency result, in words."""
    percent, of = result.parameters.get("load_percent"), result.parameters.get("load_of")
    return f"{percent:g} % of the {of}" if isinstance(percent, int | float) and of else "the load of the test"
