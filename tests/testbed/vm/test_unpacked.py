"""A kernel that is unpacked once, so that no emulated guest does it."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from nicbench.testbed.vm.programs import Kernel, unpack

_NOTE = b"\x04\0\0\0\x08\0\0\0\x12\0\0\0Xen\0"
_STARTS = b"\x7fELF and much more" + _NOTE


def _kernel(folder: Path, image: bytes) -> Kernel:
    path = folder / "vmlinuz-6.1"
    path.write_bytes(image)
    return Kernel("6.1", path, folder)


def test_it_lies_beside_its_image_and_is_made_once(tmp_path: Path) -> None:
    magic_in_its_code = b"boot code \xfd7zXZ\0 which is no file "
    kernel = _kernel(tmp_path, magic_in_its_code + lzma.compress(_STARTS) + b"what follows")
    assert unpack(kernel) == tmp_path / "vmlinux-6.1"
    assert (tmp_path / "vmlinux-6.1").read_bytes() == _STARTS
    (tmp_path / "vmlinux-6.1").write_bytes(b"as it was left")
    assert unpack(kernel).read_bytes() == b"as it was left"
    assert {path.name for path in tmp_path.iterdir()} == {"vmlinuz-6.1", "vmlinux-6.1"}


@pytest.mark.parametrize(
    "image",
    [
        pytest.param(b"compressed in another way", id="another way"),
        pytest.param(lzma.compress(b"\x7fELF without the note"), id="no note"),
        pytest.param(lzma.compress(_STARTS)[:-40], id="torn"),
        pytest.param(lzma.compress(b"no program"), id="no program"),
    ],
)
def test_another_kernel_starts_from_its_image(tmp_path: Path, image: bytes) -> None:
    kernel = _kernel(tmp_path, image)
    assert unpack(kernel) == kernel.image
    assert [path.name for path in tmp_path.iterdir()] == ["vmlinuz-6.1"]


def test_where_nothing_can_be_written_it_starts_from_its_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    kernel = _kernel(tmp_path, lzma.compress(_STARTS))
    assert unpack(kernel) == kernel.image
    assert [path.name for path in tmp_path.iterdir()] == ["vmlinuz-6.1"]
