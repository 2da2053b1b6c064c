"""Where the level of a series changes: at the right value, whatever the unit, the offset and the direction."""

from __future__ import annotations

import random

from nicbench.stats.drift import MOST_GROUPED, split_at_changes


def noisy(count: int, seed: int, *, step_at: int | None = None, by: float = 0.95) -> list[float]:
    draw = random.Random(seed)
    values = [1.0 + 0.01 * draw.gauss() for _ in range(count)]
    return [value * (by if step_at is not None and place >= step_at else 1.0) for place, value in enumerate(values)]


def test_fewer_than_two_different_values_have_no_change() -> None:
    assert split_at_changes([]) == split_at_changes([3.0]) == split_at_changes([0.0] * 9) == ()


def test_what_is_found_does_not_depend_on_unit_offset_and_direction() -> None:
    values = noisy(40, 3, step_at=24)
    found = split_at_changes(values)
    assert found == (24,)
    for other in (
        [value * 1e6 for value in values],
        [value - 1.0 for value in values],
        [-value for value in values],
    ):
        assert split_at_changes(other) == found
    assert split_at_changes(values[::-1]) == (16,)


def test_a_change_in_a_long_series_is_found_at_its_value_and_not_only_near_it() -> None:
    count = 40 * MOST_GROUPED
    found = split_at_changes(noisy(count, 5, step_at=4_321, by=0.9))
    assert found == (4_321,)
