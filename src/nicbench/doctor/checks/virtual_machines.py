"""What a lab in a virtual machine needs: QEMU, a kernel, memory, and KVM where guests are to be fast."""

from __future__ import annotations

import os

from nicbench.core.errors import NotReadyError
from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.hosts.base import Host
from nicbench.hosts.options import VmOptions
from nicbench.system.inventory.base import parse_meminfo
from nicbench.testbed.vm.emulator import Emulator, find_emulator, kvm_works
from nicbench.testbed.vm.kernel import FETCH_COMMAND, Kernel, find_kernel

_KVM = "/dev/kvm"
_ORDINARY_GUEST_BYTES = int(VmOptions().memory)
_OWN_BYTES = 512 << 20
"""What QEMU takes beside its guest's memory, and nicbench itself."""


class VirtualMachines(Examination):
    """Only bench files with a virtual machine need any of it, so what lacks is a warning."""

    kind = "virtual_machines"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        emulator, kernel = _emulator(), _kernel()
        return (
            judge_emulator(emulator),
            judge_kernel(kernel),
            await _kvm(emulator, kernel),
            judge_memory(parse_meminfo(await host.read_file("/proc/meminfo") or "").get("MemAvailable")),
        )


def judge_emulator(found: Emulator | None) -> Check:
    """Without the card igb all works but what is asked of that card."""
    name = "virtual machines (QEMU)"
    if found is None:
        return warning(name, "there is no QEMU: labs in a virtual machine cannot run", FETCH_COMMAND)
    text = f"QEMU {found.version}, {found.path}"
    if found.has_igb:
        return ok(name, f"{text}, with the card igb")
    return warning(
        name, f"{text}, has no card igb (8.0 and newer have): no virtual functions or hardware stamps", FETCH_COMMAND
    )


def judge_kernel(found: Kernel | None) -> Check:
    """Which one is booting."""
    name = "virtual machines (kernel)"
    if found is None:
        return warning(name, "no kernel was fetched: labs in a virtual machine cannot run", FETCH_COMMAND)
    return ok(name, f"{found.version}, {found.image}")


def judge_kvm(*, is_there: bool, may_be_used: bool, works: bool | None = None) -> Check:
    """A machine without it emulates: that is slow and no fault. ``works``: a kernel came up on it; None: not tried."""
    name = "virtual machines (KVM)"
    if not is_there:
        return ok(name, f"there is no {_KVM}: guests are emulated, many times slower")
    if not may_be_used:
        return warning(
            name,
            f"{_KVM} may not be used: guests are emulated, many times slower",
            "sudo usermod --append --groups kvm $USER",
        )
    if works is None:
        return ok(
            name, f"{_KVM} is there; whether a kernel comes up on it is tried when QEMU and a kernel are there too"
        )
    if not works:
        return ok(name, f"{_KVM} is there, and no kernel comes up on it: guests are emulated, many times slower")
    return ok(name, f"a kernel comes up on {_KVM}: guests run on it")


def judge_memory(available: int | None) -> Check:
    """For a guest of the ordinary size."""
    name = "virtual machines (memory)"
    needed = _ORDINARY_GUEST_BYTES + _OWN_BYTES
    if available is None:
        return warning(name, "this kernel does not say how much memory is available")
    text = f"{available >> 20} MiB are available, a guest of the ordinary size needs {needed >> 20} MiB"
    if available < needed:
        return warning(name, f"{text}: write a smaller `memory` in the bench file")
    return ok(name, text)


async def _kvm(emulator: Emulator | None, kernel: Kernel | None) -> Check:
    may_be_used = os.access(_KVM, os.R_OK | os.W_OK)
    works = await kvm_works(emulator, kernel) if may_be_used and emulator and kernel else None
    return judge_kvm(is_there=os.access(_KVM, os.F_OK), may_be_used=may_be_used, works=works)


def _emulator() -> Emulator | None:
    try:
        return find_emulator()
    except NotReadyError:
        return None


def _kernel() -> Kernel | None:
    try:
        return find_kernel()
    except NotReadyError:
        return None
