"""Finds QEMU, the machine's own where it has the card igb (8.0 and newer), else that of ``scripts/fetch-vm``, and
whether a guest runs on KVM.

On some machines the device /dev/kvm exists, but a guest never comes up. So a kernel is started without a root file
system once for each boot of the machine: where KVM works it panics, which ends QEMU.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nicbench.core.errors import NotReadyError
from nicbench.hosts.owner import boot_id
from nicbench.testbed.vm.kernel import FETCH_COMMAND, Kernel, version_key, vm_folder

PROGRAM = "qemu-system-x86_64"
_LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
_FIRMWARE = ("usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu")
_VERSION = re.compile(r"emulator version (\d+(?:\.\d+)+)")
_ANSWER_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
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
    unpacked = sorted(searched.glob(f"qemu-*/usr/bin/{PROGRAM}"), key=_version_of, reverse=True)
    fetched = (_ask(path, _environment(path.parents[2]), _firmware(path.parents[2])) for path in unpacked)
    found = next((emulator for emulator in fetched if emulator is not None), machines)
    if found is None:
        raise NotReadyError(
            f"there is no QEMU that can be started: neither {PROGRAM} in PATH nor one in {searched}",
            place=PROGRAM,
            next_step=f"run {FETCH_COMMAND}",
        )
    return found


def parse_version(text: str) -> str | None:
    """The version in the output of ``qemu-system-x86_64 --version``; None where there is none."""
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


def _version_of(program: Path) -> tuple[int, ...]:
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
