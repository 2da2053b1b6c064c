"""Privileges: root, or the capabilities that making namespaces, XDP and raw sockets take."""

from __future__ import annotations

import re

from nicbench.doctor.base import Check, Examination, missing, ok
from nicbench.hosts.base import Host

_CAPABILITIES = re.compile(r"^CapEff:\s*([0-9a-f]+)", re.MULTILINE)
# Numbers of linux/capability.h, with what each is for.
_NEEDED = {
    12: ("CAP_NET_ADMIN", "interfaces, addresses, XDP"),
    13: ("CAP_NET_RAW", "packet sockets and AF_XDP"),
    21: ("CAP_SYS_ADMIN", "network namespaces"),
    39: ("CAP_BPF", "XDP programs"),
}
_SYS_ADMIN, _BPF = 21, 39


class Privileges(Examination):
    """From ``/proc/self/status``."""

    kind = "privileges"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        return (judge(await host.read_file("/proc/self/status") or ""),)


def judge(status: str) -> Check:
    """What counts is what the process may do, not who it is."""
    found = _CAPABILITIES.search(status)
    held = int(found[1], 16) if found else 0
    # Before Linux 5.8 there was no CAP_BPF: CAP_SYS_ADMIN stood for it, and still does.
    if held >> _SYS_ADMIN & 1:
        held |= 1 << _BPF
    lacking = [f"{name} ({why})" for bit, (name, why) in _NEEDED.items() if not held >> bit & 1]
    if lacking:
        return missing("privileges", f"lacking: {', '.join(lacking)}; only simulated runs work", "sudo nicbench doctor")
    return ok("privileges", "everything a run needs")
