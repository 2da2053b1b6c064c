"""The option of everything that is on or off."""

from __future__ import annotations

from nicbench.model.base import Frozen


class SwitchOptions(Frozen):
    """``ITEM: false`` or ``ITEM: true``."""

    on: bool
