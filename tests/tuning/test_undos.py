"""Undos: each kind is read again after a crash, and undoes what it is for; a dry run foresees it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.commands import run_checked
from tests.fakes import FakeHost

from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.registry import find
from nicbench.hosts.base import Completed, Presence
from nicbench.hosts.kinds.local import LocalHost
from nicbench.stages.tester import make_promiscuous
from nicbench.tuning.dry_undo import Change, DryUndo, Question, dry_undo
from nicbench.tuning.guards import Step, script
from nicbench.tuning.items.steering import Irqbalance
from nicbench.tuning.record import Record, load_record
from nicbench.tuning.setting import cpu_mask, plain_value, same_value
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.base import Undo
from nicbench.tuning.undo.files import RemovePath, RestoreFile, RestoreSetting, Unmount
from nicbench.tuning.undo.network import DeleteLink
from nicbench.tuning.undo.processes import EndServer, end_server, is_alive, is_mounted, start_command

# Each kind of undo is a file; records of earlier versions are read and written as they were.

GOLDEN = Path(__file__).parent / "golden" / "undo.json"


def test_a_record_with_every_kind_is_read_and_written_as_it_was() -> None:
    record = Record.model_validate_json(GOLDEN.read_bytes())

    assert {entry.undo.kind for entry in record.entries} == set(find("nicbench.tuning.undo", Undo))
    assert record.model_dump_json(indent=1) == GOLDEN.read_text(encoding="utf-8").rstrip("\n")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"kind": "set_link_up"', '"kind": "bend_space"', "does not know an undo of the kind 'bend_space'"),
        ('"kind": "set_link_up",\n    "device"', '"kind": "set_link_up",\n    "interface"', "set_link_up, "),
    ],
    ids=["a kind of a later version", "a field of a later version"],
)
def test_an_undo_of_another_version_is_not_guessed_at(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "undo.json"
    text = GOLDEN.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")

    with pytest.raises(NotReadyError, match="cannot be read") as caught:
        load_record(path)
    assert words in caught.value.message


# An interface that a killed engine left promiscuous is ended by the undo; one that was so before stays so.

OFF = ("ip", "link", "set", "dev", "t0", "promisc", "off")


def shown(*flags: str) -> str:
    words = ", ".join(f'"{flag}"' for flag in ("UP", *flags))
    return f'[{{"ifname": "t0", "flags": [{words}]}}]'


async def undone(before: str | Completed, after: str | Completed, tmp_path: Path) -> list[tuple[str, ...]]:
    host, stack = FakeHost(), UndoStack("run", None, tmp_path)
    host.answer("ip -j link show", before)
    await make_promiscuous(stack, host, "t0", by_engine=True)
    host.answer("ip -j link show", after)
    assert await stack.undo_all() == []
    return [command for command in host.commands if "promisc" in command]


GONE = Completed((), 1, "", "Device t0 does not exist.")


@pytest.mark.parametrize(
    ("before", "after", "commands"),
    [
        (shown(), shown("PROMISC"), [OFF]),
        (shown(), shown(), []),
        (shown("PROMISC"), shown("PROMISC"), []),
        (shown(), GONE, []),
        (GONE, shown("PROMISC"), []),
    ],
    ids=["left behind", "taken back by the engine", "there before", "gone", "not there"],
)
async def test_only_what_the_engine_left_is_ended(
    before: str | Completed, after: str | Completed, commands: list[tuple[str, ...]], tmp_path: Path
) -> None:
    assert await undone(before, after, tmp_path) == commands


# Servers in the background and mounts: they outlive whoever started them, and are ended by what is on record.


async def start(folder: Path, *command: str) -> str:
    known_by = str(folder / "server.pid")
    await LocalHost().run(start_command(known_by, str(folder / "server.log"), command))
    return known_by


def runs(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def pid_in(known_by: str) -> int:
    return int(Path(known_by).read_text().split()[0])


async def test_a_server_runs_on_by_itself_and_is_ended_with_what_it_started(tmp_path: Path) -> None:
    known_by = await start(tmp_path, "sh", "-c", f"sleep 1000 & echo $! >{tmp_path}/child; wait")
    assert await is_alive(LocalHost(), known_by)
    child = tmp_path / "child"
    while not child.exists() or not child.read_text().strip():
        assert await is_alive(LocalHost(), known_by)
    await end_server(LocalHost(), known_by)
    assert not await is_alive(LocalHost(), known_by)
    while runs(int(child.read_text())):
        pass


async def test_what_it_says_is_kept(tmp_path: Path) -> None:
    known_by = await start(tmp_path, "sh", "-c", "echo said; echo complained >&2")
    while await is_alive(LocalHost(), known_by):
        pass
    assert (tmp_path / "server.log").read_text() == "said\ncomplained\n"
    await end_server(LocalHost(), known_by)


async def test_another_process_that_has_its_number_by_now_is_left_alone(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "1000"])
    try:
        known_by = tmp_path / "server.pid"
        known_by.write_text(f"{other.pid} 1\n")
        await end_server(LocalHost(), str(known_by))
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


async def test_one_that_was_never_started_is_no_trouble(tmp_path: Path) -> None:
    await end_server(LocalHost(), str(tmp_path / "nothing"))
    assert not await is_alive(LocalHost(), str(tmp_path / "nothing"))


async def test_the_record_ends_it(tmp_path: Path) -> None:
    changes = UndoStack("nb-test", None, tmp_path / "run")
    known_by = str(tmp_path / "server.pid")

    async def apply() -> None:
        await start(tmp_path, "sleep", "1000")

    await changes.make(LocalHost(), EndServer(known_by=known_by), apply)
    assert pid_in(known_by) > 1
    assert await changes.undo_all() == []
    assert not await is_alive(LocalHost(), known_by)


async def test_only_a_whole_path_is_mounted() -> None:
    assert await is_mounted(LocalHost(), "/proc")
    assert not await is_mounted(LocalHost(), "/pro")


async def test_what_is_not_mounted_is_unmounted_without_a_word(tmp_path: Path) -> None:
    changes = UndoStack("nb-test", None, tmp_path / "run")
    await changes.make(LocalHost(), Unmount(path=str(tmp_path)), _nothing)
    assert await changes.undo_all() == []


async def test_a_folder_on_a_mount_whose_server_is_gone_is_no_trouble_once_that_is_unmounted(tmp_path: Path) -> None:
    host, mounted = FakeHost("h"), True

    def unmount(command: tuple[str, ...]) -> Completed:
        nonlocal mounted
        mounted = False
        return Completed(command, 0, "", "")

    host.answer("sh -c", unmount)
    host.answer("grep", lambda command: Completed(command, 0 if mounted else 1, "", ""))
    host.answer(
        "rm",
        lambda command: Completed(command, 1 if mounted and "1/ours" in command[-1] else 0, "", "Transport endpoint"),
    )
    changes = UndoStack("nb-test", None, tmp_path / "run")
    await changes.make(host, Unmount(path="/run/mounts/1"), _nothing)
    await changes.make(host, RemovePath(path="/run/mounts/1/ours"), _nothing)
    assert await changes.undo_all() == []
    assert all(entry.done for entry in changes.entries)


async def test_what_does_not_let_itself_be_unmounted_is_told(tmp_path: Path) -> None:
    host = FakeHost("h")  # says that everything is mounted, whatever is done
    host.fail("sh -c", "target is busy")
    changes = UndoStack("nb-test", None, tmp_path / "run")
    await changes.make(host, Unmount(path="/run/mounts/1"), _nothing)
    (trouble,) = await changes.undo_all()
    assert "could not undo (unmount path=/run/mounts/1)" in trouble
    assert "target is busy" in trouble


async def test_a_server_that_does_not_die_is_told() -> None:
    host = FakeHost("h")
    host.fail("sh -c", "process 7 does not die")
    with pytest.raises(HostError, match="process 7 does not die"):
        await end_server(host, "/run/x.pid")


async def _nothing() -> None:
    """Made by nobody."""


# What an undo would do elsewhere is found out without doing it; the script says it in shell.

CONTROLLER = Presence(pid=100, start_ticks=815, boot_id="boot")


class _Remote(FakeHost):
    kind = "ssh"


async def test_a_file_is_written_back_if_it_still_reads_as_it_was_left() -> None:
    host = _Remote(files={"/f": "new\n"})
    host.answer(("cat", "--", "/f"), "new\n")
    found = await dry_undo(host, RestoreFile(path="/f", old="old", new="new"), applied=True)

    cat = ("cat", "--", "/f")
    assert found == DryUndo([Change(("tee", "--", "/f"), "old", cat)], [Question(cat, "new\n")])
    assert host.writes == []
    assert all(command[0] == "cat" for command in host.commands)


async def test_before_a_change_is_made_its_undo_depends_on_nothing() -> None:
    found = await dry_undo(_Remote(), RestoreFile(path="/f", old="old", new="new"), applied=False)

    assert found.holds == []


async def test_an_undo_that_waits_for_its_effect_is_foreseen_all_the_same() -> None:
    host = _Remote()
    host.answer(("pgrep",), "7\n")
    host.answer(("cat", "--", "/proc/7/stat"), "7 (irqbalance) T " + " ".join(map(str, range(1, 40))))
    found = await dry_undo(host, _irqbalance(), applied=True)

    assert [change.command[-2:] for change in found.changes] == [("-CONT", "7")]
    assert not any("kill" in command for command in host.commands)


async def test_an_answer_that_never_is_the_same_twice_says_nothing() -> None:
    host, counter = _Remote(), iter(range(100))
    host.answer(("cat",), lambda _: f"{next(counter)}\n")

    assert await dry_undo(host, RestoreFile(path="/f", old="old", new="new"), applied=True) is None


async def test_what_is_no_more_needs_no_undo() -> None:
    host = _Remote()
    host.fail(("ip", "-j", "link"), "Device does not exist")

    assert await dry_undo(host, DeleteLink(device="e0"), applied=True) is None


async def test_a_mount_and_a_server_on_another_machine_are_ended_there_and_not_while_that_is_found_out() -> None:
    host = _Remote()
    mount = await dry_undo(host, Unmount(path="/run/mounts/1"), applied=True)
    server = await dry_undo(host, EndServer(known_by="/run/server.pid"), applied=True)

    assert all(change.command[-1] == "/run/mounts/1" for change in mount.changes)
    assert "umount" in mount.changes[0].command[2]
    assert [change.command[-1] for change in server.changes] == ["/run/server.pid"]
    assert all(command[0] == "grep" for command in host.commands)


def test_the_script_undoes_the_last_change_first_and_leaves_what_somebody_changed(tmp_path: Path) -> None:
    values = {name: tmp_path / name for name in ("first's", "second", "third")}
    for file in values.values():
        file.write_text("new\n")
    steps = [Step(name, _written_back(file)) for name, file in values.items()]
    steps.append(Step("a $(touch planted) 'thing'", None))
    (tmp_path / "undo.sh").write_text(script(steps, CONTROLLER))
    values["second"].write_text("somebody's\n")
    run_checked(("sh", tmp_path / "undo.sh", CONTROLLER.name), cwd=tmp_path)

    assert [file.read_text() for file in values.values()] == ["o'ld $x\\n", "somebody's\n", "o'ld $x\\n"]
    assert (tmp_path / "told").read_text().splitlines() == [
        "not undone by this script: a $(touch planted) 'thing'",
        "put back: third",
        "left alone, somebody changed it since: second",
        "put back: first's",
    ]
    assert not (tmp_path / "planted").exists()
    assert not (tmp_path / "undo.sh").exists(), "it is done once"


def test_a_change_that_fails_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "value").write_text("new\n")
    steps = [Step("one", _written_back(tmp_path / "value")), Step("two", DryUndo([Change(("false",))]))]
    (tmp_path / "undo.sh").write_text(script(steps, CONTROLLER))
    run_checked(("sh", tmp_path / "undo.sh", CONTROLLER.name))

    assert (tmp_path / "told").read_text() == "could not put back: two\nput back: one\n"


def test_a_controller_that_died_undoes_nothing_of_the_run_that_was_resumed(tmp_path: Path) -> None:
    (tmp_path / "value").write_text("new\n")
    (tmp_path / "undo.sh").write_text(script([Step("one", _written_back(tmp_path / "value"))], CONTROLLER))
    run_checked(("sh", tmp_path / "undo.sh", Presence(100, 4711, "boot").name))

    assert (tmp_path / "value").read_text() == "new\n"
    assert (tmp_path / "undo.sh").exists(), "its own controller needs it"


def _written_back(file: Path) -> DryUndo:
    cat = ("cat", "--", str(file))
    return DryUndo([Change(("tee", "--", str(file)), "o'ld $x\\n", cat)], [Question(cat, "new\n")])


def _irqbalance() -> Undo:
    key = "process 7, start 19"
    return RestoreSetting(
        item=Irqbalance.kind, options={"on": False}, device=None, before={key: "running"}, asked={key: "paused"}
    )


# Values of /proc and /sys mean the same however the kernel prints them.


@pytest.mark.parametrize(
    ("path", "one", "other", "same"),
    [
        pytest.param("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n", "4096 131072 6291456", True, id="tabs"),
        pytest.param("/proc/sys/vm/nr_hugepages", "0\n", "1", False, id="another number"),
        pytest.param("/sys/kernel/mm/transparent_hugepage/enabled", "always [never]", "never", True, id="selection"),
        pytest.param("/sys/class/net/d0/queues/rx-0/rps_cpus", "00000000,00000002\n", "2", True, id="mask, padded"),
        pytest.param("/sys/class/net/d0/queues/rx-0/rps_cpus", "1,00000000", "100000000", True, id="mask, wide"),
        pytest.param("/sys/class/net/d0/queues/rx-0/rps_cpus", "3", "1", False, id="another mask"),
        pytest.param("/sys/fs/cgroup/cpuset/cpuset.cpus", "1,2", "12", False, id="a list of CPUs is no mask"),
    ],
)
def test_two_texts_are_the_same_value_or_not(path: str, one: str, other: str, same: bool) -> None:
    assert same_value(path, one, other) is same


def test_the_selected_word_is_the_value() -> None:
    assert plain_value("always defer [madvise] never\n") == "madvise"
    assert plain_value("[fe80::1]") == "[fe80::1]"


@pytest.mark.parametrize(
    ("cpus", "mask"), [((0,), "1"), ((1,), "2"), ((0, 3), "9"), ((32,), "1,00000000"), ((0, 64), "1,00000000,00000001")]
)
def test_a_mask_is_written_in_groups_of_32_bits(cpus: tuple[int, ...], mask: str) -> None:
    assert cpu_mask(cpus) == mask


async def test_programs_of_the_kernel_need_an_interface_that_takes_every_vlan(tmp_path: Path) -> None:
    host, stack = FakeHost(), UndoStack("run", None, tmp_path)
    host.answer("ip -j link show", shown())
    await make_promiscuous(stack, host, "t0", by_engine=False)
    host.answer("ip -j link show", shown("PROMISC"))
    assert await stack.undo_all() == []
    assert [command[-1] for command in host.commands if "promisc" in command] == ["on", "off"]
