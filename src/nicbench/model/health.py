"""What happened to the machines' hardware during a trial: errors of links and buses, throttling, heat, power."""

from __future__ import annotations

from enum import StrEnum

from nicbench.model.base import Frozen


class Measure(StrEnum):
    """What a rise means. Most have a row of this name in the table of thresholds.

    LINK has none, for any change of a link spoils a trial; FEC_CORRECTED has none, for corrected blocks lose nothing.
    """

    PCIE_CORRECTED = "pcie_corrected_share"
    PCIE_UNCORRECTED = "pcie_uncorrected_share"
    PCIE_LINK = "pcie_link_loss_share"
    FEC_CORRECTED = "fec_corrected"
    FEC_UNCORRECTED = "fec_uncorrected_share"
    SYMBOL_ERRORS = "symbol_error_share"
    THROTTLED = "throttled_share"
    TEMPERATURE = "temperature_share"
    LINK = "link_changed"


class HealthEvent(Frozen):
    """Something rose in a trial by ``amount`` of ``unit``: the counter ``what`` of the part ``where`` of a host."""

    host: str
    where: str
    what: str
    measure: Measure
    amount: float
    unit: str


class HealthLevel(Frozen):
    """A temperature after a trial, or the mean power over it. ``limit`` is the part's own, where it tells one."""

    host: str
    where: str
    value: float
    unit: str
    limit: float | None = None


class MachineHealth(Frozen):
    """The gate's reading of a trial. ``unread``: what could not be read. ``reading_ms``: the time of both readings."""

    events: tuple[HealthEvent, ...] = ()
    levels: tuple[HealthLevel, ...] = ()
    unread: tuple[str, ...] = ()
    reading_ms: float | None = None
