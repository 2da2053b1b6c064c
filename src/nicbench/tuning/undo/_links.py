"""What ``ip link`` says of one interface: for undos of what was made of it."""

from __future__ import annotations

import json
from typing import Any

from nicbench.hosts.base import Host


async def show_link(host: Host, device: str, *options: str) -> dict[str, Any] | None:
    """One object of ``ip -j link``; None where there is no interface of that name."""
    shown = await host.run(("ip", "-j", *options, "link", "show", "dev", device), check=False)
    links: list[dict[str, Any]] = json.loads(shown.stdout or "[]") if shown.status == 0 else []
    return links[0] if links else None
