"""The columns of throughput tables, with rate, interval, limit and share for each goal, and their explanation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nicbench.core.result import RATE, Result, number_of
from nicbench.core.table import Column, FurtherTable, Goal, RateBars, ResultTable

_BORNE = ("_borne_by_half_frames_per_s", "_borne_by_nine_tenths_frames_per_s")
"""Ends of the names of rates that runs of formats 1.5 and 1.6 have beside estimated ones."""
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
    rates = (name for name in names if name.endswith(RATE) and not name.endswith(_BORNE))
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
        goals.append(Goal(value=f"{key}{RATE}", share=f"{key}_percent_of_line_rate", name=name, loss_ratio=ratio))
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


def zero_loss(goal: Goal) -> FurtherTable:
    size = Column(value="size", head="Frame size", unit="bytes", form="text")
    rate = Column(value=goal.value, head="Frame rate", aspect="exact", is_main=True)
    line_rate = Column(value=LINE_RATE_COLUMN.value, head="Line rate")
    share = Column(value=goal.share, head="% of line rate", form="trimmed")
    return FurtherTable(
        title="Zero packet loss",
        caption="The highest frame rate at which every frame came back.",
        columns=(size, rate, line_rate, share),
        bars=RateBars(x=size, rate=rate, share=share, goal=goal),
    )


def explain_rates(table: ResultTable, results: Sequence[Result], goals: Sequence[Goal]) -> str:
    """Explains the rates: the search that found them, and the meaning of each goal."""
    told = [f"{goal.name}: {goal.clause}." for goal in goals if goal.loss_ratio is not None]
    return " ".join((table.caption, *told, *explain_confirmation(results)))
