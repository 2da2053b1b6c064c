"""Looks at the connections of the clients of a round while they send: what each sender makes of marks and losses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nicbench.core.errors import NicbenchError
from nicbench.core.round import Job, RoundRequest, SenderLook, SenderTrace
from nicbench.measure.host_readings import Socket
from nicbench.measure.looks import split_looks, start_looking, uptime_s
from nicbench.workloads.base import End, Watch
from nicbench.workloads.processes import Running


@dataclass
class SenderWatch:
    """Looks at the hosts of all clients around what another watch looks at. A host that cannot be has no traces."""

    watch: Watch
    request: RoundRequest
    ends: Mapping[str, End]
    _looking: dict[str, Running] = field(default_factory=dict)
    _zero_s: dict[str, float] = field(default_factory=dict)

    async def begin(self) -> None:
        """Begins to look, and takes the time of each host at which its clients begin."""
        hosts = {end.host.name: end.host.network for end in (self.ends[job.client] for job in self.request.jobs)}
        for name, host in hosts.items():
            with contextlib.suppress(NicbenchError):
                self._looking[name] = await start_looking(host)
        await self.watch.begin()
        for name, host in hosts.items():
            with contextlib.suppress(NicbenchError):
                self._zero_s[name] = await uptime_s(host)

    async def end(self) -> None:
        """Every client has ended."""
        await self.close()
        await self.watch.end()

    async def close(self) -> None:
        """Whatever happened: nobody looks any more."""
        for running in self._looking.values():
            with contextlib.suppress(NicbenchError):
                await running.stop()

    def traces(self) -> tuple[SenderTrace, ...]:
        """Returns the connection of each job that was seen, in the order of the jobs."""
        looks = {
            name: list(split_looks(running.output.stdout))
            for name, running in self._looking.items()
            if name in self._zero_s
        }
        found = []
        for number, job in enumerate(self.request.jobs, 1):
            name = self.ends[job.client].host.name
            if name in looks:
                trace = trace_of(number, job, looks[name], self._zero_s[name])
                found += [] if trace is None else [trace]
        return tuple(found)


def trace_of(number: int, job: Job, looks: Iterable[tuple[float, list[Socket]]], zero_s: float) -> SenderTrace | None:
    """Picks, of the connections to the job's port, the one that moved the most: tools have one for control beside it.

    ``zero_s`` is the time of the looks' clock at which clients began. None where no connection was seen.
    """
    seen: dict[tuple[str, int, str, int], list[tuple[float, Socket]]] = {}
    for at_s, sockets in looks:
        for one in sockets:
            if one.peer_port == job.port and one.sender is not None:
                seen.setdefault(one.key, []).append((at_s - zero_s, one))
    if not seen:
        return None
    rows = max(seen.values(), key=lambda rows: max(one.sender.acked_bytes for _, one in rows if one.sender))
    counts = [(at_s, one.sender) for at_s, one in rows if one.sender is not None]
    last = counts[-1][1]
    return SenderTrace(
        job=number,
        congestion_control=last.congestion_control,
        ecn=last.ecn,
        looks=tuple(
            SenderLook(
                at_s=round(at_s, 3),
                acked_bytes=each.acked_bytes,
                delivered=each.delivered,
                delivered_marked=each.delivered_marked,
                resent=each.resent,
                round_trip_ns=each.round_trip_ns,
                window=each.window,
            )
            for at_s, each in counts
        ),
    )
