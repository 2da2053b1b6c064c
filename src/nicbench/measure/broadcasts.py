"""What became of the broadcasts in the load (RFC 2544 section 11.1): which ports got them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from nicbench.core.headers import BROADCASTS, TO_ALL
from nicbench.core.pattern import Way, way_of_stream
from nicbench.core.reading import Counts
from nicbench.core.result import Result
from nicbench.core.trial import Reading, Trial
from nicbench.core.units import format_digits
from nicbench.stats.ports import find_telling_trial


def add_broadcasts(result: Result, trials: Sequence[Trial]) -> Result:
    """Returns the result with what each port got of them in the trial that tells most; unchanged without any."""
    trial = find_telling_trial(trials)
    by_port = {} if trial is None else _counts_by_port(trial.reading)
    if trial is None or not any(counts.sent for counts in by_port.values()):
        return result
    said = f"{format_digits(100.0 * _share_sent(trial.reading), 2)} % of all frames; {_describe(by_port)}"
    return result.replace(values={**result.values, BROADCASTS: said})


def _share_sent(reading: Reading) -> float:
    """The share of broadcasts in all frames sent; each is counted at several ports, but sent once."""
    sent = {transmit: counts.sent for (transmit, _), counts in _streams(reading)}
    return sum(sent.values()) / (sum(sent.values()) + reading.counts.sent)


def _streams(reading: Reading) -> Iterator[tuple[Way, Counts]]:
    """The ports between which broadcasts went, and their counts."""
    for stream in reading.beside:
        way = way_of_stream(stream.name)
        if way is not None and stream.name.endswith(f" {TO_ALL}"):
            yield way, stream.counts


def _counts_by_port(reading: Reading) -> dict[str, Counts]:
    """The counts of all broadcasts that should have come to each port."""
    by_port: dict[str, list[Counts]] = defaultdict(list)
    for (_, receive), counts in _streams(reading):
        by_port[reading.ports[receive].name].append(counts)
    return {port: Counts.sum_of(counts) for port, counts in sorted(by_port.items())}


def _describe(by_port: dict[str, Counts]) -> str:
    missing = {port: counts for port, counts in by_port.items() if counts.lost}
    if not missing:
        return "every receiving port got all of them"
    told = ", ".join(f"{port} got {counts.received} of {counts.sent}" for port, counts in missing.items())
    return told if len(missing) == len(by_port) else f"{told}; the other ports got all"
