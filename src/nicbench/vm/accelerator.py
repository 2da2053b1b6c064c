"""Whether a guest really runs on KVM: some machines have the device, and a guest that never comes up on it.

The guest's kernel is started without a root file system: it panics, which ends QEMU, where it comes so far. The
answer is kept until the next boot of this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Final

from nicbench.errors import NotReadyError
from nicbench.tuning.owner import boot_id
from nicbench.vm.emulator import Emulator
from nicbench.vm.kernel import Kernel

_DEVICE: Final = "/dev/kvm"
_KNOWN: Final = Path("/run/nicbench-kvm")
_PROBE_S: Final = 10.0
"""It takes a second where KVM works."""


async def accelerator_for(wanted: str, emulator: Emulator, kernel: Kernel) -> str:
    """``kvm`` or ``tcg``. NotReadyError where KVM is asked for and no guest runs on it."""
    if wanted == "tcg":
        return "tcg"
    if await kvm_works(emulator, kernel):
        return "kvm"
    if wanted == "kvm":
        raise NotReadyError(
            "no guest runs on KVM here",
            place=_DEVICE,
            next_step="switch on virtualisation in the BIOS, or nested virtualisation; or write `accelerator: auto`",
        )
    return "tcg"


async def kvm_works(emulator: Emulator, kernel: Kernel) -> bool:
    """Tried once for each boot of this machine."""
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return False
    try:
        known, works = _KNOWN.read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        known, works = "", ""
    if known == boot_id():
        return works == "works"
    tried = await _try(emulator, kernel)
    with contextlib.suppress(OSError):  # it is tried again the next time
        _KNOWN.write_text(f"{boot_id()} {'works' if tried else 'fails'}\n", encoding="utf-8")
    return tried


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
