"""Settings in an adapter's firmware, changed: in force **after the next reset** of the adapter, not in this run."""

from __future__ import annotations

from nicbench.core.plan import Values
from nicbench.tuning.changes import Changes
from nicbench.tuning.items._adapter import address_of, run_setter
from nicbench.tuning.items.base import Phase, Place
from nicbench.tuning.items.firmware._firmware import AFTER_RESET, FirmwareItem, FirmwareOptions


class FirmwareChangeOptions(FirmwareOptions):
    """``keep`` leaves them set when the run ends, so that a reset finds them; tuning.json has the values before."""

    keep: bool = False


class FirmwareChanges(FirmwareItem):
    """The keys say what is pending. Without ``keep`` the undo takes it back, and acts only a reset in between."""

    kind = "firmware_changes"
    Options = FirmwareChangeOptions
    options: FirmwareChangeOptions
    scope = "device"
    phase = Phase.FUNCTION

    def target_values(self, now: Values) -> Values:
        return {f"{name}{AFTER_RESET}": value for name, value in self.options.settings.items()}

    async def apply(self, changes: Changes, place: Place, before: Values, asked: Values) -> None:
        """What the bench file says is to stay is the one change that has no undo."""
        if self.options.keep:
            await self.write(place, asked)
        else:
            await super().apply(changes, place, before, asked)

    async def write(self, place: Place, values: Values) -> None:
        # mlxconfig takes the words that it prints without the number in parentheses, or the number.
        words = [f"{name.removesuffix(AFTER_RESET)}={str(value).partition('(')[0]}" for name, value in values.items()]
        await run_setter(place, "mlxconfig", "-d", await address_of(place), "--yes", "set", *words)
