"""How the clocks of a tester's two machines were mapped onto each other in one trial."""

from __future__ import annotations

from nicbench.core.base import Frozen


class ClockMapping(Frozen):
    """The line by which latencies of a trial were taken, and how far from the truth it can be.

    The line was laid through comparisons of both clocks before the trial, and held against others after it.
    """

    by: str
    """What the error is bounded by: ``test links``, ``control path`` or ``ptp``."""
    offset_ns: int
    """The clock of the second machine minus that of the first when the trial began."""
    drift_ppm: float
    """By so many millionths the second clock gains on the first."""
    asymmetry_bound_ns: float
    """Half of the least round trip of a comparison before and after the trial, the larger of both.

    No comparison can tell a slower way there from a slower way back: the offset may be wrong by up to this.
    """
    fit_error_ns: float
    """By how much the line missed the comparisons before and after the trial, the larger of both."""
    step_ns: float
    """By how much it missed what they allow: above 0 a clock was set, or its drift changed, in the trial."""
    comparisons: int
    """The comparisons that the line was laid through."""

    @property
    def uncertainty_ns(self) -> float:
        """The most by which a latency between the machines is wrong because of their clocks."""
        return self.asymmetry_bound_ns + self.fit_error_ns
