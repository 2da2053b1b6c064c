"""tuning.json: every setting that a run asked for, of each host: before, asked, during and after the undo."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import JsonValue

from nicbench.core.base import Frozen
from nicbench.core.turn import DEFAULT

Values = dict[str, JsonValue]
"""A setting as plain data: flat, names with units."""


class Outcome(StrEnum):
    """The outcome of a setting."""

    CHANGED = "changed"
    ALREADY = "already"
    """The value was there before: nothing was changed, and nothing is undone."""
    SKIPPED = "skipped"
    """The setting of a profile does not exist on this machine; ``reason`` says why."""
    MET = "met"
    """The setting was only checked, and has the requested value."""
    NOT_MET = "not_met"
    """The setting was only checked, and has another value, ``during``."""
    FAILED = "failed"
    """The setting failed, and the run was refused; ``reason`` says why."""


class TunedSetting(Frozen):
    """One setting at one place. A value that is not known is None."""

    configuration: str = DEFAULT
    run: int = 1
    host: str
    """As it is called in the bench file; in a lab ``tester``, ``dut``, and ``local`` for the machine itself."""
    scope: str
    device: str | None
    item: str
    source: str
    """``bench file``, or ``profile`` and its name."""
    options: dict[str, Any]
    outcome: Outcome
    reason: str | None = None
    before: Values | None = None
    """Everything that was read, not only what was asked for."""
    asked: Values | None = None
    during: Values | None = None
    """The keys that were asked for, as they were read once all of the test was set up, before the first trial."""
    at_end: Values | None = None
    """The same after the last trial, before the undo."""
    after: Values | None = None
    """The same after the undo; None where the place is gone (the namespace of a lab) or the run was killed."""


class TuningDocument(Frozen):
    """The file: rows in the order in which they were applied, turn after turn."""

    format: Literal[1] = 1
    settings: tuple[TunedSetting, ...] = ()


class PlannedSetting(Frozen):
    """One row of a dry run. ``outcome`` is what is to be expected; None where it cannot be told, for the ``reason``."""

    configuration: str = DEFAULT
    host: str
    device: str | None
    item: str
    source: str
    outcome: Outcome | None
    reason: str | None = None
    now: Values | None = None
    asked: Values | None = None
