"""Moves an interface back out of a namespace. Shell, one command, so that a host which hears nothing of nicbench any
more can do it by itself (``guards.py``).
"""

from __future__ import annotations

from typing import Final, Literal

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NAMESPACE_FOLDER
from nicbench.tuning.undo._links import show_link
from nicbench.tuning.undo.base import Undo

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


class ReturnLink(Undo):
    """Move an interface back out of ``namespace``, bring it up where it was, and give it the addresses it had.

    Each address is in the words of ``ip address add``.
    """

    kind: Literal["return_link"] = "return_link"
    device: str
    namespace: str
    up: bool
    addresses: tuple[str, ...] = ()

    async def undo(self, host: Host) -> str | None:
        """``host`` is where it came from. A sentence where it is nowhere any more."""
        up = "1" if self.up else "0"
        await host.run(("sh", "-c", _RETURN, "return", self.namespace, self.device, up, *self.addresses))
        link = await show_link(host, self.device)
        if link is None:
            return (
                f"{host.name}: the interface {self.device} is neither here nor in the namespace {self.namespace} any "
                "more: somebody moved, renamed or removed it"
            )
        if self.up and "UP" not in link.get("flags", ()):
            raise HostError(f"the interface {self.device} should be up again and is down", place=host.name)
        return None
