"""Looks at the connections of a host, ten times a second, while a round runs; the clock is the host's own.

Only rounds that ask for them have such looks: each costs the host a process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from nicbench.hosts.base import Host
from nicbench.measure.host_readings import Socket, parse_sockets
from nicbench.workloads.processes import Running

_STEP_S: Final = 0.1
_MARK: Final = "=== at "
# Without `o` ss leaves out the flags of a connection, of which `ecn` is one.
_LOOK: Final = "while :; do read up _ < /proc/uptime; echo '=== at '$up; ss -tinoH; sleep {step}; done"
_MOST_BYTES: Final = 64 * 1024 * 1024
_UPTIME: Final = ("cat", "/proc/uptime")


async def start_looking(network: Host) -> Running:
    """Starts a process that prints the connections of ``network`` until it is stopped. HostError where it cannot."""
    return await Running.start(network, ("sh", "-c", _LOOK.format(step=_STEP_S)), {}, _MOST_BYTES)


def split_looks(text: str) -> Iterator[tuple[float, list[Socket]]]:
    """Yields the time of each look (``/proc/uptime``) and its connections; the last look may be cut off, and is not."""
    for part in text.split(_MARK)[1:-1]:
        first, _, rest = part.partition("\n")
        with contextlib.suppress(ValueError):
            yield float(first), parse_sockets(rest)


async def uptime_s(host: Host) -> float:
    """Returns the seconds since the host was started (``/proc/uptime``). HostError where it does not answer."""
    return seconds_of((await host.run(_UPTIME)).stdout)


def seconds_of(uptime: str) -> float:
    """Returns the first number of ``/proc/uptime``, in seconds."""
    return float(uptime.split()[0])
