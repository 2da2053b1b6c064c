"""How long connections stood still over a failing link, from looks at their bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.core.round import SenderLook, SenderTrace
from nicbench.stats.links import Look, Reaction, settling_of, silence_of, step_s, steps_of

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
    assert silence.went_on
    assert silence.down_s == pytest.approx(0.1)
    assert silence.back_s == pytest.approx(0.1)


def test_silences_are_those_while_it_was_down_and_after_it_came_back() -> None:
    silence = silence_of(steadily(10.0, still=((3.0, 3.7), (7.0, 7.3))), KEY, 3.0, 7.0, 10.0)
    assert silence.down_s == pytest.approx(0.7)
    assert silence.back_s == pytest.approx(0.3)


def test_one_that_waits_until_the_link_is_back_is_silent_for_all_of_it() -> None:
    silence = silence_of(steadily(10.0, still=((3.0, 8.0),)), KEY, 3.0, 7.0, 10.0)
    assert silence.went_on
    assert silence.down_s == pytest.approx(5.0)
    assert silence.back_s == pytest.approx(1.0)


def test_one_that_never_goes_on_is_told_so() -> None:
    silence = silence_of(steadily(10.0, still=((3.0, 11.0),)), KEY, 3.0, 7.0, 10.0)
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


# The reaction of senders, from series made by hand: one that settles, one that never does, one that ignores marks.


STEP_S = 0.1


def trace(
    rate: Callable[[float], float],
    *,
    ecn: bool | None = True,
    marked: float = 0.1,
    resent: Callable[[float], int] = lambda at_s: 0,
    trip_ns: Callable[[float], float] = lambda at_s: 5e6,
    window: Callable[[float], int] = lambda at_s: 10,
) -> SenderTrace:
    """Ten seconds of a sender with this rate at each time; segments have 1000 bytes, of which this share is marked."""
    looks, acked = [], 0.0
    for number in range(101):
        at_s = number * STEP_S
        delivered = round(acked / 1000)
        looks.append(
            SenderLook(
                at_s=at_s, acked_bytes=round(acked), delivered=delivered, delivered_marked=round(marked * delivered),
                resent=resent(at_s), round_trip_ns=trip_ns(at_s), window=window(at_s),
            )
        )  # fmt: skip
        acked += rate(at_s + STEP_S / 2) * STEP_S / 8
    return SenderTrace(job=1, congestion_control="cubic", ecn=ecn, looks=tuple(looks))


def test_a_sender_settles_when_its_rate_stays() -> None:
    found = settling_of(trace(lambda at_s: 40e6 if at_s < 2 else 20e6), 0.0, 10.0)
    assert found.settles_after_s == pytest.approx(2.0)
    assert found.rate_bits_per_s == pytest.approx(20e6)
    assert found.marked_share == pytest.approx(0.1, abs=1e-3)
    assert (found.resent, found.round_trip_median_ns, found.round_trip_p95_ns) == (0, 5e6, 5e6)
    assert found.reaction is Reaction.REACTS


def test_a_rate_that_swings_does_not_settle_and_its_figures_are_of_the_last_half() -> None:
    found = settling_of(trace(lambda at_s: 30e6 if int(at_s) % 2 else 10e6), 0.0, 10.0)
    assert found.settles_after_s is None
    assert found.rate_bits_per_s == pytest.approx(22e6)  # of 5 s to 10 s: three of five at the higher rate
    assert found.reaction is Reaction.UNSETTLED


def test_what_is_lost_although_marked_or_grows_in_flight_is_no_reaction() -> None:
    lost = settling_of(trace(lambda at_s: 20e6, resent=int), 0.0, 10.0)
    grown = settling_of(trace(lambda at_s: 20e6, trip_ns=lambda at_s: 1e6 * (1 + at_s)), 0.0, 10.0)
    assert (lost.reaction, lost.resent) == (Reaction.IGNORES, 10)
    assert grown.reaction is Reaction.IGNORES


def test_a_sender_whose_window_falls_at_marks_obeys_them_though_it_loses_and_grows() -> None:
    swings = trace(
        lambda at_s: 20e6,
        resent=lambda at_s: int(at_s / 2),
        trip_ns=lambda at_s: 1e6 * (1 + at_s),
        window=lambda at_s: 10 + round(at_s * 10) % 5,
    )
    found = settling_of(swings, 0.0, 10.0)
    assert (found.reaction, found.resent) == (Reaction.REACTS, 5)
    stubborn = settling_of(trace(lambda at_s: 20e6, resent=int, window=lambda at_s: 10 + int(at_s)), 0.0, 10.0)
    assert stubborn.reaction is Reaction.IGNORES


@pytest.mark.parametrize("ecn", [False, None])
def test_without_ecn_nobody_told_the_sender(ecn: bool | None) -> None:
    found = settling_of(trace(lambda at_s: 20e6, ecn=ecn, marked=0.0), 0.0, 10.0)
    assert found is not None
    assert found.reaction is (Reaction.NOT_TOLD if ecn is False else Reaction.UNKNOWN)


def test_a_path_that_marks_nothing_is_told() -> None:
    found = settling_of(trace(lambda at_s: 20e6, marked=0.0), 0.0, 10.0)
    assert (found.reaction, found.marked_share) == (Reaction.NOT_MARKED, 0.0)


def test_a_period_that_was_hardly_looked_at_has_no_figures() -> None:
    assert settling_of(trace(lambda at_s: 20e6), 9.8, 20.0) is None


def test_of_a_period_only_its_own_looks_count() -> None:
    found = settling_of(trace(lambda at_s: 20e6 if at_s < 5 else 10e6), 0.0, 4.9)
    assert (found.settles_after_s, found.rate_bits_per_s) == (0.0, pytest.approx(20e6))


def test_steps_have_the_mean_of_each() -> None:
    steps = steps_of(trace(lambda at_s: 10e6 * (1 + int(at_s))).looks, 1.0)
    assert [round(step.at_s, 6) for step in steps] == [float(number) for number in range(1, 11)]
    assert [step.rate_bits_per_s for step in steps] == pytest.approx([10e6 * number for number in range(1, 11)])
