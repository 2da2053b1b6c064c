"""Attaches XDP programs through the undo stack; for a while also in the place of another, which then comes back.

A program that the kernel no longer uses is gone, its maps too. So a process holds the old one meanwhile, by a name that
ends with it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host, Process
from nicbench.tuning import bpf
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.network import DetachXdp

_HOLD_TIMEOUT_S = 10.0
_HELD = "held"
# $1 is the program's id. It ends with its stdin, or with us.
_HOLD = f"bpftool prog pin id $1 /sys/fs/bpf/held >&2; echo {_HELD}; read -r _ || true"
_NATIVE, _GENERIC = "xdpdrv", "xdpgeneric"
_MODES = {1: _NATIVE, 2: _GENERIC, 3: "xdpoffload"}  # XDP_ATTACHED_* of linux/if_link.h


async def attach(changes: Changes, host: Host, device: str, program: Path, *, mode: str = "xdpdrv") -> int:
    """Attaches the program in the object file ``program``, undo first; returns its id.

    ``mode`` is ``xdpdrv`` (the driver's own path), ``xdpgeneric`` or ``xdp`` (the kernel chooses). A device that
    already has a program is refused: it is somebody's.
    """
    present = await bpf.attached_program(host, device)
    if present is not None:
        raise NotReadyError(
            f"the interface already has an XDP program (id {present})",
            place=device,
            next_step=f"see whose it is: bpftool prog show id {present}; detach it: ip link set dev {device} xdp off",
        )

    async def apply() -> None:
        await host.run(bpf.attachment(program, device, mode))

    await changes.make(host, DetachXdp(device=device), apply)
    number = await bpf.attached_program(host, device)
    if number is None:
        raise HostError("bpftool reported success, but no XDP program is attached", place=device)
    return number


async def expect_program(changes: Changes, host: Host, device: str) -> None:
    """Writes down that another process (the engine) will attach a program: if it is killed, the program stays."""

    async def apply() -> None:
        return None

    await changes.make(host, DetachXdp(device=device), apply)


@asynccontextmanager
async def program_in_place(changes: Changes, host: Host, device: str, program: Path) -> AsyncIterator[int]:
    """While entered, ``program`` (section ``xdp``) is what ``device`` runs, in its driver; gives its id.

    So also where the other program is in the generic hook: there each frame is copied first, on the sender's CPU.
    """
    shown = await host.run(("ip", "-j", "link", "show", "dev", device))
    link = json.loads(shown.stdout)[0]
    present = bpf.program_of_link(link)
    if present is None:
        number = await attach(changes, host, device, program)
        try:
            yield number
        finally:
            await bpf.detach(host, device, number)
        return
    mode = _MODES.get(link["xdp"]["mode"], _NATIVE)
    holder = await _hold(host, present)
    try:

        async def replace() -> None:
            if mode == _GENERIC:  # an interface has one hook at a time
                await bpf.detach(host, device, present)
            ours = _NATIVE if mode == _GENERIC else mode
            await host.run(bpf.attachment(program, device, ours, replaces=True))

        try:
            await changes.make(host, DetachXdp(device=device), replace)
            yield await _replacement(host, device, present)
        finally:
            if mode == _GENERIC and (ours := await bpf.attached_program(host, device)) is not None:
                await bpf.detach(host, device, ours)
            await _put_back(host, device, mode, present)
    finally:
        await holder.close_stdin()
        await holder.wait(_HOLD_TIMEOUT_S)


async def _replacement(host: Host, device: str, replaced: int) -> int:
    number = await bpf.attached_program(host, device)
    if number is None or number == replaced:
        raise HostError(f"XDP program {replaced} could not be replaced", place=f"{host.name}, {device}")
    return number


async def _hold(host: Host, program_id: int) -> Process:
    holder = await host.start(bpf.with_own_names(_HOLD, str(program_id)))
    if await holder.read_line(_HOLD_TIMEOUT_S) != _HELD:
        await holder.wait(_HOLD_TIMEOUT_S)
        raise HostError(f"XDP program {program_id} cannot be held: {holder.stderr_tail()}", place=host.name)
    return holder


async def _put_back(host: Host, device: str, mode: str, program_id: int) -> None:
    await host.run(("bpftool", "net", "attach", mode, "id", str(program_id), "dev", device, "overwrite"))
    if await bpf.attached_program(host, device) != program_id:
        raise HostError(f"XDP program {program_id} did not come back", place=f"{host.name}, {device}")
