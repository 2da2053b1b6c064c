"""Deletes an address, route or neighbour."""

from __future__ import annotations

from typing import Final, Literal

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.tuning.undo.base import Undo

# The kernel's words for an address (old kernels, newer ones), a route (and the last of its table), a neighbour, and an
# interface that is gone.
_GONE: Final = (
    "Cannot assign requested address",
    "address not found",
    "No such process",
    "FIB table does not exist",
    "No such file or directory",
    "Cannot find device",
)


class DeleteIpObject(Undo):
    """Delete an address, route or neighbour that nicbench added: ``ip`` with these arguments."""

    kind: Literal["delete_ip_object"] = "delete_ip_object"
    arguments: tuple[str, ...]

    async def undo(self, host: Host) -> str | None:
        done = await host.run(("ip", *self.arguments), check=False)
        if done.status != 0 and not any(words.lower() in done.stderr.lower() for words in _GONE):
            raise HostError(f"ip {' '.join(self.arguments)}: {done.stderr.strip()}", place=host.name)
        return None
