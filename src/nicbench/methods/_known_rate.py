"""A self-check: the rate that was found, compared with the rate that a DUT is known to pass at most."""

from __future__ import annotations

from typing import Final

from nicbench.core.frame_size import Size, words_of
from nicbench.core.result import Bounded, number_of
from nicbench.core.units import format_rate
from nicbench.methods.base import Context, Values
from nicbench.search.base import Outcome
from nicbench.stats.intervals import Agreement

WITHIN_RATIO: Final = 0.005
"""The tolerance: an interval agrees that contains the known rate, or ends within half a percent of it."""
SELF_CHECK: Final = ("self_check", "Known rate")
"""The value and the subject of the note below a table of rates."""


def known_rate_values(context: Context, size: Size, outcome: Outcome, trial_s: float) -> Values:
    """Returns the DUT's known rate for trials of ``trial_s``, and whether the lossless rate agrees with it.

    Empty where no rate is known.
    """
    known = context.known_rate_frames_per_s(outcome.passed_for_s or trial_s)
    if known is None:
        return {}
    rate = outcome.rate
    found = _agreement(rate, known)
    words = {Agreement.AGREE: "agrees", Agreement.DISAGREE: "does not agree", Agreement.UNKNOWN: "cannot be told"}
    return {
        "known_rate_frames_per_s": known,
        "agreement": found.value,
        "self_check": f"at {words_of(size)} expected {format_rate(known)}, found {_span(rate)}: {words[found]}",
    }


def _agreement(rate: Bounded, known: float) -> Agreement:
    lower, upper = rate.lower, rate.upper
    if lower is None or upper is None:
        # One bound alone can contradict the known rate, and cannot confirm it.
        too_high = lower is not None and lower > known * (1.0 + WITHIN_RATIO)
        too_low = upper is not None and upper < known * (1.0 - WITHIN_RATIO)
        return Agreement.DISAGREE if too_high or too_low else Agreement.UNKNOWN
    holds = lower <= known * (1.0 + WITHIN_RATIO) and upper >= known * (1.0 - WITHIN_RATIO)
    return Agreement.AGREE if holds else Agreement.DISAGREE


def _span(rate: Bounded) -> str:
    ends = [number_of(end) for end in (rate.lower, rate.upper)]
    known = [format_rate(end) for end in ends if end is not None]
    if len(known) < 2:
        return f"{'at least' if rate.lower is not None else 'less than'} {known[0]}" if known else "no rate"
    return " to ".join(known)
