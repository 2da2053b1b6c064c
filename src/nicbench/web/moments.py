"""What a page shows of an event of a run: a few values of each trial, a sentence of everything else.

A trial in the journal has ten kilobytes, of which charts need a few hundred bytes: so ten thousand trials open fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from nicbench.core.errors import HostError
from nicbench.core.events import (
    BoundsNarrowed,
    CeilingFound,
    ConfigurationSet,
    DriverChosen,
    Event,
    IntervalsChecked,
    Note,
    ResultReady,
    RoundFinished,
    RunFinished,
    RunStarted,
    StageStarted,
    TesterLatencyFound,
    TestStarted,
    TrialFinished,
    TurnStarted,
    Waiting,
)
from nicbench.core.frame_size import size_words
from nicbench.core.result import Result
from nicbench.core.round import Round
from nicbench.core.trial import Trial
from nicbench.core.turn import run_words
from nicbench.core.units import format_bits_per_s
from nicbench.report.cells import main_words
from nicbench.report.section import load_words
from nicbench.stats.latency import bin_counts
from nicbench.stats.rounds import moved_bits_per_s, words_of
from nicbench.store.samples import decode

_EVENT: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))
_SHOWN_PERCENTILES: Final = ("50", "99", "99.9")
_MOST_POINTS: Final = 200
"""The most points of a rate within one trial; of more, neighbours are added up."""
Item = dict[str, Any]
"""One message to a page; ``k`` is its type."""


def item_of(line: bytes) -> Item | None:
    """Returns the message of a journal line to a page; None for what it does not show, or what cannot be read."""
    try:
        event = _EVENT.validate_json(line)
    except (ValidationError, ValueError, RecursionError):
        return {"k": "note", "level": "warning", "text": "A line of the journal is damaged and is left out here."}
    return _item(event)


def _item(event: Event) -> Item | None:
    match event:
        case TrialFinished():
            return _of_trial(event.trial)
        case RoundFinished():
            return _of_round(event.round)
        case RunStarted():
            return {
                "k": "run",
                "title": event.title,
                "at": event.wall_time,
                "version": event.nicbench_version,
                "seed": event.seed,
                "resumed": event.resumed,
            }
        case TestStarted():
            return {
                "k": "test",
                "test": event.test,
                "method": event.method,
                "points": event.points,
                "estimate_s": event.estimate_s,
            }
        case ResultReady():
            return _of_result(event.test, event.result)
        case TurnStarted():
            words = f"configuration {event.configuration}, {run_words(event.run, warm_up=event.warm_up)}"
            return {"k": "turn", "text": f"{words} (turn {event.number} of {event.of})"}
        case RunFinished():
            return {"k": "end", "verdict": event.verdict.value, "complete": event.complete, "at": event.wall_time}
        case Note():
            return {"k": "note", "level": event.level, "text": event.text}
        case Waiting():
            return {"k": "waiting", "text": event.text}
        case BoundsNarrowed():
            return {
                "k": "bounds",
                "test": event.test,
                "point": _point(event.parameters),
                "goals": [[each.goal, each.passing_frames_per_s, each.failing_frames_per_s] for each in event.bounds],
                "trials": event.trials,
                "most": event.maximum_trials,
            }
        case StageStarted():
            return {"k": "stage", "text": event.text}
        case IntervalsChecked():
            return {"k": "said", "text": f"precision of the mean: {event.text}"}
        case ConfigurationSet():
            words = f"a client set configuration {event.number}: ports {event.ports}, flows {event.flows}"
            return {"k": "said", "text": words}
        case DriverChosen():
            return {"k": "said", "text": f"driver of the tester's interfaces: {event.driver}, because {event.reason}"}
        case CeilingFound() | TesterLatencyFound():
            return {"k": "said", "text": event.text}
        case _:
            return None


def _point(parameters: dict[str, Any]) -> str:
    """Describes what was measured: a frame size, or whatever else tells it from others of its test."""
    return size_words(parameters) if parameters.get("frame_bytes") is not None else words_of(parameters)


def _of_trial(trial: Trial) -> Item:
    counts, reading, request = trial.reading.counts, trial.reading, trial.request
    over_s = trial.offering_ns / 1e9
    return _known(
        {
            "k": "trial",
            "id": trial.id,
            "test": trial.test,
            "conf": _configuration(trial.configuration, trial.run),
            "point": _point(trial.parameters),
            "purpose": request.purpose.value,
            "load": trial.sent_frames_per_s,
            "loss": counts.loss_ratio if reading.is_counted else None,
            "sent": counts.sent,
            "lost": counts.lost if reading.is_counted else None,
            "sent_per_s": counts.sent / over_s if over_s > 0 else None,
            "received_per_s": counts.received / over_s if over_s > 0 and reading.is_counted else None,
            "verdict": _verdict(trial),
            "why": list(trial.verdict.texts),
            "at": trial.at_s,
            "for": request.duration_s,
            "latency": _latency(trial),
            "bins": _bins(reading.latency.histogram) if reading.latency is not None else None,
            "ledger": [[each.place, each.counter, each.frames] for each in reading.ledger if not each.unsent],
            "unexplained": reading.unexplained,
            "series": _series(trial),
        }
    )


def _of_round(one: Round) -> Item:
    bits = moved_bits_per_s(one)
    said = words_of(one.parameters)
    return _known(
        {
            "k": "round",
            "id": one.id,
            "test": one.test,
            "conf": _configuration(one.configuration, one.run),
            "point": said,
            "bits_per_s": bits,
            "said": format_bits_per_s(bits) if bits else None,
            "verdict": _verdict(one),
            "why": list(one.verdict.texts),
            "at": one.at_s,
            "for": one.request.duration_s,
            "bins": _bins(*_histograms(one)),
        }
    )


def _of_result(test: str, result: Result) -> Item:
    at = f", {load_words(result.parameters)}" if "load_percent" in result.parameters else ""
    what = f"{_point(result.parameters)}{at}"
    conf = _configuration(result.configuration, result.run)
    found = main_words(result)
    return _known(
        {"k": "result", "test": test, "point": what, "conf": conf, "verdict": result.verdict.value, "found": found}
    )


def _configuration(name: str, run: int | None) -> str | None:
    """Names a turn; None where the run has only one, as most have."""
    return None if name == "default" and run in (None, 1) else f"{name}, run {run}"


def _verdict(sample: Trial | Round) -> str:
    return "adjusted" if sample.verdict.adjusted else "valid" if sample.verdict.valid else "invalid"


def _latency(trial: Trial) -> list[float | None] | None:
    """Returns minimum, the shown percentiles and maximum, in nanoseconds; None where none was measured."""
    found = trial.reading.latency
    if found is None or not found.count:
        return None
    return [found.minimum_ns, *(found.percentiles_ns.get(each) for each in _SHOWN_PERCENTILES), found.maximum_ns]


def _histograms(one: Round) -> Iterable[str | None]:
    """Yields the distribution of each job's requests, or of its frames of media, where the tool kept one."""
    for outcome in one.outcomes:
        figures = outcome.figures
        if figures is not None and figures.latency is not None:
            yield figures.latency.histogram
        elif figures is not None and figures.frames is not None and figures.frames.completion is not None:
            yield figures.frames.completion.histogram


