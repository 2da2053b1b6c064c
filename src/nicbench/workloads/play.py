"""Plays a round: starts every server, waits until each is ready, starts all clients together, waits, reads, reaps.

An error fails its own job, with the tool, the host, the exit status and the end of its output; other jobs continue.
While clients run, the controller only waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from nicbench.core.errors import NicbenchError
from nicbench.core.registry import find
from nicbench.core.round import JobOutcome, RoundRequest
from nicbench.hosts.base import Host
from nicbench.workloads.base import End, Keeper, Watch, Workload
from nicbench.workloads.processes import RawFolder, is_open, sockets_of, wait_until_open
from nicbench.workloads.programs import Programs
from nicbench.workloads.running_job import JobError, RunningJob

READY_TIMEOUT_S = 15.0
_PORT_ADVICE = "`ss -lntup` there names the process: end it, or give other ports"


def kinds() -> dict[str, type[Workload]]:
    """Returns every workload class by its kind."""
    return find("nicbench.workloads.tools", Workload)


async def play(
    request: RoundRequest,
    ends: Mapping[str, End],
    raw: RawFolder,
    *,
    programs: Programs | None = None,
    ready_timeout_s: float = READY_TIMEOUT_S,
    watch: Watch | None = None,
    keeper: Keeper | None = None,
) -> tuple[JobOutcome, ...]:
    """Plays the jobs of ``request`` together and returns the outcome of each, in their order.

    ``ends`` has every endpoint that a job names. ``programs`` caches versions from round to round; ``watch`` is called
    before the clients begin and after all of them have ended; ``keeper`` stores the files that clients leave. It raises
    only where the whole round cannot continue (the run folder cannot be written, it was cancelled); in any case no
    process of it is left behind.
    """
    known, memory = kinds(), programs or Programs()
    running_jobs = [RunningJob(number, job, ends, raw, keeper) for number, job in enumerate(request.jobs, 1)]
    try:
        await _run_step(running_jobs, lambda running: running.prepare(known, memory))
        await _open_servers(running_jobs, ready_timeout_s)
        if watch is not None:
            await watch.begin()
        began_s = asyncio.get_running_loop().time()
        await _run_step(running_jobs, lambda running: running.begin(began_s))
        await _run_step(running_jobs, lambda running: running.finish(request))
        if watch is not None:
            await watch.end()
        await _run_step(running_jobs, lambda running: running.finish_server())
    finally:
        await asyncio.shield(asyncio.gather(*(running.stop() for running in running_jobs)))
    await asyncio.gather(*(running.collect() for running in running_jobs))
    # Parsing a large output takes time: do it off the event loop, on which others wait.
    return tuple([await asyncio.to_thread(running.outcome) for running in running_jobs])


async def _run_step(
    running_jobs: Iterable[RunningJob], step: Callable[[RunningJob], Coroutine[Any, Any, None]]
) -> None:
    """Runs one step of all jobs that have not failed, at the same time; an error fails its own job."""

    async def run_step(running: RunningJob) -> None:
        try:
            await step(running)
        except NicbenchError as error:
            running.fail(error)

    await asyncio.gather(*(run_step(running) for running in running_jobs if running.going))


async def _open_servers(running_jobs: Sequence[RunningJob], timeout_s: float) -> None:
    hosts: dict[int, Host] = {}
    jobs_by_host: dict[int, list[RunningJob]] = {}
    for running in running_jobs:
        if running.going and running.server is not None and running.server_command is not None:
            hosts[id(running.server.host)] = running.server.host
            jobs_by_host.setdefault(id(running.server.host), []).append(running)
    await asyncio.gather(
        *(_open_together(hosts[key], running_jobs, timeout_s) for key, running_jobs in jobs_by_host.items())
    )


async def _open_together(host: Host, running_jobs: Sequence[RunningJob], timeout_s: float) -> None:
    """Starts the servers of one host; an error fails all their jobs."""
    try:
        await _open(host, running_jobs, timeout_s)
    except NicbenchError as error:
        for running in running_jobs:
            running.fail(error)


async def _open(host: Host, running_jobs: Sequence[RunningJob], timeout_s: float) -> None:
    """Refuses ports that are taken, starts the servers, and waits for all of them at once."""
    sockets = await sockets_of(host)
    for running in running_jobs:
        taken = [one for one in running.listens if is_open(one, sockets)]
        if taken:
            what = f"{taken[0].protocol.upper()} port {taken[0].port} is taken by another process there"
            place = f"{running.job.workload}, server on {running.job.server}"
            running.fail(JobError(what, place=place, next_step=_PORT_ADVICE))
    await _run_step(running_jobs, lambda running: running.open())
    started = {number: running for number, running in enumerate(running_jobs) if running.going}
    ready = await wait_until_open(
        host,
        {number: running.listens for number, running in started.items()},
        lambda number: started[number].server_is_gone,
        timeout_s,
    )
    await _run_step(
        (running for number, running in started.items() if number not in ready),
        lambda running: running.server_failed(timeout_s),
    )
