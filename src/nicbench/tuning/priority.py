"""Packet work of the kernel on the DUT's CPUs goes before other programs there: a DUT shares with nobody."""

from __future__ import annotations

from nicbench.errors import HostError
from nicbench.hosts.base import Host
from nicbench.tuning.changes import Changes
from nicbench.tuning.owner import nice_of_stat, start_ticks_of_stat
from nicbench.tuning.undo import RestoreNice

FIRST = -20


async def prefer_softirq_work(changes: Changes, host: Host, cpus: tuple[int, ...]) -> dict[str, int]:
    """Raises ``ksoftirqd`` of each CPU; gives what was set. Where such a thread is not to be seen, nothing is set."""
    raised: dict[str, int] = {}
    for cpu in cpus:
        name = f"ksoftirqd/{cpu}"
        found = await host.run(("pgrep", "-x", name), check=False)
        stat = await host.read_file(f"/proc/{found.stdout.strip()}/stat") if found.stdout.strip().isdigit() else None
        ticks = start_ticks_of_stat(stat) if stat is not None else None
        if stat is None or ticks is None:
            continue
        pid, old = int(found.stdout), nice_of_stat(stat)

        async def apply(pid: int = pid) -> None:
            await host.run(("renice", "-n", str(FIRST), "-p", str(pid)))

        if old != FIRST:
            try:
                await changes.make(host, RestoreNice(pid=pid, start_ticks=ticks, old=old, new=FIRST), apply)
            except HostError:
                continue  # not allowed here: the DUT competes as it does anyway, and its time is watched
        raised[name] = FIRST
    return raised
