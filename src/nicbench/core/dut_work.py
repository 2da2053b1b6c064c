"""The work of a DUT's forwarding cores over a trial, by its own account."""

from __future__ import annotations

from nicbench.core.base import Frozen


class DutWork(Frozen):
    """The work of the DUT's forwarding cores over a trial, by the DUT's own account (``source``).

    Cycles are of the time-stamp counter, spent while packets were handled; ``counts_empty_polls`` says whether polls
    that found nothing are included. ``core_clock_hz`` is the clock of the DUT's core, probed before and after.
    ``batches`` is how many times its code took packets, where it works on several at once and counts that.
    """

    source: str
    packets: int
    tsc_cycles: int
    tsc_hz: float | None = None
    counts_empty_polls: bool = False
    core_clock_hz: tuple[float, ...] = ()
    batches: int | None = None

    def subtract(self, before: DutWork) -> DutWork:
        """Returns the difference of two cumulative accounts."""
        return self.replace(
            packets=self.packets - before.packets,
            tsc_cycles=self.tsc_cycles - before.tsc_cycles,
            core_clock_hz=(*before.core_clock_hz, *self.core_clock_hz),
            batches=None if self.batches is None else self.batches - (before.batches or 0),
        )

    @property
    def tsc_cycles_per_packet(self) -> float | None:
        """Returns the time-stamp counter's cycles per packet; None where no packet was handled."""
        return self.tsc_cycles / self.packets if self.packets > 0 else None

    @property
    def packets_per_batch(self) -> float | None:
        """Returns the mean number of packets that were taken at once; None where it is not counted."""
        return self.packets / self.batches if self.batches else None

    @property
    def mean_core_clock_hz(self) -> float | None:
        """Returns the mean of the probed core clocks; None where the clock was not probed."""
        return sum(self.core_clock_hz) / len(self.core_clock_hz) if self.core_clock_hz else None

    @property
    def core_cycles_per_packet(self) -> float | None:
        """Returns the core's own cycles per packet, as the core's clock differs from the time-stamp counter's."""
        tsc, clock = self.tsc_cycles_per_packet, self.mean_core_clock_hz
        return None if tsc is None or clock is None or not self.tsc_hz else tsc * clock / self.tsc_hz
