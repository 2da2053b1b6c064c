"""Counts of a trial: all of them, always (see protocol/README.md, "Meanings")."""

from __future__ import annotations

from collections.abc import Iterable

from nicbench.model.base import Frozen


class Counts(Frozen):
    """Frames of one trial, in one stream or summed over streams. Each frame has one fate.

    None is a count that the tester does not know: it cannot tell such frames from others.
    """

    intended: int
    sent: int
    unsent_tester: int = 0
    unsent_backpressure: int = 0
    received: int
    lost: int
    late: int | None = 0
    duplicated: int | None = 0
    reordered: int | None = 0
    corrupted: int | None = 0
    unattributed: int | None = 0
    """Missing, and a frame between the stream's addresses came with a broken signature: neither lost nor received."""
    corrupted_unattributed: int | None = 0
    foreign: int | None = 0

    @property
    def unsent(self) -> int:
        """Frames that were intended and never left the tester, whatever the cause."""
        return self.unsent_tester + self.unsent_backpressure

    @property
    def failed(self) -> int:
        """Frames the DUT is charged with: lost, corrupted (signature included), or refused by a lossless port.

        What the tester does not know cannot be charged.
        """
        return self.lost + (self.corrupted or 0) + (self.unattributed or 0) + self.unsent_backpressure

    @property
    def loss_ratio(self) -> float:
        """Share of the offered frames the DUT failed, 0..1; 0 where nothing was offered (RFC 1242 3.6)."""
        offered = self.sent + self.unsent_backpressure
        return self.failed / offered if offered else 0.0

    @classmethod
    def sum_of(cls, parts: Iterable[Counts]) -> Counts:
        """Field by field sum, None where one part is unknown; an empty iterable gives zeros."""
        rows = list(parts)
        return cls(**{name: _sum([getattr(row, name) for row in rows]) for name in cls.model_fields})


def _sum(parts: list[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
