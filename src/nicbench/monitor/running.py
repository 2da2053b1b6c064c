"""The monitors of a run: one process on each machine, whose samples go to the run folder as they come.

From the same lines follows how busy a machine was during a round. Where no samples are wanted they still watch what
others change on the path.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import resource
import signal
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

from nicbench.core.base import Frozen
from nicbench.core.errors import EngineError, HostError, NicbenchError
from nicbench.core.events import Bus, Note
from nicbench.core.machine import MonitorCost, MonitorPlan, MonitorSettings, parse_cpu_list
from nicbench.core.reading import PathChanges
from nicbench.core.round import MachineCpu
from nicbench.engine.binaries import deploy_binary
from nicbench.engine.client import PROTOCOL, error_of, explain_wrong_protocol, parse_message
from nicbench.hosts.base import Host, Process
from nicbench.hosts.owner import MARK, owner_mark
from nicbench.monitor.base import BESIDE_ROUNDS, Machine, Monitors, Place, machines, place
from nicbench.stats.cpu import (
    BUSY,
    Census,
    CpuStates,
    add_times,
    parse_census,
    tell_apart,
    utilisation,
    with_exact_children,
)
from nicbench.store.monitor_samples import SAMPLE, MonitorLog
from nicbench.testbed.labs.base import TestHost

# A ``nicbench-monitor`` and the conversation with it (protocol/monitor.md): replies to who asked, events to a log.

_REPLY_TIMEOUT_S = 10.0
NAME = "nicbench-monitor"


class MonitorClient:
    """Hands every event to ``log``, as the line that came, in the order in which events and replies came.

    ``log`` is called by the loop and must not block for long. ``on_reply`` gets each reply before whoever waits for it.
    """

    def __init__(self, process: Process, log: Callable[[str], None], place: str) -> None:
        self._process = process
        self._log = log
        self._place = place
        self._next_id = 1
        self._waiting: dict[int, tuple[asyncio.Future[dict[str, Any]], Callable[[], None] | None]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._death: EngineError | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the monitor."""
        return self._process.pid

    async def greet(self) -> dict[str, Any]:
        """Checks the version and says hello; its reply."""
        line = await self._process.read_line(timeout_s=_REPLY_TIMEOUT_S)
        ready = _message(line or "{}")
        wrong = (
            explain_wrong_protocol(str(ready.get("protocol")))
            if ready.get("event") == "ready"
            else f"does not start with protocol {PROTOCOL}"
        )
        if wrong is not None:
            step = "build monitor and controller from the same source: `make install`"
            raise EngineError(wrong, kind="version", place=self._place, next_step=step)
        self._log(line or "")
        self._reader = asyncio.create_task(self._read())
        return await self.request("hello", protocol=PROTOCOL)

    async def request(
        self, command: str, *, on_reply: Callable[[], None] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Its reply; EngineError where the monitor refuses, is silent or has ended."""
        if self._death is not None:
            raise self._death
        number, self._next_id = self._next_id, self._next_id + 1
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (future, on_reply)
        try:
            await self._process.write_line(json.dumps({"id": number, "command": command, **fields}))
            async with asyncio.timeout(_REPLY_TIMEOUT_S):
                reply = await future
        except TimeoutError:
            message = f"did not answer {command} within {_REPLY_TIMEOUT_S:g} s"
            raise EngineError(message, kind="silent", place=self._place) from None
        finally:
            self._waiting.pop(number, None)
        if reply.get("ok"):
            return reply
        raise error_of(reply, command, self._place)

    async def close(self) -> dict[str, Any] | None:
        """The reply to ``close``, which says what it cost; None where it was gone already. Never raises."""
        reply = None
        try:
            if self._reader is None:
                raise HostError("it was never understood", place=self._place)  # nobody reads what it replies
            reply = await self.request("close")
            await self._process.wait(timeout_s=5.0)
        except (HostError, EngineError):
            with contextlib.suppress(HostError):
                await self._process.signal(signal.SIGKILL)
                await self._process.wait(timeout_s=5.0)
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait((self._reader,))
        return reply

    async def _read(self) -> None:
        """Reads until the monitor ends. A line that is not a message ends it as well: what follows could not be
        trusted.
        """
        reason, line = "ended", None
        try:
            while (line := await self._process.read_line()) is not None:
                if line.startswith(SAMPLE):
                    self._log(line)
                    continue
                message = _message(line)
                if "event" in message:
                    self._log(line)
                elif "id" in message:
                    self._answer(message)
                else:
                    reason = f"wrote a line that is no message: {line[:200]!r}"
                    break
        except HostError as error:
            reason = error.message
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            reason = f"wrote a line that cannot be understood ({type(error).__name__}): {(line or '')[:200]!r}"
        tail = self._process.stderr_tail()
        self._death = EngineError(f"{reason}" + (f"; its last words: {tail}" if tail else ""), place=self._place)
        for future, _ in self._waiting.values():
            if not future.done():
                future.set_exception(self._death)

    def _answer(self, message: dict[str, Any]) -> None:
        future, on_reply = self._waiting.get(message["id"] if isinstance(message["id"], int) else -1, (None, None))
        if on_reply is not None:
            on_reply()
        if future is not None and not future.done():
            future.set_result(message)


def _message(line: str) -> dict[str, Any]:
    """Returns the message of a line, empty if it does not hold one."""
    return parse_message(line) or {}


_CPU: Final = "cpu_"
_STATES: Final = (*BUSY, "idle", "iowait", "steal")
_OWN: Final = "monitor_cpu_ns"
_SHORTEST_NS: Final = 100_000_000
"""Ten of the kernel's ticks: the share of a shorter sample is too coarse to be a minimum or maximum."""


class CpuWatch:
    """Between ``begin`` and ``end`` every sample counts; the first of them ends where the round begins."""

    def __init__(self) -> None:
        self._series: dict[int, tuple[str, str]] = {}
        self._samples: list[dict[str, CpuStates]] | None = None
        self._own_ns = 0

    def heard(self, line: str) -> None:
        """Handles a line of the monitor; events of other kinds are ignored."""
        if self._samples is None and not line.startswith('{"event":"series"'):
            return
        try:
            event = json.loads(line)
        except ValueError:
            return
        if event.get("event") == "series":
            self._series.update({each["series"]: (each["metric"], each["of"]) for each in event.get("series", ())})
        elif event.get("event") == "sample" and self._samples is not None:
            self._sample(event)

    def begin(self) -> None:
        """Starts to count: the round begins now."""
        self._samples, self._own_ns = [], 0

    def end(self, machine: str) -> MachineCpu:
        """The round is over; unknown where no sample came."""
        samples, self._samples = self._samples or [], None
        if not samples:
            return MachineCpu(machine=machine)
        whole = [add_times(sample.values()) for sample in samples]
        long = [each for each in whole if each.total_ns >= _SHORTEST_NS * len(samples[0])] or whole
        mean, extremes = utilisation(whole), utilisation(long)
        cpus = {cpu: add_times(sample[cpu] for sample in samples if cpu in sample) for cpu in samples[0]}
        busiest = max((share for spent in cpus.values() if (share := spent.share(*BUSY)) is not None), default=None)
        total_ns = add_times(whole).total_ns
        return MachineCpu(
            machine=machine,
            mean=mean.mean if mean else None,
            minimum=extremes.minimum if extremes else None,
            maximum=extremes.maximum if extremes else None,
            busiest_core=busiest,
            steal=add_times(whole).share("steal"),
            samples=len(samples),
            cpus=len(samples[0]),
            monitor=self._own_ns / total_ns if total_ns else None,
        )

    def _sample(self, event: dict[str, Any]) -> None:
        spent: dict[str, dict[str, int]] = {}
        for series, value in event.get("values", ()):
            metric, of = self._series.get(series, ("", ""))
            if value is None:
                continue
            state = metric.removeprefix(_CPU).removesuffix("_ns")
            if metric == _OWN:
                self._own_ns += int(value)
            elif metric.startswith(_CPU) and state in _STATES:
                spent.setdefault(of, {})[state] = int(value)
        if spent and self._samples is not None:
            self._samples.append({cpu: CpuStates(states) for cpu, states in spent.items()})


_RENEW_S = 3.0
"""A third of the lease: two may be late."""
_BESIDE_TRIAL_S = 60.0
"""The time that a pause may exceed its trial: for learning frames, counters, a slow host."""


@dataclass
class _WatchedMachine:
    """A machine with its monitor."""

    name: str
    client: MonitorClient
    plan: MonitorPlan | None
    """None where it takes no samples: it only watches what others change."""
    watch: CpuWatch
    is_local: bool
    census: Census | None = None
    lost: bool = False


class RunningMonitors(Monitors):
    """See the module. A monitor that fails is reported once, and the run goes on without it."""

    def __init__(self, log: MonitorLog, bus: Bus) -> None:
        self._log = log
        self._bus = bus
        self._watched: list[_WatchedMachine] = []
        self._renewing: asyncio.Task[None] | None = None
        self._lost: set[str] = set()
        self._sees_all = True
        """Whether a monitor runs on each machine."""

    @property
    def plans(self) -> tuple[MonitorPlan, ...]:
        return tuple(each.plan for each in self._watched if each.plan is not None)

    async def start(
        self,
        settings: MonitorSettings,
        hosts: Collection[TestHost],
        measuring: Collection[int] | None,
        engine_folder: str | None = None,
    ) -> None:
        """Starts one on the machine of each host; ``measuring`` are the CPUs that it must leave alone.

        None: workloads may use every CPU, and the monitor goes on beside them.
        """
        for name, machine in machines(hosts).items():
            if not settings.enabled and not machine.watched:
                continue
            try:
                await self._start_on(name, machine, settings, measuring, engine_folder)
            except NicbenchError as error:
                self._sees_all = False
                step = f" ({error.next_step})" if error.next_step else ""
                self._tell(f"{name} is not watched by a monitor: {error.message}{step}")
        if self._watched:
            self._renewing = asyncio.create_task(self._renew())

    async def _start_on(
        self,
        name: str,
        machine: Machine,
        settings: MonitorSettings,
        measuring: Collection[int] | None,
        engine_folder: str | None,
    ) -> None:
        host = machine.host
        process = await host.start([await deploy_binary(host, NAME, engine_folder)])
        watch = CpuWatch()
        clock_is_known = host.kind == "local"

        self._lost.discard(name)

        def heard(line: str) -> None:
            nonlocal clock_is_known
            if not settings.enabled:
                return
            if name in self._lost:  # it may live on, and nobody knows any more to which trial its samples belong
                return
            if not clock_is_known and line.startswith(SAMPLE):
                self._log.clock(name, time.monotonic_ns() - int(json.loads(line)["time_ns"]))
                clock_is_known = True
            self._log.event(name, line)
            watch.heard(line)

        client = MonitorClient(process, heard, f"{NAME} on {name}")
        try:
            hello = await client.greet()
            where = BESIDE_ROUNDS if measuring is None else place(await _online(host), measuring)
            configured = await client.request(
                "configure",
                interval_ms=round(settings.interval * 1000),
                cpus=list(where.cpus),
                processes=[os.getpid()] if host.kind == "local" else [],
                namespaces=[{"name": each, "path": path} for each, path in machine.namespaces.items()],
                watched=[
                    {"name": ", ".join(each.names), "path": path, "devices": each.devices}
                    for path, each in machine.watched.items()
                ],
                mark=f"{MARK}={owner_mark()}",
            )
            if settings.enabled:
                await client.request("start")
        except BaseException:
            await client.close()
            raise
        for each in configured.get("unwatched") or ():
            self._tell(f"what others change in {each['network']} is not wholly seen: {each['missing']}")
        if not settings.enabled:
            self._watched.append(_WatchedMachine(name, client, None, watch, host.kind == "local"))
            return
        plan = _plan(name, settings, where, hello, configured)
        self._watched.append(_WatchedMachine(name, client, plan, watch, host.kind == "local"))

    async def begin_trial(self, number: int, duration_s: float | None) -> None:
        await self._stop_renewing()
        silent_s = 0.0 if duration_s is None else duration_s + _BESIDE_TRIAL_S
        for each in self._living():
            if each.plan is None:
                await self._ask(each, "renew", duration_s=silent_s)
                continue
            begun = partial(self._log.trial, each.name, number)
            await self._ask(each, "pause", on_reply=begun, duration_s=silent_s, only_interrupting=not each.plan.paused)
        if duration_s is None:
            self._renewing = asyncio.create_task(self._renew())

    async def end_trial(self) -> None:
        await self._stop_renewing()
        for each in self._sampling():
            await self._ask(each, "resume", on_reply=partial(self._log.trial, each.name, None))
        self._renewing = asyncio.create_task(self._renew())

    async def watch(self) -> None:
        await asyncio.gather(*(self._ask(each, "watch") for each in self._living()))

    async def changes(self) -> PathChanges | None:
        living = self._living()
        replies = await asyncio.gather(*(self._ask(each, "changes") for each in living))
        try:
            seen = [
                PathChanges.model_validate(_fields_of(reply, PathChanges)) for reply in replies if reply is not None
            ]
        except ValidationError as error:
            self._tell(f"what others changed on the path is not known: {error.errors()[0]['msg']}")
            return None
        # What one machine saw is told, even if another could not look.
        whole = functools.reduce(PathChanges.add, seen, PathChanges())
        is_whole = self._sees_all and len(seen) == len(self._watched) > 0
        return whole if is_whole or whole != PathChanges() else None

    async def begin_round(self, number: int) -> None:
        for each in self._sampling():
            begun = partial(self._note_begun, each, number)
            await self._ask(each, "sample", on_reply=begun)
        await asyncio.gather(*(self._count(each) for each in self._sampling()))

    def _note_begun(self, each: _WatchedMachine, number: int) -> None:
        self._log.round(each.name, number)
        each.watch.begin()

    async def end_round(self) -> tuple[MachineCpu, ...]:
        counted = [(each, each.census) for each in self._sampling()]
        await asyncio.gather(*(self._count(each) for each, _ in counted))
        for each in self._sampling():
            await self._ask(each, "sample", on_reply=partial(self._log.trial, each.name, None))
        return tuple(
            add_users(each.watch.end(each.name), before, each.census) for each, before in counted if not each.lost
        )

    async def _count(self, each: _WatchedMachine) -> None:
        """Who used the CPUs is not known where a census fails; the monitor goes on."""
        each.census = None
        try:
            census = parse_census(await each.client.request("census"))
            each.census = with_exact_children(census, os.getpid(), _ended_children_ns()) if each.is_local else census
        except NicbenchError as error:
            self._tell(f"who used the CPUs of {each.name} is not known: {error.message}")
        except (KeyError, TypeError, ValueError) as error:
            self._tell(f"who used the CPUs of {each.name} is not known: its monitor's count lacks {error}")

    async def close(self) -> None:
        await self._stop_renewing()
        for each in self._watched:
            with contextlib.suppress(NicbenchError, ValidationError):
                reply = await each.client.close()
                if reply is not None and each.plan is not None:
                    self._log.cost(each.name, MonitorCost.model_validate(_fields_of(reply, MonitorCost)))
        self._watched = []

    def _sampling(self) -> list[_WatchedMachine]:
        return [each for each in self._living() if each.plan is not None]

    def _living(self) -> list[_WatchedMachine]:
        return [each for each in self._watched if not each.lost]

    async def _ask(self, each: _WatchedMachine, command: str, **fields: Any) -> dict[str, Any] | None:
        """Returns the reply; None, with a report of it, if the monitor is lost."""
        try:
            return await each.client.request(command, **fields)
        except NicbenchError as error:
            each.lost = True
            self._lost.add(each.name)
            self._log.trial(each.name, None)
            self._tell(f"the monitor of {each.name} {error.message}; the run goes on without it")
            return None

    async def _renew(self) -> None:
        """Between trials, and during one of which nobody knows how long it takes.

        During others the lease is as long as the trial, so that no timer wakes the controller.
        """
        while True:
            await asyncio.sleep(_RENEW_S)
            for each in self._living():
                await self._ask(each, "renew")

    async def _stop_renewing(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait((self._renewing,))
            self._renewing = None

    def _tell(self, text: str) -> None:
        self._bus.publish(Note(level="warning", text=text))


def _ended_children_ns() -> int:
    """CPU time of our children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((used.ru_utime + used.ru_stime) * 1e9)


def add_users(cpu: MachineCpu, before: Census | None, after: Census | None) -> MachineCpu:
    """The same with who used the CPUs between two counts, where both are known."""
    use = None if before is None or after is None else tell_apart(before, after)
    if use is None:
        return cpu
    return cpu.replace(
        counted_s=use.counted_s,
        own=use.own,
        kernel=use.kernel,
        nicbench=use.nicbench,
        strangers=use.strangers,
        idle=use.idle,
        pressure=use.pressure,
        processes=use.rows,
    )


async def _online(host: Host) -> tuple[int, ...] | None:
    """CPUs that are on, and that this process may use where it is on the same machine; None where that is not told."""
    text = await host.read_file("/sys/devices/system/cpu/online")
    if not text:
        return None
    cpus = set(parse_cpu_list(text))
    return tuple(sorted(cpus & os.sched_getaffinity(0) if host.kind == "local" else cpus))


def _plan(
    name: str, settings: MonitorSettings, where: Place, hello: dict[str, Any], configured: dict[str, Any]
) -> MonitorPlan:
    sources = configured.get("sources") or []
    return MonitorPlan(
        host=name,
        interval_s=settings.interval,
        cpus=where.cpus,
        paused=where.paused,
        during_trials=where.during_trials,
        version=str(hello.get("version")),
        missing={str(each["source"]): str(each["missing"]) for each in sources if each.get("missing")},
    )


def _fields_of(reply: dict[str, Any], model: type[Frozen]) -> dict[str, Any]:
    return {name: reply.get(name) for name in model.model_fields}
