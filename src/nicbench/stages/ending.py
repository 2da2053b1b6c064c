"""After the last stage of whatever a command did: containers are ended, connections to hosts are closed."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from nicbench.hosts import close_connections, close_containers, close_ports

Outcome = TypeVar("Outcome")


async def with_hosts_closed(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """``work``, and then no container and no connection stays; also where it fails, or is cancelled."""
    try:
        return await work
    finally:
        await close_containers()
        await close_connections()
        await close_ports()
