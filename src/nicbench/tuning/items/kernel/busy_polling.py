"""How long a program that waits for a packet polls its queue instead of sleeping: less latency for more CPU time.

Source: Documentation/admin-guide/sysctl/net.rst, busy_poll (poll, select, epoll) and busy_read (reads).
"""

from __future__ import annotations

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.plan import Values
from nicbench.tuning.items._files import FilesItem
from nicbench.tuning.items.base import Phase


class BusyPollingOptions(Frozen):
    """``busy_polling: 50``: microseconds; 0 switches it off."""

    us: int = Field(ge=0, le=1_000_000)


class BusyPolling(FilesItem):
    """Of the whole machine: no namespace has its own."""

    kind = "busy_polling"
    Options = BusyPollingOptions
    options: BusyPollingOptions
    scope = "machine"
    phase = Phase.TRAFFIC
    alone = "us"
    folder = "/proc/sys/net/core/"
    patterns = ("busy_poll", "busy_read")
    missing = "this kernel does not poll (CONFIG_NET_RX_BUSY_POLL)"

    def target_values(self, now: Values) -> Values:
        return dict.fromkeys(now, str(self.options.us))
