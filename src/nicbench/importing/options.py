"""What a user says about a file that the file does not say itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from nicbench.importing.links import Link
from nicbench.importing.numbers import Decimal
from nicbench.importing.units import Unit


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Names of columns are those of the file. Nothing has a default that would be a guess.

    ``columns``: a column's name, and what it is called here. ``given``: a column that the file lacks, with the value
    of all its rows. ``where``: only rows with this text. ``configurations``: columns that name what is compared.
    ``loss_ratio``: the share of frames that a PDR allows to be lost. ``errata``: what cannot be so is taken as it is
    printed, and listed.
    """

    link: Link | None = None
    ports: int | None = None
    columns: dict[str, str] = field(default_factory=dict)
    units: dict[str, Unit] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    decimal: Decimal = "point"
    thousands: str | None = None
    loss_ratio: float | None = None
    errata: bool = False
