"""Compares what a DUT with known faults injected with what was measured of it: does the tester report what it should?

It applies to the DUT `netem` and the results of the method `impairments`. A share agrees where its exact 99.9 %
interval contains the injected share; of a thousand correct ones, one lies outside. A delay agrees where no frame was
faster than the delay, and where the median exceeds it by no more than the latency that 99 % of the frames had in the
configuration without faults. The median of varying delays is itself random, so its own 99.9 % interval is added. A
jitter agrees by its interquartile range, which the pauses of a shared machine hardly affect, whereas they dominate a
standard deviation.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from nicbench.core.frame_size import label_of
from nicbench.core.lists import without_none
from nicbench.core.plan import Plan
from nicbench.core.registry import find
from nicbench.core.result import Result
from nicbench.core.trial import Latency, Trial
from nicbench.core.units import format_duration_s, format_ratio
from nicbench.methods.base import Method
from nicbench.report.numbers import UNKNOWN
from nicbench.report.wording import first_few
from nicbench.stats.intervals import share_interval
from nicbench.stats.latency import value_counts

_KIND: Final = "netem"
_MOST_NAMED: Final = 4
_CONFIDENCE: Final = 0.999
_CHECKSUM_BYTES: Final = 4
_SHARES: Final = {
    "loss": ("lost", "lost"),
    "duplicate": ("duplicated", "doubled"),
    "corrupt": ("altered", "altered"),
}
"""For each option of the DUT, the value of the method and the word for it."""
# Allows for the resolution of a timer, and for the three significant digits of a histogram.
_EARLY: Final = 0.999
_REACH: Final = 4.0
"""How far the delay tables of tc reach, in multiples of the jitter (duts/netem.py); a uniform
distribution reaches 1.
"""
_DRAWN: Final = 3.2905 * math.sqrt(math.pi / 2)
"""The 99.9 % interval of a median, in standard deviations over the square root of the number of frames. It holds for a
normal distribution; for a uniform one the median lies closer.
"""
_FEW: Final = 0.2
"""The highest share of frames sent ahead of the others for which the median is still that of the waiting frames, or
close to it.
"""
_DENSITY: Final = 1.6
"""How far the median moves for each share of frames sent ahead, in jitters: at first 1.25 for normal delays, 1 for
uniform ones.
"""
_SPREAD: Final = 0.15
"""The tolerance of an interquartile range, for the tables of tc only approximate their distributions."""
_QUARTILES: Final = {"uniform": 1.0, "normal": 1.349}
"""The interquartile range of each distribution, in jitters."""


class InjectedRow(NamedTuple):
    """One fault: what was injected, what is expected of it, and what was measured. ``agrees`` stays None where that
    cannot be judged.
    """

    configuration: str
    size: str
    fault: str
    injected: str
    measured: str
    expected: str
    agrees: bool | None
    result: Result


class _MeasuredFault(NamedTuple):
    """A result of the method, with the options of its DUT and the latency of its trial."""

    result: Result
    faults: Mapping[str, Any]
    latency: Latency | None

    def number(self, name: str) -> float | None:
        value = self.result.values.get(name)
        return float(value) if isinstance(value, int | float) else None


def injected_rows(results: Iterable[Result], plan: Plan | None, trials: Mapping[str, Trial]) -> tuple[InjectedRow, ...]:
    """Returns a row for each fault of each result; none where no DUT of the run injects any."""
    if plan is None:
        return ()
    faults = {each.configuration: each.dut for each in plan.each if each.dut.get("kind") == _KIND}
    seen = [
        _MeasuredFault(result, faults[name], _latency_of(result, trials))
        for result in results
        if _sees_faults(result) and (name := _configuration_of(result, faults)) is not None
    ]
    clean = {label_of(one.result.parameters): one for one in seen if not any(_is_injected(one.faults))}
    return tuple(row for one in seen for row in _rows(one, clean.get(label_of(one.result.parameters))))


def _sees_faults(result: Result) -> bool:
    method = find("nicbench.methods", Method).get(result.method)
    return method is not None and method.sees_faults


def injected_sentence(rows: Sequence[InjectedRow]) -> str | None:
    """Returns a sentence on whether the injected faults were measured; None where that cannot be judged."""
    judged = [row for row in rows if row.agrees is not None]
    if not judged:
        return None
    not_so = [row for row in judged if not row.agrees]
    if not not_so:
        return f"What the DUT injected was measured as it was injected, and nothing else: all {len(judged)} rows agree."
    named = first_few([f"{row.fault} of “{row.configuration}”" for row in not_so], _MOST_NAMED, "; ")
    doubtful = any(not row.result.verdict.is_reliable for row in not_so)
    disturbed = ", in trials that were disturbed" if doubtful else ""
    return (
        f"Of {len(judged)} rows of what the DUT injected {len(judged) - len(not_so)} were measured as injected; "
        f"these were not{disturbed}: {named}."
    )


def _configuration_of(result: Result, known: Mapping[str, Any]) -> str | None:
    """Returns the configuration of a result, whose name may include its run: "loss, run 2"."""
    return next(
        (name for name in (result.configuration, result.configuration.split(", run ")[0]) if name in known), None
    )


def _latency_of(result: Result, trials: Mapping[str, Trial]) -> Latency | None:
    trial = trials.get(result.trials[0]) if result.trials else None
    return trial.reading.latency if trial else None


def _is_injected(faults: Mapping[str, Any]) -> list[Any]:
    return [faults.get(name) for name in ("delay", "loss", "duplicate", "corrupt", "reorder", "rate")]


def _rows(one: _MeasuredFault, clean: _MeasuredFault | None) -> list[InjectedRow]:
    made = [_delay(one, clean), _jitter(one, clean), *(_share(one, name) for name in _SHARES), _reorder(one)]
    return [*without_none(made), _rest(one)]


def _row(
    one: _MeasuredFault, fault: str, injected: str, measured: str, expected: str, agrees: bool | None
) -> InjectedRow:
    label = label_of(one.result.parameters) or ""
    return InjectedRow(one.result.configuration, label, fault, injected, measured, expected, agrees, one.result)


def _delay(one: _MeasuredFault, clean: _MeasuredFault | None) -> InjectedRow | None:
    delay_s, jitter_s = float(one.faults.get("delay") or 0.0), float(one.faults.get("jitter") or 0.0)
    if not delay_s:
        return None
    least, median, mean = (one.number(f"latency_{name}_ns") for name in ("minimum", "p50", "mean"))
    own = clean.number("latency_p99_ns") if clean else None
    frames = one.latency.count if one.latency else 0
    drawn = _DRAWN * jitter_s * 1e9 / math.sqrt(frames) if frames else 0.0
    earliest = max(0.0, delay_s * 1e9 - _earlier_ns(one) - drawn)
    latest = delay_s * 1e9 + (own or 0.0) + drawn
    usual = clean.number("latency_p50_ns") if clean else None
    more = "" if median is None or usual is None else f" ({_time(median - usual)} more than without faults)"
    measured = f"median {_time(median)}{more}, least {_time(least)}, mean {_time(mean)}"
    if own is None:
        expected = f"at least {format_duration_s(delay_s)}; without a configuration without faults no more can be said"
    else:
        expected = f"{_time(earliest)} to {_time(latest)}: without faults 99 % took {_time(own)} or less"
        expected += f", and a median of {frames:,} draws is within {_time(drawn)}" if drawn else ""
    agrees = None
    if median is not None and least is not None and own is not None:
        not_early = bool(jitter_s or one.faults.get("reorder")) or least >= delay_s * 1e9 * _EARLY
        agrees = not_early and earliest * _EARLY <= median <= latest
    return _row(one, "delay", format_duration_s(delay_s), measured, expected, agrees)


def _earlier_ns(one: _MeasuredFault) -> float:
    """Returns how far the median may lie before the delay, in nanoseconds. Frames that overtake others are the fastest
    ones, and the table of a distribution may be asymmetric.
    """
    jitter_s, reordered = float(one.faults.get("jitter") or 0.0), float(one.faults.get("reorder") or 0.0)
    if reordered > _FEW:
        return float(one.faults.get("delay") or 0.0) * 1e9
    if str(one.faults.get("distribution")) not in _QUARTILES:
        return _REACH * jitter_s * 1e9
    return reordered * _DENSITY * jitter_s * 1e9


def _jitter(one: _MeasuredFault, clean: _MeasuredFault | None) -> InjectedRow | None:
    jitter_s = float(one.faults.get("jitter") or 0.0)
    if not jitter_s:
        return None
    distribution = str(one.faults.get("distribution"))
    injected = f"±{format_duration_s(jitter_s)}, {distribution}"
    # Frames that overtake do not wait, so they are not part of what varies.
    found = _half(one.latency, _fastest_ns(one.faults) if one.faults.get("reorder") else 0.0)
    measured = f"half of the frames within {_time(found)}"
    if distribution not in _QUARTILES:
        return _row(one, "jitter", injected, measured, f"no figure is known of {distribution}", None)
    wanted, own = jitter_s * 1e9 * _QUARTILES[distribution], _half(clean.latency) if clean else None
    expected = f"half within {_time(wanted)}"
    agrees = None
    if own is not None and found is not None:
        most = (1 + _SPREAD) * math.hypot(wanted, own)
        expected += f", up to {_time(most)} with the {_time(own)} of those without faults"
        agrees = (1 - _SPREAD) * wanted <= found <= most
    return _row(one, "jitter", injected, measured, expected, agrees)


def _share(one: _MeasuredFault, name: str) -> InjectedRow | None:
    share = float(one.faults.get(name) or 0.0)
    if not share:
        return None
    value, _ = _SHARES[name]
    frames, of = one.number(f"{value}_frames"), one.number(f"{value}_of_frames")
    lowest, why = share, ""
    if name == "corrupt" and (checked := one.number("checked_bytes")) is not None:
        frame_bytes = float(one.result.parameters.get("frame_bytes") or 0.0) - _CHECKSUM_BYTES
        lowest = share * min(1.0, checked / frame_bytes) if frame_bytes > 0 else share
        why = f": of each frame {checked:g} of {frame_bytes:g} bytes are compared"
    expected = format_ratio(share) if lowest == share else f"{format_ratio(lowest)} to {format_ratio(share)}{why}"
    if frames is None or of is None or not 0 <= frames <= of:
        return _row(one, name, format_ratio(share), UNKNOWN, expected, None)
    lower, upper = share_interval(int(frames), int(of), _CONFIDENCE)
    agrees = lower <= share and upper >= lowest
    return _row(one, name, format_ratio(share), _counted_text(frames, of, lower, upper), expected, agrees)


def _reorder(one: _MeasuredFault) -> InjectedRow | None:
    share = float(one.faults.get("reorder") or 0.0)
    if not share:
        return None
    overtaken = one.number("reordered_percent")
    told = "" if overtaken is None else f"; {format_ratio(overtaken / 100.0)} were overtaken in their flow (RFC 4737)"
    exact = not one.faults.get("reorder_correlation") and one.faults.get("reorder_gap") == 1
    fastest_ns = _fastest_ns(one.faults)
    expected = f"{format_ratio(share)} faster than {_time(fastest_ns)}"
    if one.latency is None or one.latency.histogram is None or fastest_ns <= 0.0:
        return _row(one, "reorder", format_ratio(share), UNKNOWN, expected, None)
    counted = value_counts(one.latency.histogram)
    of = sum(frames for _, frames in counted)
    fast = sum(frames for latency_ns, frames in counted if latency_ns < fastest_ns * _EARLY)
    lower, upper = share_interval(fast, of, _CONFIDENCE)
    agrees = lower <= share <= upper if exact else None
    return _row(
        one, "reorder", format_ratio(share), f"{_counted_text(fast, of, lower, upper)} faster{told}", expected, agrees
    )


def _rest(one: _MeasuredFault) -> InjectedRow:
    """Returns the faults that were not injected, with the number of frames that showed them all the same."""
    also = {"reordered": bool(one.faults.get("reorder") or one.faults.get("jitter"))}
    also |= {value: bool(one.faults.get(name)) for name, (value, _) in _SHARES.items()}
    words = dict(_SHARES.values()) | {"reordered": "reordered"}
    others = [value for value, injected in also.items() if not injected]
    counts = {value: one.number(f"{value}_frames") for value in others}
    told = ", ".join(f"{words[value]} {UNKNOWN if n is None else f'{n:,.0f}'}" for value, n in counts.items())
    agrees = None if None in counts.values() else not any(counts.values())
    return _row(one, "nothing else", "none", told, "none", agrees)


def _fastest_ns(faults: Mapping[str, Any]) -> float:
    """Returns the least delay of a frame that waits, in nanoseconds; 0 or less where the jitter may be as long as the
    delay.
    """
    reach = 1.0 if faults.get("distribution") == "uniform" else _REACH
    return (float(faults.get("delay") or 0.0) - reach * float(faults.get("jitter") or 0.0)) * 1e9


def _half(latency: Latency | None, from_ns: float = 0.0) -> float | None:
    """Returns the interquartile range of the frames' delays, in nanoseconds; only delays of at least
    ``from_ns`` count.
    """
    if latency is None or latency.histogram is None:
        return None
    counted = [(took_ns, frames) for took_ns, frames in value_counts(latency.histogram) if took_ns >= from_ns * _EARLY]
    up_to = list(accumulate(frames for _, frames in counted))
    if not up_to:
        return None
    lower, upper = (counted[bisect_left(up_to, share * up_to[-1])][0] for share in (0.25, 0.75))
    return float(upper - lower)


def _counted_text(frames: float, of: float, lower: float, upper: float) -> str:
    return f"{format_ratio(frames / of)} ({frames:,.0f} of {of:,.0f}; {format_ratio(lower)} to {format_ratio(upper)})"


def _time(nanoseconds: float | None) -> str:
    """Returns a time with three significant digits."""
    return UNKNOWN if nanoseconds is None else format_duration_s(float(f"{nanoseconds:.3g}") / 1e9)
