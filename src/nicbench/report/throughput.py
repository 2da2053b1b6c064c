"""Throughput results as tables: one per test and configuration, one row per frame size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from nicbench.model.frame_size import label_of
from nicbench.model.plan import Plan
from nicbench.model.rate import Bounded
from nicbench.model.result import Result, Value, name_of_test
from nicbench.model.spread import Spread
from nicbench.model.trial import Trial
from nicbench.model.verdict import Reason
from nicbench.report.model import Goal, ThroughputRow, ThroughputTable

_RATE = "_frames_per_s"
_PERCENT = "_percent_of_line_rate"
_PASSED_FOR = "_passed_for_s"
_CAUSES: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.DISTURBED: "the tester's worker was held up",
        Reason.DUT_DISTURBED: "other programs used the DUT's CPU",
        Reason.CLOCK_STEP: "the clock moved",
        Reason.UNSENT: "the tester did not send all it was asked for",
        Reason.RECEIVE_OVERRUN: "the tester's own receive side overflowed",
        Reason.TRANSMIT_REFUSED: "the kernel threw away frames that the tester had sent",
        Reason.LINK_CHANGED: "a link went up or down",
        Reason.PEER_FAILED: "the other end failed",
        Reason.HARDWARE: "a link, a bus or the cooling had errors",
        Reason.HEALTH: "the tester's health could not be read",
    }
)
_NOT_GOALS = frozenset({"line_rate", "ceiling"})


def throughput_tables(
    results: Iterable[Result], tests: Mapping[str, str], plan: Plan | None, trials: Mapping[str, Trial]
) -> tuple[ThroughputTable, ...]:
    """``tests`` maps a result's id to the name of its test, ``trials`` a trial's id to the trial."""
    grouped: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        if result.method == "throughput":
            test = name_of_test(result, tests)
            grouped.setdefault((test, result.configuration, result.scope), []).append(result)
    return tuple(
        ThroughputTable(test, configuration, scope, _goals(members, test, plan), tuple(_rows(members, trials)))
        for (test, configuration, scope), members in grouped.items()
    )


def confirmed(table: ThroughputTable) -> str | None:
    """How long the longest trial was that a rate passed, in a sentence; None where the results do not say."""
    lengths = {
        length
        for row in table.rows
        for key in row.rates
        if (length := number(row.result.values.get(f"{key}{_PASSED_FOR}"))) is not None
    }
    if not lengths:
        return None
    if len(lengths) == 1:
        return f"Every rate has passed a trial of {min(lengths):g} s."
    return f"Every rate has passed a trial of {min(lengths):g} s at least, and {max(lengths):g} s at most."


def number(value: Value) -> float | None:
    """A value as a number where it is one."""
    if isinstance(value, Bounded):
        return value.value
    if isinstance(value, Spread):
        return value.median
    return None if value is None or isinstance(value, str) else value


def _rows(results: Iterable[Result], trials: Mapping[str, Trial]) -> Iterable[ThroughputRow]:
    for result in sorted(results, key=lambda row: float(row.parameters.get("frame_bytes", 0))):
        yield ThroughputRow(
            frame_bytes=float(result.parameters.get("frame_bytes", 0)),
            size=label_of(result.parameters) or "0",
            rates={key: _rate(result, key) for key in _keys(result)},
            percents={key: number(result.values.get(f"{key}{_PERCENT}")) for key in _keys(result)},
            line_rate_frames_per_s=number(result.values.get("line_rate_frames_per_s")),
            ceiling_frames_per_s=number(result.values.get("ceiling_frames_per_s")),
            result=result,
            spoilt=_spoilt(result, trials),
        )


def _spoilt(result: Result, trials: Mapping[str, Trial]) -> str | None:
    """How many of the trials behind a result were spoilt, and by what mostly; None where none was."""
    behind = [trials[name] for name in result.trials if name in trials]
    bad = [trial for trial in behind if not trial.verdict.valid]
    if not bad:
        return None
    commonest, count = Counter(reason for trial in bad for reason in trial.verdict.reasons).most_common(1)[0]
    of = f"{len(bad)} of its {len(behind)} trials {'was' if len(bad) == 1 else 'were'} spoilt"
    cause = _CAUSES[commonest]
    times = "" if len(bad) == 1 else " in all of them" if count == len(bad) else f" in {count} of them"
    return f"{of} and could not be replaced by a good repeat; {cause}{times}"


def _keys(result: Result) -> tuple[str, ...]:
    names = (name.removesuffix(_RATE) for name in result.values if name.endswith(_RATE))
    return tuple(name for name in names if name not in _NOT_GOALS)


def _rate(result: Result, key: str) -> Bounded:
    value = result.values[f"{key}{_RATE}"]
    return value if isinstance(value, Bounded) else Bounded(value=number(value))


def _goals(results: Iterable[Result], test: str, plan: Plan | None) -> tuple[Goal, ...]:
    """The goals of the rows, strictest first; their loss ratios are in the plan's options."""
    ratios = _loss_ratios(test, plan)
    keys = dict.fromkeys(key for result in results for key in _keys(result))
    goals = [Goal(key, *ratios.get(key, (key.upper(), None))) for key in keys]
    return tuple(sorted(goals, key=lambda goal: (goal.loss_ratio is None, goal.loss_ratio or 0.0, goal.key)))


def _loss_ratios(test: str, plan: Plan | None) -> dict[str, tuple[str, float | None]]:
    for planned in plan.tests if plan else ():
        search = planned.options.get("search")
        goals = search.get("goals") if planned.name == test and isinstance(search, dict) else None
        if isinstance(goals, dict):
            return {str(name).lower(): (str(name), float(ratio)) for name, ratio in goals.items()}
    return {}
