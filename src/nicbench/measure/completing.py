"""Results completed with what no method knows: rates over all ports, each port, and the tester's own limits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from nicbench.core.frame_size import label_of, size_label
from nicbench.core.headers import BROADCASTS, TO_ALL
from nicbench.core.pattern import Way, Ways, way_of_stream
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, LimitedBy, NearLimit, Result, ResultVerdict, Spread
from nicbench.core.trial import Purpose, Reading, Trial
from nicbench.core.units import format_digits, format_rate, format_ratio
from nicbench.methods.base import Method, Promise
from nicbench.stats.limits import describe_share
from nicbench.stats.ports import find_telling_trial, port_figures

# What became of the broadcasts in the load (RFC 2544 section 11.1): which ports got them. Pure.


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


NEAR_CEILING: Final = 0.95
NEAR_LATENCY: Final = 2.0
_CEILING: Final = "ceiling_frames_per_s"
_OWN_LATENCY: Final = "tester_latency_p50_ns"
_LATENCY: Final = "latency_p50_ns"
PER_PORT: Final = "per port"
_RATE: Final = "_frames_per_s"
# Of the port and not of what goes through the DUT.
_OF_A_PORT: Final = frozenset({"line_rate_frames_per_s", "ceiling_frames_per_s"})


def add_basis(result: Result, ways: Ways) -> Result:
    """A result of one port's rate says which port that is, and gives the sum of all ports beside each rate.

    A method that has summed over the ports by itself said so in ``scope``, and its results stay unchanged.
    """
    if result.scope != PER_PORT:
        return result
    values = dict(result.values)
    if ways.times_load != 1.0:
        for name, value in result.values.items():
            if not name.endswith(_RATE) or name in _OF_A_PORT or isinstance(value, str | Spread):
                continue
            rate = value.value if isinstance(value, Bounded) else value
            values[f"{name}_sum_of_ports"] = None if rate is None else rate * ways.times_load
    return result.replace(scope=ways.basis, values=values)


def add_ports(result: Result, ways: Ways, trials: Sequence[Trial]) -> Result:
    """With the figures of each port and way of the trial that tells most; nothing where one way alone is loaded."""
    trial = find_telling_trial(trials) if len(ways.loaded) > 1 else None
    return result if trial is None else result.replace(by_port=port_figures(trial))


def add_near_limits(result: Result) -> Result:
    """Returns the result with its values near the tester's limits, or with an empty tuple."""
    return result.replace(near_tester_limit=tuple(_near_limits(result)))


def _near_limits(result: Result) -> Iterator[NearLimit]:
    ceiling, own = _number(result, _CEILING), _number(result, _OWN_LATENCY)
    for name, rate in result.values.items():
        known = rate.value if isinstance(rate, Bounded) and name.endswith("_frames_per_s") else None
        if ceiling and known is not None and known >= NEAR_CEILING * ceiling:
            share = f"{100.0 * known / ceiling:.0f} % of what the tester sends without a DUT ({format_rate(ceiling)})"
            text = f"{format_rate(known)} are {share}; the DUT may do more"
            yield NearLimit(value=name, limit=_CEILING, text=text)
    median = _number(result, _LATENCY)
    if own and median is not None and median < NEAR_LATENCY * own:
        less = f"less than twice the tester's own ({format_digits(own / 1e3)} µs)"
        text = f"the median of {format_digits(median / 1e3)} µs is {less}; most of it is not the DUT's"
        yield NearLimit(value=_LATENCY, limit=_OWN_LATENCY, text=text)


def _number(result: Result, name: str) -> float | None:
    value = result.values.get(name)
    return value if isinstance(value, int | float) else None


def add_share(result: Result, trials: Iterable[Trial]) -> Result:
    """Adds what its loads are where the tester always sends a share of what it is asked for."""
    share = min((trial.request.sent_share for trial in trials), default=1.0)
    said = describe_share(share)
    if share == 1.0 or said in result.disturbances:
        return result
    return result.replace(disturbances=(*result.disturbances, said))


def drop_line_rate_shares(result: Result) -> Result:
    """Without its rates' shares of a line rate that no line has."""
    kept = {name: value for name, value in result.values.items() if not name.endswith("_percent_of_line_rate")}
    return result.replace(values=kept)


# Demotes a rate that a later trial contradicts: one that lost more at that load, or below it, than the rate allows.


_STEADY: Final = frozenset({Purpose.LATENCY, Purpose.LOSS, Purpose.AVERAGE, Purpose.SOAK, Purpose.POWER})
"""Trials that may offer one load for all of their time; what a search makes of its own trials it says itself."""
_SAME: Final = 1.0 + 1e-9


def with_contradictions(
    results: Sequence[Result], methods: Mapping[tuple[str, str], Method], trials: Iterable[Trial]
) -> tuple[Result, ...]:
    """Results that promise a rate are disturbed where a valid trial after them broke it; the reason says so.

    ``methods`` are those of the bench file by configuration and test.
    """
    steady = [
        trial for trial in trials if trial.verdict.valid and trial.request.purpose in _STEADY and trial.request.is_plain
    ]
    return tuple(_demoted(result, methods.get((result.configuration, result.test or "")), steady) for result in results)


def _demoted(result: Result, method: Method | None, steady: Sequence[Trial]) -> Result:
    promises = () if method is None else method.promises(result)
    found = [(promise, _broken(promise, result, steady)) for promise in promises]
    broken = [(promise, trial) for promise, trial in found if trial is not None]
    if not broken:
        return result
    values = dict(result.values)
    for promise, _ in broken:
        rate = values[promise.value]
        if isinstance(rate, Bounded) and rate.limited_by is LimitedBy.DUT:
            values[promise.value] = rate.replace(limited_by=None)
    reasons = tuple(_say(promise, trial) for promise, trial in broken)
    stood = result.verdict.is_reliable
    result = result.replace(values=values, disturbances=(*result.disturbances, *reasons))
    if not stood:
        return result
    return result.replace(verdict=ResultVerdict.DISTURBED, contradicted_by=tuple(trial.id for _, trial in broken))


def _broken(promise: Promise, result: Result, steady: Sequence[Trial]) -> Trial | None:
    """The later trial of the same size, configuration and run that lost most of its frames, if one lost too many."""
    last = max((int(name[1:]) for name in result.trials), default=0)
    size = label_of(result.parameters)
    later = [
        trial
        for trial in steady
        if trial.number > last
        and (trial.configuration, trial.run) == (result.configuration, result.run or 1)
        and size_label(trial.request.size) == size
        and (trial.request.sent_frames_per_s or 0.0) <= promise.load_frames_per_s * _SAME
        and trial.request.load_frames_per_s is not None
        and trial.reading.counts.loss_ratio > promise.loss_ratio
    ]
    return max(later, key=lambda trial: trial.reading.counts.loss_ratio, default=None)


def _say(promise: Promise, trial: Trial) -> str:
    counts = trial.reading.counts
    load = trial.request.sent_frames_per_s or 0.0
    return (
        f"{promise.name}: contradicted by {trial.id} of {trial.test}, which lost {counts.failed} of {counts.sent} "
        f"frames ({format_ratio(counts.loss_ratio)}) at {format_rate(load)}"
    )
