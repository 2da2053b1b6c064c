"""A server whose adapter is measured by streams, transfers and requests of its clients (`server`)."""

from __future__ import annotations

from typing import Any

from nicbench.duts.base import EndpointDut, EndpointDutOptions
from nicbench.labs.base import EndpointTestbed
from nicbench.tuning.changes import Changes


class ServerOptions(EndpointDutOptions):
    """``dut: {kind: server, host: NAME}``."""


class Server(EndpointDut):
    """The workloads bring their server processes along: nothing is set up but what the section `tuning` asks for."""

    kind = "server"
    Options = ServerOptions
    is_set_up = False

    async def up(self, testbed: EndpointTestbed, changes: Changes) -> None:
        return

    def disclosure(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.options.name or "server", "host": self.options.host}
