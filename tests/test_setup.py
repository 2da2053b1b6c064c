"""Set-up says exactly what is missing and what to do, where it cannot mend it itself. Nothing is installed here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.commands import run_tried

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("bash", "cat", "chmod", "cut", "grep", "head", "rm", "sed", "sort", "tail", "tr")


class Machine:
    """A machine of which only the programs in one folder exist; each is a real one or a stand-in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for tool in TOOLS:
            real = shutil.which(tool)
            assert real is not None
            (folder / tool).symlink_to(real)

    def has(self, name: str, script: str) -> None:
        (self.folder / name).unlink(missing_ok=True)  # it may be a link to the real one
        (self.folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / name).chmod(0o755)

    def has_rust(self, version: str = "1.99.0") -> None:
        self.has("cargo", f"echo 'cargo {version} (0123abc 2030-01-01)'")

    def is_debian(self, installed: tuple[str, ...] = ()) -> None:
        lines = "\\n".join(f"{name} installed" for name in installed)
        self.has("dpkg-query", f"printf '{lines}\\n'; exit 1")
        self.has("apt-get", "echo apt-get was called >&2; exit 1")

    def is_used_by(self, user_number: int) -> None:
        self.has("id", f"echo {user_number}")

    def does(self, step: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": str(self.folder),
            "HOME": str(self.folder),
            "PYTHON": "true",
            "NICBENCH_SERVICE_POLICY": str(self.folder / "policy"),
        }
        command = [str(self.folder / "bash"), "-c", f"set -euo pipefail; . scripts/setup-steps.sh; {step}"]
        return run_tried(command, cwd=ROOT, env=environment)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_rust_it_says_how_to_get_it(machine: Machine) -> None:
    done = machine.does("find_cargo")
    assert done.returncode == 3
    assert "cargo is not installed" in done.stderr
    assert "rustup" in done.stderr


def test_a_rust_that_is_too_old_is_named_with_its_version(machine: Machine) -> None:
    machine.has_rust("1.63.0")
    done = machine.does("find_cargo")
    assert done.returncode == 3
    assert "1.63.0" in done.stderr
    assert "rustup update" in done.stderr


def test_a_new_rust_is_taken(machine: Machine) -> None:
    machine.has_rust()
    assert machine.does("find_cargo").returncode == 0


def test_without_root_it_prints_the_command_that_installs_what_is_missing(machine: Machine) -> None:
    machine.is_debian(installed=("iproute2", "gcc"))
    machine.is_used_by(1000)
    done = machine.does("install_packages 'runtime build'")
    assert done.returncode == 3
    assert "sudo apt-get install" in done.stderr
    assert "ethtool" in done.stderr
    assert "iproute2" not in done.stderr
    assert "apt-get was called" not in done.stderr


def test_packages_for_the_checks_are_left_out_unless_asked_for(machine: Machine) -> None:
    machine.is_debian()
    machine.is_used_by(1000)
    assert " dpdk-dev" not in machine.does("install_packages 'runtime build'").stderr
    assert " dpdk-dev" in machine.does("install_packages 'runtime build test'").stderr


def test_on_another_distribution_it_lists_what_to_install(machine: Machine) -> None:
    done = machine.does("install_packages runtime")
    assert done.returncode == 3
    assert "not Debian" in done.stderr
    assert "ethtool" in done.stderr
    assert "NICBENCH_SKIP_PACKAGES=1" in done.stderr


def test_nothing_is_installed_where_nothing_is_missing(machine: Machine) -> None:
    listed = machine.does("packages_of 'runtime build'").stdout.split()
    assert "libdpdk-dev" in listed
    machine.is_debian(installed=tuple(listed))
    done = machine.does("install_packages 'runtime build'")
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def test_a_failed_installation_shows_the_end_of_its_output_and_the_command(machine: Machine, tmp_path: Path) -> None:
    machine.is_debian()
    machine.is_used_by(0)
    machine.has("mktemp", f"echo {tmp_path / 'log'}")
    done = machine.does("install_packages build")
    assert done.returncode == 3
    assert "installing these Debian packages" in done.stderr
    assert "apt-get was called" in done.stderr
    assert "apt-get install --no-install-recommends --yes gcc" in done.stderr


def test_services_that_come_with_packages_are_not_started(machine: Machine, tmp_path: Path) -> None:
    machine.is_debian()
    machine.is_used_by(0)
    machine.has("mktemp", f"echo {tmp_path / 'log'}")
    machine.has("apt-get", 'cat "$NICBENCH_SERVICE_POLICY" >&2; exit 1')
    assert "exit 101" in machine.does("install_packages build").stderr
    assert not (tmp_path / "policy").exists()
