"""The columns of throughput tables, with rate, interval, limit and share for each goal, and their explanation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nicbench.core.frame_size import label_of
from nicbench.core.result import AT_CLOCK, RATE, UNSCALED_CLOCK, Result, number_of
from nicbench.core.table import Column, Condition, FurtherTable, Goal, RateBars, ResultTable

ESTIMATED = (
    "The rate is an estimate from all trials: the load that half of them would carry if nobody else used the device's "
    "core. The interval holds it with the confidence of the search."
)
BORNE_BY_HALF, BORNE_BY_MOST = "_borne_by_half_frames_per_s", "_borne_by_nine_tenths_frames_per_s"
FALL, CLOCK_SEEN = "_fall_percent", "_clock_seen"
REFERENCE_CLOCK = (
    " Under Seen is the day on which this machine showed that clock, where it is from an earlier run: the core reached "
    "a lower one in this run, and the interval holds the error of that."
)
_BOUNDS = frozenset({"line_rate", "ceiling", "known_rate"})
"""Prefixes of rates that are not the result of a search."""
FRAME = Column(value="size", head="Frame", unit="bytes", form="text")
LINE_RATE_COLUMN = Column(value="line_rate_frames_per_s", head="Line rate", is_minor=True)
CEILING = Column(value="ceiling_frames_per_s", head="Tester's ceiling", is_minor=True, is_optional=True)


def explain_confirmation(results: Sequence[Result]) -> tuple[str, ...]:
    """Returns a sentence on the longest trial that each rate has passed; empty where the results do not contain it."""
    found = (
        number_of(result.values.get(f"{key}_passed_for_s")) for result in results for key in keys_of_goals((result,))
    )
    lengths = {length for length in found if length is not None}
    if not lengths:
        return ()
    if len(lengths) == 1:
        return (f"Every rate has passed a trial of {min(lengths):g} s.",)
    return (f"Every rate has passed a trial of {min(lengths):g} s at least, and {max(lengths):g} s at most.",)


def keys_of_goals(results: Iterable[Result]) -> tuple[str, ...]:
    """Returns the prefix of the names of each goal's values: "ndr"."""
    names = (name for result in results for name, value in result.values.items() if not isinstance(value, str))
    rates = (name for name in names if name.endswith(RATE) and not name.endswith((BORNE_BY_HALF, BORNE_BY_MOST)))
    keys = dict.fromkeys(name.removesuffix(RATE) for name in rates)
    return tuple(key for key in keys if key not in _BOUNDS)


def goals_of(results: Iterable[Result], options: Mapping[str, Any]) -> tuple[Goal, ...]:
    """Returns the goals of the results, strictest first; their loss ratios are in the options of the test."""
    search = options.get("search")
    written = search.get("goals") if isinstance(search, Mapping) else None
    ratios = written if isinstance(written, Mapping) else {}
    known = {str(name).lower(): (str(name), _ratio_of(ratio)) for name, ratio in ratios.items()}
    goals = []
    for key in keys_of_goals(results):
        name, ratio = known.get(key, (_name_of(key), None))
        named = {"value": f"{key}{RATE}", "share": f"{key}_percent_of_line_rate", "unscaled": f"{key}{UNSCALED_CLOCK}"}
        goals.append(Goal(name=name, loss_ratio=ratio, **named))
    return tuple(sorted(goals, key=lambda goal: (goal.loss_ratio is None, goal.loss_ratio or 0.0, goal.value)))


def _ratio_of(written: Any) -> float | None:
    """Returns a loss ratio as a plan has it; None where the file was damaged, and holds something else there."""
    return float(written) if isinstance(written, int | float) and 0 <= written <= 1 else None


def _name_of(key: str) -> str:
    """Returns the name of a goal whose options are unknown: NDR and PDR are abbreviations, others are words."""
    return key.upper() if key[1:3] == "dr" else key


def columns_of(goal: Goal) -> tuple[Column, ...]:
    rate = Column(
        value=goal.value,
        head="Frame rate",
        name=goal.name,
        group=goal.name,
        aspect="rate",
        is_main=True,
        better="higher",
        comparative="faster",
    )
    return (
        rate,
        Column(value=goal.value, head="Interval", group=goal.name, aspect="interval", is_minor=True),
        Column(value=goal.value, head="Limited by", group=goal.name, aspect="limit"),
        Column(value=goal.share, head="% of line rate", group=goal.name, form="percent", is_optional=True),
    )


def overview_of(goal: Goal) -> tuple[Column, ...]:
    return (
        Column(value=goal.value, head=goal.name, aspect="span", is_main=True),
        Column(value=goal.share, head="% of line rate", form="percent", is_optional=True),
        Column(value=goal.value, head="limited by", aspect="limit"),
    )


