"""Finds the guest's kernel, Debian's of ``scripts/fetch-vm`` or the machine's own, and unpacks it so that QEMU can
start it directly (by PVH).

A kernel unpacks itself when it starts. Emulated, that is half the time until a guest is ready; here it is done once.
"""

from __future__ import annotations

import lzma
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nicbench.core.cache import cache_folder
from nicbench.core.errors import NotReadyError

FETCH_COMMAND = "scripts/fetch-vm"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that can be booted; ``version`` is that of ``uname -r`` in the guest."""

    version: str
    image: Path
    modules: Path
    """The folder of its modules and their index: ``/lib/modules/VERSION`` in the guest."""


def vm_folder() -> Path:
    """The folder that kernels and emulators are unpacked into, with a folder for each version."""
    return cache_folder() / "vm"


def find_kernel(folder: Path | None = None) -> Kernel:
    """The newest kernel in ``folder``, by default ``vm_folder()``; NotReadyError where there is none."""
    searched = folder or vm_folder()
    kernels = find_kernels(searched)
    if not kernels:
        raise NotReadyError(
            "there is no kernel for a virtual machine", place=str(searched), next_step=f"run {FETCH_COMMAND}"
        )
    return kernels[0]


def own_kernel(root: Path = Path("/")) -> Kernel:
    """The kernel that this machine runs (``kernel: machine``); NotReadyError where it is not on its disk."""
    version = os.uname().release
    kernel = Kernel(version, root / "boot" / f"vmlinuz-{version}", root / "lib" / "modules" / version)
    missing = next((path for path in (kernel.image, kernel.modules / "modules.dep") if not path.is_file()), None)
    if missing is not None:
        raise NotReadyError(
            f"the kernel that this machine runs ({version}) is not on its disk",
            place=str(missing),
            next_step="write `kernel: fetched`, or install the kernel's package",
        )
    return kernel


def find_kernels(folder: Path) -> tuple[Kernel, ...]:
    """All kernels in a folder, the newest first, without incompletely unpacked ones."""
    images = [image for image in folder.glob("kernel*/boot/vmlinuz-*") if image.is_file()]
    found = [_kernel_of(image) for image in sorted(images, key=_version_of, reverse=True)]
    return tuple(kernel for kernel in found if (kernel.modules / "modules.dep").is_file())


def version_key(text: str) -> tuple[int, ...]:
    """The numbers of a version for comparisons: 6.1.0-56-amd64 is (6, 1, 0, 56, 64)."""
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _kernel_of(image: Path) -> Kernel:
    version = image.name.removeprefix("vmlinuz-")
    return Kernel(version, image, image.parents[1] / "lib" / "modules" / version)


def _version_of(image: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A key that sorts kernels by version, and by that of the package, as Debian fixes a kernel under the same name."""
    return version_key(image.name), version_key(image.parents[1].name)


_XZ: Final = b"\xfd7zXZ\x00"
"""The beginning of an xz file (The .xz File Format, 2.1.1.1); Debian compresses its kernels by xz."""
_ELF: Final = b"\x7fELF"
_PVH: Final = b"\x12\0\0\0Xen\0"
"""Type 18 and owner of the ELF note that tells QEMU where to start (xen/interface/elfnote.h of the kernel)."""


def unpack(kernel: Kernel) -> Path:
    """The file to boot: the unpacked kernel beside the image, made where it is missing, else the image itself."""
    target = kernel.image.with_name(f"vmlinux-{kernel.version}")
    if target.is_file():
        return target
    try:
        content = _content(kernel.image.read_bytes())
        if content is None:
            return kernel.image
        _write(target, content)
    except OSError:  # with a full disk or a read-only folder the image itself starts, only seconds later
        return kernel.image
    return target


def _content(image: bytes) -> bytes | None:
    """The kernel in an image; None where it is compressed in another way, or cannot be started by PVH."""
    at = image.find(_XZ)
    while at >= 0:
        unpacking = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        try:
            content = unpacking.decompress(image[at:])
        except lzma.LZMAError:
            content = b""
        if unpacking.eof and content.startswith(_ELF):
            return content if _PVH in content else None
        at = image.find(_XZ, at + 1)
    return None


def _write(target: Path, content: bytes) -> None:
    """Writes the file atomically, because other guests may boot at the same time."""
    descriptor, path = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(path, target)
    except BaseException:
        os.unlink(path)
        raise
