"""What an undo would do elsewhere is found out without doing it; the script says it in shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.fakes import FakeHost

from nicbench.hosts.base import Presence
from nicbench.tuning.dry_undo import Change, DryUndo, Question, dry_undo
from nicbench.tuning.guards import Step, script
from nicbench.tuning.items.steering import Irqbalance
from nicbench.tuning.undo.base import Undo
from nicbench.tuning.undo.files import RestoreFile, Unmount
from nicbench.tuning.undo.network import DeleteLink
from nicbench.tuning.undo.processes import EndServer
from nicbench.tuning.undo.restore_setting import RestoreSetting

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

    assert found is not None
    assert found.holds == []


async def test_an_undo_that_waits_for_its_effect_is_foreseen_all_the_same() -> None:
    host = _Remote()
    host.answer(("pgrep",), "7\n")
    host.answer(("cat", "--", "/proc/7/stat"), "7 (irqbalance) T " + " ".join(map(str, range(1, 40))))
    found = await dry_undo(host, _irqbalance(), applied=True)

    assert found is not None
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

    assert mount is not None
    assert server is not None
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
    subprocess.run(("sh", tmp_path / "undo.sh", CONTROLLER.name), check=True, cwd=tmp_path)

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
    subprocess.run(("sh", tmp_path / "undo.sh", CONTROLLER.name), check=True)

    assert (tmp_path / "told").read_text() == "could not put back: two\nput back: one\n"


def test_a_controller_that_died_undoes_nothing_of_the_run_that_was_resumed(tmp_path: Path) -> None:
    (tmp_path / "value").write_text("new\n")
    (tmp_path / "undo.sh").write_text(script([Step("one", _written_back(tmp_path / "value"))], CONTROLLER))
    subprocess.run(("sh", tmp_path / "undo.sh", Presence(100, 4711, "boot").name), check=True)

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
