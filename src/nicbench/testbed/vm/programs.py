"""The programs of a guest: QEMU, and the kernel with its initial RAM disk."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import lzma
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from nicbench.core.errors import NotReadyError
from nicbench.core.frozen import frozen
from nicbench.core.shipped import clone
from nicbench.hosts.owner import boot_id

# Finds the guest's kernel, Debian's of ``scripts/fetch-vm`` or the machine's own, and makes its initial file system.
#
# A kernel unpacks itself when it starts. Emulated, that is half the time until a guest is ready; here it is done once,
# so that QEMU can start it directly (by PVH). The initial file system has busybox, a script, and the modules that the
# root file system needs. Archives are cpio archives of the kind ``newc`` (Documentation/driver-api/early-
# userspace/buffer-format.rst of the kernel); an initrd may have several one after another.


FETCH_COMMAND = "scripts/fetch-vm" if clone() else "scripts/fetch-vm, in a clone of nicbench’s repository"


@frozen
class Kernel:
    """A kernel that can be booted; ``version`` is that of ``uname -r`` in the guest."""

    version: str
    image: Path
    modules: Path
    """The folder of its modules and their index: ``/lib/modules/VERSION`` in the guest."""


def vm_folder() -> Path:
    """The folder that kernels and emulators are unpacked into, with a folder for each version."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "nicbench" / "vm"


def find_kernel(folder: Path | None = None) -> Kernel:
    """The newest kernel in ``folder``, by default ``vm_folder()``; NotReadyError where it is missing."""
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
    found = [_kernel_of(image) for image in sorted(images, key=_kernel_version, reverse=True)]
    return tuple(kernel for kernel in found if (kernel.modules / "modules.dep").is_file())


def version_key(text: str) -> tuple[int, ...]:
    """The numbers of a version for comparisons: 6.1.0-56-amd64 is (6, 1, 0, 56, 64)."""
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _kernel_of(image: Path) -> Kernel:
    version = image.name.removeprefix("vmlinuz-")
    return Kernel(version, image, image.parents[1] / "lib" / "modules" / version)


