"""The engine: whether its binaries are built, start, and speak this controller's protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.core.shipped import build_command
from nicbench.doctor.base import Check, Examination, missing, ok, warning
from nicbench.engine.binaries import find_binary
from nicbench.engine.client import EngineClient
from nicbench.hosts.base import Host

_PACKETS = "nicbench-packets"
_MONITOR = "nicbench-monitor"
_FRAMES = "nicbench-frames"
_CONNECTIONS = "nicbench-connections"


class Engine(Examination):
    """Says hello to the engine's binaries; no port is opened, nothing is sampled, no file is touched."""

    kind = "engine"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        return (
            await _examine(host, _PACKETS, judge),
            await _examine(host, _MONITOR, judge_monitor),
            await _examine(host, _FRAMES, judge_frames),
            await _examine_connections(host),
        )


async def _examine(host: Host, program: str, judged: Callable[[dict[str, Any]], Check]) -> Check:
    # Without a monitor runs lack a section of the report, without frames a method; without the engine there are none.
    name, absent = ("engine", missing) if program == _PACKETS else (program.removeprefix("nicbench-"), warning)
    try:
        binary = find_binary(program)
    except NotReadyError as error:
        return absent(name, error.message, build_command())
    try:
        client = EngineClient(await host.start((str(binary),)), program)
        hello = await client.greet()
        await client.close()
    except NicbenchError as error:
        return absent(name, f"{binary} does not answer: {error.message}", build_command())
    return judged(hello)


async def _examine_connections(host: Host) -> Check:
    """Its version: it has no conversation, but does what it is called with. Without it runs lack its methods."""
    try:
        binary = find_binary(_CONNECTIONS)
        said = await host.run((str(binary), "--version"))
    except NicbenchError as error:
        return warning("connections", error.message, build_command())
    return ok("connections", said.stdout.strip())


def judge(hello: dict[str, Any]) -> Check:
    """Its answer to `hello` (protocol/README.md). Built without DPDK it has simulated ports alone."""
    named = f"{_PACKETS} {hello.get('version')}, protocol {hello.get('protocol')}"
    if not hello.get("dpdk"):
        return warning("engine", f"{named}, was built without DPDK: only simulated runs work", build_command())
    drivers = ", ".join(hello.get("drivers") or []) or "none"
    return ok("engine", f"{named}, DPDK {hello['dpdk'].removeprefix('DPDK ')}, drivers: {drivers}")


def judge_monitor(hello: dict[str, Any]) -> Check:
    """Its answer to `hello` (protocol/monitor.md). One that is not static runs here and on hosts like this one."""
    named = f"{_MONITOR} {hello.get('version')}, protocol {hello.get('protocol')}"
    if not hello.get("is_static"):
        return warning(
            "monitor", f"{named}, is not linked statically: it may not start on another host", build_command()
        )
    return ok("monitor", f"{named}, static")


def judge_frames(hello: dict[str, Any]) -> Check:
    """Its answer to `hello` (protocol/frames.md). Without io_uring it takes a thread for each request."""
    named = f"{_FRAMES} {hello.get('version')}, protocol {hello.get('protocol')}"
    if not hello.get("is_static"):
        return warning(
            "frames", f"{named}, is not linked statically: it may not start on another host", build_command()
        )
    return ok("frames", f"{named}, static, engines: {', '.join(hello.get('features') or []) or 'none'}")
