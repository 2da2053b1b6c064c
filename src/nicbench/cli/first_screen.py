"""What ``nicbench demo`` prints: whether the known device was found, and the table of the other one, in one screen.

It is made of the summary and of the trials of the known device, without a terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from nicbench.core.result import Bounded, Result, Summary, Value, number_of
from nicbench.core.trial import Trial
from nicbench.core.units import format_digits, format_lower, format_rate, format_span, format_upper
from nicbench.stats.intervals import Agreement

KNOWN: Final = "known"
"""The configuration whose device is known; every other one is measured on its strength."""
WIDTH: Final = 80
_UNKNOWN: Final = "–"
_RATE: Final = "ndr_frames_per_s"
_LATENCIES: Final = ("latency_p50_ns", "latency_p99_9_ns")
_HEADS: Final = (
    ("frame", "all trials", "some", "none", "latency", "latency"),
    ("[bytes]", "pass up to", "up to", "from", "median", "p99.9"),
)


def screen(summary: Summary, trials: Iterable[Trial]) -> str:
    """Returns the whole screen, of ``WIDTH`` columns at most."""
    checked = [each for each in summary.counted if each.configuration == KNOWN and "agreement" in each.values]
    culprit = _culprit(trial for trial in trials if trial.configuration == KNOWN and not _is_flood(trial, checked))
    measured = [each for each in summary.counted if each.configuration != KNOWN]
    return "\n".join((*_wrap(known_words(checked, culprit)), "", *_table(measured)))


def known_words(checked: Sequence[Result], culprit: str | None) -> str:
    """Returns the sentence about the device whose rate is known; where it was missed without a culprit, with what its
    search says of itself.
    """
    if not checked:
        return "the known device was not measured: see the report"
    rates = [rate for each in checked if isinstance(rate := each.values[_RATE], Bounded)]
    ends = [end for rate in rates for end in (rate.lower, rate.upper) if end is not None]
    span = format_span(min(ends), max(ends)) if ends else "no rate"
    said = f"known device: expected {format_rate(number_of(checked[0].values['known_rate_frames_per_s']) or 0.0)}"
    missed = [each for each in checked if each.values["agreement"] != Agreement.AGREE.value]
    if not missed:
        return f"{said}, found {span} at every size: this machine can be measured on"
    sizes = ", ".join(map(_size, missed))
    notes = [note.removeprefix("NDR: ") for each in missed for note in each.disturbances]
    why = next((f": {one}" for one in (culprit, *notes) if one), "")
    return (
        f"{said}, found {span}, missed at {sizes} bytes{why}; "
        "`sudo nicbench doctor` says what disturbs this machine, and how to end it"
    )


def _is_flood(trial: Trial, checked: Sequence[Result]) -> bool:
    """Returns whether the tester was to send far more than the known device passes: then it may fall short."""
    known = max((number_of(each.values["known_rate_frames_per_s"]) or 0.0 for each in checked), default=0.0)
    return trial.request.load_frames_per_s is None or trial.request.load_frames_per_s > 2.0 * known


def _culprit(trials: Iterable[Trial]) -> str | None:
    """Returns the words of the commonest reason for which trials were invalid, where it was worst."""
    findings = [finding for trial in trials for finding in trial.verdict.findings]
    if not findings:
        return None
    commonest = Counter(finding.reason for finding in findings).most_common(1)[0][0]
    return max((one for one in findings if one.reason is commonest), key=lambda one: one.times_its_limit).text


def _table(results: Sequence[Result]) -> list[str]:
    rates = {_size(each): each.values[_RATE] for each in results if _RATE in each.values}
    timed = {_size(each): each.values for each in results if _LATENCIES[0] in each.values}
    rows = [
        (size, *_zones(rate), *(_microseconds(timed.get(size, {}).get(name)) for name in _LATENCIES))
        for size, rate in rates.items()
    ]
    cells = [*_HEADS, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADS[0]))]
    return ["   ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]


def _size(result: Result) -> str:
    return str(result.parameters.get("frame_bytes"))


def _zones(rate: Value) -> tuple[str, str, str]:
    """Returns up to where every trial passed, up to where some did, and from where on none did."""
    if not isinstance(rate, Bounded):
        return _UNKNOWN, _UNKNOWN, _UNKNOWN
    every, some = (_UNKNOWN if bound is None else format_lower(bound) for bound in (rate.lower, rate.some))
    return every, some, _UNKNOWN if rate.upper is None else format_upper(rate.upper)


def _microseconds(value: Value) -> str:
    number = number_of(value)
    return _UNKNOWN if number is None else f"{format_digits(number / 1e3)} µs"


def _wrap(text: str) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > WIDTH:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines
