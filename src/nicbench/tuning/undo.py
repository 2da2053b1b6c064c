"""What can be undone: plain data, so that another process can do it after a crash."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from nicbench.model.base import Frozen
from nicbench.model.tuning import Values


class RestoreFile(Frozen):
    """Write ``old`` back to ``path``, unless it no longer holds ``new`` (somebody changed it since)."""

    kind: Literal["restore_file"] = "restore_file"
    path: str
    old: str
    new: str


class DeleteNamespace(Frozen):
    """Kill what still runs in the namespace and delete it; its interfaces go with it."""

    kind: Literal["delete_namespace"] = "delete_namespace"
    namespace: str


class DeleteLink(Frozen):
    """Delete an interface that nicbench made."""

    kind: Literal["delete_link"] = "delete_link"
    device: str


class DetachXdp(Frozen):
    """Detach the XDP program that nicbench (or its engine) attached; ``program_id`` None: whichever came since."""

    kind: Literal["detach_xdp"] = "detach_xdp"
    device: str
    program_id: int | None = None


class KillProcess(Frozen):
    """Kill a process that nicbench started, recognised by pid and start time."""

    kind: Literal["kill_process"] = "kill_process"
    pid: int
    start_ticks: int


class RemovePath(Frozen):
    """Remove a file or folder that nicbench made."""

    kind: Literal["remove_path"] = "remove_path"
    path: str


class EndServer(Frozen):
    """End a server that nicbench put into the background; ``known_by`` is the file with its pid and start time."""

    kind: Literal["end_server"] = "end_server"
    known_by: str


class StopNfsServer(Frozen):
    """Stop the kernel's NFS server of a network namespace; there was none before."""

    kind: Literal["stop_nfs_server"] = "stop_nfs_server"


class Unmount(Frozen):
    """Unmount what nicbench mounted at ``path``, lazily where its server is gone or somebody is in it."""

    kind: Literal["unmount"] = "unmount"
    path: str


class DeleteIpObject(Frozen):
    """Delete an address, route or neighbour that nicbench added: ``ip`` with these arguments."""

    kind: Literal["delete_ip_object"] = "delete_ip_object"
    arguments: tuple[str, ...]


class RestoreNice(Frozen):
    """Give a process its old priority back, unless somebody changed it since; recognised by pid and start time."""

    kind: Literal["restore_nice"] = "restore_nice"
    pid: int
    start_ticks: int
    old: int
    new: int


class DeleteNftTable(Frozen):
    """Delete a table of packet filter rules that nicbench made; ``family`` is nft's (``ip``, ``ip6``)."""

    kind: Literal["delete_nft_table"] = "delete_nft_table"
    family: str
    table: str


class EndPromiscuity(Frozen):
    """Take the promiscuous mode from an interface that did not have it: a killed engine leaves it there."""

    kind: Literal["end_promiscuity"] = "end_promiscuity"
    device: str


class RestoreSetting(Frozen):
    """Give a setting of a tuning item its values back, by the item's own reading and writing.

    Of ``before`` only what still reads as it was ``asked`` for; the rest was changed by somebody since.
    """

    kind: Literal["restore_setting"] = "restore_setting"
    item: str
    options: dict[str, Any]
    device: str | None
    before: Values
    asked: Values


Undo = Annotated[
    DeleteIpObject
    | RestoreFile
    | RestoreNice
    | RestoreSetting
    | EndPromiscuity
    | EndServer
    | DeleteNamespace
    | DeleteLink
    | DeleteNftTable
    | DetachXdp
    | KillProcess
    | RemovePath
    | StopNfsServer
    | Unmount,
    Field(discriminator="kind"),
]
