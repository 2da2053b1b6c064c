"""Shares by NFS, SMB and SFTP: what is run, to the last word, and where it cannot be."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.commands import run_captured
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.core.round import EndpointFacts
from nicbench.hosts.base import Completed
from nicbench.testbed.duts.file_server import FileServer, FileServerOptions
from nicbench.testbed.labs.base import Endpoint, EndpointTestbed
from nicbench.testbed.shares.base import Share
from nicbench.testbed.shares.protocols import Nfs, Sftp, Smb
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.processes import StopNfsServer

KERNEL = {"/proc/filesystems": "nodev\tnfsd\nnodev\tnfs\nnodev\tnfs4\n"}


def end(name: str, address: str, host: FakeHost | None = None, port: str | None = None) -> Endpoint:
    facts = EndpointFacts(name=name, host=name, machine=name, address=address, port=port)
    return Endpoint(host or FakeHost(name, KERNEL), facts)


def share(number: int, client: str, server: str = "198.18.0.1") -> Share:
    return Share(number, f"/stor/d{number}/ours", end("s0", server), end("c", client), f"/run/mounts/{number}")


SHARES = (share(1, "198.18.0.10"), share(2, "198.18.1.10", "198.18.1.1"))


def test_the_server_is_that_of_the_published_study() -> None:
    (server,) = Nfs({}).servers(SHARES, {})
    assert server.words == ("rpc.nfsd --host 198.18.0.1 --host 198.18.1.1 --no-nfs-version 3 --nfs-version 4.2 112")
    assert (server.tcp_port, server.address, server.undo) == (2049, "198.18.0.1", StopNfsServer())


def test_over_rdma_the_server_listens_there_too() -> None:
    (server,) = Nfs({"transport": "rdma"}).servers(SHARES[:1], {})
    assert server.words == "rpc.nfsd --host 198.18.0.1 --rdma=20049 --no-nfs-version 3 --nfs-version 4.2 112"
    assert "*--rdma*) modprobe rpcrdma" in server.command[4]


def test_each_share_is_exported_to_its_client_alone() -> None:
    (server,) = Nfs({"sync": False}).servers(SHARES, {})
    assert server.command[:4] == ("unshare", "--mount", "sh", "-c")
    assert server.command[5:8] == ("nfs", "async", "9")
    assert server.command[-6:] == (*("1", "198.18.0.10", "/stor/d1/ours"), *("2", "198.18.1.10", "/stor/d2/ours"))
    exports = re.findall(r"exportfs (.*)", server.command[4])
    assert exports == [
        '-i -o ro,fsid=0,no_root_squash,insecure,no_subtree_check "$2:/var/lib/nfs/tree"',
        '-i -o "rw,$when,fsid=$1,no_root_squash,insecure,no_subtree_check" "$2:/var/lib/nfs/tree/$1"',
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "vers=4.2,proto=tcp"),
        (
            {
                "version": "4.1",
                "connections": 4,
                "read_bytes": "1 MiB",
                "write_bytes": "64 KiB",
                "options": ["noatime"],
            },
            "vers=4.1,proto=tcp,nconnect=4,rsize=1048576,wsize=65536,noatime",
        ),
        ({"transport": "rdma"}, "vers=4.2,proto=rdma,port=20049"),
    ],
)
def test_the_client_mounts_its_part_of_the_tree(options: dict[str, object], words: str) -> None:
    assert Nfs(options).mount_command(SHARES[1]) == (
        *("mount", "-t", "nfs", "-o", words),
        *("198.18.1.1:/2", "/run/mounts/2"),
    )


def test_an_address_of_ipv6_is_told_from_the_path() -> None:
    assert Nfs({}).mount_command(share(1, "2001:db8::2", "2001:db8::1"))[-2] == "[2001:db8::1]:/1"


@pytest.mark.parametrize("options", [{"version": "3"}, {"threads": 0}, {"options": ["a,b"]}, {"read_bytes": "1 KiB"}])
def test_what_the_kernel_would_not_take_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Nfs(options)


def bed_of(server: FakeHost, client: FakeHost) -> EndpointTestbed:
    return EndpointTestbed(
        servers=(end("s0", "198.18.0.1", server),),
        clients=(end("c0", "198.18.0.10", client, "s0"),),
        link_is_nominal=True,
    )


def refused(folder: Path, server: FakeHost, client: FakeHost) -> NotReadyError:
    for host in (server, client):
        host.answer("sh -c", lambda command: Completed(command, 0, f"/usr/sbin/{command[-1]}\n", ""))
    dut = FileServer(FileServerOptions.model_validate({"share": "nfs", "memory": "1 GiB"}))
    changes = UndoStack("run", folder, folder / "run")
    with pytest.raises(NotReadyError) as told:
        asyncio.run(dut.up(bed_of(server, client), changes))
    assert changes.entries == ()
    return told.value


def test_a_kernel_without_the_client_is_told_before_anything_is_changed(tmp_path: Path) -> None:
    client = FakeHost("client", {"/proc/filesystems": "nodev\ttmpfs\n"})
    told = refused(tmp_path, FakeHost("server", KERNEL), client)
    assert told.message == "the kernel has no NFS client: nfs is not in /proc/filesystems"
    assert told.place == "client"
    assert any("modprobe" in command[2] for command in client.commands)


def test_so_is_one_without_the_server(tmp_path: Path) -> None:
    told = refused(tmp_path, FakeHost("server"), FakeHost("client", KERNEL))
    assert told.message == "the kernel has no NFS server: nfsd is not in /proc/filesystems"


def test_a_machine_that_serves_nfs_already_goes_on_doing_so(tmp_path: Path) -> None:
    server = FakeHost("server", KERNEL)
    server.answer("unshare", lambda command: Completed(command, 1, "it serves NFS already, with 8 threads\n", ""))
    told = refused(tmp_path, server, FakeHost("client", KERNEL))
    assert told.message == "it serves NFS already, with 8 threads"
    assert "directories" in str(told.next_step)


async def test_the_server_is_stopped_by_what_is_on_record(tmp_path: Path) -> None:
    host, changes = FakeHost("server"), UndoStack("run", None, tmp_path / "run")

    async def apply() -> None:
        """The server does it."""

    await changes.make(host, StopNfsServer(), apply)
    assert await changes.undo_all() == []
    assert host.commands[-1][:4] == ("unshare", "--mount", "sh", "-c")
    assert host.commands[-1][4].endswith("mount -t nfsd nicbench /proc/fs/nfsd && echo 0 >/proc/fs/nfsd/threads")


@pytest.mark.parametrize(
    ("called", "identifiers"),
    [
        (("rack1", "rack1"), ["nicbench-client-1", "nicbench-client-2"]),
        (("rack1", "rack2"), ["(null)", "(null)"]),
    ],
)
async def test_clients_of_one_name_are_told_apart_and_come_back(
    tmp_path: Path, called: tuple[str, str], identifiers: list[str]
) -> None:
    path = "/sys/fs/nfs/net/nfs_client/identifier"
    hosts = [FakeHost(name, {path: "(null)\n"}) for name in ("c0", "c1")]
    for host, name in zip(hosts, called, strict=True):
        host.answer("uname -n", f"{name}\n")
    changes = UndoStack("run", tmp_path, tmp_path / "run")
    await Nfs({}).prepare_clients(changes, hosts)
    assert [host.files[path].strip() for host in hosts] == identifiers
    assert await changes.undo_all() == []
    assert [host.files[path].strip() for host in hosts] == ["(null)"] * 2


# Shares by SMB.


def test_samba_gives_each_share_to_its_client_alone(tmp_path: Path) -> None:
    (server,) = Smb({}).servers(SHARES, {})
    assert (server.tcp_port, server.address, server.undo) == (445, "198.18.0.1", None)
    # Its script, with all that it would change left out.
    script = re.sub(r"mount -t .*\ncd .*", f"cd {tmp_path}", server.command[4]).replace("exec smbd", "echo smbd")
    done = run_captured(("sh", "-c", script, *server.command[5:]))
    assert done.stdout.strip() == server.words
    head, *shares = (tmp_path / "smb.conf").read_text().split("\n[")
    assert head.startswith("[global]\ninterfaces = 198.18.0.1 198.18.1.1\nbind interfaces only = yes\n")
    rights = "guest ok = yes\nread only = no\nforce user = root"
    assert [share.rstrip() for share in shares] == [
        f"1]\npath = /stor/d1/ours\nhosts allow = 198.18.0.10\n{rights}",
        f"2]\npath = /stor/d2/ours\nhosts allow = 198.18.1.10\n{rights}",
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "guest,vers=3.1.1,ip=198.18.1.1"),
        (
            {"version": "3.0", "connections": 4, "read_bytes": "1 MiB", "options": ["cache=none"]},
            "guest,vers=3.0,ip=198.18.1.1,multichannel,max_channels=4,rsize=1048576,cache=none",
        ),
    ],
)
def test_the_client_mounts_its_share_of_smb(options: dict[str, object], words: str) -> None:
    command = Smb(options).mount_command(SHARES[1])
    assert command == ("mount", "-t", "cifs", "-o", words, "//198.18.1.1/2", "/run/mounts/2")


def test_an_address_of_ipv6_is_a_name_of_windows() -> None:
    command = Smb({}).mount_command(share(1, "2001:db8::2", "2001:db8::1"))
    assert command[4:6] == ("guest,vers=3.1.1,ip=2001:db8::1", "//2001-db8--1.ipv6-literal.net/1")


# Shares by SFTP.


FOUND = {"socat": "/usr/bin/socat", "sftp-server": "/usr/lib/openssh/sftp-server"}


def end_of_sftp(name: str, address: str) -> Endpoint:
    return Endpoint(FakeHost(name), EndpointFacts(name=name, host=name, machine=name, address=address))


def share_of_sftp(number: int = 2, server: str = "198.18.0.1", client: str = "198.18.0.11") -> Share:
    return Share(
        number, f"/stor/d{number}/ours", end_of_sftp("s0", server), end_of_sftp("c1", client), f"/run/mounts/{number}"
    )


def test_the_server_takes_connections_of_its_client_alone_and_hands_them_over_as_they_are() -> None:
    (server,) = Sftp({}).servers([share_of_sftp()], FOUND)
    assert server.command == (
        "/usr/bin/socat",
        "TCP4-LISTEN:3202,bind=198.18.0.1,range=198.18.0.11/32,reuseaddr,nodelay,fork",
        "EXEC:/usr/lib/openssh/sftp-server -e,nofork",
    )
    assert (server.address, server.tcp_port) == ("198.18.0.1", 3202)


def test_the_client_mounts_by_the_port_of_its_share() -> None:
    assert Sftp({}).mount_command(share_of_sftp()) == (
        *("sshfs", "-o", "directport=3202"),
        *("198.18.0.1:/stor/d2/ours", "/run/mounts/2"),
    )


def test_addresses_of_ipv6_are_told_from_ports() -> None:
    shares = share_of_sftp(1, "2001:db8::1", "2001:db8::2")
    (server,) = Sftp({}).servers([shares], FOUND)
    assert server.command[1].startswith("TCP6-LISTEN:3201,bind=[2001:db8::1],range=[2001:db8::2]/128,")
    assert Sftp({}).mount_command(shares)[3] == "[2001:db8::1]:/stor/d1/ours"


def test_options_reach_sshfs_as_they_were_written() -> None:
    kind = Sftp({"first_port": 9000, "connections": 4, "options": ["direct_io", "max_readahead=0"]})
    assert kind.mount_command(share_of_sftp())[2] == "directport=9001,max_conns=4,direct_io,max_readahead=0"


@pytest.mark.parametrize("option", ["a,b", "a b", "", "a'b"])
def test_an_option_is_one_word(option: str) -> None:
    with pytest.raises(ValidationError):
        Sftp({"options": [option]})
