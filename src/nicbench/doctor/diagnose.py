"""Runs every examination on a host and gives its checks, in the order of the files' names."""

from __future__ import annotations

from nicbench.core.errors import NicbenchError
from nicbench.core.registry import find
from nicbench.doctor.base import Check, Examination, missing
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.system.inventory.base import NOT_UNDERSTOOD


async def diagnose_this_machine() -> tuple[Check, ...]:
    """``diagnose`` for the machine that nicbench runs on."""
    return await diagnose(LocalHost("local"))


async def diagnose(host: Host) -> tuple[Check, ...]:
    """Never fails: what cannot even be looked at is a check that says so."""
    checks: list[Check] = []
    for kind, examination in find("nicbench.doctor.checks", Examination).items():
        try:
            checks += await examination().examine(host)
        except NicbenchError as error:
            checks.append(missing(kind.replace("_", " "), error.message, error.next_step))
        except (OSError, *NOT_UNDERSTOOD) as error:  # a machine stranger than anybody thought of
            checks.append(missing(kind.replace("_", " "), f"cannot be looked at: {error}"))
    return tuple(checks)
