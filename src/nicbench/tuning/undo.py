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
    """Kill what still runs in the namespace and delete it; its interfaces go with it.

    Not while it still holds one of ``holding``: those were moved there, and come back before.
    """

    kind: Literal["delete_namespace"] = "delete_namespace"
    namespace: str
    holding: tuple[str, ...] = ()


class ReturnLink(Frozen):
    """Move an interface back out of ``namespace``, bring it up where it was, and give it the addresses it had.

    Each address is in the words of ``ip address add``.
    """

    kind: Literal["return_link"] = "return_link"
    device: str
    namespace: str
    up: bool
    addresses: tuple[str, ...] = ()


class SetLinkDown(Frozen):
    """Take an interface down that was down before."""

    kind: Literal["set_link_down"] = "set_link_down"
    device: str


class SetLinkUp(Frozen):
    """Bring an interface up that nicbench took down."""

    kind: Literal["set_link_up"] = "set_link_up"
    device: str


class DeleteLink(Frozen):
    """Delete an interface that nicbench made."""

    kind: Literal["delete_link"] = "delete_link"
    device: str


class ReleasePort(Frozen):
    """Take an interface out of a bond that nicbench made, and give it its state, MAC address and MTU back.

    One that is in another group by now, or in none and changed since, was taken by somebody: it is left alone.
    """

    kind: Literal["release_port"] = "release_port"
    device: str
    bond: str
    is_up: bool
    mac: str
    mtu_bytes: int


class DeleteRdmaLink(Frozen):
    """Delete a soft RDMA device that nicbench made."""

    kind: Literal["delete_rdma_link"] = "delete_rdma_link"
    device: str


class RestoreDriver(Frozen):
    """Give a PCI device back to the ``driver`` that it had ("": none), unless another than ``asked`` has it by now.

    Its interface is then called ``device`` again, and is up if it was.
    """

    kind: Literal["restore_driver"] = "restore_driver"
    address: str
    driver: str
    override: str
    asked: str
    device: str | None = None
    up: bool = False


class RestoreFunctionMac(Frozen):
    """Give a virtual function the address that it had, by its adapter's port, unless it is not ``asked`` any more."""

    kind: Literal["restore_function_mac"] = "restore_function_mac"
    device: str
    number: int
    mac: str
    asked: str


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
    | DeleteRdmaLink
    | DetachXdp
    | KillProcess
    | ReleasePort
    | RemovePath
    | RestoreDriver
    | RestoreFunctionMac
    | ReturnLink
    | SetLinkDown
    | SetLinkUp
    | StopNfsServer
    | Unmount,
    Field(discriminator="kind"),
]
