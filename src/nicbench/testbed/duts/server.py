"""A server whose adapter is measured by streams, transfers and requests of its clients (`server`)."""

from __future__ import annotations

from typing import Any

from nicbench.testbed.duts.base import EndpointDut, EndpointDutOptions
from nicbench.testbed.labs.base import EndpointTestbed
from nicbench.tuning.changes import Changes


class ServerOptions(EndpointDutOptions):
    """``dut: {kind: server, host: NAME}``."""


class Server(EndpointDut):
    """The measured host; workloads start their own server processes, so only the section `tuning` changes it."""

    kind = "server"
    Options = ServerOptions
    is_set_up = False

    async def up(self, testbed: EndpointTestbed, changes: Changes) -> None:
        return

    def disclosure(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.options.name or "server", "host": self.options.host}
