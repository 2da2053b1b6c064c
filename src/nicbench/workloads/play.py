"""Plays a round: starts every server, waits until each is ready, starts all clients together, waits, reads, reaps.

What fails, fails its own job, with the tool, the host, the exit status and the tool's last words; the others go on.
While clients run, nothing of ours does but wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from nicbench.errors import NicbenchError
from nicbench.hosts.base import Host
from nicbench.model.round import JobOutcome, RoundRequest
from nicbench.registry import find
from nicbench.workloads._seat import JobError, Seat
from nicbench.workloads.base import End, Keeper, Watch, Workload
from nicbench.workloads.ports import is_open, sockets_of, wait_until_open
from nicbench.workloads.programs import Programs
from nicbench.workloads.raw import RawFolder

READY_TIMEOUT_S = 15.0
_PORT_ADVICE = "`ss -lntup` there names the process: end it, or give other ports"


def kinds() -> dict[str, type[Workload]]:
    """Every workload there is, by its kind."""
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
    """Plays the jobs of ``request`` together and gives what came of each, in their order.

    ``ends`` has every endpoint that a job names. ``programs`` remembers versions from round to round; ``watch`` is told
    when the clients are about to begin and when all of them have ended; ``keeper`` keeps what clients leave. It raises
    only where nothing of the round can go on (the run folder cannot be written, it was cancelled); whatever happens, no
    process of it is left behind.
    """
    known, memory = kinds(), programs or Programs()
    seats = [Seat(number, job, ends, raw, keeper) for number, job in enumerate(request.jobs, 1)]
    try:
        await _each(seats, lambda seat: seat.prepare(known, memory))
        await _open_servers(seats, ready_timeout_s)
        if watch is not None:
            await watch.begin()
        began_s = asyncio.get_running_loop().time()
        await _each(seats, lambda seat: seat.begin(began_s))
        await _each(seats, lambda seat: seat.finish(request))
        if watch is not None:
            await watch.end()
        await _each(seats, lambda seat: seat.finish_server())
    finally:
        await asyncio.shield(asyncio.gather(*(seat.stop() for seat in seats)))
    await asyncio.gather(*(seat.collect() for seat in seats))
    # Large outputs take time to read: not on the event loop, where others wait.
    return tuple([await asyncio.to_thread(seat.outcome) for seat in seats])


async def _each(seats: Iterable[Seat], step: Callable[[Seat], Coroutine[Any, Any, None]]) -> None:
    """One step of all jobs that have not failed, at the same time; an error ends its own job."""

    async def alone(seat: Seat) -> None:
        try:
            await step(seat)
        except NicbenchError as error:
            seat.fail(error)

    await asyncio.gather(*(alone(seat) for seat in seats if seat.going))


async def _open_servers(seats: Sequence[Seat], timeout_s: float) -> None:
    hosts: dict[int, Host] = {}
    there: dict[int, list[Seat]] = {}
    for seat in seats:
        if seat.going and seat.server is not None and seat.server_command is not None:
            hosts[id(seat.server.host)] = seat.server.host
            there.setdefault(id(seat.server.host), []).append(seat)
    await asyncio.gather(*(_open_together(hosts[key], seats, timeout_s) for key, seats in there.items()))


async def _open_together(host: Host, seats: Sequence[Seat], timeout_s: float) -> None:
    """The servers of one host: who listens already, their start, and one wait for all of them."""
    try:
        await _open(host, seats, timeout_s)
    except NicbenchError as error:
        for seat in seats:
            seat.fail(error)


async def _open(host: Host, seats: Sequence[Seat], timeout_s: float) -> None:
    sockets = await sockets_of(host)
    for seat in seats:
        taken = [one for one in seat.listens if is_open(one, sockets)]
        if taken:
            what = f"{taken[0].protocol.upper()} port {taken[0].port} is taken by another process there"
            place = f"{seat.job.workload}, server on {seat.job.server}"
            seat.fail(JobError(what, place=place, next_step=_PORT_ADVICE))
    await _each(seats, lambda seat: seat.open())
    started = {number: seat for number, seat in enumerate(seats) if seat.going}
    ready = await wait_until_open(
        host,
        {number: seat.listens for number, seat in started.items()},
        lambda number: started[number].server_is_gone,
        timeout_s,
    )
    await _each(
        (seat for number, seat in started.items() if number not in ready), lambda seat: seat.server_failed(timeout_s)
    )
