"""Runs every examination on a host and gives its checks; builds what no package holds and a DUT needs.

Checks stand in the order of the files' names. ``nicbench doctor --build l3fwd`` builds.
"""

from __future__ import annotations

from nicbench.core.errors import NicbenchError, UsageError
from nicbench.core.registry import find
from nicbench.doctor.base import Check, Examination, missing
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.system.inventory.base import NOT_UNDERSTOOD
from nicbench.testbed.duts import l3fwd


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


async def build_on_this_machine(name: str) -> str:
    """A sentence on what was built and where; UsageError where nothing is known by this name."""
    if name != "l3fwd":
        raise UsageError(f"nicbench cannot build {name}", place="--build", next_step="write --build l3fwd")
    done = await l3fwd.build(LocalHost())
    return f"built l3fwd from {l3fwd.PACKAGE} {done.sources} with DPDK {done.library}: {l3fwd.program()} ({done.patch})"
