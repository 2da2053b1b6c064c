"""Deletes a table of packet filter rules."""

from __future__ import annotations

from typing import Literal

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.tuning.undo.base import Undo


class DeleteNftTable(Undo):
    """Delete a table of packet filter rules that nicbench made; ``family`` is nft's (``ip``, ``ip6``)."""

    kind: Literal["delete_nft_table"] = "delete_nft_table"
    family: str
    table: str

    async def undo(self, host: Host) -> str | None:
        # A table that is not there is no trouble: the change may have failed, or somebody deleted it.
        done = await host.run(("nft", "delete", "table", self.family, self.table), check=False)
        still = await host.run(("nft", "list", "table", self.family, self.table), check=False)
        if still.status == 0:
            raise HostError(
                f"the table {self.family} {self.table} cannot be deleted: {done.stderr.strip()}", place=host.name
            )
        return None
