"""Latency results as tables, one per test, configuration and load; and the tail of each from its histogram."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from nicbench.errors import NicbenchError
from nicbench.model.frame_size import label_of
from nicbench.model.rate import Bounded
from nicbench.model.result import Result, name_of_test
from nicbench.model.trial import Latency, Trial
from nicbench.report.model import LatencyRow, LatencyTable
from nicbench.report.throughput import number
from nicbench.store.histograms import decode

_POINTS_PER_DECADE = 40  # of the tail's share: more than a screen can show


def latency_tables(
    results: Iterable[Result], tests: Mapping[str, str], trials: Mapping[str, Trial]
) -> tuple[LatencyTable, ...]:
    """``tests`` maps a result's id to the name of its test, ``trials`` a trial's id to the trial."""
    grouped: dict[tuple[str, str, str, str], list[LatencyRow]] = {}
    for result in results:
        if result.method == "latency":
            row = _row(result, trials)
            test = name_of_test(result, tests)
            grouped.setdefault((test, result.configuration, result.scope, _load(row)), []).append(row)
    return tuple(
        LatencyTable(*names, tuple(sorted(rows, key=lambda row: row.frame_bytes))) for names, rows in grouped.items()
    )


def tail(latency: Latency | None) -> tuple[tuple[float, float], ...]:
    """Points (latency in ns, share of frames above it), from all frames down to the last one; empty where unknown."""
    if latency is None or latency.histogram is None:
        return ()
    try:
        histogram = decode(latency.histogram)
    except NicbenchError:
        return ()  # the table's numbers do not depend on it
    counts = np.ctypeslib.as_array(histogram.counts)
    indices = np.flatnonzero(counts)
    total = int(counts[indices].sum())
    if total == 0:
        return ()
    points = [(float(latency.minimum_ns), 1.0)]
    above, last_decade = total, 0.0
    for index in indices:
        above -= int(counts[index])
        share = max(above, 1) / total  # the last frame ends the line at 1/N: zero has no place on a logarithmic axis
        decade = -math.log10(share) * _POINTS_PER_DECADE
        if decade - last_decade >= 1.0 or above == 0:
            highest_ns = histogram.get_highest_equivalent_value(histogram.get_value_from_index(int(index)))
            points.append((float(min(highest_ns, latency.maximum_ns)), share))
            last_decade = decade
    if points[-1] != (float(latency.maximum_ns), 1 / total):
        points.append((float(latency.maximum_ns), 1 / total))
    return tuple(points)


def _row(result: Result, trials: Mapping[str, Trial]) -> LatencyRow:
    trial = next((trials[name] for name in result.trials if name in trials), None)
    latency = trial.reading.latency if trial else None
    reasons = (value.reason_null for value in result.values.values() if isinstance(value, Bounded))
    return LatencyRow(
        frame_bytes=float(result.parameters.get("frame_bytes", 0)),
        size=label_of(result.parameters) or "0",
        load_percent=_float(result.parameters.get("load_percent")),
        load_of=_text(result.parameters.get("load_of")),
        values={name: number(value) for name, value in result.values.items()},
        trial=trial,
        frames=latency.count if latency else _count(number(result.values.get("timed_frames"))),
        reason_null=next((reason for reason in reasons if reason), None),
        tail=tail(latency),
        result=result,
    )


def _count(frames: float | None) -> int | None:
    return None if frames is None else int(frames)


def _load(row: LatencyRow) -> str:
    if row.load_percent is None:
        return "the load of the test"
    return f"{row.load_percent:g} % of the {row.load_of}" if row.load_of else f"{row.load_percent:g} % load"


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: object) -> str | None:
    return None if value is None else str(value)
