"""Asks the engine itself whether it can take ports: it opens them as for a trial, sends nothing, and ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nicbench.core.errors import EngineError, HostError, NotReadyError
from nicbench.engine.binaries import deploy_binary
from nicbench.engine.client import EngineClient
from nicbench.hosts.base import Host

# An emulated machine takes its time to verify a program.
_WITHIN_S = 180.0


async def refusal_of_ports(
    host: Host, ports: Sequence[dict[str, Any]], engine_folder: str | None = None, prefix: tuple[str, ...] = ()
) -> str | None:
    """The engine's reason where it cannot open these ports (objects of the protocol) on the host; None where it can.

    ``prefix`` is a command that runs another (``unshare --net ..``). NotReadyError where there is no engine.
    """
    binary = await deploy_binary(host, "nicbench-packets", engine_folder)
    client = EngineClient(await host.start([*prefix, binary]), f"nicbench-packets on {host.name}")
    try:
        await client.greet()
        await client.request("configure", within_s=_WITHIN_S, run_key=f"{0:016x}", clock="tsc", ports=list(ports))
    except NotReadyError:
        raise
    except (EngineError, HostError) as error:
        return error.message.removeprefix(f"port {ports[0]['name']}: ")
    finally:
        await client.close()
    return None
