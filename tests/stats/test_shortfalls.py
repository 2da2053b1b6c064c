"""A constant share and a ceiling are told apart by two loads."""

from __future__ import annotations

import pytest

from nicbench.stats.limits import Offer, describe_share, find_constant_share


def offers(*pairs: tuple[float, float]) -> list[Offer]:
    return [Offer(asked, sent, asked) for asked, sent in pairs]


@pytest.mark.parametrize("share", [0.05, 0.5, 0.6, 0.9, 0.997, 0.9985])
def test_the_same_share_at_two_loads_is_one(share: float) -> None:
    assert find_constant_share(offers((1e6, share * 1e6), (5e5, share * 5e5))) == pytest.approx(share)


@pytest.mark.parametrize(
    "pairs",
    [
        pytest.param([], id="no trial"),
        pytest.param([(1e6, 6e5)], id="one load does not tell"),
        pytest.param([(1e6, 6e5), (1e6, 6e5)], id="the same load twice does not tell"),
        pytest.param([(1e6, 6e5), (8e5, 6e5)], id="a ceiling"),
        pytest.param([(1e6, 9.7e5), (9.9e5, 9.7e5)], id="a ceiling close to the load"),
        pytest.param([(1e6, 8e5), (7.98e5, 7.76e5)], id="a ceiling that wavers"),
        pytest.param([(1e6, 6e5), (5.9e5, 5.9e5)], id="all was sent at a lower load"),
        pytest.param([(1e6, 6e5), (4e5, 4e5), (5e5, 3e5)], id="another trial at a lower load sent all"),
        pytest.param([(1e6, 9.9995e5), (5e5, 4.99975e5)], id="too little to count"),
        pytest.param([(1e6, 0.0), (5e5, 0.0)], id="nothing was sent"),
    ],
)
def test_anything_else_is_none(pairs: list[tuple[float, float]]) -> None:
    assert find_constant_share(offers(*pairs)) is None


def test_a_ceiling_above_does_not_hide_the_share_below_it() -> None:
    assert find_constant_share(offers((1e6, 5e5), (5e5, 4e5), (3e5, 2.4e5))) == pytest.approx(0.8)


def test_few_frames_are_counted_coarsely() -> None:
    assert find_constant_share([Offer(1001.0, 997.0, 1001), Offer(900.0, 897.0, 900)]) is not None


def test_the_sentence_has_the_share_and_what_loads_are() -> None:
    assert describe_share(0.997) == (
        "the tester sent 99.7 % of what it was asked for at every load; loads are those that were sent"
    )


def test_a_share_just_below_all_is_not_rounded_to_all() -> None:
    assert "sent 99.97 %" in describe_share(0.9997)
    assert "sent 99.9997 %" in describe_share(0.999997)
