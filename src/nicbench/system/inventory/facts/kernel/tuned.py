"""The profile of tuned: it sets governor, C-states, sysctls and more, and sets them again."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact

_PROFILE = "/etc/tuned/active_profile"
_MODE = "/etc/tuned/profile_mode"
_PROCESS = "/run/tuned/tuned.pid"


class _TunedShape(TypedDict):
    """Its profile, who chose it, whether it runs."""

    profile: str | None
    chosen: str | None
    running: bool


class TunedProfile(Fact):
    """From ``/etc/tuned`` and ``/run/tuned``."""

    kind = "tuned"
    shape = _TunedShape
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        return parse_tuned(await values_of(host, (_PROFILE, _MODE, _PROCESS)))


def parse_tuned(values: dict[str, str]) -> dict[str, Any]:
    """A profile without a running daemon is only what was chosen last."""
    return {"profile": values.get(_PROFILE) or None, "chosen": values.get(_MODE), "running": _PROCESS in values}
