"""Time stamps of received frames: how the clock that made them fared over a trial (protocol, "Time stamps")."""

from __future__ import annotations

from nicbench.model.base import Frozen


class TransmitDelay(Frozen):
    """From a frame's stamp in software until it left the card, of the frames whose leaving the card told.

    None where it told none. A negative delay is within the uncertainty of the clocks.
    """

    asked: int
    count: int
    minimum_ns: int | None = None
    mean_ns: float | None = None
    maximum_ns: int | None = None


class Stamps(Frozen):
    """The clock of one port over one trial. ``source`` is ``card`` or ``kernel``; None is unknown.

    ``unstamped`` and ``implausible`` frames had no stamp, or none that can be a time of the trial: the time-stamp
    counter's time was taken. ``early`` stamps are later than the moment at which their frame had been received.
    """

    source: str
    clock_hz: float | None = None
    resolution_ns: float | None = None
    uncertainty_ns: float | None = None
    readings: int
    outliers: int
    steps: int
    stamped: int
    unstamped: int
    implausible: int
    early: int
    early_maximum_ns: int
    transmit_delay: TransmitDelay | None = None
