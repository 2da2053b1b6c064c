"""Which kernel a virtual machine boots."""

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
from nicbench.testbed.vm.programs import (
    PROGRAM,
    Entry,
    Kernel,
    archive,
    base_archive,
    find_emulator,
    find_kernel,
    find_kernels,
    order_modules,
    own_archive,
    parse_version,
    unpack,
    vm_folder,
)


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


# Which QEMU a virtual machine boots in. Each is a stand-in that answers as QEMU does.


def qemu(folder: Path, version: str, *, igb: bool, starts: bool = True) -> Path:
    folder.mkdir(parents=True)
    program = folder / PROGRAM
    program.write_text(f"""#!/bin/sh
{"" if starts else "exit 127"}
case "$1" in
    --version) echo "QEMU emulator version {version} (Debian 1:{version}+dfsg-7)" ;;
    -device) {"echo igb options:" if igb else "echo Device 'igb' not found >&2"} ;;
esac
""")
    program.chmod(0o755)
    return program


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs that the machine has."""
    monkeypatch.setenv("PATH", str(tmp_path / "machine"))
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    return tmp_path / "machine"


@pytest.fixture
def fetched(tmp_path: Path) -> Path:
    return tmp_path / "vm"


def test_the_machines_own_is_taken_where_it_has_the_card(machines: Path, fetched: Path) -> None:
    own = qemu(machines, "10.0.8", igb=True)
    qemu(fetched / "qemu-10.1.0" / "usr" / "bin", "10.1.0", igb=True)
    found = find_emulator(fetched)
    assert (found.path, found.version, found.has_igb) == (own, "10.0.8", True)
    assert not found.environment
    assert found.arguments == (str(own),)


def test_one_without_the_card_gives_way_to_the_newest_that_was_fetched(machines: Path, fetched: Path) -> None:
    qemu(machines, "7.2.22", igb=False)
    qemu(fetched / "qemu-9.2.0" / "usr" / "bin", "9.2.0", igb=True)
    root = fetched / "qemu-10.0.2"
    qemu(root / "usr" / "bin", "10.0.2", igb=True)
    (root / "usr" / "share" / "seabios").mkdir(parents=True)
    found = find_emulator(fetched)
    assert found.version == "10.0.2"
    assert found.environment["LD_LIBRARY_PATH"] == str(root / "usr/lib/x86_64-linux-gnu")
    assert found.arguments == (str(root / "usr/bin" / PROGRAM), "-L", str(root / "usr/share/seabios"))


def test_the_libraries_that_the_user_named_come_after_its_own(
    machines: Path, fetched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    qemu(fetched / "qemu-10.0.2" / "usr" / "bin", "10.0.2", igb=True)
    assert find_emulator(fetched).environment["LD_LIBRARY_PATH"].endswith("/usr/lib/x86_64-linux-gnu:/opt/lib")


def test_a_fetched_one_that_does_not_start_is_passed_over(machines: Path, fetched: Path) -> None:
    qemu(fetched / "qemu-9.2.0" / "usr" / "bin", "9.2.0", igb=True)
    qemu(fetched / "qemu-10.0.2" / "usr" / "bin", "10.0.2", igb=True, starts=False)
    assert find_emulator(fetched).version == "9.2.0"


def test_the_machines_own_without_the_card_is_better_than_none(machines: Path, fetched: Path) -> None:
    qemu(machines, "7.2.22", igb=False)
    found = find_emulator(fetched)
    assert (found.version, found.has_igb) == ("7.2.22", False)


def test_without_any_the_next_step_is_to_fetch_one(machines: Path, fetched: Path) -> None:
    with pytest.raises(NotReadyError) as raised:
        find_emulator(fetched)
    assert raised.value.next_step == "run scripts/fetch-vm"


def test_only_what_qemu_says_is_a_version() -> None:
    said = "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)\nCopyright (c) 2003-2025\n"
    assert parse_version(said) == "10.0.2"
    assert parse_version("error while loading shared libraries: libfdt.so.1") is None


# A kernel that is unpacked once, so that no emulated guest does it.


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


# The first file system of a guest.


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
