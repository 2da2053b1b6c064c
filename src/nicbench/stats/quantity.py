"""What values are of, in words: the name, the unit, and which way is better. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from nicbench.stats.numerals import figures


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is compared, in words. ``name``: "sum of frame rates"; ``unit``: "frames/s", "" of none.

    ``comparative`` is what the better one is: "faster" (then "1.24 times faster"); without it the sentence only says
    which is higher. ``higher_is_better`` is None where neither is.
    """

    name: str
    unit: str
    higher_is_better: bool | None = None
    comparative: str | None = None

    def of(self, value: float | None) -> str:
        """With the unit."""
        return "unknown" if value is None else f"{figures(value)} {self.unit}".rstrip()
