"""Whether packets of a size pass a path unfragmented: ``ping -M do`` (ping(8)). Only checked, once all MTUs are set."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError
from nicbench.core.plan import Values
from nicbench.tuning.items.base import Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_HEADERS_BYTES = {4: 20 + 8, 6: 40 + 8}  # IP and ICMP


class PathMtuOptions(Frozen):
    """``to``: an address at the far end of the path; ``bytes``: as the MTU that it should have."""

    to: IPv4Address | IPv6Address
    bytes: int = Field(ge=128, le=65535)
    required: bool = False


class PathMtu(Item):
    """The last of the phases, so that both ends have their MTU by then."""

    kind = "path_mtu"
    Options = PathMtuOptions
    options: PathMtuOptions
    scope = "namespace"
    phase = Phase.TRAFFIC
    only_checks = True

    async def read(self, place: Place) -> Values:
        size = self.options.bytes - _HEADERS_BYTES[self.options.to.version]
        command = (
            "ping",
            "-n",
            "-q",
            "-M",
            "do",
            "-c",
            "2",
            "-i",
            "0.2",
            "-W",
            "1",
            "-s",
            str(size),
            str(self.options.to),
        )
        try:
            done = await place.host.run(command, check=False)
        except HostError as error:
            raise CannotSetError(error.message) from error
        if done.status not in (0, 1):
            raise CannotSetError((done.stderr.strip().splitlines() or [f"ping: exit status {done.status}"])[-1])
        return {"passes": done.status == 0}

    def target_values(self, now: Values) -> Values:
        return {"passes": True}
