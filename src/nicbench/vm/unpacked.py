"""A kernel unpacked from its image, which QEMU starts as it is (by PVH).

A kernel unpacks itself as it starts. Emulated, that is half the time until a guest is ready; here it is done once.
"""

from __future__ import annotations

import lzma
import os
import tempfile
from pathlib import Path
from typing import Final

from nicbench.vm.kernel import Kernel

_XZ: Final = b"\xfd7zXZ\x00"
"""What xz files begin with (The .xz File Format, 2.1.1.1); Debian compresses its kernels so."""
_ELF: Final = b"\x7fELF"
_PVH: Final = b"\x12\0\0\0Xen\0"
"""Type 18 and owner of the ELF note by which QEMU finds where to start (xen/interface/elfnote.h of the kernel)."""


def unpacked(kernel: Kernel) -> Path:
    """What is to be started: the unpacked kernel beside the image, made where it lacks, else the image itself."""
    target = kernel.image.with_name(f"vmlinux-{kernel.version}")
    if target.is_file():
        return target
    try:
        content = _content(kernel.image.read_bytes())
        if content is None:
            return kernel.image
        _write(target, content)
    except OSError:  # a full disk, or a folder that is only read: it starts all the same, seconds later
        return kernel.image
    return target


def _content(image: bytes) -> bytes | None:
    """None of a kernel that is compressed in another way, or cannot be started so."""
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
    """Whole or not at all: others may boot at the same time."""
    descriptor, path = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(path, target)
    except BaseException:
        os.unlink(path)
        raise
