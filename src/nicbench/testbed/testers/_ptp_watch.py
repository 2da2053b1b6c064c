"""The PTP of a tester's two machines: looked at before, in and after each trial, where both are synchronised."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from nicbench.core.clocks import PtpState
from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.system.ptp import bound_between, describe_ptp, parse_ptp, ptp_script

EVERY_S: Final = 1.0
"""The time between two looks in a trial: offsets are logged, and a look is one command on each machine."""
READING_NS: Final = 200.0
"""What reading an engine's clock and the time of the day beside each other may be off, of both machines together."""


class PtpWatch:
    """Looks at ptp4l of both machines, by their names in the report."""

    def __init__(self, hosts: tuple[tuple[str, Host], ...]) -> None:
        self._hosts = hosts
        self._seen: list[tuple[PtpState | None, ...]] = []

    async def look(self) -> tuple[PtpState | None, ...]:
        """The state of each machine now; None where it has no ptp4l, or does not answer."""
        states = await asyncio.gather(*(_look(name, host) for name, host in self._hosts))
        self._seen.append(tuple(states))
        return tuple(states)

    @property
    def is_running(self) -> bool:
        """Whether a ptp4l answered on both machines when it was looked last."""
        return bool(self._seen) and all(state is not None for state in self._seen[-1])

    def forget(self) -> None:
        """Begins anew, but for the last look."""
        self._seen = self._seen[-1:]

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """Looks once a second meanwhile, where the machines were synchronised when it was looked last."""
        looking = asyncio.ensure_future(self._go_on()) if self.bound_ns is not None else None
        try:
            yield
        finally:
            if looking is not None:
                looking.cancel()
                with suppress(asyncio.CancelledError):
                    await looking

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await self.look()

    @property
    def bound_ns(self) -> float | None:
        """By how much the times of both machines differ at most, of all looks; None where one found no synchrony."""
        bounds = [bound_between(states) for states in self._seen]
        known = [bound for bound in bounds if bound is not None]
        return max(known) + READING_NS if known and len(known) == len(bounds) else None

    @property
    def worst(self) -> tuple[PtpState, ...]:
        """Of each machine the state with the largest bound of all looks."""
        found = []
        for states in zip(*self._seen, strict=True):
            known = [state for state in states if state is not None]
            found += [max(known, key=lambda state: state.bound_ns)] if known else []
        return tuple(found)

    def describe(self) -> dict[str, str]:
        """What the last look found of each machine, in words."""
        last = self._seen[-1] if self._seen else (None,) * len(self._hosts)
        return {name: describe_ptp(state) for (name, _), state in zip(self._hosts, last, strict=True)}


async def _look(name: str, host: Host) -> PtpState | None:
    try:
        # ptp4l is the machine's, whatever namespace the ports are in.
        done = await host.machine.run(("sh", "-c", ptp_script()), check=False)
    except HostError:
        return None
    return parse_ptp(name, done.stdout)
