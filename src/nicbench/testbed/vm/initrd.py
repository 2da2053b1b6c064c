"""Makes the initial file system of a guest: busybox, a script, and the modules that its root file system needs.

Archives are cpio archives of the kind ``newc`` (Documentation/driver-api/early-userspace/buffer-format.rst of the
kernel); an initrd may have several one after another.
"""

from __future__ import annotations

import gzip
import lzma
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MODULES: Final = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay")
"""Modules that a guest needs before it has its root file system: for the serial ports and the file systems."""
_FOLDERS: Final = ("bin", "modules", "proc", "sys", "dev", "lower", "upper", "root", "nicbench")
_CODECS: Final = {".zst": "zstd", ".gz": "gzip"}
_TRAILER: Final = "TRAILER!!!"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file with its ``content``, or a folder where that is None."""

    path: str
    content: bytes | None = None
    executable: bool = False


def archive(entries: Sequence[Entry]) -> bytes:
    """A cpio archive of the entries, without times and owners, so that equal entries give equal bytes."""
    parts = [_record(number, entry) for number, entry in enumerate(entries, start=1)]
    parts.append(_header(0, 0, 1, 0, _TRAILER))
    whole = b"".join(parts)
    return whole + bytes(-len(whole) % 512)


def base(modules: Path, busybox: Path, script: str) -> bytes:
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


def own(files: Mapping[str, str], agent: bytes) -> bytes:
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
    found: list[str] = []

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