def in_bits(goals: Iterable[Goal]) -> FurtherTable:
    layers = [
        Column(value=goal.value.replace(RATE, f"_{layer}_bits_per_s"), head=layer.upper(), group=goal.name)
        for goal in goals
        for layer in ("l2", "l1")
    ]
    trials = Column(value="search_trials", head="Trials of the search", form="whole", is_minor=True, is_optional=True)
    traffic = Column(value="search_traffic_s", head="Its traffic", unit="s", is_minor=True, is_optional=True)
    return FurtherTable(
        title="The same in bits",
        caption=(
            "L2 counts the frame with its FCS; L1 adds the 20 bytes of preamble, start delimiter and inter-frame gap."
        ),
        columns=(FRAME, *layers, trials, traffic, CEILING),
    )


def zero_loss(goal: Goal, *, estimated: bool) -> FurtherTable:
    size = Column(value="size", head="Frame size", unit="bytes", form="text")
    rate = Column(value=goal.value, head="Frame rate", aspect="exact", is_main=True)
    line_rate = Column(value=LINE_RATE_COLUMN.value, head="Line rate")
    share = Column(value=goal.share, head="% of line rate", form="trimmed")
    return FurtherTable(
        title="Zero packet loss",
        caption=(
            "The frame rate without loss of a core of its own, as it is estimated from all trials."
            if estimated
            else "The highest frame rate at which every frame came back."
        ),
        columns=(size, rate, line_rate, share),
        bars=RateBars(x=size, rate=rate, share=share, goal=goal),
    )


def as_the_machine_was(results: Sequence[Result], goals: Iterable[Goal]) -> tuple[FurtherTable, ...]:
    """Returns the table of what the DUT carried as its core was; empty where that changed in no trial."""
    keys = {goal.value.removesuffix(RATE): goal for goal in goals}
    known = {
        key: goal for key, goal in keys.items() if any(f"{key}{BORNE_BY_HALF}" in result.values for result in results)
    }
    if not known:
        return ()
    columns = [
        column
        for key, goal in known.items()
        for column in (
            Column(value=goal.value, head="Dedicated core", group=goal.name),
            Column(value=f"{key}{BORNE_BY_HALF}", head="Half of the trials", group=goal.name),
            Column(value=f"{key}{BORNE_BY_MOST}", head="Nine of ten", group=goal.name),
            Column(value=f"{key}{FALL}", head="Falls by", unit="%", group=goal.name, is_minor=True, is_optional=True),
            Column(value=f"{key}{AT_CLOCK}", head="At", group=goal.name, is_minor=True, is_optional=True),
            Column(
                value=f"{key}{CLOCK_SEEN}", head="Seen", group=goal.name, form="text", is_minor=True, is_optional=True
            ),
        )
    ]
    from_earlier_runs = any(f"{key}{CLOCK_SEEN}" in result.values for result in results for key in known)
    table = FurtherTable(
        title="Under the conditions of the run",
        caption=(
            "The DUT's share of its core and the core's clock varied between trials: what the DUT passed in half of "
            "the trials and in nine of ten, beside the rate of a dedicated core. With the core shared all the time, "
            "the rate falls by the percentage under Falls by; where the rate follows the core's clock, it is stated "
            "for the clock under At." + (REFERENCE_CLOCK if from_earlier_runs else "")
        ),
        columns=(FRAME, *columns),
    )
    return (table,)


def conditions_of(goals: Iterable[Goal]) -> tuple[Condition, ...]:
    """Returns the names of what stands beside each estimated rate."""
    keys = ((goal.value, goal.value.removesuffix(RATE)) for goal in goals)
    return tuple(
        Condition(goal=value, half=f"{key}{BORNE_BY_HALF}", at_clock=f"{key}{AT_CLOCK}") for value, key in keys
    )


def _explain_clocks(results: Sequence[Result], goals: Iterable[Goal]) -> tuple[str, ...]:
    """Says which rates are not scaled to the clock for which the others are stated."""
    unscaled = {
        goal.name: [str(label_of(result.parameters)) for result in results if goal.is_unscaled_in(result)]
        for goal in goals
    }
    told = ", ".join(f"{name} at {_and(dict.fromkeys(sizes))}" for name, sizes in unscaled.items() if sizes)
    if not told:
        return ()
    why = "the core ran slower than its highest clock, and the trials do not show whether the rate follows it"
    return (f"Not scaled to one clock, and not to be compared with those that are: {told}; {why}.",)


def _and(parts: Iterable[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def is_estimated(options: Mapping[str, Any]) -> bool:
    """Whether the search of a test with these options estimates its rates by a model of all trials."""
    search = options.get("search")
    return isinstance(search, Mapping) and search.get("kind") == "estimate"


def explain_rates(
    table: ResultTable, results: Sequence[Result], goals: Sequence[Goal], options: Mapping[str, Any]
) -> str:
    """Explains the rates: the search that found them, and the meaning of each goal."""
    told = [f"{goal.name}: {goal.clause}." for goal in goals if goal.loss_ratio is not None]
    if is_estimated(options):
        return " ".join((ESTIMATED, *told, *_explain_clocks(results, goals)))
    return " ".join((table.caption, *told, *explain_confirmation(results)))
