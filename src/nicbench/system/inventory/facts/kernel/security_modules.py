"""Security modules of the kernel (SELinux, AppArmor): their hooks are in the path of every system call and socket."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of

_ACTIVE = "/sys/kernel/security/lsm"
_SELINUX = "/sys/fs/selinux/enforce"
_APPARMOR = "/sys/module/apparmor/parameters/enabled"


class _Security(TypedDict):
    """Which are active, and in which state two of them are."""

    active: str | None
    selinux: str
    apparmor: bool | None


def _tell_security(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "security_modules")
    if not found:
        return None
    apparmor = found.get("apparmor")
    return join_texts(
        f"SELinux {found.get('selinux')}", None if apparmor is None else f"AppArmor {'on' if apparmor else 'off'}"
    )


class SecurityModules(Fact):
    """From ``/sys/kernel/security`` and ``/sys/fs/selinux``."""

    kind = "security_modules"
    shape = _Security
    of_machine = True
    subjects = (Subject("Security modules", 290, _tell_security),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        return parse_security(await values_of(host, (_ACTIVE, _SELINUX, _APPARMOR)))


def parse_security(values: dict[str, str]) -> dict[str, Any]:
    """SELinux: enforcing, permissive, or off where its file system is not there."""
    enforce = values.get(_SELINUX)
    apparmor = values.get(_APPARMOR)
    return {
        "active": values.get(_ACTIVE),
        "selinux": "off" if enforce is None else "enforcing" if enforce == "1" else "permissive",
        "apparmor": None if apparmor is None else apparmor == "Y",
    }
