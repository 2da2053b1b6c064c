"""Which QEMU a virtual machine boots in. Each is a stand-in that answers as QEMU does."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.errors import NotReadyError
from nicbench.testbed.vm.programs import PROGRAM, find_emulator, parse_version


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
