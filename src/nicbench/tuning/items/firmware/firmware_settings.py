"""Settings in an adapter's firmware as they are expected to be: only checked, and disclosed."""

from __future__ import annotations

from nicbench.core.plan import Values
from nicbench.tuning.items.base import Phase
from nicbench.tuning.items.firmware._firmware import FirmwareItem, FirmwareOptions


class FirmwareExpectedOptions(FirmwareOptions):
    """``required``: an adapter that is otherwise is not measured; without it, the report says so."""

    required: bool = False


class FirmwareSettings(FirmwareItem):
    """What is in force now; what would change them is ``firmware_changes``."""

    kind = "firmware_settings"
    Options = FirmwareExpectedOptions
    options: FirmwareExpectedOptions
    scope = "device"
    phase = Phase.FUNCTION
    only_checks = True

    def target_values(self, now: Values) -> Values:
        return dict(self.options.settings)
