"""Which kernel a virtual machine boots."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.errors import NotReadyError
from nicbench.testbed.vm.programs import find_kernel, find_kernels, vm_folder


def unpacked(folder: Path, package: str, version: str) -> None:
    (folder / package / "boot").mkdir(parents=True)
    (folder / package / "boot" / f"vmlinuz-{version}").touch()
    modules = folder / package / "lib" / "modules" / version
    modules.mkdir(parents=True)
    (modules / "modules.dep").touch()


def test_the_newest_is_taken_by_its_number_and_not_by_its_letters(tmp_path: Path) -> None:
    unpacked(tmp_path, "kernel-6.1.99-1", "6.1.0-9-amd64")
    unpacked(tmp_path, "kernel-6.1.192-2", "6.1.0-56-amd64")
    kernel = find_kernel(tmp_path)
    assert kernel.version == "6.1.0-56-amd64"
    assert kernel.image == tmp_path / "kernel-6.1.192-2" / "boot" / "vmlinuz-6.1.0-56-amd64"
    assert kernel.modules == tmp_path / "kernel-6.1.192-2" / "lib" / "modules" / "6.1.0-56-amd64"


def test_of_two_packages_of_one_version_the_newer_package_is_taken(tmp_path: Path) -> None:
    unpacked(tmp_path, "kernel-6.1.192-2", "6.1.0-56-amd64")
    unpacked(tmp_path, "kernel-6.1.192-10", "6.1.0-56-amd64")
    assert [kernel.image.parents[1].name for kernel in find_kernels(tmp_path)] == [
        "kernel-6.1.192-10",
        "kernel-6.1.192-2",
    ]


def test_a_kernel_without_an_index_of_its_modules_is_none(tmp_path: Path) -> None:
    unpacked(tmp_path, "kernel-6.1.192-2", "6.1.0-56-amd64")
    unpacked(tmp_path, "kernel-6.12.95-1", "6.12.95-amd64")
    (tmp_path / "kernel-6.12.95-1" / "lib" / "modules" / "6.12.95-amd64" / "modules.dep").unlink()
    assert find_kernel(tmp_path).version == "6.1.0-56-amd64"


def test_what_is_being_unpacked_is_not_looked_at(tmp_path: Path) -> None:
    unpacked(tmp_path, ".fetching.8uJk2x", "6.1.0-56-amd64")
    assert find_kernels(tmp_path) == ()


def test_without_a_kernel_the_next_step_is_to_fetch_one(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match="no kernel") as raised:
        find_kernel(tmp_path / "not there")
    assert raised.value.next_step == "run scripts/fetch-vm"
    assert raised.value.place == str(tmp_path / "not there")


def test_kernels_are_in_the_cache_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert vm_folder() == tmp_path / "nicbench" / "vm"
