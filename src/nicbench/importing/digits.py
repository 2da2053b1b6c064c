"""To which digit figures are printed where zeros at the end are left out, as spreadsheets do: "25" among 25.1 and 24.9.

Only statistics over several rows need it: a sum of twelve such figures would else be known to 6 instead of 0.6.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from nicbench.importing.across_rows import PlausibleRow
from nicbench.importing.rows import Figure

_FEWEST: Final = 6
"""Figures of a group that show how many digits it has; of fewer, the last printed one is the last."""

_SHARE: Final = 1.0 / 3.0
"""At least this share of the figures has the digit that all are taken to have.

One in ten ends with a zero by chance, but more than half of those that lie close about a round number.
"""


def restore_digits(
    rows: Sequence[PlausibleRow], values: Iterable[str], tells_apart: Sequence[str], places: Sequence[str]
) -> list[PlausibleRow]:
    """Returns the rows with the rounding that figures of these values have together with their like.

    Alike are figures of one value in the rows that differ in ``places`` alone; where those are too few, all figures of
    one unit there; and where even those are, figures of the value in all rows that have the same columns.
    """
    known = frozenset(values)
    groups: dict[Hashable, list[Figure]] = defaultdict(list)
    for one in rows:
        for value, figure in one.figures.items():
            if value in known:
                for group in _groups_of(one, value, figure, tells_apart, places):
                    groups[group].append(figure)
    decimals = {group: _decimals_by_magnitude(figures) for group, figures in groups.items()}

    def restored(one: PlausibleRow) -> dict[str, Figure]:
        return {
            value: _with_digits(
                figure, [decimals[group] for group in _groups_of(one, value, figure, tells_apart, places)]
            )
            if value in known
            else figure
            for value, figure in one.figures.items()
        }

    return [replace(one, figures=restored(one)) for one in rows]


def _groups_of(
    one: PlausibleRow, value: str, figure: Figure, tells_apart: Sequence[str], places: Sequence[str]
) -> tuple[Hashable, Hashable, Hashable]:
    block = one.group([name for name in tells_apart if name not in places])
    columns = tuple(name for name in tells_apart if one.has(name))
    texts = one.group([name for name in tells_apart if name in one.row.texts])
    unit = (figure.quantity, figure.printed.unit)
    return (
        ("value", value, unit, columns, block),
        ("unit", unit, columns, block),
        ("column", value, unit, columns, texts),
    )


def _decimals_by_magnitude(figures: Sequence[Figure]) -> Mapping[int | None, int] | None:
    """Returns the number of decimals by power of ten (None: of zero); None where the figures do not show it.

    Where the digits are significant ones, greater figures have fewer decimals: no figure gets more than one of its
    magnitude, or of a greater one, was printed with.
    """
    printed = [(_magnitude(figure), _decimals(figure)) for figure in figures if figure.value != 0.0]
    if len(printed) < _FEWEST:
        return None
    ranked = sorted((decimals for _, decimals in printed), reverse=True)
    shared = ranked[math.ceil(_SHARE * len(ranked)) - 1]
    found: dict[int | None, int] = {None: shared}
    most = 0
    for magnitude in sorted({magnitude for magnitude, _ in printed}, reverse=True):
        most = max(most, *(decimals for of, decimals in printed if of == magnitude))
        found[magnitude] = min(shared, most)
    return found


def _with_digits(figure: Figure, groups: Sequence[Mapping[int | None, int] | None]) -> Figure:
    """Returns the figure with the rounding of the first group that shows how many digits its figures have."""
    magnitude = None if figure.value == 0.0 else _magnitude(figure)
    for decimals in groups:
        if decimals is not None and magnitude in decimals:
            rounding = 0.5 * 10.0 ** -decimals[magnitude] * figure.scale
            return replace(figure, rounding=min(figure.rounding, rounding))
    return figure


def _magnitude(figure: Figure) -> int:
    return math.floor(math.log10(abs(figure.value / figure.scale)) + 1e-12)


def _decimals(figure: Figure) -> int:
    """Returns the decimals that were printed; negative ones count as none."""
    mantissa, _, exponent = figure.printed.text.lower().partition("e")
    return max(0, len(mantissa.partition(".")[2]) - int(exponent or 0))
