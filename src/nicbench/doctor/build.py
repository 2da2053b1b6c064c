"""Builds what no package holds and a DUT needs: ``nicbench doctor --build l3fwd``."""

from __future__ import annotations

from nicbench.core.errors import UsageError
from nicbench.hosts.kinds.local import LocalHost
from nicbench.testbed import l3fwd_build as l3fwd


async def build_on_this_machine(name: str) -> str:
    """A sentence on what was built and where; UsageError where nothing is known by this name."""
    if name != "l3fwd":
        raise UsageError(
            f"nothing called {name} is built by nicbench", place="--build", next_step="write --build l3fwd"
        )
    done = await l3fwd.build(LocalHost())
    return f"built l3fwd from {l3fwd.PACKAGE} {done.sources} with DPDK {done.library}: {l3fwd.program()} ({done.patch})"
