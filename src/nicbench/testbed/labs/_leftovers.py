"""Finds what dead runs left on this machine: by their records, and namespaces of labs that no record names."""

from __future__ import annotations

from pathlib import Path

from nicbench.hosts.base import Host
from nicbench.testbed.labs._veth_names import NAMESPACE_PREFIX
from nicbench.tuning.record import RUNTIME_FOLDER
from nicbench.tuning.restore import read_records, restore_stale
from nicbench.tuning.undo.delete_namespace import DeleteNamespace


async def remove_leftovers(local: Host, runtime: Path = RUNTIME_FOLDER) -> list[str]:
    """Undoes what dead runs left and gives sentences about it, and about namespaces that no run owns.

    A namespace without a record is only reported, because it may be somebody else's.
    """
    sentences = await restore_stale(runtime)
    sentences += [
        f"the network namespace {namespace} looks like one of ours and no run owns it; "
        f"remove it: ip netns delete {namespace}"
        for namespace in await find_unowned_namespaces(local, runtime)
    ]
    return sentences


async def find_unowned_namespaces(local: Host, runtime: Path = RUNTIME_FOLDER) -> list[str]:
    """Namespaces with a lab's prefix that no record on this machine mentions."""
    shown = await local.run(("ip", "netns", "list"), check=False)
    present = [line.split()[0] for line in shown.stdout.splitlines() if line.strip()]
    owned = {
        entry.undo.namespace
        for record in read_records(runtime)
        for entry in record.entries
        if isinstance(entry.undo, DeleteNamespace)
    }
    return [name for name in present if name.startswith(NAMESPACE_PREFIX) and name not in owned]
