"""Tells a tester that sends a constant share of what it is asked for from one that has a ceiling.

A ceiling is a rate: the tester sends the same, whatever more it is asked for. A tester that falls short by a constant
share sends less at every load, and each of its trials is one at the load that it really sent. One load alone does not
tell them apart: two do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

LEAST_SHORTFALL = 0.001
"""A smaller share of unsent frames is none that counts: a tester's pauses cost as much."""
AGREEMENT = 0.1
"""Two shortfalls agree in their share where these differ by less than this part of the shortfall."""
LEAST_DISTANCE = 0.25
"""They agree better in the share than in the rate where the shares differ by less than this part of the loads."""


class Offer(NamedTuple):
    """What a tester was asked to send in one trial, and what it offered to the DUT, in frames per second.

    ``frames`` is how many were asked for: a count of few frames is a coarse one.
    """

    asked: float
    sent: float
    frames: float

    @property
    def share(self) -> float:
        """The share of what was asked for that was sent."""
        return self.sent / self.asked

    @property
    def falls_short(self) -> bool:
        """Whether less was sent than a rounding or a pause explains."""
        return self.share < 1.0 - LEAST_SHORTFALL + 1.0 / max(1.0, self.frames)


def find_constant_share(offers: Sequence[Offer]) -> float | None:
    """Returns the share that the last trial has in common with an earlier one at another load, and so with all below.

    None where the last one did not fall short, where none agrees with it, or where another trial sent a larger share.
    """
    if not offers or not offers[-1].falls_short or offers[-1].sent <= 0.0:
        return None
    last = offers[-1]
    partners = [earlier for earlier in offers[:-1] if _share_agrees(earlier, last) and _tells_apart(earlier, last)]
    if not partners:
        return None
    highest = max(last.asked, *(partner.asked for partner in partners))
    # Above them it may send less, as a tester with a ceiling does; a larger share it cannot have sent anywhere.
    below_a_ceiling = [offer for offer in offers if offer.asked > highest and offer.share < last.share]
    if not all(_share_agrees(offer, last) for offer in offers if offer not in below_a_ceiling):
        return None
    agreeing = [last, *partners]
    return sum(offer.share * offer.frames for offer in agreeing) / sum(offer.frames for offer in agreeing)


def _share_agrees(one: Offer, other: Offer) -> bool:
    grain = 1.0 / max(1.0, one.frames) + 1.0 / max(1.0, other.frames)
    return abs(one.share - other.share) <= AGREEMENT * (1.0 - other.share) + grain


def _tells_apart(one: Offer, other: Offer) -> bool:
    """Returns whether the loads are so far apart that a ceiling would have given other shares."""
    if one.sent <= 0.0 or other.sent <= 0.0:
        return False
    apart = abs(math.log(one.asked / other.asked))
    return apart > 0.0 and abs(math.log(one.share / other.share)) < LEAST_DISTANCE * apart


def describe_share(share: float) -> str:
    """Says in one sentence what the loads of a result are where the tester fell short by a constant share."""
    percent = next((text for digits in range(4, 12) if (text := f"{100.0 * share:.{digits}g}") != "100"), "nearly 100")
    return f"the tester sent {percent} % of what it was asked for at every load; loads are those that were sent"
