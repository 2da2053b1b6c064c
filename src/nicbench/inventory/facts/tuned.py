"""The profile of tuned: it sets governor, C-states, sysctls and more, and sets them again."""

from __future__ import annotations

from typing import Any

from nicbench.hosts.base import Host
from nicbench.inventory._asking import values_of
from nicbench.inventory.base import Fact

_PROFILE = "/etc/tuned/active_profile"
_MODE = "/etc/tuned/profile_mode"
_PROCESS = "/run/tuned/tuned.pid"


class Tuned(Fact):
    """From ``/etc/tuned`` and ``/run/tuned``."""

    kind = "tuned"
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        return parse_tuned(await values_of(host, (_PROFILE, _MODE, _PROCESS)))


def parse_tuned(values: dict[str, str]) -> dict[str, Any]:
    """A profile without a running daemon is only what was chosen last."""
    return {"profile": values.get(_PROFILE) or None, "chosen": values.get(_MODE), "running": _PROCESS in values}
