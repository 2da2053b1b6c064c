"""The file server on hosts that do nothing: what is made, in which order, what is undone, what is refused."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.round import EndpointFacts
from nicbench.hosts.base import Completed
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.duts.file_server import FileServer, FileServerOptions
from nicbench.testbed.labs.base import Endpoint, EndpointTestbed
from nicbench.testbed.share_servers import Servers, place_of
from nicbench.testbed.shares.base import Server
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.processes import unmount

FILE_SYSTEMS = {"/proc/filesystems": "nodev\ttmpfs\n\txfs\nnodev\tfuse\n"}
MEMORY = {"/proc/meminfo": "MemTotal: 4000000 kB\nMemAvailable:    3000000 kB\n"}
GIB = 2**30


class Machine(FakeHost):
    """Has every program; what was started listens; what was mounted is mounted, until it is unmounted."""

    def __init__(self, name: str, port_line: str = "") -> None:
        super().__init__(name, {**FILE_SYSTEMS, **MEMORY})
        self.lacks: set[str] = set()
        self.mounted: set[str] = set()
        self.refuses_to_mount = False
        self.listening = False
        self.alive = True
        self.inode = 100
        self.answer("sh -c", self._shell)
        self.answer("grep", self._grep)
        self.answer("mount", self._mount)
        self.answer("sshfs", self._mount)

    def _shell(self, command: tuple[str, ...]) -> Completed:
        status, out = 0, ""
        word = command[3] if len(command) > 3 else ""
        if word == "where":
            status, out = (1, "") if command[4] in self.lacks else (0, f"/usr/bin/{command[4]}\n")
        elif word == "start":
            self.listening = self.alive
        elif word == "lives":
            status = 0 if self.alive else 1
        elif "/proc/net/tcp" in command and self.listening:
            out = "@/proc/net/tcp\n" + "".join(
                f"   {number}: 0100{'12'}C6:{3201 + number:04X} 00000000:0000 0A 0:0 0:0 0 0 0 {self.inode}\n"
                for number in range(12)
            )
        elif word in ("unmount", "detach"):
            self.mounted.discard(command[4])
        elif word == "use" and command[4] not in self.mounted:
            status = 1
        return Completed(command, status, out, "")

    def _grep(self, command: tuple[str, ...]) -> Completed:
        path = command[-2].strip()
        there = path in self.mounted
        return Completed(
            command,
            0 if there else 1,
            f"50 27 0:41 / {path} rw,nodev - fuse.sshfs s:/x rw,user_id=0\n" if there else "",
            "",
        )

    def _mount(self, command: tuple[str, ...]) -> Completed:
        if self.refuses_to_mount:
            return Completed(command, 1, "", "read: Connection reset by peer")
        self.mounted.add(command[-1])
        return Completed(command, 0, "", "")


def bed_of(clients: int = 2, ports: int = 1) -> EndpointTestbed:
    server = Machine("server")
    ends = [
        Endpoint(server, EndpointFacts(name=f"s{port}", host="server", machine="m", address="198.18.0.1"))
        for port in range(ports)
    ]
    others = [
        Endpoint(
            Machine(f"h{number}"),
            EndpointFacts(
                name=f"c{number}",
                host=f"h{number}",
                machine=f"m{number}",
                address=f"198.18.0.1{number}",
                port=f"s{number % ports}",
            ),
        )
        for number in range(clients)
    ]
    return EndpointTestbed(servers=tuple(ends), clients=tuple(others), link_is_nominal=True)


def machine(end: Endpoint) -> Machine:
    assert isinstance(end.host, Machine)
    return end.host


def dut(shares: int = 3, **options: object) -> FileServer:
    where = {"memory": GIB // 2} if "folder" not in options and "memory" not in options else {}
    return FileServer(FileServerOptions.model_validate({"share": "sftp", "shares": shares, **where, **options}))


def up(bed: EndpointTestbed, folder: Path, server: FileServer) -> UndoStack:
    changes = UndoStack("run", folder, folder / "run")
    asyncio.run(server.up(bed, changes))
    return changes


def test_each_share_is_mounted_by_the_next_client_from_the_port_that_it_leads_to(tmp_path: Path) -> None:
    bed, server = bed_of(clients=2, ports=2), dut(shares=3)
    assert server.mounts() == ()
    up(bed, tmp_path, server)
    found = [(mount.share, mount.endpoint, mount.server_port, mount.tcp_port) for mount in server.mounts()]
    assert found == [(1, "c0", "s0", 3201), (2, "c1", "s1", 3202), (3, "c0", "s0", 3203)]
    assert [mount.directory for mount in server.mounts()] == sorted(
        machine(bed.clients[0]).mounted | machine(bed.clients[1]).mounted
    )


def test_everything_is_unmounted_ended_and_removed_in_that_order(tmp_path: Path) -> None:
    bed = bed_of(clients=1)
    changes = up(bed, tmp_path, dut(shares=2))
    kinds = [entry.undo.kind for entry in changes.entries]
    assert kinds == [
        *("remove_path", "unmount", "unmount"),  # the server's folder, and memory for each share in it
        *("end_server", "end_server"),
        *("remove_path", "unmount", "unmount"),  # the client's
    ]
    assert asyncio.run(changes.undo_all()) == []
    assert all(entry.done for entry in changes.entries)
    assert machine(bed.servers[0]).mounted | machine(bed.clients[0]).mounted == set()


def test_the_undo_is_written_before_anything_is_mounted(tmp_path: Path) -> None:
    bed = bed_of(clients=1)
    machine(bed.clients[0]).refuses_to_mount = True
    changes = UndoStack("run", tmp_path, tmp_path / "run")
    with pytest.raises(NotReadyError, match=r"share 1 of server cannot be mounted: .*Connection reset by peer") as told:
        asyncio.run(dut().up(bed, changes))
    assert str(told.value.next_step).startswith("try it there by hand: sshfs -o directport=3201")
    assert changes.entries[-1].undo.kind == "unmount"
    assert asyncio.run(changes.undo_all()) == []


async def test_servers_are_ended_and_started_again_with_the_undo_that_is_on_record(tmp_path: Path) -> None:
    bed = bed_of(clients=1)
    place = place_of(bed.servers[0].host)
    changes = UndoStack("run", tmp_path, tmp_path / "run")
    servers = Servers(place.host, changes, "/run/ours")
    await servers.start([Server("a server", ("serve",), 3201, stop=("stop-the-kernel",))])
    before = len(changes.entries)
    host = machine(bed.servers[0])
    host.listening = False
    host.commands.clear()
    await servers.restart()
    assert [command[3] if command[0] == "sh" else command[0] for command in host.commands[:3]] == [
        *("stop-the-kernel", "end", "start")
    ]
    assert len(changes.entries) == before


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("nothing", None),
        ("ends", "the sftp-server of share 1 has ended"),
        ("is silent", "the sftp-server of share 1 no longer listens on TCP port 3201"),
        ("is another", "the sftp-server of share 1 was restarted by another program"),
    ],
)
async def test_a_server_that_ended_in_the_midst_of_a_round_is_told(what: str, told: str | None, tmp_path: Path) -> None:
    bed, server = bed_of(clients=1), dut(shares=1)
    await server.up(bed, UndoStack("run", tmp_path, tmp_path / "run"))
    await server.begin_round()
    host = machine(bed.servers[0])
    host.alive, host.listening, host.inode = what != "ends", what != "is silent", 100 + (what == "is another")
    assert await server.failure() == told


def test_only_a_folder_of_ours_is_made_in_a_folder_of_the_user_and_removed(tmp_path: Path) -> None:
    bed = bed_of(clients=1)
    changes = up(bed, tmp_path, dut(shares=2, folder="/stor/d{share}"))
    removed = [entry.undo.path for entry in changes.entries if entry.undo.kind == "remove_path"]
    assert [path.rpartition("/")[0] for path in removed] == ["/run", "/stor/d1", "/stor/d2", "/run"]
    assert all(path.rpartition("/")[2].startswith("nicbench-") for path in removed)


def test_the_report_is_told_everything_that_is_needed_to_do_it_again(tmp_path: Path) -> None:
    server = dut(shares=1)
    up(bed_of(clients=1), tmp_path, server)
    told = server.disclosure()
    assert "nothing is encrypted" in told["statement"]
    assert told["commands"]["server"][0].startswith("/usr/bin/socat TCP4-LISTEN:3201,")
    assert told["commands"]["h0"][0].endswith(" 198.18.0.1:/run/nicbench-shares-RUN/1 /run/nicbench-mounts-RUN/1")
    assert told["mounts"]["1"] == "h0: fuse.sshfs s:/x rw,nodev rw,user_id=0"
    assert told["file_systems"]["1"].startswith("/run/nicbench-shares-RUN/1: ")


@pytest.mark.parametrize(("lacking", "package"), [("socat", "socat"), ("sftp-server", "openssh-sftp-server")])
def test_a_program_that_the_server_lacks_is_named_with_its_package(tmp_path: Path, lacking: str, package: str) -> None:
    bed = bed_of()
    machine(bed.servers[0]).lacks.add(lacking)
    with pytest.raises(NotReadyError, match=f"there is no program {lacking}") as told:
        up(bed, tmp_path, dut())
    assert told.value.next_step == f"apt-get install {package}"
    assert not (tmp_path / "run").exists()


def test_so_is_one_that_a_client_lacks(tmp_path: Path) -> None:
    bed = bed_of()
    machine(bed.clients[1]).lacks.add("sshfs")
    with pytest.raises(NotReadyError, match="there is no program sshfs") as told:
        up(bed, tmp_path, dut())
    assert (told.value.place, told.value.next_step) == ("h1", "apt-get install sshfs")


def test_a_client_without_fuse_is_told_so(tmp_path: Path) -> None:
    bed = bed_of()
    machine(bed.clients[0]).files["/proc/filesystems"] = "nodev\ttmpfs\n"
    with pytest.raises(NotReadyError, match=r"no file systems in user space \(FUSE\): fuse is not in /proc/filesyst"):
        up(bed, tmp_path, dut())


def test_memory_that_is_not_there_is_not_promised(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match="12 shares of 1073741824 bytes in memory do not fit: 3072000000 bytes are"):
        up(bed_of(), tmp_path, dut(shares=12, memory=GIB))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    bed = bed_of()
    machine(bed.servers[0]).fail(("sh", "-c", 'test -d "$1" && test -w "$1"', "look", "/stor/d2"), "")
    with pytest.raises(NotReadyError, match="no folder /stor/d2 that can be written to"):
        up(bed, tmp_path, dut(folder="/stor/d{share}"))


def test_a_port_that_somebody_has_is_left_to_them(tmp_path: Path) -> None:
    bed = bed_of()
    machine(bed.servers[0]).listening = True
    with pytest.raises(
        NotReadyError, match="another process listens on TCP port 3201, which the sftp-server of share 1"
    ):
        up(bed, tmp_path, dut())


def test_a_server_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    bed = bed_of()
    server = machine(bed.servers[0])
    server.alive = False
    changes = UndoStack("run", tmp_path, tmp_path / "run")
    server.files[f"{ours(changes)}/server-1.log"] = "E bind(5, 198.18.0.1:3201): Cannot assign requested address\n"
    with pytest.raises(NotReadyError, match=r"ended at once; the sftp-server of share 1 says: .*Cannot assign"):
        asyncio.run(dut().up(bed, changes))


def test_a_mount_that_is_seen_by_nobody_else_is_refused(tmp_path: Path) -> None:
    bed = bed_of(clients=1)
    host = machine(bed.clients[0])
    host.fail(("sh", "-c", 'grep -qF -- " $1 " /proc/self/mountinfo && : >"$1/.nicbench" && rm -- "$1/.nicbench"'), "")
    with pytest.raises(NotReadyError, match="is mounted but cannot be used"):
        up(bed, tmp_path, dut())


def test_in_a_namespace_mounts_are_made_outside_and_connections_inside() -> None:
    inner = FakeHost("local")
    place = place_of(NetnsHost(inner, "nb-c0"))
    assert place.host is inner
    assert place.inside(("sshfs", "x")) == ("nsenter", "--net=/run/netns/nb-c0", "sshfs", "x")


async def test_a_mount_that_waits_for_a_server_is_detached(tmp_path: Path) -> None:
    class Hanging(Machine):
        def _shell(self, command: tuple[str, ...]) -> Completed:
            if command[3] == "unmount":
                raise HostError("did not end within 10 s", place=self.name)
            return super()._shell(command)

    host = Hanging("h")
    host.mounted.add("/run/x")
    await unmount(host, "/run/x")
    assert host.mounted == set()


def ours(changes: UndoStack) -> str:
    return f"/run/nicbench-shares-{hashlib.sha256(changes.run_id.encode()).hexdigest()[:12]}"
