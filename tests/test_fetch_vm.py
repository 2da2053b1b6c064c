"""What a virtual machine needs is fetched whole or not at all. apt, dpkg and QEMU are stand-ins: nothing is loaded."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.commands import run_tried

ROOT = Path(__file__).resolve().parents[1]
KERNEL = "6.1.0-56-amd64"
_TOOLS = (
    *("basename", "bash", "cat", "chmod", "chown", "df", "dirname", "flock", "grep", "head", "id", "mkdir", "mktemp"),
    *("mv", "rm", "sed", "sort", "tail", "touch", "uname"),
)
_APT_CACHE = f"""case "$*" in
    *linux-image-amd64) echo "Depends: linux-image-{KERNEL} (= 6.1.192-2)" ;;
    *) echo "Size: 70550672"; echo "Installed-Size: 405000" ;;
esac"""
_APT_GET = """while [ "$1" = -o ]; do shift 2; done
echo "$1" >>"$HOME/asked"
case "$1" in
    update) [ ! -e "$HOME/offline" ] ;;
    download) shift 2; for each; do touch "${each%%=*}.deb"; done ;;
    install) echo "Inst qemu-system-x86 [1:7.2] (1:10.0.2+ds-2~bpo12+1 Debian [amd64])"
             echo "Inst seabios [1.16.2] (1.16.3-2~bpo12+1 Debian [all]) []" ;;
esac"""
_DPKG_DEB = f"""case "$2" in
    *linux-image*)
        mkdir -p "$3/boot" "$3/lib/modules/{KERNEL}"
        [ ! -e "$HOME/full" ] || {{ echo "No space left on device" >&2; exit 2; }}
        touch "$3/boot/vmlinuz-{KERNEL}" ;;
    *qemu*) mkdir -p "$3/usr/bin"; echo '#!/bin/sh
echo igb options:' >"$3/usr/bin/qemu-system-x86_64"; chmod +x "$3/usr/bin/qemu-system-x86_64" ;;
esac"""


class Machine:
    """A Debian with only the programs of one folder, and a cache folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "programs"
        self.home = folder / "home"
        self.vm = self.home / ".cache" / "nicbench" / "vm"
        for each in (self.programs, self.home, folder / "tmp"):
            each.mkdir()
        for tool in _TOOLS:
            real = shutil.which(tool)
            assert real is not None
            (self.programs / tool).symlink_to(real)
        self.has("apt-get", _APT_GET)
        self.has("apt-cache", '[ ! -e "$HOME/offline" ] || exit 100\n' + _APT_CACHE)
        self.has("dpkg-deb", _DPKG_DEB)
        self.has("depmod", 'touch "$2/lib/modules/$3/modules.dep"')
        self.has_qemu(igb=False)

    def has(self, name: str, script: str) -> None:
        (self.programs / name).unlink(missing_ok=True)  # it may be a link to the real one
        (self.programs / name).write_text(f"#!{self.programs / 'bash'}\n{script}\n")
        (self.programs / name).chmod(0o755)

    def has_qemu(self, *, igb: bool) -> None:
        self.has("qemu-system-x86_64", "echo igb options:" if igb else "echo not found >&2")

    def fetches(self, *options: str) -> subprocess.CompletedProcess[str]:
        # The script adds /usr/sbin and /sbin for depmod; there is no apt.
        environment = {"PATH": str(self.programs), "HOME": str(self.home), "TMPDIR": str(self.home.parent / "tmp")}
        command = [str(self.programs / "bash"), "scripts/fetch-vm", *options]
        return run_tried(command, cwd=ROOT, env=environment)

    @property
    def fetched(self) -> list[str]:
        return sorted(path.name for path in self.vm.iterdir() if path.name != ".lock") if self.vm.exists() else []

    @property
    def leavings(self) -> list[str]:
        return os.listdir(self.home.parent / "tmp")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_kernel_and_a_newer_qemu_are_fetched_and_named(machine: Machine) -> None:
    done = machine.fetches()
    assert done.returncode == 0, done.stderr
    assert machine.fetched == ["kernel-6.1.192-2", "qemu-10.0.2+ds-2~bpo12+1"]
    assert (machine.vm / "kernel-6.1.192-2" / "lib" / "modules" / KERNEL / "modules.dep").exists()
    assert "70 MB" in done.stderr
    assert "405 MB" in done.stderr
    assert not machine.leavings


def test_where_all_is_there_nothing_is_asked_and_nothing_said(machine: Machine) -> None:
    machine.fetches()
    (machine.home / "asked").unlink()
    done = machine.fetches()
    assert (done.returncode, done.stderr) == (0, "")
    assert not (machine.home / "asked").exists()


def test_where_the_machines_own_qemu_has_the_card_no_other_is_fetched(machine: Machine) -> None:
    machine.has_qemu(igb=True)
    assert machine.fetches().returncode == 0
    assert machine.fetched == ["kernel-6.1.192-2"]


def test_without_a_network_it_says_so_and_leaves_nothing(machine: Machine) -> None:
    (machine.home / "offline").touch()
    done = machine.fetches()
    assert done.returncode == 3
    assert "linux-image-amd64 is not in the lists" in done.stderr
    assert "no network" in done.stderr
    assert machine.fetched == []
    assert not machine.leavings


def test_a_disk_that_fills_up_leaves_no_half_a_kernel(machine: Machine) -> None:
    (machine.home / "full").touch()
    done = machine.fetches()
    assert done.returncode == 3
    assert "No space left on device" in done.stderr
    assert machine.fetched == []
    (machine.home / "full").unlink()
    assert machine.fetches().returncode == 0
    assert "kernel-6.1.192-2" in machine.fetched


def test_too_little_room_is_known_beforehand(machine: Machine) -> None:
    machine.has("df", "echo Avail; echo 102400")
    done = machine.fetches()
    assert done.returncode == 3
    assert "100 MiB free" in done.stderr
    assert "XDG_CACHE_HOME" in done.stderr
    assert not (machine.home / "asked").exists()


def test_half_a_kernel_of_that_name_is_replaced(machine: Machine) -> None:
    (machine.vm / "kernel-6.1.192-2" / "boot").mkdir(parents=True)
    (machine.vm / ".fetching.killed").mkdir()
    assert machine.fetches().returncode == 0
    assert (machine.vm / "kernel-6.1.192-2" / "boot" / f"vmlinuz-{KERNEL}").exists()
    assert machine.fetched == ["kernel-6.1.192-2", "qemu-10.0.2+ds-2~bpo12+1"]


def test_an_update_fetches_what_is_newer_and_names_what_is_older(machine: Machine) -> None:
    machine.has_qemu(igb=True)
    machine.fetches()
    machine.has("apt-cache", _APT_CACHE.replace("6.1.192-2", "6.1.1000-1"))
    done = machine.fetches("--update")
    assert done.returncode == 0, done.stderr
    assert machine.fetched == ["kernel-6.1.1000-1", "kernel-6.1.192-2"]
    assert f"rm -r {machine.vm / 'kernel-6.1.192-2'}" in done.stderr


def test_on_another_distribution_it_says_what_to_do(machine: Machine) -> None:
    (machine.programs / "dpkg-deb").unlink()
    done = machine.fetches()
    assert done.returncode == 3
    assert "not Debian" in done.stderr
    assert "docs/vm.md" in done.stderr


def test_an_option_that_is_none_is_wrong_usage(machine: Machine) -> None:
    done = machine.fetches("--upgrade")
    assert done.returncode == 2
    assert "--upgrade" in done.stderr
