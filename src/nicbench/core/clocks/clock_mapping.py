"""How the clocks of a tester's two machines were mapped onto each other in one trial."""

from __future__ import annotations

from nicbench.core.base import Frozen


class PtpState(Frozen):
    """What ptp4l of one machine says of its clock, and how far the system's clock is from that."""

    host: str
    state: str
    """Of its port: ``SLAVE``, ``MASTER``; others are not synchronised."""
    grandmaster: str
    offset_ns: float
    """Its clock minus its master's."""
    path_delay_ns: float
    """The mean of both ways to its master, which bounds their asymmetry."""
    stamping: str
    """``HARDWARE`` or ``SOFTWARE``."""
    system_ns: float | None
    """The system's clock minus the card's; 0 with software stamps, None where it is not known."""

    @property
    def is_synchronised(self) -> bool:
        """Whether the system's clock is known to follow the grandmaster's."""
        return self.state in ("SLAVE", "MASTER", "GRAND_MASTER") and self.system_ns is not None

    @property
    def bound_ns(self) -> float:
        """By how much the system's clock may be off the grandmaster's, as far as this machine knows."""
        return abs(self.offset_ns) + self.path_delay_ns + abs(self.system_ns or 0.0)


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
    ptp: tuple[PtpState, ...] = ()
    """Where both machines are synchronised by PTP: of each the state that was worst before, in and after the trial."""

    @property
    def uncertainty_ns(self) -> float:
        """The most by which a latency between the machines is wrong because of their clocks."""
        return self.asymmetry_bound_ns + self.fit_error_ns
