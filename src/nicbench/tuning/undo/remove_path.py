"""Removes a file or folder."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from nicbench.hosts.base import Host
from nicbench.tuning.undo.base import Undo

_REMOVAL_S: Final = 1800.0
"""Thousands of large files over a network take their time."""


class RemovePath(Undo):
    """Remove a file or folder that nicbench made."""

    kind: Literal["remove_path"] = "remove_path"
    path: str

    # It may have been on a mount whose server is gone, and gone itself once that was unmounted.
    retried_after: ClassVar[frozenset[str]] = frozenset({"unmount"})

    async def undo(self, host: Host) -> str | None:
        parts = [part for part in self.path.split("/") if part]
        if not self.path.startswith("/") or len(parts) < 2 or ".." in parts:
            return f"{host.name}: {self.path} was left alone: not a path that nicbench makes"
        await host.run(("rm", "-rf", "--one-file-system", "--", self.path), timeout_s=_REMOVAL_S)
        return None
