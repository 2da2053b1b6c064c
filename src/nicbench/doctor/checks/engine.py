"""The engine: whether it is built, starts, and speaks this controller's protocol."""

from __future__ import annotations

from typing import Any

from nicbench.doctor.base import Check, Examination, missing, ok, warning
from nicbench.engine.binary import find_binary
from nicbench.engine.client import EngineClient
from nicbench.errors import NicbenchError, NotReadyError
from nicbench.hosts.base import Host

_NAME = "nicbench-packets"
_MEND = "make install"


class Engine(Examination):
    """Says hello to ``nicbench-packets``; no port is opened."""

    kind = "engine"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        try:
            binary = find_binary(_NAME)
        except NotReadyError as error:
            return (missing("engine", error.message, _MEND),)
        try:
            client = EngineClient(await host.start((str(binary),)), _NAME)
            hello = await client.greet()
            await client.close()
        except NicbenchError as error:
            return (missing("engine", f"{binary} does not answer: {error.message}", _MEND),)
        return (judge(hello),)


def judge(hello: dict[str, Any]) -> Check:
    """Its answer to `hello` (protocol/README.md). Built without DPDK it has simulated ports alone."""
    named = f"{_NAME} {hello.get('version')}, protocol {hello.get('protocol')}"
    if not hello.get("dpdk"):
        return warning("engine", f"{named}, was built without DPDK: only simulated runs work", _MEND)
    drivers = ", ".join(hello.get("drivers") or []) or "none"
    return ok("engine", f"{named}, DPDK {hello['dpdk'].removeprefix('DPDK ')}, drivers: {drivers}")
