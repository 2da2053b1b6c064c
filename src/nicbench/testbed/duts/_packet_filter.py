"""Tables of nftables that DUTs put in place."""

from __future__ import annotations

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.network import DeleteNftTable


async def set_up_table(
    host: Host, changes: Changes, family: str, table: str, text: str, *, what: str, option: str = "", needs: str
) -> None:
    """Puts the table of ``text`` in place, undo first.

    ``what`` is what the table is for and ``needs`` what the kernel must have, in messages; ``option`` is the option of
    the DUT that asks for it. NotReadyError where the host has no nftables, or a table of that name.
    """
    shown = await host.run(("nft", "list", "table", family, table), check=False)
    if shown.status == 0:
        raise NotReadyError(
            f"there is a table {family} {table} already",
            place=host.name,
            next_step=f"a run that died left it: nicbench restore RUN, or nft delete table {family} {table}",
        )

    async def apply() -> None:
        await host.run(("nft", "-f", "-"), input_text=text)

    try:
        await changes.make(host, DeleteNftTable(family=family, table=table), apply)
    except HostError as error:
        raise NotReadyError(
            f"{what} cannot be set up: {error.message}",
            place=", ".join(("dut", *([option] if option else []), f"on {host.name}")),
            next_step=f"apt-get install nftables, on a kernel with {needs}",
        ) from error
