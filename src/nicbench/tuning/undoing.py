"""Undoing one change: idempotent, and never over what somebody else changed since."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from nicbench.errors import HostError, NicbenchError
from nicbench.hosts import close_connections
from nicbench.hosts.base import Host
from nicbench.hosts.netns import NAMESPACE_FOLDER, NetnsHost
from nicbench.model.tuning import Values
from nicbench.registry import find
from nicbench.tuning import bpf, detached, drivers, function_macs, links, promiscuity, released
from nicbench.tuning.items.base import CannotSetError, Item, Place
from nicbench.tuning.owner import nice_of_stat, start_ticks_of_stat
from nicbench.tuning.record import Entry, Record
from nicbench.tuning.undo import (
    DeleteIpObject,
    DeleteLink,
    DeleteNamespace,
    DeleteNftTable,
    DeleteRdmaLink,
    DetachXdp,
    EndPromiscuity,
    EndServer,
    KillProcess,
    ReleasePort,
    RemovePath,
    RestoreDriver,
    RestoreFile,
    RestoreFunctionMac,
    RestoreNice,
    RestoreSetting,
    ReturnLink,
    SetLinkDown,
    SetLinkUp,
    StopNfsServer,
    Undo,
    Unmount,
)
from nicbench.tuning.values import same_value, shown

_PROCESS_END_TRIES = 100
_PROCESS_END_STEP_S = 0.05
_REMOVAL_S = 1800.0
"""Thousands of large files over a network take their time."""


async def undo_entries(
    record: Record, make_host: Callable[[dict[str, Any]], Host], save: Callable[[Record], None]
) -> tuple[Record, list[str]]:
    """Undoes what is left of ``record`` in reverse order, saving after each.

    Gives the record back, with what could not be undone.

    A change that fails, in whatever way, stays in the record and the rest goes on; one that somebody else overwrote is
    settled. A path that could not be removed may have been on a mount whose server is gone, and gone itself when that
    was unmounted; what could not be undone in a virtual machine went with it: they are looked for once more.
    """
    told: dict[int, str] = {}
    record = await _undo_each(record, reversed(range(len(record.entries))), told, make_host, save)
    left = [index for index in told if not record.entries[index].done]
    unmounted = any(isinstance(entry.undo, Unmount) for entry in record.entries)
    again = [index for index in left if _may_be_settled(record.entries[index], make_host, unmounted=unmounted)]
    if again:
        record = await _undo_each(record, again, told, make_host, save)
    return record, list(told.values())


def _may_be_settled(entry: Entry, make_host: Callable[[dict[str, Any]], Host], *, unmounted: bool) -> bool:
    return (unmounted and isinstance(entry.undo, RemovePath)) or make_host(entry.host).machine.made_here


async def _undo_each(
    record: Record,
    indices: Iterable[int],
    told: dict[int, str],
    make_host: Callable[[dict[str, Any]], Host],
    save: Callable[[Record], None],
) -> Record:
    """Those that are not done yet; ``told`` gets a sentence of each that was left alone or failed."""
    for index in indices:
        entry = record.entries[index]
        if entry.done:
            continue
        told.pop(index, None)
        try:
            host = make_host(entry.host)
            note = await undo_one(host, entry.undo)
            after = None if await host.machine.is_gone() else await _after(host, entry.undo)
        except Exception as error:  # also what nobody thought of: the machine is put back as far as it can be
            reason = error.message if isinstance(error, NicbenchError) else f"{type(error).__name__}: {error}"
            told[index] = f"could not undo ({_described(entry)}): {reason}"
            continue
        if note is not None:
            told[index] = note
        finished = entry.model_copy(update={"done": True, "note": note, "after": after})
        record = record.model_copy(
            update={"entries": (*record.entries[:index], finished, *record.entries[index + 1 :])}
        )
        save(record)
    return record


async def undo_one(host: Host, undo: Undo) -> str | None:
    """Undoes; gives a sentence where something was left alone on purpose. HostError where it failed."""
    if await host.machine.is_gone():
        return None
    network = host.network
    if isinstance(network, NetnsHost) and not await network.exists():
        return None  # everything in it went with it
    match undo:
        case RestoreFile():
            return await _restore_file(host, undo)
        case RestoreNice():
            return await _restore_nice(host, undo)
        case EndPromiscuity():
            if await promiscuity.is_promiscuous(host, undo.device):
                await host.run(("ip", "link", "set", "dev", undo.device, "promisc", "off"))
            return None
        case RestoreSetting():
            return await _restore_setting(host, undo)
        case DeleteNamespace():
            # What came into a lab by ssh lets go first, and tidies up: the namespace takes its processes along.
            await close_connections(through=undo.namespace)
            await _delete_namespace(host, undo)
            return None
        case RestoreDriver():
            return await drivers.restore_driver(host, undo)
        case RestoreFunctionMac():
            return await function_macs.restore_function_mac(host, undo)
        case ReturnLink():
            return await links.return_link(host, undo)
        case SetLinkDown():
            if await _link_exists(host, undo.device):
                await host.run(("ip", "link", "set", "dev", undo.device, "down"))
            return None
        case SetLinkUp():
            if await _link_exists(host, undo.device):
                await host.run(("ip", "link", "set", "dev", undo.device, "up"))
            return None
        case DeleteLink():
            if await _link_exists(host, undo.device):
                await host.run(("ip", "link", "delete", "dev", undo.device))
            return None
        case ReleasePort():
            return await released.release_port(host, undo)
        case DeleteIpObject():
            await _delete_ip_object(host, undo.arguments)
            return None
        case DeleteNftTable():
            await _delete_nft_table(host, undo)
            return None
        case DeleteRdmaLink():
            await _delete_rdma_link(host, undo.device)
            return None
        case DetachXdp():
            return await _detach_xdp(host, undo)
        case KillProcess():
            if await _is_running(host, undo.pid, undo.start_ticks):
                await _kill(host, undo.pid, undo.start_ticks)
            return None
        case EndServer():
            await detached.end_server(host, undo.known_by)
            return None
        case StopNfsServer():
            await host.run(detached.STOP_NFS_SERVER)
            return None
        case Unmount():
            await detached.unmount(host, undo.path)
            return None
        case RemovePath():
            return await _remove_path(host, undo.path)


async def _restore_file(host: Host, undo: RestoreFile) -> str | None:
    current = await host.read_file(undo.path)
    if current is None or same_value(undo.path, current, undo.old):
        return None
    if not same_value(undo.path, current, undo.new):
        return (
            f"{host.name}: {undo.path} was left at {current.strip()!r}: somebody changed it since we set {undo.new!r}; "
            f"before the run it was {undo.old!r}"
        )
    await host.write_file(undo.path, undo.old)
    read_back = await host.read_file(undo.path)
    if read_back is None or not same_value(undo.path, read_back, undo.old):
        raise HostError(f"{undo.path} should be {undo.old!r} again and is {read_back!r}", place=host.name)
    return None


async def _restore_nice(host: Host, undo: RestoreNice) -> str | None:
    stat = await host.read_file(f"/proc/{undo.pid}/stat")
    if stat is None or start_ticks_of_stat(stat) != undo.start_ticks or nice_of_stat(stat) == undo.old:
        return None
    if nice_of_stat(stat) != undo.new:
        return (
            f"{host.name}: process {undo.pid} was left at nice {nice_of_stat(stat)}: somebody changed it since we set "
            f"{undo.new}; before the run it was {undo.old}"
        )
    await host.run(("renice", "-n", str(undo.old), "-p", str(undo.pid)))
    return None


async def _restore_setting(host: Host, undo: RestoreSetting) -> str | None:
    """Key by key, in the order in which they were set: what somebody changed since is left.

    What cannot be read any more has gone with its place.
    """
    item, place = item_of(undo), Place(host, undo.device)
    try:
        now = await item.now(place)
    except CannotSetError:
        return None
    old = {key: old for key, old in undo.before.items() if key in now and not item.same(key, now[key], old)}
    ours = {key: value for key, value in old.items() if item.same(key, now[key], undo.asked[key])}
    if ours:
        await item.write(place, ours)
        after = await item.now(place)
        if wrong := item.differing(ours, after):
            got = {key: after.get(key) for key in wrong}
            raise HostError(f"{undo.item} should be {shown(wrong)} again and is {shown(got)}", place=str(place))
    if left := {key: now[key] for key in old if key not in ours}:
        asked, before = ({key: values[key] for key in left} for values in (undo.asked, undo.before))
        return (
            f"{place}: {undo.item} was left at {shown(left)}: somebody changed it since we set {shown(asked)}; "
            f"before the run it was {shown(before)}"
        )
    return None


async def _after(host: Host, undo: Undo) -> Values | None:
    """What a setting reads once it is undone, for tuning.json; None where its place is gone, or it is no setting."""
    if not isinstance(undo, RestoreSetting):
        return None
    try:
        now = await item_of(undo).now(Place(host, undo.device))
    except (CannotSetError, NicbenchError):
        return None
    return {key: now.get(key) for key in undo.asked}


def item_of(undo: RestoreSetting) -> Item:
    """The item made again; HostError where this nicbench does not know it."""
    kinds = find("nicbench.tuning.items", Item)
    if undo.item not in kinds:
        raise HostError(f"this nicbench does not know the tuning item {undo.item!r}: undo it with the one that ran")
    try:
        return kinds[undo.item](kinds[undo.item].Options.model_validate(undo.options))
    except ValidationError as error:
        raise HostError(f"the options of {undo.item} are not understood: {error.errors()[0]['msg']}") from error


async def _delete_namespace(host: Host, undo: DeleteNamespace) -> None:
    namespace = undo.namespace
    path = f"{NAMESPACE_FOLDER}/{namespace}"
    if (await host.run(("test", "-e", path), check=False)).status != 0:
        return
    if held := await links.holds(host, namespace, undo.holding):
        raise HostError(
            f"namespace {namespace} still holds {', '.join(held)}, which did not come back", place=host.name
        )
    # A process inside would keep the namespace alive without a name.
    inside = await host.run(("ip", "netns", "pids", namespace), check=False)
    for pid in map(int, inside.stdout.split()):
        stat = await host.read_file(f"/proc/{pid}/stat")
        ticks = start_ticks_of_stat(stat) if stat else None
        if ticks is not None:
            await _kill(host, pid, ticks)
    deleted = await host.run(("ip", "netns", "delete", namespace), check=False)
    if (await host.run(("test", "-e", path), check=False)).status == 0:
        raise HostError(f"namespace {namespace} cannot be deleted: {deleted.stderr.strip()}", place=host.name)


async def _link_exists(host: Host, device: str) -> bool:
    shown = await host.run(("ip", "-j", "link", "show", "dev", device), check=False)
    return shown.status == 0 and bool(json.loads(shown.stdout or "[]"))


async def _delete_ip_object(host: Host, arguments: tuple[str, ...]) -> None:
    done = await host.run(("ip", *arguments), check=False)
    # The kernel's words for an address, a route, a neighbour, and their interface that is already gone.
    gone = ("Cannot assign requested address", "No such process", "No such file or directory", "Cannot find device")
    if done.status != 0 and not any(words in done.stderr for words in gone):
        raise HostError(f"ip {' '.join(arguments)}: {done.stderr.strip()}", place=host.name)


async def _delete_nft_table(host: Host, undo: DeleteNftTable) -> None:
    """A table that is not there is no trouble: the change may have failed, or somebody deleted it."""
    done = await host.run(("nft", "delete", "table", undo.family, undo.table), check=False)
    still = await host.run(("nft", "list", "table", undo.family, undo.table), check=False)
    if still.status == 0:
        raise HostError(
            f"the table {undo.family} {undo.table} cannot be deleted: {done.stderr.strip()}", place=host.name
        )


async def _delete_rdma_link(host: Host, device: str) -> None:
    """One that is not there any more went with its interface."""
    done = await host.run(("rdma", "link", "delete", device), check=False)
    still = await host.run(("test", "-e", f"/sys/class/infiniband/{device}"), check=False)
    if still.status == 0:
        raise HostError(f"the RDMA device {device} cannot be deleted: {done.stderr.strip()}", place=host.name)


async def _detach_xdp(host: Host, undo: DetachXdp) -> str | None:
    if not await _link_exists(host, undo.device):
        return None
    present = await bpf.attached_program(host, undo.device)
    if present is not None and undo.program_id not in (None, present):
        return f"{host.name}: XDP program {present} on {undo.device} is not ours ({undo.program_id}): left alone"
    await bpf.detach(host, undo.device, undo.program_id)
    return None


async def _is_running(host: Host, pid: int, ticks: int) -> bool:
    stat = await host.read_file(f"/proc/{pid}/stat")
    return stat is not None and start_ticks_of_stat(stat) == ticks


async def _kill(host: Host, pid: int, ticks: int) -> None:
    await host.run(("sh", "-c", 'kill -KILL "$1"', "kill", str(pid)), check=False)
    for _ in range(_PROCESS_END_TRIES):
        if not await _is_running(host, pid, ticks):
            return
        await asyncio.sleep(_PROCESS_END_STEP_S)
    raise HostError(f"process {pid} does not die", place=host.name)


async def _remove_path(host: Host, path: str) -> str | None:
    if not path.startswith("/") or len(_parts(path)) < 2 or ".." in _parts(path):
        return f"{host.name}: {path} was left alone: not a path that nicbench makes"
    await host.run(("rm", "-rf", "--one-file-system", "--", path), timeout_s=_REMOVAL_S)
    return None


def _parts(path: str) -> Sequence[str]:
    return [part for part in path.split("/") if part]


def _described(entry: Entry) -> str:
    return described(entry.undo)


def described(undo: Undo) -> str:
    """An undo in a few words, for a message."""
    fields = undo.model_dump(exclude={"kind"}, exclude_none=True)
    return f"{undo.kind} {' '.join(f'{name}={value}' for name, value in fields.items())}"
