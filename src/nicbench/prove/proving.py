"""Tries every ability of one or two ports, one after the other, and makes the proof of what was found."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from nicbench import __version__
from nicbench.core.errors import NicbenchError, UsageError, nearest_name
from nicbench.core.events import Bus
from nicbench.core.proof import Finding, Outcome, Proof
from nicbench.core.redaction import Redactor
from nicbench.core.registry import find
from nicbench.prove.base import Ability, failed, untried
from nicbench.prove.loop import Loop
from nicbench.stages.machine import hold_machines, undo_at_end
from nicbench.store.folder import new_run_id
from nicbench.system.hypervisor import is_virtual_machine
from nicbench.system.identity import identify_port
from nicbench.tuning.stack import UndoStack

_FIRST: Final = "drivers"
"""The ability without which nothing else can be tried."""


def abilities() -> tuple[type[Ability], ...]:
    """Every ability, in the order in which they are tried."""
    return tuple(sorted(find("nicbench.prove.abilities", Ability).values(), key=lambda each: each.order))


def choose(only: Collection[str], without: Collection[str]) -> tuple[type[Ability], ...]:
    """The abilities that are to be tried; that of drivers always is. UsageError for another name."""
    known = {each.kind: each for each in abilities()}
    for name in (*only, *without):
        if name not in known:
            near = nearest_name(name, tuple(known)) or ", ".join(known)
            raise UsageError(f"there is no ability {name}", place="--only, --without", next_step=f"write {near}")
    kept = [name for name in known if (not only or name in only) and name not in without]
    return tuple(each for name, each in known.items() if name == _FIRST or name in kept)


async def prove(
    hosts: Mapping[str, Any],
    ports: Mapping[str, Mapping[str, Any]],
    chosen: tuple[type[Ability], ...],
    tell: Callable[[Finding], None],
    bus: Bus,
    wait_s: float = 0.0,
    engine_folder: str | None = None,
) -> Proof:
    """Tries the chosen abilities of these ports and gives the proof; ``tell`` is called with each finding.

    Hosts and ports are as in a bench file; afterwards they are as they were. NotReadyError where one is in use.
    """
    began, made_at = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    run_id = new_run_id("prove")
    changes = UndoStack(run_id, None)
    findings: list[Finding] = []
    loop = Loop(hosts, ports, run_id, bus, engine_folder)

    async def try_all(is_apart: bool) -> None:
        for kind in abilities():
            if kind.is_apart is is_apart:
                async for finding in _try(kind, kind in chosen, loop, bus):
                    findings.append(finding)
                    tell(finding)

    async with hold_machines(run_id, (), bus, wait_s):
        async with undo_at_end(changes, bus):
            await loop.make(changes)
            proven_ports = tuple([await identify_port(loop.host, device) for device in loop.devices])
            kernel = (await loop.host.read_file("/proc/sys/kernel/osrelease") or "").strip()
            virtual = await is_virtual_machine(loop.host.machine)
            before = await loop.read_settings()
            await try_all(is_apart=False)
            findings.append(_came_back(loop.devices, before, await loop.read_settings()))
            tell(findings[-1])
        await try_all(is_apart=True)
    redact = Redactor.of_this_machine().redact_text  # a proof is published, and some errors name addresses
    return Proof(
        nicbench=__version__,
        kernel=kernel,
        made_at=made_at,
        took_s=round(time.monotonic() - began, 1),
        loop="cable" if len(ports) > 1 else "plug",
        in_virtual_machine=virtual,
        ports=proven_ports,
        findings=tuple(each.replace(seen=redact(each.seen)) for each in findings),
    )


async def _try(kind: type[Ability], is_chosen: bool, loop: Loop, bus: Bus) -> AsyncIterator[Finding]:
    """Tries one ability; what it changed is undone before the next begins."""
    name = f"{kind.kind}.all"
    if not is_chosen:
        yield untried(name, "it was left out")
        return
    if kind.kind != _FIRST and not loop.working:
        yield untried(name, "no driver passed frames")
        return
    changes = UndoStack(loop.undo_id(kind.kind), None)
    async with undo_at_end(changes, bus):
        try:
            async for finding in kind().prove(loop, changes):
                yield finding
        except NicbenchError as error:
            if kind.kind == _FIRST:
                raise
            yield failed(name, f"it could not be tried to its end: {error.message}")


def _came_back(
    devices: tuple[str, ...], before: tuple[tuple[str, ...], ...], after: tuple[tuple[str, ...], ...]
) -> Finding:
    """Whether the ports are as they were before anything was tried."""
    name = "restored.settings"
    for device, old, new in zip(devices, before, after, strict=True):
        changed = [line.strip() for line in new if line not in old]
        if old != new:
            lost = [line.strip() for line in old if line not in new]
            return failed(
                name, f"{device}: {'; '.join(changed) or 'fewer settings'}, before: {'; '.join(lost) or 'none'}"
            )
    return Finding(name=name, outcome=Outcome.PROVEN, seen="every setting of the ports is what it was before")
