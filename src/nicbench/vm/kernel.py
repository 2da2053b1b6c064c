"""The guest's kernel: Debian's own, unpacked by ``scripts/fetch-vm`` and never installed."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from nicbench.cache import cache_folder
from nicbench.errors import NotReadyError

FETCH_COMMAND = "scripts/fetch-vm"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that can be booted: ``version`` is what ``uname -r`` says in the guest."""

    version: str
    image: Path
    modules: Path
    """Its modules with their index: what is ``/lib/modules/VERSION`` in the guest."""


def vm_folder() -> Path:
    """Where what a virtual machine needs is unpacked, one folder for each version."""
    return cache_folder() / "vm"


def find_kernel(folder: Path | None = None) -> Kernel:
    """The newest of those in ``folder``, ordinarily ``vm_folder()``. NotReadyError where there is none."""
    searched = folder or vm_folder()
    kernels = find_kernels(searched)
    if not kernels:
        raise NotReadyError(
            "there is no kernel for a virtual machine", place=str(searched), next_step=f"run {FETCH_COMMAND}"
        )
    return kernels[0]


def own_kernel(root: Path = Path("/")) -> Kernel:
    """The one that this machine runs (``kernel: machine``). NotReadyError where it is not on its disk."""
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
    """All of a folder, the newest first; what was unpacked in part is none."""
    images = [image for image in folder.glob("kernel*/boot/vmlinuz-*") if image.is_file()]
    found = [_kernel_of(image) for image in sorted(images, key=_age_of, reverse=True)]
    return tuple(kernel for kernel in found if (kernel.modules / "modules.dep").is_file())


def version_key(text: str) -> tuple[int, ...]:
    """The numbers of a version, for comparing: 6.1.0-56-amd64 is (6, 1, 0, 56, 64)."""
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _kernel_of(image: Path) -> Kernel:
    version = image.name.removeprefix("vmlinuz-")
    return Kernel(version, image, image.parents[1] / "lib" / "modules" / version)


def _age_of(image: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Debian mends a kernel under the same name: then the package's version in the folder's name decides."""
    return version_key(image.name), version_key(image.parents[1].name)
