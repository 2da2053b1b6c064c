"""The connections of a mount: kernel NFS and SMB, and file systems in user space (FUSE), by what the client tells.

A job that reads or writes files has no server process of ours, and what crosses the network is the mount's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from nicbench.hosts._sections import sections
from nicbench.rounds.connections import Socket, parse_sockets, plain

_PORTS: Final = {"nfs": 2049, "nfs4": 2049, "cifs": 445, "smb3": 445}
_XPRT: Final = "xprt:"
# $1 is the directory. A FUSE mount's process has the mount point among its arguments, whole.
SCRIPT: Final = r"""
section() { echo; echo "=== nicbench section $1"; }
section mount; findmnt -J -T "$1" -o TARGET,SOURCE,FSTYPE,OPTIONS
target=$(findmnt -n -o TARGET -T "$1")
section pids
case $(findmnt -n -o FSTYPE -T "$1") in fuse*)
  grep -lzxF -- "$target" /proc/[0-9]*/cmdline 2>/dev/null | cut -d / -f 3;; esac
section mountstats; cat /proc/self/mountstats 2>/dev/null
section tcp; ss -tinpH
"""


@dataclass(frozen=True, slots=True)
class Mount:
    """Of a directory: where it is mounted, by which file system, and its own TCP connections as the client has them.

    ``shared``: connections of other mounts of this client may be among them.
    """

    target: str
    kind: str
    connections: tuple[Socket, ...]
    shared: bool = False


def mount_of(text: str) -> Mount | None:
    """What ``SCRIPT`` printed; None where the directory lies on no network file system that is known here."""
    parts = sections(text)
    mounted = _mounted(parts.get("mount", ""))
    if mounted is None:
        return None
    target, kind = str(mounted.get("target")), str(mounted.get("fstype"))
    sockets = parse_sockets(parts.get("tcp", ""))
    if kind.startswith("fuse"):
        pids = {int(line) for line in parts.get("pids", "").split() if line.isdecimal()}
        return Mount(target, kind, tuple(socket for socket in sockets if pids & socket.pids))
    if kind not in _PORTS:
        return None
    options = dict(option.partition("=")[::2] for option in str(mounted.get("options")).split(","))
    try:
        server, port = plain(options.get("addr", "")), int(options.get("port", _PORTS[kind]))
    except ValueError:
        return None
    there = [one for one in sockets if (one.peer, one.peer_port) == (server, port)]
    own = own_ports(parts.get("mountstats", ""), target)
    if own:
        return Mount(target, kind, tuple(one for one in there if one.local_port in own))
    return Mount(target, kind, tuple(there), shared=len(there) > 1)


def own_ports(mountstats: str, target: str) -> frozenset[int]:
    """The client's ports of an NFS mount's connections, by ``/proc/self/mountstats``; 0 there is unknown."""
    found: set[int] = set()
    here = False
    for line in mountstats.splitlines():
        words = line.split()
        if words[:1] == ["device"]:
            here = len(words) > 4 and words[4] == target
        elif here and words[:2] == [_XPRT, "tcp"] and len(words) > 2:
            found.add(int(words[2]))
    return frozenset(found - {0})


def _mounted(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)["filesystems"]
    except (ValueError, KeyError, TypeError):
        return None
    return found[0] if found else None
