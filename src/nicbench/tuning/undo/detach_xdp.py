"""Detaches an XDP program."""

from __future__ import annotations

from typing import Literal

from nicbench.hosts.base import Host
from nicbench.tuning import bpf
from nicbench.tuning.undo._links import show_link
from nicbench.tuning.undo.base import Undo


class DetachXdp(Undo):
    """Detach the XDP program that nicbench (or its engine) attached; ``program_id`` None: whichever came since."""

    kind: Literal["detach_xdp"] = "detach_xdp"
    device: str
    program_id: int | None = None

    async def undo(self, host: Host) -> str | None:
        if await show_link(host, self.device) is None:
            return None
        present = await bpf.attached_program(host, self.device)
        if present is not None and self.program_id not in (None, present):
            return f"{host.name}: XDP program {present} on {self.device} is not ours ({self.program_id}): left alone"
        await bpf.detach(host, self.device, self.program_id)
        return None
