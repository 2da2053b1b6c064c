"""How long connections stood still over a failing link, from looks at their bytes."""

from __future__ import annotations

import pytest

from nicbench.stats.links import Look, silence_of, step_s

KEY = ("198.18.0.1", 5201, "198.18.0.10", 40000)


def looks(moved: dict[float, int]) -> list[Look]:
    return [Look(at_s, {KEY: bytes_}) for at_s, bytes_ in moved.items()]


def steadily(until_s: float, *, still: tuple[tuple[float, float], ...] = ()) -> list[Look]:
    """A megabyte at each look, ten looks a second, but for the times in which it stands still."""
    found, moved = [], 0
    for tenth in range(int(10 * until_s) + 1):
        at_s = tenth / 10
        moved += 0 if any(begin < at_s < end for begin, end in still) else 1_000_000
        found.append(Look(at_s, {KEY: moved}))
    return found


def test_a_connection_that_noticed_nothing_was_silent_between_two_looks() -> None:
    silence = silence_of(steadily(10.0), KEY, 3.0, 7.0, 10.0)
    assert silence is not None
    assert silence.went_on
    assert silence.down_s == pytest.approx(0.1)
    assert silence.back_s == pytest.approx(0.1)


def test_silences_are_those_while_it_was_down_and_after_it_came_back() -> None:
    silence = silence_of(steadily(10.0, still=((3.0, 3.7), (7.0, 7.3))), KEY, 3.0, 7.0, 10.0)
    assert silence is not None
    assert silence.down_s == pytest.approx(0.7)
    assert silence.back_s == pytest.approx(0.3)


def test_one_that_waits_until_the_link_is_back_is_silent_for_all_of_it() -> None:
    silence = silence_of(steadily(10.0, still=((3.0, 8.0),)), KEY, 3.0, 7.0, 10.0)
    assert silence is not None
    assert silence.went_on
    assert silence.down_s == pytest.approx(5.0)
    assert silence.back_s == pytest.approx(1.0)


def test_one_that_never_goes_on_is_told_so() -> None:
    silence = silence_of(steadily(10.0, still=((3.0, 11.0),)), KEY, 3.0, 7.0, 10.0)
    assert silence is not None
    assert not silence.went_on
    assert silence.down_s == pytest.approx(7.0)


def test_what_speaks_about_others_and_what_was_not_seen_has_none() -> None:
    assert silence_of(looks({0.0: 100, 1.0: 200, 5.0: 300}), KEY, 3.0, 4.0, 6.0) is None
    assert silence_of(looks({4.0: 10**6, 5.0: 2 * 10**6}), KEY, 3.0, 4.0, 6.0) is None
    assert silence_of([], KEY, 3.0, 4.0, 6.0) is None


def test_what_comes_after_the_end_of_the_round_is_not_waited_for() -> None:
    silence = silence_of(steadily(8.0), KEY, 3.0, 7.0, 8.0)
    late = silence_of([*steadily(8.0), Look(20.0, {KEY: 10**9})], KEY, 3.0, 7.0, 8.0)
    assert silence == late


def test_no_silence_is_told_finer_than_the_looks_were_apart() -> None:
    assert step_s(looks({0.0: 0, 2.0: 0, 2.1: 0, 2.3: 0, 9.0: 0}), 2.0, 2.3) == pytest.approx(0.2)
    assert step_s([], 0.0, 1.0) is None
