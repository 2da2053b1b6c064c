"""Computes the offset between the wall clocks of two machines and its uncertainty; ``hosts`` measures it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nicbench.core.base import Frozen
from nicbench.core.units import format_digits

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

    NTP chooses its sample in the same way (RFC 5905 section 10). Raises ValueError where there is no exchange.
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
