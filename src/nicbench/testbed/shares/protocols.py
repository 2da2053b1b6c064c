"""Shares by NFS version 4 (`nfs`), by SMB (`smb`), and by SFTP in user space (`sftp`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, StringConstraints

from nicbench.core.base import Frozen
from nicbench.core.quantity import Bytes
from nicbench.hosts.base import Host
from nicbench.testbed.shares.base import Command, FileSystem, Program, Server, Share, ShareKind, in_brackets
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.processes import STOP_NFS_SERVER, StopNfsServer

# Shares by NFS version 4 (`nfs`): nfsd in the server's kernel, and the kernel's own client.
#
# The defaults are those of the published study of frames: 112 threads, version 3 off. The server has its state
# (``/var/lib/nfs``) and its exports in a mount namespace of its own, so that the machine's own exports are neither
# read nor written; where the machine already serves NFS in this network namespace it is refused. The shares are one
# tree, as NFS 4 needs it (exports(5), ``fsid=0``), in which each client sees only its own share.


_PORT: Final = 2049
_RDMA_PORT: Final = 20049
"""The port of NFS over RDMA (RFC 8267 section 6)."""
_STATE: Final = "/var/lib/nfs"
_TREE: Final = f"{_STATE}/tree"
_IDENTIFIER: Final = "/sys/fs/nfs/net/nfs_client/identifier"
"""The file with the identifier of the NFS client of a network namespace."""
_EXPORT: Final = "no_root_squash,insecure,no_subtree_check"
# $1: `sync` or `async`, $2: number of arguments for rpc.nfsd, which follow; then for each share its number, client and
# folder. nfsdcld records the clients: without it the server waits 90 s for earlier ones (nfsdcld(8)).
_SERVE: Final = f"""
set -e
PATH=$PATH:/usr/sbin:/sbin
when=$1 count=$2
shift 2
arguments=
while [ "$count" -gt 0 ]; do arguments="$arguments $1"; shift; count=$((count - 1)); done
mount -t tmpfs -o mode=755 nicbench {_STATE}
mkdir -p {_STATE}/v4recovery {_STATE}/nfsdcld {_STATE}/rpc_pipefs {_TREE}
touch {_STATE}/etab {_STATE}/rmtab {_STATE}/state
mount -t rpc_pipefs nicbench {_STATE}/rpc_pipefs
mount -t nfsd nicbench /proc/fs/nfsd
nfsdcld --foreground --storagedir={_STATE}/nfsdcld --pipefsdir={_STATE}/rpc_pipefs &
case $arguments in *--rdma*) modprobe rpcrdma ;; esac
while [ $# -gt 0 ]; do
    mkdir {_TREE}/$1
    mount --bind "$3" {_TREE}/$1
    exportfs -i -o ro,fsid=0,{_EXPORT} "$2:{_TREE}"
    exportfs -i -o "rw,$when,fsid=$1,{_EXPORT}" "$2:{_TREE}/$1"
    shift 3
done
sleep 1
rpc.nfsd $arguments
exec rpc.mountd --foreground --no-nfs-version 2 --no-nfs-version 3
"""
_REQUIRE_IDLE: Final = (
    "mount -t nfsd nicbench /proc/fs/nfsd && read -r threads </proc/fs/nfsd/threads && "
    '{ [ "$threads" = 0 ] || { echo "it serves NFS already, with $threads threads"; exit 1; }; }'
)
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_=.:/+-]+$", max_length=200)]


class NfsOptions(Frozen):
    """``share: {kind: nfs, threads: 112, read_bytes: 1 MiB, options: [noatime]}``.

    ``read_bytes`` and ``write_bytes`` are sizes of a request (rsize, wsize of nfs(5)); ``connections`` is the number
    from a client's host to an address of the server (nconnect); with ``sync`` the server answers when data are on disk.
    """

    version: Literal["4.0", "4.1", "4.2"] = "4.2"
    """The version of the protocol, in quotes."""
    threads: int = Field(default=112, ge=1, le=4096)
    """Threads of the server."""
    connections: int = Field(default=1, ge=1, le=16)
    """Connections from a client's host to an address of the server (`nconnect`)."""
    read_bytes: Bytes | None = Field(default=None, ge=4096, le=16 * 2**20)
    """Size of one read request (`rsize`); without it as client and server agree."""
    write_bytes: Bytes | None = Field(default=None, ge=4096, le=16 * 2**20)
    """Size of one write request (`wsize`); without it as client and server agree."""
    transport: Literal["tcp", "rdma"] = "tcp"
    """What carries the requests: TCP, or RDMA (RFC 8267), for which both ends have an RDMA device."""
    sync: bool = True
    """The server answers once the data are on its disk. `false` is `async` of exports(5)."""
    options: tuple[Word, ...] = ()
    """Further mount options of nfs(5): `[noatime]`."""


class Nfs(ShareKind):
    """One server for all shares."""

    kind = "nfs"
    Options = NfsOptions
    options: NfsOptions
    server_programs = (
        Program("rpc.nfsd", "nfs-kernel-server", ("/usr/sbin/rpc.nfsd",)),
        Program("rpc.mountd", "nfs-kernel-server", ("/usr/sbin/rpc.mountd",)),
        Program("exportfs", "nfs-kernel-server", ("/usr/sbin/exportfs",)),
        Program("nfsdcld", "nfs-kernel-server", ("/usr/sbin/nfsdcld", "/sbin/nfsdcld")),
    )
    client_programs = (Program("mount.nfs", "nfs-common", ("/sbin/mount.nfs", "/usr/sbin/mount.nfs")),)
    server_file_system = FileSystem("nfsd", "NFS server")
    client_file_system = FileSystem("nfs", "NFS client")
    statement = (
        "Shares are by NFS 4, version 3 off, without Kerberos; each is exported to the address of its client alone. "
        "The kernel's client gives all mounts that one host has of one address of the server the same connections."
    )
    survives_restart = True
    server_check = ("unshare", "--mount", "sh", "-c", _REQUIRE_IDLE)
    version_commands: ClassVar[Mapping[str, Command]] = {"server": ("/usr/sbin/rpc.mountd", "--version")}
    client_version_commands: ClassVar[Mapping[str, Command]] = {"client": ("/sbin/mount.nfs", "-V")}

    def tcp_port(self, share: int) -> int:
        return _PORT

    def servers(self, shares: Sequence[Share], found: Mapping[str, str]) -> tuple[Server, ...]:
        addresses = list(dict.fromkeys(share.server.facts.address for share in shares))
        hosts = [word for address in addresses for word in ("--host", address)]
        rdma = (f"--rdma={_RDMA_PORT}",) if self.options.transport == "rdma" else ()
        versions = ("--no-nfs-version", "3", "--nfs-version", self.options.version)
        arguments = (*hosts, *rdma, *versions, str(self.options.threads))
        exports = [word for share in shares for word in (str(share.number), share.client.facts.address, share.folder)]
        when = "sync" if self.options.sync else "async"
        command = ("unshare", "--mount", "sh", "-c", _SERVE, "nfs", when, str(len(arguments)), *arguments, *exports)
        return (
            Server(
                name="NFS server",
                command=command,
                tcp_port=_PORT,
                address=addresses[0],
                shown=f"rpc.nfsd {' '.join(arguments)}",
                undo=StopNfsServer(),
                stop=STOP_NFS_SERVER,
            ),
        )

    async def prepare_clients(self, changes: Changes, hosts: Sequence[Host]) -> None:
        """Gives clients with the same host name, as namespaces of a machine have it, identifiers of their own.

        Otherwise they are one client to the server, which takes each that connects for the other one after a reboot,
        and drops the other's state (Documentation/filesystems/nfs/client-identifier.rst of the kernel).
        """
        names = [(await host.run(("uname", "-n"), check=False)).stdout.strip() for host in hosts]
        for number, (host, name) in enumerate(zip(hosts, names, strict=True), 1):
            if names.count(name) > 1 and await host.read_file(_IDENTIFIER) is not None:
                await changes.set_file(host, _IDENTIFIER, f"nicbench-client-{number}")

    def mount_command(self, share: Share) -> Command:
        options = [f"vers={self.options.version}", f"proto={self.options.transport}"]
        if self.options.transport == "rdma":
            options.append(f"port={_RDMA_PORT}")
        if self.options.connections > 1:
            options.append(f"nconnect={self.options.connections}")
        options += _sizes(self.options) + list(self.options.options)
        source = f"{in_brackets(share.server.facts.address)}:/{share.number}"
        return ("mount", "-t", "nfs", "-o", ",".join(options), source, share.directory)


# Shares by SMB 3 (`smb`): Samba's server in user space, and the kernel's client.
#
# The server has its state (``/var/lib/samba``) and its configuration in a mount namespace of its own, so that the
# machine's own Samba is neither read nor written. Clients are guests without a password, whose files are root's.


_SMB_STATE: Final = "/var/lib/samba"
_SMB_PORT: Final = 445
# $1: addresses of the server; then for each share its number, client and folder.
_SMB_SERVE: Final = f"""
set -e
PATH=$PATH:/usr/sbin:/sbin
mount -t tmpfs -o mode=755 nicbench {_SMB_STATE}
cd {_SMB_STATE}
mkdir private run locks ncalrpc
{{
    echo "[global]"
    echo "interfaces = $1"
    for each in "bind interfaces only = yes" "smb ports = {_SMB_PORT}" "disable netbios = yes" "load printers = no" \\
        "server min protocol = SMB2" "map to guest = bad user" "log file = /dev/stderr" "dns proxy = no" \\
        "private dir = $PWD/private" "pid directory = $PWD/run" "lock directory = $PWD/locks" \\
        "state directory = $PWD" "cache directory = $PWD" "ncalrpc dir = $PWD/ncalrpc"; do echo "$each"; done
    shift
    while [ $# -gt 0 ]; do
        printf '[%s]\\npath = %s\\nhosts allow = %s\\n' "$1" "$3" "$2"
        printf 'guest ok = yes\\nread only = no\\nforce user = root\\n'
        shift 3
    done
}} >smb.conf
exec smbd --foreground --no-process-group --debug-stdout --configfile=smb.conf
"""


class SmbOptions(Frozen):
    """``share: {kind: smb, version: "3.1.1", connections: 4, options: [cache=none]}``."""

    version: Literal["2.1", "3.0", "3.0.2", "3.1.1"] = "3.1.1"
    """The version of the protocol, in quotes."""
    connections: int = Field(default=1, ge=1, le=16)
    """Connections of each mount (multichannel)."""
    read_bytes: Bytes | None = Field(default=None, ge=4096, le=16 * 2**20)
    """Size of one read request (`rsize`); without it as client and server agree."""
    write_bytes: Bytes | None = Field(default=None, ge=4096, le=16 * 2**20)
    """Size of one write request (`wsize`); without it as client and server agree."""
    options: tuple[Word, ...] = ()
    """Further mount options of mount.cifs(8): `[cache=none]`."""


class Smb(ShareKind):
    """One server for all shares, each of which takes connections of its client alone."""

    kind = "smb"
    Options = SmbOptions
    options: SmbOptions
    server_programs = (Program("smbd", "samba", ("/usr/sbin/smbd",)),)
    client_programs = (Program("mount.cifs", "cifs-utils", ("/sbin/mount.cifs", "/usr/sbin/mount.cifs")),)
    client_file_system = FileSystem("cifs", "SMB client")
    statement = (
        "Shares are by SMB, without a password, neither signed nor encrypted. Each share takes connections from the "
        "address of its client alone."
    )
    version_commands: ClassVar[Mapping[str, Command]] = {"server": ("/usr/sbin/smbd", "--version")}
    client_version_commands: ClassVar[Mapping[str, Command]] = {"client": ("/sbin/mount.cifs", "-V")}

    def tcp_port(self, share: int) -> int:
        return _SMB_PORT

    def servers(self, shares: Sequence[Share], found: Mapping[str, str]) -> tuple[Server, ...]:
        addresses = list(dict.fromkeys(share.server.facts.address for share in shares))
        exports = [word for share in shares for word in (str(share.number), share.client.facts.address, share.folder)]
        return (
            Server(
                name="SMB server",
                command=("unshare", "--mount", "sh", "-c", _SMB_SERVE, "smb", " ".join(addresses), *exports),
                tcp_port=_SMB_PORT,
                address=addresses[0],
                shown="smbd --foreground --no-process-group --debug-stdout --configfile=smb.conf",
            ),
        )

    def mount_command(self, share: Share) -> Command:
        address = share.server.facts.address
        options = ["guest", f"vers={self.options.version}", f"ip={address}"]
        if self.options.connections > 1:
            options += ["multichannel", f"max_channels={self.options.connections}"]
        options += _sizes(self.options) + list(self.options.options)
        name = f"{address.replace(':', '-')}.ipv6-literal.net" if ":" in address else address
        return ("mount", "-t", "cifs", "-o", ",".join(options), f"//{name}/{share.number}", share.directory)


def _sizes(options: NfsOptions | SmbOptions) -> list[str]:
    """Returns the mount options for the sizes of requests."""
    sizes = {"rsize": options.read_bytes, "wsize": options.write_bytes}
    return [f"{name}={size}" for name, size in sizes.items() if size is not None]


# Shares by SFTP in user space (`sftp`): OpenSSH's sftp-server on a plain TCP connection, and sshfs on the client.
#
# It needs only FUSE in the client's kernel. There is no ssh in between, so that nothing is encrypted and no key is
# needed (sshfs(1), ``directport``): each share has its own TCP port, which socat opens only to its client's address,
# and hands the connection over to an sftp-server (socat(1), ``nofork``).


_SFTP_SERVER: Final = Program(
    "sftp-server",
    "openssh-sftp-server",
    ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server"),
)
_OPENSSH: Final = (
    "dpkg-query -W -f '${Package} ${Version}\\n' openssh-sftp-server 2>/dev/null || rpm -q openssh-server 2>/dev/null"
    " || ssh -V 2>&1"
)


class SftpOptions(Frozen):
    """``share: {kind: sftp, options: [direct_io]}``.

    Share i has the TCP port ``first_port`` + i - 1. ``connections`` is the number for each mount; ``options`` are
    further options of sshfs.
    """

    first_port: int = Field(default=3201, ge=1, le=65_000)
    """TCP port of share 1; each further share has the next."""
    connections: int = Field(default=1, ge=1, le=64)
    """Connections of each mount (`max_conns` of sshfs)."""
    options: tuple[Word, ...] = ()
    """Further options of sshfs: `[direct_io]`."""


class Sftp(ShareKind):
    """Each share has a TCP port, each connection an sftp-server."""

    kind = "sftp"
    Options = SftpOptions
    options: SftpOptions
    server_programs = (Program("socat", "socat"), _SFTP_SERVER)
    client_programs = (Program("sshfs", "sshfs"),)
    client_file_system = FileSystem("fuse", "file systems in user space (FUSE)")
    statement = (
        "Shares are by SFTP on bare TCP connections, without ssh: nothing is encrypted and no key is asked for. Each "
        "TCP port takes connections from the address of its client alone."
    )
    version_commands: ClassVar[Mapping[str, Command]] = {
        "sftp-server": ("sh", "-c", _OPENSSH),
        "socat": ("sh", "-c", "socat -V | sed -n 's/^\\(socat version [^ ]*\\).*/\\1/p'"),
    }
    client_version_commands: ClassVar[Mapping[str, Command]] = {
        "sshfs": ("sh", "-c", "sshfs --version | grep -m 1 SSHFS")
    }

    def tcp_port(self, share: int) -> int:
        return self.options.first_port + share - 1

    def servers(self, shares: Sequence[Share], found: Mapping[str, str]) -> tuple[Server, ...]:
        return tuple(
            Server(
                name=f"sftp-server of share {share.number}",
                command=self._server(share, found),
                tcp_port=self.tcp_port(share.number),
                address=share.server.facts.address,
            )
            for share in shares
        )

    def _server(self, share: Share, found: Mapping[str, str]) -> Command:
        own, client = share.server.facts.address, share.client.facts.address
        six = ":" in own
        listen = ",".join(
            (
                f"TCP{6 if six else 4}-LISTEN:{self.tcp_port(share.number)}",
                f"bind={in_brackets(own)}",
                f"range={in_brackets(client)}/{128 if six else 32}",
                "reuseaddr",
                "nodelay",
                "fork",
            )
        )
        return (found["socat"], listen, f"EXEC:{found['sftp-server']} -e,nofork")

    def mount_command(self, share: Share) -> Command:
        options = [f"directport={self.tcp_port(share.number)}"]
        if self.options.connections > 1:
            options.append(f"max_conns={self.options.connections}")
        options += self.options.options
        source = f"{in_brackets(share.server.facts.address)}:{share.folder}"
        return ("sshfs", "-o", ",".join(options), source, share.directory)
