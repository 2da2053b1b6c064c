"""Interfaces that were moved into a namespace, or brought up: back to where and how they were. Shell, one command each,
so that a host which hears nothing of nicbench any more can do it by itself (``guards.py``).
"""

from __future__ import annotations

import json
from typing import Final

from nicbench.errors import HostError
from nicbench.hosts.base import Host
from nicbench.hosts.netns import NAMESPACE_FOLDER
from nicbench.tuning.undo import ReturnLink

# $1 namespace, $2 interface, $3 whether it was up, then its addresses as `ip address add` takes them. The namespace to
# come back to is that of this shell, for which `ip` takes its number. One that has come back already (the kernel puts
# the cards of a namespace that is gone into the first one) still gets its addresses.
_RETURN: Final = f"""
namespace=$1 device=$2 up=$3 status=0
shift 3
if [ -e {NAMESPACE_FOLDER}/"$namespace" ] && ip -n "$namespace" link show dev "$device" >/dev/null 2>&1; then
    ip -n "$namespace" link set dev "$device" netns $$ || exit 1
fi
ip link show dev "$device" >/dev/null 2>&1 || exit 0
[ "$up" = 0 ] || ip link set dev "$device" up || status=1
for words in "$@"; do
    ip -o address show dev "$device" | grep -qF " ${{words%% *}} " ||
        ip address add $words dev "$device" || status=1
done
exit $status
"""


async def return_link(host: Host, undo: ReturnLink) -> str | None:
    """``host`` is where it came from. A sentence where it is nowhere any more; HostError where it cannot come back."""
    up = "1" if undo.up else "0"
    await host.run(("sh", "-c", _RETURN, "return", undo.namespace, undo.device, up, *undo.addresses))
    shown = await host.run(("ip", "-j", "link", "show", "dev", undo.device), check=False)
    links = json.loads(shown.stdout or "[]") if shown.status == 0 else []
    if not links:
        return (
            f"{host.name}: the interface {undo.device} is neither here nor in the namespace {undo.namespace} any more: "
            "somebody moved, renamed or removed it"
        )
    if undo.up and "UP" not in links[0].get("flags", ()):
        raise HostError(f"the interface {undo.device} should be up again and is down", place=host.name)
    return None


async def holds(host: Host, namespace: str, devices: tuple[str, ...]) -> list[str]:
    """Which of these interfaces are still in the namespace."""
    shown = await host.run(("ip", "-j", "-n", namespace, "link", "show"), check=False)
    there = {str(link.get("ifname")) for link in json.loads(shown.stdout or "[]")} if shown.status == 0 else set()
    return [device for device in devices if device in there]
