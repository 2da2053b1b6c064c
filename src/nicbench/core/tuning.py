"""The model of tuning.json: every requested setting of each host: before, requested, during and after the undo."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, JsonValue

from nicbench.core.base import Frozen
from nicbench.core.turn import DEFAULT

Values = dict[str, JsonValue]
"""A setting as plain data: flat, with units in the names."""


class Outcome(StrEnum):
    """The outcome of a setting."""

    CHANGED = "changed"
    ALREADY = "already"
    """The value was there before: nothing was changed, and nothing will be undone."""
    SKIPPED = "skipped"
    """The setting of a profile does not exist on this machine; ``reason`` says why."""
    MET = "met"
    """The setting was only checked, and has the requested value."""
    NOT_MET = "not_met"
    """The setting was only checked, and has another value, ``during``."""
    FAILED = "failed"
    """The setting could not be applied, and the run was refused; ``reason`` says why."""


class TunedSetting(Frozen):
    """One setting in one place. A value that is not known is None."""

    configuration: str = DEFAULT
    run: int = 1
    host: str
    """The host's name in the bench file; in a lab ``tester``, ``dut``, or ``local`` for the machine itself."""
    scope: str
    device: str | None
    item: str
    source: str
    """The origin of the setting: ``bench file``, or ``profile`` and its name."""
    options: dict[str, Any]
    outcome: Outcome
    reason: str | None = None
    commands: tuple[str, ...] = Field(default=(), exclude_if=lambda commands: commands == ())
    """The commands that made the setting, where they say more than its values."""
    before: Values | None = None
    """Everything that was read before the change, not only the requested keys."""
    asked: Values | None = None
    during: Values | None = None
    """The requested keys, as read once the whole test setup was in place, before the first trial."""
    at_end: Values | None = None
    """The requested keys, as read after the last trial and before the undo."""
    after: Values | None = None
    """The requested keys, as read after the undo.

    None where the place no longer exists (the namespace of a lab) or the run was killed.
    """
    strayed: tuple[str, ...] | None = None
    """The requested keys whose value ``during`` is another one than requested, as the item compares them."""
    not_restored: tuple[str, ...] | None = None
    """The requested keys whose value ``after`` is another one than ``before``, as the item compares them."""


class TuningDocument(Frozen):
    """The content of tuning.json: rows in the order in which they were applied, turn after turn."""

    format: Literal[1] = 1
    settings: tuple[TunedSetting, ...] = ()


class PlannedSetting(Frozen):
    """One row of a dry run. ``outcome`` is the expected one; None where it cannot be predicted, for the ``reason``."""

    configuration: str = DEFAULT
    host: str
    device: str | None
    item: str
    source: str
    outcome: Outcome | None
    reason: str | None = None
    now: Values | None = None
    asked: Values | None = None
