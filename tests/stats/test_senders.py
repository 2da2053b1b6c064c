"""The reaction of senders, from series made by hand: one that settles, one that never does, one that ignores marks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.core.round import SenderLook, SenderTrace
from nicbench.stats.links import Reaction, settling_of, steps_of

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
    assert found is not None
    assert found.settles_after_s == pytest.approx(2.0)
    assert found.rate_bits_per_s == pytest.approx(20e6)
    assert found.marked_share == pytest.approx(0.1, abs=1e-3)
    assert (found.resent, found.round_trip_median_ns, found.round_trip_p95_ns) == (0, 5e6, 5e6)
    assert found.reaction is Reaction.REACTS


def test_a_rate_that_swings_does_not_settle_and_its_figures_are_of_the_last_half() -> None:
    found = settling_of(trace(lambda at_s: 30e6 if int(at_s) % 2 else 10e6), 0.0, 10.0)
    assert found is not None
    assert found.settles_after_s is None
    assert found.rate_bits_per_s == pytest.approx(22e6)  # of 5 s to 10 s: three of five at the higher rate
    assert found.reaction is Reaction.UNSETTLED


def test_what_is_lost_although_marked_or_grows_in_flight_is_no_reaction() -> None:
    lost = settling_of(trace(lambda at_s: 20e6, resent=int), 0.0, 10.0)
    grown = settling_of(trace(lambda at_s: 20e6, trip_ns=lambda at_s: 1e6 * (1 + at_s)), 0.0, 10.0)
    assert lost is not None
    assert grown is not None
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
    assert found is not None
    assert (found.reaction, found.resent) == (Reaction.REACTS, 5)
    stubborn = settling_of(trace(lambda at_s: 20e6, resent=int, window=lambda at_s: 10 + int(at_s)), 0.0, 10.0)
    assert stubborn is not None
    assert stubborn.reaction is Reaction.IGNORES


@pytest.mark.parametrize("ecn", [False, None])
def test_without_ecn_nobody_told_the_sender(ecn: bool | None) -> None:
    found = settling_of(trace(lambda at_s: 20e6, ecn=ecn, marked=0.0), 0.0, 10.0)
    assert found is not None
    assert found.reaction is (Reaction.NOT_TOLD if ecn is False else Reaction.UNKNOWN)


def test_a_path_that_marks_nothing_is_told() -> None:
    found = settling_of(trace(lambda at_s: 20e6, marked=0.0), 0.0, 10.0)
    assert found is not None
    assert (found.reaction, found.marked_share) == (Reaction.NOT_MARKED, 0.0)


def test_a_period_that_was_hardly_looked_at_has_no_figures() -> None:
    assert settling_of(trace(lambda at_s: 20e6), 9.8, 20.0) is None


def test_of_a_period_only_its_own_looks_count() -> None:
    found = settling_of(trace(lambda at_s: 20e6 if at_s < 5 else 10e6), 0.0, 4.9)
    assert found is not None
    assert (found.settles_after_s, found.rate_bits_per_s) == (0.0, pytest.approx(20e6))


def test_steps_have_the_mean_of_each() -> None:
    steps = steps_of(trace(lambda at_s: 10e6 * (1 + int(at_s))).looks, 1.0)
    assert [round(step.at_s, 6) for step in steps] == [float(number) for number in range(1, 11)]
    assert [step.rate_bits_per_s for step in steps] == pytest.approx([10e6 * number for number in range(1, 11)])
