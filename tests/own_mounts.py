"""A worker of the session with mounts of its own, so that lab tests can run beside each other.

What a lab keeps on its machine is the worker's own then: the lock and the records, names of network namespaces and
sockets in /run, files in /dev/shm. The machine's first network, processes, processors and huge pages are those of all:
a test that makes interfaces in that network, or looks at the others, is marked ``alone``.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
_LIBC = ctypes.CDLL(None, use_errno=True)
_KVM = Path("/run/nicbench-kvm")  # whether it works here, which takes long to find out
# Every veth lab writes the one of its DUT's processor. Each worker gets files that are read and written as the kernel's
# are, and do nothing: what they do is looked at by tests that run alone.
_WAKEUP_LATENCY = "devices/system/cpu/cpu[0-9]*/power/pm_qos_resume_latency_us"


def enter_own_mounts() -> None:
    """Moves this thread, and whatever it starts from now on, into mounts of its own. Needs root."""
    if _LIBC.unshare(_CLONE_NEWNS):
        raise _error("unshare")
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    kvm = _KVM.read_bytes() if _KVM.exists() else None
    for folder in ("/run", "/dev/shm"):
        _mount("tmpfs", folder, "tmpfs")
    if kvm is not None:
        _KVM.write_bytes(kvm)
    for number, path in enumerate(Path("/sys").glob(_WAKEUP_LATENCY)):
        own = Path(f"/run/wakeup-latency-{number}")
        own.write_bytes(path.read_bytes())
        _mount(str(own), str(path), None, _MS_BIND)


def _mount(source: str, target: str, kind: str | None, flags: int = 0) -> None:
    kind_or_null = None if kind is None else kind.encode()
    if _LIBC.mount(source.encode(), target.encode(), kind_or_null, flags, None):
        raise _error(target)


def _error(place: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), place)
