"""Frames that the tester itself dropped, by the loss ledger: a trial that lost them so says nothing of the DUT.

The ledger has rows only where frames were lost: where none was, the tester dropped frames of others.
"""

from __future__ import annotations

from nicbench.core.base import Frozen
from nicbench.core.trial import Reading
from nicbench.measure.ledger.base import Stage


class TesterDrops(Frozen):
    """What counters of the tester's hosts and cards say was dropped there, on one of the two directions."""

    frames: int = 0
    places: tuple[str, ...] = ()
    """Each place with its counter and the frames there."""

    def say(self) -> str:
        """Returns the places in words."""
        return "; ".join(self.places)


def arriving_drops(reading: Reading) -> TesterDrops:
    """Returns what the tester's hosts dropped of frames that arrived, without what its ports count as overruns.

    A card may count an overrun of its port again, so those are taken off the sum.
    """
    overruns = sum(port.receive_overrun or 0 for port in reading.ports)
    found = _drops(reading, sending=False)
    return found.replace(frames=max(0, found.frames - overruns))


def leaving_drops(reading: Reading) -> TesterDrops:
    """Returns what the tester's hosts and cards dropped of frames that it had sent."""
    return _drops(reading, sending=True)


def _drops(reading: Reading, *, sending: bool) -> TesterDrops:
    rows = [row for row in reading.ledger if row.by_tester and (row.stage <= Stage.TESTER_TRANSMIT) == sending]
    return TesterDrops(
        frames=sum(row.frames for row in rows),
        places=tuple(f"{row.place}: {row.counter} {row.frames}" for row in rows),
    )