def _kernel_version(image: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A key that sorts kernels by version, and by that of the package, as Debian fixes a kernel under the same name."""
    return version_key(image.name), version_key(image.parents[1].name)


_XZ: Final = b"\xfd7zXZ\x00"
"""The beginning of an xz file (The .xz File Format, 2.1.1.1); Debian compresses its kernels by xz."""
_ELF: Final = b"\x7fELF"
_PVH: Final = b"\x12\0\0\0Xen\0"
"""Type 18 and owner of the ELF note that tells QEMU where to start (xen/interface/elfnote.h of the kernel)."""


def unpack(kernel: Kernel) -> Path:
    """The file to boot: the unpacked kernel next to the image, made where it is missing, else the image itself."""
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


MODULES: Final = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay")
"""Modules that a guest needs before it has its root file system: for the serial ports and the file systems."""
_FOLDERS: Final = ("bin", "modules", "proc", "sys", "dev", "lower", "upper", "root", "nicbench")
_CODECS: Final = {".zst": "zstd", ".gz": "gzip"}
_TRAILER: Final = "TRAILER!!!"


@frozen
class Entry:
    """A file with its ``content``, or a folder where that is ``None``."""

    path: str
    content: bytes | None = None
    executable: bool = False


def archive(entries: Sequence[Entry]) -> bytes:
    """A cpio archive of the entries, without times and owners, so that equal entries give equal bytes."""
    parts = [_record(number, entry) for number, entry in enumerate(entries, start=1)]
    parts.append(_header(0, 0, 1, 0, _TRAILER))
    whole = b"".join(parts)
    return whole + bytes(-len(whole) % 512)


def base_archive(modules: Path, busybox: Path, script: str) -> bytes:
    """The compressed archive that is the same for all guests of one kernel."""
    entries = [Entry(folder) for folder in _FOLDERS]
    entries.append(Entry("init", script.encode(), executable=True))
    entries.append(Entry("bin/busybox", busybox.read_bytes(), executable=True))
    needed = order_modules((modules / "modules.dep").read_text(encoding="utf-8"), MODULES)
    for number, name in enumerate(needed):
        stem = Path(name).name.partition(".ko")[0]
        entries.append(Entry(f"modules/{number:02}-{stem}.ko", _module(modules / name)))
    return _pad(gzip.compress(archive(entries), compresslevel=1, mtime=0))  # the next begins at a multiple of 4 bytes


def _module(file: Path) -> bytes:
    """A module decompressed: Debian compresses modules by xz, others by zstd or gzip. OSError where it is damaged."""
    if file.suffix == ".xz":
        try:
            return lzma.decompress(file.read_bytes())
        except lzma.LZMAError as error:
            raise OSError(f"{file}: {error}") from error
    codec = _CODECS.get(file.suffix)
    if codec is None:
        return file.read_bytes()
    import pyarrow as pa  # imported here because it takes long to load

    with pa.CompressedInputStream(str(file), codec) as stream:
        return bytes(stream.read())


def own_archive(files: Mapping[str, str], agent: bytes) -> bytes:
    """The archive with one guest's own files in the folder ``nicbench``, to be appended to the base."""
    entries = [Entry(f"nicbench/{name}", text.encode()) for name, text in files.items()]
    return archive([Entry("nicbench"), Entry("nicbench/agent", agent, executable=True), *entries])


def order_modules(dependencies: str, names: Sequence[str]) -> list[str]:
    """The files of modules and of those that they need, in the order of loading, by the text of ``modules.dep``.

    A module that is not in it is built into the kernel.
    """
    needs = {}
    for line in dependencies.splitlines():
        path, _, rest = line.partition(":")
        needs[path] = rest.split()
    by_name = {Path(path).name.split(".ko")[0].replace("-", "_"): path for path in needs}
    found = []

    def add(path: str) -> None:
        if path in found:
            return
        for other in needs.get(path, ()):
            add(other)
        found.append(path)

    for name in names:
        if name in by_name:
            add(by_name[name])
    return found


def _record(number: int, entry: Entry) -> bytes:
    if entry.content is None:
        return _header(number, stat.S_IFDIR | 0o755, 2, 0, entry.path)
    mode = stat.S_IFREG | (0o755 if entry.executable else 0o600)
    return _header(number, mode, 1, len(entry.content), entry.path) + _pad(entry.content)


def _header(number: int, mode: int, links: int, size: int, path: str) -> bytes:
    name = path.encode() + b"\0"
    fields = (number, mode, 0, 0, links, 0, size, 0, 0, 0, 0, len(name), 0)
    return _pad(b"070701" + b"".join(b"%08X" % field for field in fields) + name)


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


# Finds QEMU, the machine's own where it has the card igb (8.0 and newer), else that of ``scripts/fetch-vm``, and
# whether a guest runs on KVM.
#
# On some machines the device /dev/kvm exists, but a guest never comes up. So a kernel is started without a root file
# system once for each boot of the machine: where KVM works it panics, which ends QEMU.


PROGRAM = "qemu-system-x86_64"
_LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
_FIRMWARE = ("usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu")
_VERSION = re.compile(r"emulator version (\d+(?:\.\d+)+)")
_ANSWER_TIMEOUT_S = 30.0


@frozen
class Emulator:
    """A QEMU that works: it was started once for its version."""

    path: Path
    version: str
    has_igb: bool
    """Whether it emulates Intel's 82576, a card with virtual functions and hardware time stamps."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables to add to the environment in which it is started; empty for the machine's own."""
    firmware: tuple[Path, ...] = ()
    """The folders of its BIOS, each for an option ``-L``; none for the machine's own."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The beginning of each of its command lines: the program and the folders of its BIOS."""
        return (str(self.path), *(word for folder in self.firmware for word in ("-L", str(folder))))


def find_emulator(folder: Path | None = None) -> Emulator:
    """The machine's own where it has the card igb, else the newest fetched one, else the machine's own without it.

    Fetched ones are in ``folder``, by default ``vm_folder()``. NotReadyError where none can be started.
    """
    searched = folder or vm_folder()
    own = shutil.which(PROGRAM)
    machines = _ask(Path(own)) if own else None
    if machines is not None and machines.has_igb:
        return machines
    unpacked = sorted(searched.glob(f"qemu-*/usr/bin/{PROGRAM}"), key=_emulator_version, reverse=True)
    fetched = (_ask(path, _environment(path.parents[2]), _firmware(path.parents[2])) for path in unpacked)
    found = next((one for one in fetched if one is not None), machines)
    if found is None:
        raise NotReadyError(
            f"there is no QEMU that can be started: neither {PROGRAM} in PATH nor one in {searched}",
            place=PROGRAM,
            next_step=f"run {FETCH_COMMAND}",
        )
    return found


def parse_version(text: str) -> str | None:
    """The version in the output of ``qemu-system-x86_64 --version``; None where it has none."""
    found = _VERSION.search(text)
    return found[1] if found else None


def _ask(path: Path, environment: Mapping[str, str] | None = None, firmware: tuple[Path, ...] = ()) -> Emulator | None:
    """The QEMU at ``path``; None where it does not start, for example for want of a library."""
    added = environment or {}
    version = parse_version(_answer(path, ("--version",), added) or "")
    if version is None:
        return None
    # For a card that it lacks it prints an error to stderr, but its exit status is 0.
    has_igb = (_answer(path, ("-device", "igb,help"), added) or "").startswith("igb options")
    return Emulator(path, version, has_igb, added, firmware)


def _answer(path: Path, arguments: tuple[str, ...], environment: Mapping[str, str]) -> str | None:
    """The output of the program; None where it fails or does not end in time."""
    try:
        done = subprocess.run(
            [str(path), *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _environment(root: Path) -> dict[str, str]:
    """Variables for its own libraries before the machine's, and its own modules, which fit only this build."""
    before = os.environ.get("LD_LIBRARY_PATH")
    libraries = str(root / _LIBRARIES)
    return {
        "LD_LIBRARY_PATH": f"{libraries}:{before}" if before else libraries,
        "QEMU_MODULE_DIR": str(root / _LIBRARIES / "qemu"),
    }


def _firmware(root: Path) -> tuple[Path, ...]:
    return tuple(root / folder for folder in _FIRMWARE if (root / folder).is_dir())


def _emulator_version(program: Path) -> tuple[int, ...]:
    return version_key(program.parents[2].name)


_DEVICE: Final = "/dev/kvm"
_RESULT_FILE: Final = Path("/run/nicbench-kvm")
_PROBE_S: Final = 10.0
"""The limit of the attempt, which takes 1 s where KVM works."""


async def accelerator_for(wanted: str, emulator: Emulator, kernel: Kernel) -> str:
    """The accelerator to use, ``kvm`` or ``tcg``; NotReadyError where KVM is asked for but does not work."""
    if wanted == "tcg":
        return "tcg"
    if await kvm_works(emulator, kernel):
        return "kvm"
    if wanted == "kvm":
        raise NotReadyError(
            "KVM does not work on this machine",
            place=_DEVICE,
            next_step="enable virtualisation in the BIOS, or nested virtualisation; or write `accelerator: auto`",
        )
    return "tcg"


async def kvm_works(emulator: Emulator, kernel: Kernel) -> bool:
    """Whether a guest runs on KVM; this is tried once for each boot of this machine."""
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return False
    try:
        known, works = _RESULT_FILE.read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        known, works = "", ""
    if known == boot_id():
        return works == "works"
    runs = await _try(emulator, kernel)
    with contextlib.suppress(OSError):  # without the file it is tried again the next time
        _RESULT_FILE.write_text(f"{boot_id()} {'works' if runs else 'fails'}\n", encoding="utf-8")
    return runs


async def _try(emulator: Emulator, kernel: Kernel) -> bool:
    process = await asyncio.create_subprocess_exec(
        *emulator.arguments,
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "q35,hpet=off", "-accel", "kvm", "-cpu", "host", "-m", "256M"),
        *("-kernel", str(kernel.image), "-append", "quiet panic=-1"),
        env={**os.environ, **emulator.environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_PROBE_S):
            return await process.wait() == 0
    except TimeoutError:
        return False
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
