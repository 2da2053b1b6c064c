"""A run against others: every main value that both have, judged. What cannot be told is told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.comparing.quantities import quantity_of
from nicbench.methods.base import main_values
from nicbench.model.result import Result, ResultVerdict
from nicbench.regressions.judge import Judgement, Outcome, judge
from nicbench.regressions.measured import Measured, Point, by_point

_USABLE: Final = frozenset({ResultVerdict.VALID, ResultVerdict.IMPORTED})


@dataclass(frozen=True, slots=True)
class Row:
    """One value of one point."""

    point: Point
    value: str
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Check:
    """``rows`` are those of points that were measured before; ``new`` are points that were not."""

    rows: tuple[Row, ...]
    new: tuple[Point, ...]

    def of(self, outcome: Outcome) -> tuple[Row, ...]:
        """The rows that came to this."""
        return tuple(row for row in self.rows if row.judgement.outcome is outcome)


def check(run: Measured, against: Sequence[Measured], tolerance_ratio: float) -> Check:
    """Values of the same test, configuration and parameters; each side may have several runs of them."""
    now, before = by_point([run]), by_point(against)
    rows = [row for point, results in before.items() for row in _rows(point, results, now.get(point), tolerance_ratio)]
    order = list(Outcome)
    rows.sort(key=lambda row: order.index(row.judgement.outcome))
    return Check(tuple(rows), tuple(point for point in now if point not in before))


def _rows(point: Point, before: Sequence[Result], now: Sequence[Result] | None, tolerance_ratio: float) -> list[Row]:
    names = dict.fromkeys(name for result in (*before, *(now or ())) for name in main_values(result))
    rows = []
    for name in names:
        if not any(name in result.values for result in before):
            continue
        if now is None:
            judgement = Judgement(Outcome.UNKNOWN, "this run did not measure it")
        else:
            judgement = _judged(name, before, now, tolerance_ratio)
        rows.append(Row(point, name, judgement))
    return rows


def _judged(name: str, before: Sequence[Result], now: Sequence[Result], tolerance_ratio: float) -> Judgement:
    sides = [[result for result in side if result.verdict in _USABLE] for side in (before, now)]
    for side, usable, whose in zip((before, now), sides, ("before", "of this run"), strict=True):
        if not usable:
            why = side[0].disturbances[0] if side[0].disturbances else "no reason is given"
            return Judgement(Outcome.UNKNOWN, f"the result {whose} is {side[0].verdict}: {why}")
    found = judge(
        [result.values.get(name) for result in sides[0]],
        [result.values.get(name) for result in sides[1]],
        higher_is_better=quantity_of(sides[0][0], name).higher_is_better,
        tolerance_ratio=tolerance_ratio,
    )
    near = [one for result in sides[1] for one in result.near_tester_limit or () if one.value == name]
    if found.outcome is Outcome.WORSE and near:
        return Judgement(Outcome.UNKNOWN, near[0].text, found.before, found.after, found.change_ratio)
    left_out = len(before) + len(now) - len(sides[0]) - len(sides[1])
    if left_out:
        why = f"{found.why}; {left_out} disturbed or incomplete result{'s' if left_out > 1 else ''} left out"
        return Judgement(found.outcome, why, found.before, found.after, found.change_ratio)
    return found
