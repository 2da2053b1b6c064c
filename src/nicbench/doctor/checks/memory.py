"""Examines memory: huge pages, and limits of locked memory."""

from __future__ import annotations

import re

from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.hosts.base import Host
from nicbench.tuning.preparation import HugePages, huge_pages_of_meminfo


class HugePagesCheck(Examination):
    """Huge pages: a run that wants them raises their number itself, where the kernel has any.

    From ``/proc/meminfo``.
    """

    kind = "huge_pages"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        return (judge_huge_pages(huge_pages_of_meminfo(await host.read_file("/proc/meminfo") or "")),)


def judge_huge_pages(pages: HugePages | None) -> Check:
    """They are never required: the engine also runs without."""
    if pages is None:
        return warning("huge pages", "this kernel has none; use `huge_pages: false`")
    return ok(
        "huge pages",
        f"{pages.available} of {pages.total} free, {pages.page_kib} KiB each; a run that wants more makes them",
    )


_LOCKED = re.compile(r"^Max locked memory\s+(\S+)", re.MULTILINE)
_CAPABILITIES = re.compile(r"^CapEff:\s*([0-9a-f]+)", re.MULTILINE)
_GROUP = re.compile(r"^0::(/.*)$", re.MULTILINE)
_IPC_LOCK = 1 << 14  # CAP_IPC_LOCK, linux/capability.h
_NEEDED_BYTES = 1 << 30  # the engine's default memory and the controller, with room


class LockedMemory(Examination):
    """Limits: memory that may be locked (the buffers of AF_XDP are), and the memory of this control group.

    From ``/proc/self`` and the control group.
    """

    kind = "locked_memory"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        limits = await host.read_file("/proc/self/limits") or ""
        status = await host.read_file("/proc/self/status") or ""
        group = _GROUP.search(await host.read_file("/proc/self/cgroup") or "")
        maximum = await host.read_file(f"/sys/fs/cgroup{group[1].rstrip('/')}/memory.max") if group else None
        return (judge_locked_memory(locked_bytes(limits), may_lock(status)), judge_group(maximum))


def locked_bytes(limits: str) -> int | None:
    """The soft limit of locked memory, None where it is unlimited or not known."""
    found = _LOCKED.search(limits)
    return int(found[1]) if found and found[1].isdigit() else None


def may_lock(status: str) -> bool:
    """Whether the process may lock memory beyond the limit."""
    found = _CAPABILITIES.search(status)
    return bool(found and int(found[1], 16) & _IPC_LOCK)


def judge_locked_memory(limit_bytes: int | None, exempt: bool) -> Check:
    """Root is exempt, ordinarily."""
    name = "locked memory"
    if limit_bytes is None:
        return ok(name, "unlimited")
    if exempt:
        return ok(name, f"limit {limit_bytes >> 20} MiB, which does not apply to this process (CAP_IPC_LOCK)")
    return warning(name, f"at most {limit_bytes >> 20} MiB: AF_XDP's buffers may not fit", "ulimit -l unlimited")


def judge_group(maximum: str | None) -> Check:
    """``memory.max`` of the control group, in bytes or `max`."""
    name = "memory of the control group"
    if maximum is None or maximum.strip() == "max":
        return ok(name, "no limit is known")
    limit = int(maximum)
    if limit < _NEEDED_BYTES:
        return warning(name, f"at most {limit >> 20} MiB; a run needs {_NEEDED_BYTES >> 20} MiB")
    return ok(name, f"at most {limit >> 20} MiB")
