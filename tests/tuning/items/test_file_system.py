"""A file system for the test: what is refused, what is run, and a real one on a loop device that leaves nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.commands import run_captured, run_checked, run_tried
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.core.plan import Outcome, TunedSetting
from nicbench.hosts.kinds.local import LocalHost
from nicbench.tuning.items.file_system import FileSystem, loop_devices_of, options_in_force, signatures_of, users_of
from nicbench.tuning.record import load_record
from nicbench.tuning.setting import CannotSetError
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.tune import Part, TuningRequest, place_requests, tune
from nicbench.tuning.undo.files import RemoveFileSystem

GOLDEN = Path(__file__).parent.parent / "golden"


def golden(name: str) -> str:
    return (GOLDEN / name).read_text(encoding="utf-8")


def test_signatures_are_those_that_wipefs_lists() -> None:
    assert signatures_of(golden("wipefs_xfs.txt")) == ("xfs",)
    assert signatures_of(golden("wipefs_dos.txt")) == ("dos",)
    assert signatures_of("") == ()
    with pytest.raises(ValueError, match="no line of wipefs"):
        signatures_of("wipefs: error: it is broken")


def test_users_of_a_device_are_its_mount_its_partitions_and_what_stands_on_them() -> None:
    assert users_of(golden("lsblk_free.json")) == ()
    assert users_of(golden("lsblk_mounted.json")) == ("it is mounted at /srv/media",)
    assert users_of(
        '{"blockdevices": [{"name": "/dev/sda", "type": "disk", "mountpoint": null, "children": [{"name": "/dev/sda1", '
        '"type": "part", "mountpoint": "[SWAP]"}]}]}'
    ) == ("/dev/sda1 (part) is on it", "/dev/sda1 is swapped to")
    assert loop_devices_of(golden("losetup.json")) == ("/dev/loop0",)
    assert loop_devices_of("\n") == ()


def test_an_option_holds_where_the_kernel_shows_it_or_nothing_against_it() -> None:
    shown = ("rw", "noatime", "logbufs=8", "delalloc")
    assert options_in_force(("noatime", "nobarrier", "logbufs=8"), shown) == ("noatime", "nobarrier", "logbufs=8")
    assert options_in_force(("atime", "nodelalloc", "logbufs=4"), shown) == ()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"device": "sdb"}, "no absolute path"),
        ({"device": "/dev/../srv/x"}, "no absolute path"),
        ({"mkfs": ("/dev/sdc",)}, "match pattern"),
        ({"mkfs": ("-l logdev=/dev/sdc",)}, "match pattern"),
        ({"mkfs": ("-m uuid=1",)}, "the UUID is chosen by nicbench"),
        ({"mkfs": ("-J device=UUID=1",)}, "no other device is named"),
        ({"mount": ("noatime,nodiratime",)}, "match pattern"),
        ({"mount": ("bind",)}, "no option of a file system that is made for a test"),
        ({"type": "zfs"}, "'ext4', 'xfs' or 'btrfs'"),
    ],
)
def test_what_could_reach_another_device_is_refused(given: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        FileSystem.Options.model_validate({"device": "/dev/sdb", "path": "/stor/d1", **given})


NOW = {
    "content of /dev/sdb": "nothing",
    "mounted at /stor/d1": "nothing",
    "options of /stor/d1": "none",
    "used": "",
    "mount point": "empty",
}


@pytest.mark.parametrize(
    ("now", "given", "why"),
    [
        ({"used": "it is mounted at /srv"}, {"erase": True}, "is in use, and is not formatted: it is mounted at /srv"),
        ({"content of /dev/sdb": "ext4"}, {}, "there is ext4 on it; a format cannot be undone: write `erase: true`"),
        ({"content of /dev/sdb": "no file"}, {}, "there is no /dev/sdb: lsblk shows"),
        ({}, {"image": 2**30}, "is there already"),
        ({"mount point": "full"}, {}, "it holds files"),
        ({"mount point": "orphan"}, {}, "mkdir -p /stor"),
        ({"mount point": "mounted"}, {}, "something is mounted there"),
    ],
)
def test_a_device_is_formatted_only_where_nothing_is_lost(
    now: dict[str, str], given: dict[str, object], why: str
) -> None:
    item = FileSystem(FileSystem.Options.model_validate({"device": "/dev/sdb", "path": "/stor/d1", **given}))
    with pytest.raises(CannotSetError, match=why):
        item.target_values({**NOW, **now})


def test_its_commands_can_be_repeated_without_nicbench() -> None:
    options = {"device": "/srv/a.img", "path": "/stor/d1", "mkfs": ("-m reflink=0",), "mount": ("noatime",)}
    item = FileSystem(FileSystem.Options.model_validate({**options, "image": 2**30}))
    assert item.target_values({**NOW, "content of /srv/a.img": "no file"}) == {
        "content of /srv/a.img": "xfs",
        "mounted at /stor/d1": "xfs",
        "options of /stor/d1": "noatime",
    }
    assert item.commands() == (
        "truncate --size=1073741824 /srv/a.img",
        "mkfs.xfs -q -f -m reflink=0 /srv/a.img",
        "mount -t xfs -o noatime,loop /srv/a.img /stor/d1",
    )


async def test_a_machine_without_the_program_refuses_the_run(tmp_path: Path) -> None:
    host = FakeHost("machine", {"/proc/self/mountinfo": ""})
    host.fail(("sh", "-c"), "", 127)
    with pytest.raises(NotReadyError, match=r"mkfs\.btrfs is not installed there: apt-get install btrfs-progs"):
        await _tune(UndoStack("run", None, tmp_path), host, device="/dev/sdb", path="/stor/d1", type="btrfs")


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[str]:
    """A loop device of 64 MiB with nothing on it."""
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("it needs root and loop devices")
    image = tmp_path / "drive"
    image.write_bytes(b"")
    os.truncate(image, 64 << 20)
    made = run_tried(("losetup", "--find", "--show", str(image)))
    if made.returncode != 0:
        pytest.skip(f"no loop device can be had here: {made.stderr.strip()}")
    yield made.stdout.strip()
    run_checked(("losetup", "--detach", made.stdout.strip()))


@pytest.mark.lab
async def test_a_drive_is_as_empty_afterwards_as_before_also_after_a_crash(drive: str, tmp_path: Path) -> None:
    point = tmp_path / "d1"
    stack = UndoStack("run", None, tmp_path / "run")
    row = await _tune(stack, LocalHost(), device=drive, path=str(point), type="ext4", mount=("noatime",))
    assert row.outcome is Outcome.CHANGED
    assert os.path.ismount(point)
    (point / "frame").write_bytes(b"1")
    with pytest.raises(NotReadyError, match="is in use, and is not formatted"):
        await _tune(
            UndoStack("other", None, tmp_path / "other"),
            LocalHost(),
            device=drive,
            path=str(tmp_path / "d2"),
            type="ext4",
        )

    # As another process does it after a crash, by what is written in /run alone; a second time there is nothing to do.
    record = load_record(tmp_path / "run" / "run" / "undo.json")
    (entry,) = record.entries
    for _ in range(2):
        assert await entry.undo.undo(LocalHost()) is None
        assert not point.exists()
        assert _signatures(drive) == ()
    assert await stack.undo_all() == []


@pytest.mark.lab
async def test_what_somebody_else_made_since_is_left_alone(drive: str, tmp_path: Path) -> None:
    undo = RemoveFileSystem(device=drive, path=str(tmp_path / "d1"), uuid="0" * 8, added=("folder", "signature"))
    run_checked(("mkfs.ext4", "-q", drive))
    (tmp_path / "d1").mkdir()
    run_checked(("mount", drive, str(tmp_path / "d1")))
    try:
        assert f"somebody mounted {drive} there since" in (await undo.undo(LocalHost()) or "")
        assert os.path.ismount(tmp_path / "d1")
    finally:
        run_checked(("umount", str(tmp_path / "d1")))
    assert _signatures(drive) == ("ext4",)


async def _tune(stack: UndoStack, host: FakeHost | LocalHost, **options: object) -> TunedSetting:
    request = TuningRequest("all", FileSystem, FileSystem.Options.model_validate(options))
    (row,) = await tune(stack, place_requests([request], [Part("dut", host, ())]))
    return row


def _signatures(drive: str) -> tuple[str, ...]:
    listed = run_captured(("wipefs", "--parsable", drive))
    return signatures_of(listed.stdout)
