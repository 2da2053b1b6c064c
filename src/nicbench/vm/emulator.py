"""QEMU: the machine's own where it has the card igb (8.0 and newer), else what ``scripts/fetch-vm`` unpacked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nicbench.errors import NotReadyError
from nicbench.vm.kernel import FETCH_COMMAND, version_key, vm_folder

PROGRAM = "qemu-system-x86_64"
_LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
_FIRMWARE = ("usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu")
_VERSION = re.compile(r"emulator version (\d+(?:\.\d+)+)")
_ANSWER_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Emulator:
    """A QEMU that was started once to hear its version."""

    path: Path
    version: str
    has_igb: bool
    """Whether it emulates Intel's 82576, a card with virtual functions and hardware time stamps."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """To be added to the environment in which it is started; empty for the machine's own."""
    firmware: tuple[Path, ...] = ()
    """Folders of its BIOS, each to be given with ``-L``; none for the machine's own."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The program, and what each of its command lines begins with."""
        return (str(self.path), *(word for folder in self.firmware for word in ("-L", str(folder))))


def find_emulator(folder: Path | None = None) -> Emulator:
    """The machine's own where it has the card igb, else the newest that was fetched, else its own without the card.

    Those that were fetched are in ``folder``, ordinarily ``vm_folder()``. NotReadyError where none can be started.
    """
    searched = folder or vm_folder()
    own = shutil.which(PROGRAM)
    machines = _ask(Path(own)) if own else None
    if machines is not None and machines.has_igb:
        return machines
    unpacked = sorted(searched.glob(f"qemu-*/usr/bin/{PROGRAM}"), key=_age_of, reverse=True)
    fetched = (_ask(path, _environment(path.parents[2]), _firmware(path.parents[2])) for path in unpacked)
    found = next((emulator for emulator in fetched if emulator is not None), machines)
    if found is None:
        raise NotReadyError(
            f"there is no QEMU that can be started: neither {PROGRAM} among the programs nor one in {searched}",
            place=PROGRAM,
            next_step=f"run {FETCH_COMMAND}",
        )
    return found


def parse_version(text: str) -> str | None:
    """Of what ``qemu-system-x86_64 --version`` prints; None where it is something else."""
    found = _VERSION.search(text)
    return found[1] if found else None


def _ask(path: Path, environment: Mapping[str, str] | None = None, firmware: tuple[Path, ...] = ()) -> Emulator | None:
    """None where it does not start, for want of a library for instance."""
    added = environment or {}
    version = parse_version(_answer(path, ("--version",), added) or "")
    if version is None:
        return None
    # Of a card that it has not it says so on stderr, and ends well.
    has_igb = (_answer(path, ("-device", "igb,help"), added) or "").startswith("igb options")
    return Emulator(path, version, has_igb, added, firmware)


def _answer(path: Path, arguments: tuple[str, ...], environment: Mapping[str, str]) -> str | None:
    """What it prints; None where it fails or does not end."""
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
    """Its libraries before the machine's, and its own modules, which no other build of QEMU can load."""
    before = os.environ.get("LD_LIBRARY_PATH")
    libraries = str(root / _LIBRARIES)
    return {
        "LD_LIBRARY_PATH": f"{libraries}:{before}" if before else libraries,
        "QEMU_MODULE_DIR": str(root / _LIBRARIES / "qemu"),
    }


def _firmware(root: Path) -> tuple[Path, ...]:
    return tuple(root / folder for folder in _FIRMWARE if (root / folder).is_dir())


def _age_of(program: Path) -> tuple[int, ...]:
    return version_key(program.parents[2].name)
