"""nicbench-connections, our own program: TCP connections by the clock (protocol/connections.md).

Its server is itself, nginx, which it sets up, or one that is there already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pydantic import ValidationError

from nicbench.core.connections import ConnectionFigures, ConnectionsSpec
from nicbench.core.round import Figures, Job, JobSpec
from nicbench.workloads.base import MEBIBYTE, Command, End, Listening, Output, Workload, WorkloadError, last_words
from nicbench.workloads.tool_output import json_object

MOST_PORTS: Final = 128
"""The most TCP ports that a job's server listens on."""
ROOM: Final = 100_000
MOST_ROOM: Final = 50_000_000
"""The fewest and the most connections that a server in the driver's hook has room for."""
ROOM_S: Final = 2.0
"""The seconds in which a connection should have ended."""


class NicbenchConnections(Workload):
    """nicbench-connections, as client and as server."""

    kind = "nicbench-connections"
    package = "nicbench"
    version_pattern = re.compile(r"nicbench-connections (\S+)")
    is_ours = True
    ports_per_job = MOST_PORTS
    server_ends = False
    output_limit_bytes = 64 * MEBIBYTE
    """Larger than others', because the output has an interval for each second."""

    def refusal(self, ask: JobSpec) -> str | None:
        if ask.operation != "connections" or ask.connections is None or ask.duration_s is None:
            return "nicbench-connections opens connections at a rate, for a time; it has no other operation"
        return None

    def server_command(self, job: Job, client: End, server: End) -> Command | None:
        asked = _asked(job)
        if asked.server == "target" or asked.clients == 0:
            return None
        mode = "serve" if asked.server == "own" else "nginx"
        common = ("--on", server.address, "--port", str(job.port), "--ports", str(asked.ports))
        tls = () if asked.tls is None else ("--tls",)
        threads = ("--threads", str(asked.server_threads))
        hook = _hook(asked, server) if asked.serves_in_hook else ()
        room = ("--room", str(_room(asked, job.ask.duration_s or 0.0))) if hook else ()
        return (self.kind, mode, *common, *threads, *tls, *hook, *room, *_server_arguments(asked))

    def client_command(self, job: Job, client: End, server: End | None) -> Command:
        asked = _asked(job)
        return (self.kind, "client", *_hook(asked, client), *_client_arguments(asked, job, server))

    def listens(self, job: Job, server: End) -> tuple[Listening, ...]:
        asked = _asked(job)
        ports = 0 if asked.server == "target" or asked.clients == 0 else asked.ports
        return tuple(Listening("tcp", job.port + number, server.address) for number in range(ports))

    def expected_s(self, job: Job) -> float | None:
        asked = _asked(job)
        ramp_s = asked.connections / asked.rate_per_s if asked.task == "hold" else asked.ramp_s
        answers = 1 + (asked.exchanges if asked.task == "connect" else 1)
        return ramp_s + (job.ask.duration_s or 0.0) + 2 * asked.connect_within_s + answers * asked.answer_within_s

    def complaint(self, output: Output) -> str | None:
        if not output.stderr.startswith("nicbench-connections: "):
            return None
        return last_words(output.stderr.removeprefix("nicbench-connections: ")) or None

    def parse(self, job: Job, client: Output, server: Output | None) -> Figures:
        said = dict(json_object(client.stdout, self.kind))
        served = {}
        asked = job.ask.connections
        if server is not None and asked is not None and asked.server == "own":
            counts = json_object(server.stdout, f"{self.kind}, server")
            served = {"accepted": counts.get("accepted"), "served": counts.get("requests")}
            served["server_segments"] = counts.get("segments")
        known = {name: value for name, value in said.items() if name in ConnectionFigures.model_fields}
        try:
            figures = ConnectionFigures.model_validate({**known, **served})
        except ValidationError as error:
            raise WorkloadError(f"its result is not as protocol/connections.md says: {error}") from error
        share = figures.cpu_ns / figures.wall_ns if figures.wall_ns else None
        return Figures(connections=figures, client_cpu_share=share)


def _asked(job: Job) -> ConnectionsSpec:
    if job.ask.connections is None:
        raise ValueError("a job of nicbench-connections without what it is asked")
    return job.ask.connections


def _hook(asked: ConnectionsSpec, end: End) -> tuple[str, ...]:
    """Returns the argument that moves an end into its driver's hook."""
    if asked.driver == "kernel":
        return ()
    if end.device is None:
        raise WorkloadError("`driver: xdp` needs a kernel interface, and this end has none")
    if end.vlan is None:
        return ("--xdp", end.device)
    return ("--xdp", end.vlan.device, "--vlan", str(end.vlan.number))


def _room(asked: ConnectionsSpec, duration_s: float) -> int:
    """Returns the number of connections that the server keeps at once: those that are held, or those of a second."""
    held = asked.connections if asked.task == "hold" else int(asked.rate_per_s * min(duration_s, ROOM_S))
    return max(ROOM, min(held * asked.clients, MOST_ROOM))


def _server_arguments(asked: ConnectionsSpec) -> Iterator[str]:
    if asked.server == "nginx":
        for size in dict.fromkeys(size for size, _ in asked.objects):
            yield from ("--object", str(size))
        return
    broken = asked.broken
    for name, value in (
        ("--delay", broken.delay_s),
        ("--delay-every", broken.delay_every),
        ("--reset-every", broken.reset_every),
        ("--short-every", broken.short_every),
        ("--status-every", broken.status_every),
        ("--corrupt-every", broken.corrupt_every),
        ("--accept-rate", broken.accept_rate),
        ("--accept-queue", broken.accept_queue),
    ):
        if value:
            yield from (name, str(value))


def _client_arguments(asked: ConnectionsSpec, job: Job, server: End | None) -> Iterator[str]:
    target = asked.target
    if target is not None:
        yield from ("--to", target.address, "--port", str(target.port), "--host", target.host, "--path", target.path)
    elif server is not None:
        yield from ("--to", server.address, "--port", str(job.port), "--ports", str(asked.ports))
        for size, weight in asked.objects:
            yield from ("--object", f"{size}:{weight}")
    else:
        raise WorkloadError("nicbench-connections needs a server, or the address of one")
    for name, value in (
        ("--task", asked.task),
        ("--rate", asked.rate_per_s),
        ("--ramp", asked.ramp_s),
        ("--seconds", job.ask.duration_s),
        ("--connections", asked.connections),
        ("--exchanges", asked.exchanges),
        ("--connect-within", asked.connect_within_s),
        ("--answer-within", asked.answer_within_s),
        ("--threads", asked.client_threads),
        ("--tls", asked.tls),
    ):
        if value is not None:
            yield from (name, f"{value:.12g}" if isinstance(value, float) else str(value))
    if asked.reset:
        yield "--reset"
