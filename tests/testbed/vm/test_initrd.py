"""The first file system of a guest."""

from __future__ import annotations

import gzip
import lzma
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from nicbench.core.errors import NotReadyError
from nicbench.hosts.options import VmOptions
from nicbench.testbed.vm.booting import _write_initrd
from nicbench.testbed.vm.programs import Entry, Kernel, archive, base_archive, order_modules, own_archive

_DEPENDENCIES = """\
kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko kernel/fs/fscache/fscache.ko kernel/fs/netfs/netfs.ko
kernel/fs/fscache/fscache.ko: kernel/fs/netfs/netfs.ko
kernel/fs/netfs/netfs.ko:
kernel/net/9p/9pnet.ko:
kernel/drivers/char/virtio-console.ko.xz: kernel/drivers/virtio/virtio.ko
kernel/drivers/virtio/virtio.ko:
"""


def test_a_module_comes_after_what_it_needs_and_what_is_built_in_is_left_out() -> None:
    found = order_modules(_DEPENDENCIES, ("virtio_console", "9p", "overlay"))
    names = [path.rsplit("/", 1)[1] for path in found]
    assert names == ["virtio.ko", "virtio-console.ko.xz", "9pnet.ko", "netfs.ko", "fscache.ko", "9p.ko"]


def test_archives_are_the_same_for_the_same_files_and_begin_at_four_bytes() -> None:
    assert own_archive({"name": "guest\n"}, b"agent") == own_archive({"name": "guest\n"}, b"agent")
    assert len(own_archive({"name": "guest\n"}, b"agent")) % 4 == 0


def test_cpio_reads_what_is_written() -> None:
    if shutil.which("cpio") is None:
        pytest.skip("cpio is not installed")
    written = archive([Entry("bin"), Entry("bin/sh", b"#!abc", executable=True), Entry("text", b"1234567")])
    done = subprocess.run(["cpio", "-itv", "--quiet"], input=written, capture_output=True, check=True)
    lines = done.stdout.decode().splitlines()
    assert [line.split()[0] for line in lines] == ["drwxr-xr-x", "-rwxr-xr-x", "-rw-------"]
    assert [line.split()[4] for line in lines] == ["0", "5", "7"]


def _zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue())


@pytest.mark.parametrize(
    ("suffix", "compress"), [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress), (".zst", _zstd)]
)
def test_modules_are_unpacked_as_distributions_compress_them(
    tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "modules.dep").write_text(f"kernel/overlay.ko{suffix}:\n")
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / f"overlay.ko{suffix}").write_bytes(compress(b"the module itself"))
    (tmp_path / "busybox").write_bytes(b"busybox")
    unpacked = gzip.decompress(base_archive(tmp_path, tmp_path / "busybox", "#!/bin/sh\n"))
    assert b"modules/00-overlay.ko\0" in unpacked
    assert b"the module itself" in unpacked


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".zst"])
@pytest.mark.parametrize("content", [None, b"nothing of the kind"])
def test_a_kernel_that_lacks_a_module_is_told_with_what_makes_it_anew(
    tmp_path: Path, suffix: str, content: bytes | None
) -> None:
    if shutil.which("busybox") is None:
        pytest.skip("busybox is not installed")
    modules = tmp_path / "kernel-1" / "lib" / "modules" / "6.1"
    (modules / "kernel").mkdir(parents=True)
    (modules / "modules.dep").write_text(f"kernel/overlay.ko{suffix}:\n")
    if content is not None:
        (modules / "kernel" / f"overlay.ko{suffix}").write_bytes(content)
    kernel = Kernel("6.1", tmp_path / "kernel-1" / "boot" / "vmlinuz-6.1", modules)
    with pytest.raises(NotReadyError, match=r"the kernel 6\.1 of the virtual machine is incomplete") as told:
        _write_initrd(tmp_path, kernel, VmOptions(), "guest", {}, ())
    assert told.value.next_step == f"remove {tmp_path}/kernel-1 and run scripts/fetch-vm"
