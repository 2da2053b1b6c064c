"""Files for transfers: room first, the removal written down before the file is there, nothing overwritten."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.commands import run_captured
from tests.fakes import FakeHost

from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.judging import Verdict
from nicbench.core.round import MOUNTS, Figures, Job, JobOutcome, JobSpec, OwnFolder, Round, RoundRequest
from nicbench.engine.binaries import find_binary
from nicbench.hosts.base import Completed, Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.measure.host_files import LeftFiles, OwnFolders, RoundFiles
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.files import RemovePath
from nicbench.workloads.base import Command, End, LeftFile, Output, Workload
from nicbench.workloads.play import play
from nicbench.workloads.processes import RawFolder


def stack(folder: Path) -> UndoStack:
    return UndoStack("r1", None, folder / "runtime")


async def test_a_source_is_filled_and_gone_after_the_undo(tmp_path: Path) -> None:
    changes = stack(tmp_path)
    path = Path(await RoundFiles(changes).make(LocalHost("local"), str(tmp_path), "c0-source", 100_000, filled=True))
    assert path == tmp_path / "nicbench-r1-c0-source"
    assert path.stat().st_size == 100_000
    assert len(set(path.read_bytes())) == 256  # random: a file system cannot make it smaller
    assert await changes.undo_all() == []
    assert not path.exists()


async def test_a_sink_is_empty_and_may_be_made_again_after_its_removal(tmp_path: Path) -> None:
    changes, host = stack(tmp_path), LocalHost("local")
    files = RoundFiles(changes)
    for _ in range(2):
        path = await files.make(host, str(tmp_path), "s0-sink", 100_000, filled=False)
        assert Path(path).stat().st_size == 0
        await files.remove(host, path)
        assert not Path(path).exists()
    assert [entry.undo for entry in changes.entries] == [RemovePath(path=path)]
    await changes.undo_all()


async def test_a_file_that_is_there_already_is_never_written_over(tmp_path: Path) -> None:
    changes = stack(tmp_path)
    theirs = tmp_path / "nicbench-r1-c0-source"
    theirs.write_text("kept")
    with pytest.raises(NotReadyError, match="is there already and is left alone"):
        await RoundFiles(changes).make(LocalHost("local"), str(tmp_path), "c0-source", 10, filled=True)
    await changes.undo_all()
    assert theirs.read_text() == "kept"


async def test_without_the_folder_the_next_step_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match="there is no folder /nowhere/x") as told:
        await RoundFiles(stack(tmp_path)).make(LocalHost("local"), "/nowhere/x", "a", 10, filled=True)
    assert "mkdir -p /nowhere/x" in str(told.value.next_step)


async def test_without_room_nothing_is_written(tmp_path: Path) -> None:
    host, changes = FakeHost("h"), stack(tmp_path)
    host.answer("sh -c", "1000000\n")
    with pytest.raises(NotReadyError, match="1000000 bytes free"):
        await RoundFiles(changes).make(host, "/data", "a", 1_000_000, filled=True)
    assert changes.entries == ()
    assert len(host.commands) == 1


# Folders of ours where frames are, on whichever clients see them.


def folder(client: str, parent: Path, instance: int) -> OwnFolder:
    return OwnFolder(endpoint=client, parent=str(parent), name=f"nicbench-a-run/editors-{instance}", needed_bytes=1)


async def test_two_clients_may_work_in_one_directory_that_both_of_them_see(tmp_path: Path) -> None:
    changes = UndoStack("a-run", None, tmp_path / "runtime")
    shared = tmp_path / "shared"
    shared.mkdir()
    hosts = {name: LocalHost(name) for name in ("c0", "c1")}
    await OwnFolders(changes).make(hosts, [folder(name, shared, each) for each, name in enumerate(hosts)])
    assert sorted(path.name for path in (shared / "nicbench-a-run").iterdir()) == ["editors-0", "editors-1"]
    assert await changes.undo_all() == []
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize(
    ("parent", "silent", "said", "step"),
    [
        ("/mnt/d1", False, "is gone", "mount it again"),
        ("/mnt/d1", True, "does not answer within 30 s", "mount it again"),
        (f"{MOUNTS}abc/1", False, "is gone", "the server of this share"),
    ],
)
async def test_a_directory_that_is_gone_is_told_with_its_host_and_what_failed_there(
    parent: str, silent: bool, said: str, step: str, tmp_path: Path
) -> None:
    own = OwnFolders(UndoStack("a-run", None, tmp_path / "runtime"))
    gone = folder("c0", Path(parent), 1)
    hosts = {"c0": Without("c0a", silent=silent)}
    with pytest.raises(HostError) as stopped:
        await own.require(hosts, [gone], "instance 1 on c0a: Input/output error")
    assert stopped.value.place == "c0a"
    assert stopped.value.message.startswith(f"the directory {gone.path} {said}")
    assert stopped.value.message.endswith("instance 1 on c0a: Input/output error")
    assert str(stopped.value.next_step).startswith(step)
    assert "nicbench resume" in str(stopped.value.next_step)


async def test_a_directory_that_does_not_answer_is_told_before_anything_is_made_in_it(tmp_path: Path) -> None:
    own = OwnFolders(UndoStack("a-run", None, tmp_path / "runtime"))
    with pytest.raises(NotReadyError, match=r"^c0a: the directory /mnt/d1 does not answer"):
        await own.make({"c0": Without("c0a", silent=True)}, [folder("c0", Path("/mnt/d1"), 1)])


class Without(LocalHost):
    """A host on which the directory is not there, or ``silent``: whoever asks for it waits."""

    def __init__(self, name: str, *, silent: bool) -> None:
        super().__init__(name)
        self._silent = silent

    async def run(self, command: Sequence[str], **options: Any) -> Completed:
        if self._silent:
            raise HostError(f"ip netns exec nb {' '.join(command)}: did not end within 30 s", place="local")
        return Completed(tuple(command), 1, "", "")


# What clients leave on their hosts: kept with the round, and gone from the host, however the client ended.


# What the client does is its congestion control; $1 is its folder, $2 the program, $3 frames to be read.
_CLIENT = {
    "reads": '"$2" read "$3" --seconds 0.3 --repeat --samples "$1/samples"',
    "dies": '"$2" read "$3" --seconds 0.3 --repeat --samples "$1/samples" && truncate -s -5 "$1/samples"; kill -9 $$',
    "leaves nothing": ":",
    "leaves something else": 'echo "hello, I am no sample" >"$1/samples"',
    "cannot begin": "exit 3",
}


SAID = Figures(memory_bytes_per_s=1e9)


def asked(does: str) -> JobSpec:
    return JobSpec(operation="memory", congestion_control=does)


class Leaves(Workload):
    """A tool that leaves samples."""

    kind = "leaves"
    package = "bash"
    frames = ""

    def program(self, ask: JobSpec) -> str:
        return "bash"

    def refusal(self, ask: JobSpec) -> str | None:
        return None

    def server_command(self, job: Job, client: End, server: End) -> Command | None:
        return None

    def client_command(self, job: Job, client: End, server: End | None) -> Command:
        does = _CLIENT[str(job.ask.congestion_control)]
        return ("bash", "-c", does, "bash", str(client.folder), str(find_binary("nicbench-frames")), self.frames)

    def leaves(self, job: Job) -> tuple[LeftFile, ...]:
        return (LeftFile("samples", "frame samples"),)

    def parse_version(self, text: str) -> str | None:
        return "5"

    def parse(self, job: Job, client: Output, server: Output | None) -> Figures:
        return SAID


class Elsewhere(LocalHost):
    """This machine, as if it were another one."""

    @property
    def shares_files(self) -> bool:
        return False


class Bench:
    """Rounds of such clients, with their undo."""

    def __init__(self, folder: Path, host: Host) -> None:
        self.run_folder = folder / "run"
        self.run_folder.mkdir()
        # Its folder is where every other test's could be.
        self.changes = UndoStack(f"test-{secrets.token_hex(6)}", None, folder / "runtime")
        self.left = LeftFiles(self.changes, self.run_folder)
        self.host = host

    @property
    def there(self) -> Path:
        """The folder on the host."""
        [entry] = self.changes.entries
        assert isinstance(entry.undo, RemovePath)
        return Path(entry.undo.path)

    async def play(self, *behaviours: str, number: int = 1) -> Round:
        jobs = tuple(
            Job(workload="leaves", client=f"c{each}", server=None, ask=asked(does), port=5201)
            for each, does in enumerate(behaviours)
        )
        request = RoundRequest(jobs=jobs, duration_s=0.1)
        ends = {job.client: End(self.host, "127.0.0.1") for job in jobs}
        self.left.begin(f"r{number:04d}")
        outcomes = await play(request, ends, RawFolder(self.run_folder, "r1"), keeper=self.left)
        return self.a_round(number, request, outcomes)

    def a_round(self, number: int, request: RoundRequest, outcomes: tuple[JobOutcome, ...]) -> Round:
        return Round(
            id=f"r{number:04d}",
            key=f"frames/{number}/0",
            test="frames",
            configuration="default",
            parameters={},
            repeat=0,
            request=request,
            outcomes=outcomes,
            verdict=Verdict(),
        )

    def instances(self, number: int = 1) -> set[int]:
        table = pq.read_table(self.run_folder / f"frames/r{number:04d}.parquet", columns=["instance"])
        return set(table["instance"].to_pylist())


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("frames")
    program = str(find_binary("nicbench-frames"))
    made = (program, "prepare", str(folder), "--frame-size", "8k", "--frames", "5")
    run_captured(made)
    return str(folder)


@pytest.fixture(autouse=True)
def tools(frames: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leaves, "frames", frames)
    monkeypatch.setattr("nicbench.workloads.play.kinds", lambda: {"leaves": Leaves})


@pytest.fixture(params=[LocalHost, Elsewhere], ids=["this machine", "another machine"])
async def bench(request: Any, tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path, request.param("h1"))
    yield made
    await made.changes.undo_all()


@pytest.fixture
async def elsewhere(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path, Elsewhere("h1"))
    yield made
    await made.changes.undo_all()


async def test_each_client_costs_its_own_samples_alone(bench: Bench) -> None:
    one = await bench.play("reads", "dies", "leaves nothing", "leaves something else", "cannot begin", "reads")
    await bench.left.keep(one)

    assert bench.instances() == {1, 2, 6}
    first, died, nothing, other, never, last = one.outcomes
    assert (first.failure, first.notes, last.failure, last.notes) == (None, (), None, ())
    assert "frames/r0001.parquet" in first.files
    assert died.failure is not None
    assert died.notes == ("the last of its frame samples was cut short, and left out",)
    assert "frames/r0001.parquet" in died.files
    [gone], [wrong] = nothing.notes, other.notes
    assert f"its frame samples are lost: {bench.there}/r0001/3/samples on h1: " in gone
    assert "No such file" in gone
    assert "/r0001/4/samples on h1: is no file of samples: it begins with b'hello, I'" in wrong
    assert (nothing.failure, other.failure, nothing.figures, never.notes) == (None, None, SAID, ())
    assert not any("frames/" in name for outcome in (nothing, other, never) for name in outcome.files)


async def test_nothing_stays_on_the_host_or_beside_what_is_kept(bench: Bench) -> None:
    for number in (1, 2):
        await bench.left.keep(await bench.play("reads", "dies", number=number))
        assert list(bench.there.iterdir()) == []
    assert len(bench.changes.entries) == 1
    assert sorted(path.name for path in bench.run_folder.iterdir()) == ["frames", "raw"]
    assert (bench.instances(1), bench.instances(2)) == ({1, 2}, {1, 2})
    there = bench.there
    assert await bench.changes.undo_all() == []
    assert not there.exists()


async def test_after_a_crash_the_undo_removes_what_nobody_kept(bench: Bench) -> None:
    await bench.play("reads")
    there = bench.there
    assert (there / "r0001/1/samples").is_file()
    assert there.stat().st_mode & 0o777 == 0o700
    await bench.changes.undo_all()
    assert not there.exists()


async def test_a_round_that_is_played_again_has_its_own_samples(bench: Bench) -> None:
    await bench.play("reads", "reads")  # and the run was killed before it was journaled
    await bench.left.keep(await bench.play("reads", "leaves nothing"))
    assert bench.instances() == {1}
    await bench.left.keep(await bench.play("leaves nothing"))
    assert not (bench.run_folder / "frames/r0001.parquet").exists()


async def test_a_run_folder_that_cannot_be_written_ends_the_run(elsewhere: Bench) -> None:
    (elsewhere.run_folder / ".left").write_text("no folder")
    with pytest.raises(HostError, match="cannot be read or written"):
        await elsewhere.play("reads")


async def test_workloads_that_leave_nothing_ask_nothing_of_a_host(bench: Bench, monkeypatch: Any) -> None:
    monkeypatch.setattr(Leaves, "leaves", lambda self, job: ())
    one = await bench.play("leaves nothing")
    await bench.left.keep(one)
    assert (bench.changes.entries, one.outcomes[0].notes) == ((), ())


async def test_a_host_without_any_place_is_told_what_to_do(tmp_path: Path) -> None:
    host = FakeHost("h1")
    host.fail("sh -c", "")
    with pytest.raises(NotReadyError, match="no folder for what its workloads leave") as caught:
        await Bench(tmp_path, host).left.folder(host, 1)
    assert "TMPDIR" in str(caught.value.next_step)


async def test_hosts_of_one_machine_do_not_share_a_folder(bench: Bench) -> None:
    bench.left.begin("r0001")
    paths = await asyncio.gather(
        *(bench.left.folder(LocalHost(name), job) for name in ("h1", "h2") for job in (1, 2, 3))
    )
    assert len(set(paths)) == 6
    assert all(Path(path).is_dir() for path in paths)
    assert len(bench.changes.entries) == 2