def _bins(*histograms: str | None) -> list[Any] | None:
    """Returns the first bin and the counts from there on, of all histograms together, or None."""
    summed: Counter[int] = Counter()
    for histogram in histograms:
        if histogram is None:
            continue
        try:
            first, counts = bin_counts(decode(histogram))
        except HostError:  # damaged, or a stranger's
            continue
        for number, count in enumerate(counts, start=first):
            summed[number] += count
    known = [number for number, count in summed.items() if count > 0]
    if not known:
        return None
    first, last = min(known), max(known)
    return [first, [summed[number] for number in range(first, last + 1)]]


def _series(trial: Trial) -> list[Any] | None:
    """Returns an interval in seconds and the frames received in each, summed over streams; None where not counted."""
    each = [stream.intervals for stream in trial.reading.streams if stream.intervals is not None]
    if not each or len({intervals.interval_ns for intervals in each}) != 1:
        return None
    length = max(len(intervals.received) for intervals in each)
    summed = [sum(one.received[slot] for one in each if slot < len(one.received)) for slot in range(length)]
    step = max(1, -(-length // _MOST_POINTS))
    return [each[0].interval_ns * step / 1e9, _joined(summed, step)]


def _joined(values: Sequence[int], step: int) -> list[int]:
    return [sum(values[begin : begin + step]) for begin in range(0, len(values), step)]


def _known(item: Item) -> Item:
    """Leaves out what is unknown or empty."""
    return {name: value for name, value in item.items() if value is not None and value != []}
