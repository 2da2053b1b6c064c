"""What dead runs left on this machine: found by their records, and namespaces of ours that no record names."""

from __future__ import annotations

from pathlib import Path

from nicbench.hosts.base import Host
from nicbench.labs._veth_names import NAMESPACE_PREFIX
from nicbench.tuning.record import RUNTIME_FOLDER
from nicbench.tuning.restore import records, restore_stale
from nicbench.tuning.undo import DeleteNamespace


async def remove_leftovers(local: Host, runtime: Path = RUNTIME_FOLDER) -> list[str]:
    """Undoes what dead runs left, then names what looks like ours and belongs to nobody. Says so in sentences.

    A namespace without a record is only named: it may be somebody else's after all.
    """
    said = await restore_stale(runtime)
    said += [
        f"the network namespace {namespace} looks like one of ours and no run owns it; "
        f"remove it: ip netns delete {namespace}"
        for namespace in await unowned_namespaces(local, runtime)
    ]
    return said


async def unowned_namespaces(local: Host, runtime: Path = RUNTIME_FOLDER) -> list[str]:
    """Namespaces named as a lab names them, which no record of this machine mentions."""
    shown = await local.run(("ip", "netns", "list"), check=False)
    present = [line.split()[0] for line in shown.stdout.splitlines() if line.strip()]
    owned = {
        entry.undo.namespace
        for record in records(runtime)
        for entry in record.entries
        if isinstance(entry.undo, DeleteNamespace)
    }
    return [name for name in present if name.startswith(NAMESPACE_PREFIX) and name not in owned]
