"""Clocks: the offset between two machines, and how a tester's two clocks are mapped onto each other in a trial."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nicbench.core.base import Frozen
from nicbench.core.units import format_digits

# Computes the offset between the wall clocks of two machines and its uncertainty; ``hosts`` measures it.


MOST_DIFFERENCE_S = 0.1
"""Offset in seconds above which a run warns, because the log times of two hosts could be compared wrongly."""


class Exchange(Frozen):
    """One query for the time: when it was sent and answered by our clock, and what the other clock said in between."""

    sent_ns: int
    said_ns: int
    received_ns: int


class ClockOffset(Frozen):
    """The wall clock of ``host`` minus this machine's; the true offset is within ``uncertainty_s`` on either side."""

    host: str
    offset_s: float
    uncertainty_s: float
    exchanges: int
    """Number of exchanges; 0 where host and controller share a clock."""

    @property
    def in_words(self) -> str:
        """The offset as text: "client1: its clock is 12.3 ms ahead (+- 0.4 ms)"."""
        if not self.exchanges:
            return f"{self.host}: the clock of this machine"
        if abs(self.offset_s) <= self.uncertainty_s:
            return f"{self.host}: its clock is as ours, to {_seconds_text(self.uncertainty_s)}"
        side = "ahead" if self.offset_s > 0 else "behind"
        difference, uncertainty = _seconds_text(abs(self.offset_s)), _seconds_text(self.uncertainty_s)
        return f"{self.host}: its clock is {difference} {side} (+- {uncertainty})"


def offset_of(host: str, exchanges: Sequence[Exchange]) -> ClockOffset:
    """Computes the offset from the shortest exchange, half of whose duration is the uncertainty.

    NTP chooses its sample in the same way (RFC 5905 section 10). Raises ValueError without an exchange.
    """
    best = min(exchanges, key=lambda one: one.received_ns - one.sent_ns)
    middle_ns = (best.sent_ns + best.received_ns) / 2
    return ClockOffset(
        host=host,
        offset_s=(best.said_ns - middle_ns) / 1e9,
        uncertainty_s=(best.received_ns - best.sent_ns) / 2e9,
        exchanges=len(exchanges),
    )


def clock_warnings(offsets: Iterable[ClockOffset], most_s: float = MOST_DIFFERENCE_S) -> list[str]:
    """Returns a warning for each clock whose offset certainly exceeds ``most_s``, or is not known to within it."""
    said = []
    for offset in offsets:
        if abs(offset.offset_s) - offset.uncertainty_s > most_s:
            said.append(f"{offset.in_words}: let NTP or PTP set it, or times of its logs mean something else than ours")
        elif offset.uncertainty_s > most_s:
            known_to = _seconds_text(offset.uncertainty_s)
            said.append(f"{offset.host}: its clock is known to {known_to} only, it takes so long to answer")
    return said


def _seconds_text(seconds: float) -> str:
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{format_digits(seconds / scale)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


# How the clocks of a tester's two machines were mapped onto each other in one trial.


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
    """The millionths by which the second clock gains on the first."""
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
