"""Plays a round: starts every server, waits until each is ready, starts all clients together, waits, reads, reaps.

An error fails its own job, with the tool, the host, the exit status and the end of its output; other jobs continue.
While clients run, the controller only waits.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
import signal
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

from nicbench.core.errors import HostError, NicbenchError, NotReadyError, UsageError
from nicbench.core.lists import without_none
from nicbench.core.machine import RanOn
from nicbench.core.registry import Kinds, find
from nicbench.core.round import Figures, Job, JobOutcome, Placement, RoundRequest
from nicbench.hosts.asking import describe_path, read_placement
from nicbench.hosts.base import Host
from nicbench.workloads.base import (
    Command,
    End,
    Keeper,
    LeftFile,
    Listening,
    Output,
    Watch,
    Workload,
    WorkloadError,
    clean,
    last_words,
)
from nicbench.workloads.processes import (
    FloodError,
    HungError,
    Programs,
    RawFolder,
    Running,
    is_open,
    place,
    sockets_of,
    wait_until_open,
)
from nicbench.workloads.tool_output import find_implausible

# One job of a round while it is played: its client and server processes, and their outcome.

# How long a server that ends by itself may take after its client has ended.
_SERVER_GRACE_S: Final = 5.0
# A repeat does not help where a tool does not understand its options, or may not do what they say.
_PERMANENT: Final = re.compile(
    r"(?i)unrecogni[sz]ed (?:option|argument)|(?:invalid|unknown|bad|illegal) (?:option|argument|parameter)"
    r"|parameter error|not supported|unsupported|operation not permitted|permission denied|no such (?:file|device)"
    r"|no IB devices|IB device \S+ not found|did not detect devices"
    r"|command not found|cannot execute|must be root|unable to set TCP_CONGESTION"
)


class JobError(NicbenchError):
    """Why a job has no figures; ``repeatable`` says whether a repeat might help."""

    def __init__(
        self, message: str, *, place: str | None = None, next_step: str | None = None, repeatable: bool = True
    ) -> None:
        super().__init__(message, place=place, next_step=next_step)
        self.repeatable = repeatable


class RunningJob:
    """A job of a round while it runs.

    Its steps are ``prepare``, ``open``, ``begin``, ``finish``, ``finish_server``, ``stop``, ``collect``, ``outcome``.
    """

    def __init__(
        self, number: int, job: Job, ends: Mapping[str, End], raw: RawFolder, keeper: Keeper | None = None
    ) -> None:
        self.number = number
        self.job = job
        self.client = ends.get(job.client)
        self.server = None if job.server is None else ends.get(job.server)
        self.listens: tuple[Listening, ...] = ()
        self.server_command: Command | None = None
        self.failure: NicbenchError | None = None
        self._raw = raw
        self._keeper = keeper
        self._left: tuple[LeftFile, ...] = ()
        self._left_files: tuple[str, ...] = ()
        self._notes: tuple[str, ...] = ()
        self._client_command: Command = ()
        self._workload: Workload | None = None
        self._versions: tuple[str | None, str | None] = (None, None)
        self._running_client: Running | None = None
        self._running_server: Running | None = None
        self._server_ran_on: RanOn | None = None
        self._from_s = 0.0
        self._began_s: float | None = None
        self._took_s: float | None = None

    @property
    def going(self) -> bool:
        """Whether no step of the job has failed yet."""
        return self.failure is None

    @property
    def server_is_gone(self) -> bool:
        """Whether its server has ended or was never started."""
        return self._running_server is None or self._running_server.ended

    def fail(self, error: NicbenchError) -> None:
        """Marks the job as failed; the first failure is the one that is reported."""
        if self.failure is None:
            self.failure = error

    async def prepare(self, kinds: Mapping[str, type[Workload]], programs: Programs) -> None:
        """Checks everything that can be known before a process starts, and builds the commands."""
        job, workload = self.job, self._make_workload(kinds)
        client, server = self._ends()
        self._workload = workload
        for refusal in (workload.refusal(job.ask), workload.refusal_of_ends(job, client, server)):
            _refuse(refusal)
        self._versions = (
            await self._version(client.host, workload, programs),
            None if server is None else await self._version(server.host, workload, programs),
        )
        for end in (client, server):
            if end is not None:
                await programs.learn_environment(end.host, workload)
        for version in self._versions:
            _refuse(None if version is None else workload.refusal_of_version(job.ask, version))
        await self._check_placement(client, job.client_placement, job.client, programs)
        self._left = workload.leaves(job)
        if self._left and self._keeper is not None:
            folder = await self._keeper.folder(client.host, self.number)
            self.client = client = dataclasses.replace(client, folder=folder)
        command = await programs.locate(client.host, workload, workload.client_command(job, client, server))
        self._client_command = place(command, job.client_placement)
        if server is None:
            return
        await self._check_placement(server, job.server_placement, job.server, programs)
        server_command = workload.server_command(job, client, server)
        if server_command is not None:
            located = await programs.locate(server.host, workload, server_command)
            self.server_command = place(located, job.server_placement)
        self.listens = workload.listens(job, server)

    async def open(self) -> None:
        """Starts the server."""
        if self.server is not None and self.server_command is not None:
            self._running_server = await self._start(self.server.host, self.server_command)

    async def server_failed(self, timeout_s: float) -> None:
        """Raises JobError with the reason why the server did not become ready."""
        if self._running_server is None:
            return
        place = self._place("server")
        if not self._running_server.ended:
            await self._running_server.stop(signal.SIGKILL)
            what = " and ".join(f"{one.protocol.upper()} port {one.port}" for one in self.listens)
            raise JobError(f"did not listen on {what} within {timeout_s:g} s", place=place, next_step=_BY_HAND)
        output = await self._wait(self._running_server, 1.0, place)
        complaint = None if self._workload is None else self._workload.complaint(output)
        why = f": {complaint}" if complaint else _quote_end(output)
        raise self._make_error(f"ended before its client came{why}", place)

    async def begin(self, zero_s: float) -> None:
        """Starts the client, when its time has come."""
        if self.client is not None:
            await asyncio.sleep(self.job.begins_after_s)
            self._running_client = await self._start(self.client.host, self._client_command)
            # The time after the start, which takes a while over ssh or in a container.
            self._from_s = asyncio.get_running_loop().time()
            self._began_s = self._from_s - zero_s

    async def finish(self, request: RoundRequest) -> None:
        """Waits for the client's end."""
        client, workload = self._running_client, self._workload
        if client is None or workload is None:
            return
        expected_s = workload.expected_s(self.job)
        observation = asyncio.create_task(self._look_where_server_is(expected_s or request.duration_s))
        try:
            await self._wait(
                client, (request.duration_s if expected_s is None else expected_s) + request.timeout_s, self._place()
            )
        finally:
            observation.cancel()
            self._took_s = asyncio.get_running_loop().time() - self._from_s
        complaint = workload.complaint(client.output)
        if complaint is not None:
            raise self._make_error(f"says: {complaint}", self._place())

    async def finish_server(self) -> None:
        """Waits for the server's end, or ends it where it does not end by itself."""
        server, workload = self._running_server, self._workload
        if workload is None:
            return
        if server is not None and workload.server_ends:
            await self._wait_for_server(server)
        elif server is not None:
            await self._require_running(server)
            await server.stop(workload.stop_signal)

    async def _require_running(self, server: Running) -> None:
        """Raises JobError where a server that is to be ended now has ended by itself."""
        if server.ended:
            place = self._place("server")
            output = await self._wait(server, 1.0, place)
            raise self._make_error(f"ended before its client did{_quote_end(output)}", place)

    async def _look_where_server_is(self, expected_s: float) -> None:
        """Reads the server's placement when its client starts and halfway through, if a placement was requested."""
        server = self._running_server
        if self.server is None or server is None or server.pid is None or self.job.server_placement == Placement():
            return
        for wait_s in (0.0, expected_s / 2):
            await asyncio.sleep(wait_s)
            self._server_ran_on = await read_placement(self.server.host, server.pid) or self._server_ran_on

    async def stop(self) -> None:
        """Ends the processes of the job that still run."""
        for running in (self._running_client, self._running_server):
            if running is not None:
                await running.stop()

    async def collect(self) -> None:
        """Fetches the files that its client left, also those of a client that failed or was killed."""
        if self._keeper is None or self._running_client is None or self.client is None or self.client.folder is None:
            return
        for left in self._left:
            kept = await self._keeper.take(self.client.host, self.number, left, f"{self.client.folder}/{left.name}")
            self._left_files += kept.files
            # A failed client may not have got so far, and its failure says why.
            self._notes += kept.notes if kept.files or self.going else ()

    def outcome(self) -> JobOutcome:
        """Stores the output of its processes and returns the job's outcome."""
        figures = None
        files = (*self._store_output(), *self._left_files)
        try:
            figures = self._figures() if self.failure is None else None
        except NicbenchError as error:
            self.fail(error)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # Absurd output of a tool must fail its own job only, whatever it is.
            self.fail(WorkloadError(f"its figures cannot be read: {type(error).__name__}", place=self._place()))
        failure = self.failure
        return JobOutcome(
            figures=figures,
            failure=None if failure is None else self._describe_failure(failure, files),
            ends_run=failure is not None and self._ends_run(),
            repeatable=getattr(failure, "repeatable", True) and not isinstance(failure, NotReadyError | UsageError),
            version=self._versions[0],
            server_version=self._versions[1],
            client_command=self._client_command,
            server_command=self.server_command or (),
            files=files,
            notes=self._notes,
            server_ran_on=self._server_ran_on,
            began_s=self._began_s,
            took_s=self._took_s,
        )

    def _make_workload(self, kinds: Mapping[str, type[Workload]]) -> Workload:
        kind = kinds.get(self.job.workload)
        if kind is None:
            raise UsageError(f"there is no workload {self.job.workload!r}", next_step=f"there are: {', '.join(kinds)}")
        return kind(self.job.options)

    def _ends(self) -> tuple[End, End | None]:
        if self.client is None or (self.job.server is not None and self.server is None):
            raise UsageError(f"a job names an endpoint that is not there: {self.job.client} or {self.job.server}")
        return self.client, self.server

    async def _version(self, host: Host, workload: Workload, programs: Programs) -> str | None:
        return await programs.version(host, workload, self.job.ask)

    async def _check_placement(self, end: End, placement: Placement, name: str | None, programs: Programs) -> None:
        if placement == Placement():
            return
        why = await programs.cannot_place(end.host, placement)
        if why is not None:
            advice = "`lscpu` and `numactl --hardware` there show what it has; a container may be kept from some"
            raise JobError(why, place=name, next_step=advice, repeatable=False)

    async def _start(self, host: Host, command: Command) -> Running:
        workload = self._workload
        if workload is None:
            raise RuntimeError("the job was not prepared")
        return await Running.start(host, command, workload.environment, workload.output_limit_bytes)

    async def _wait(self, running: Running, timeout_s: float, place: str) -> Output:
        try:
            output = await running.finish(timeout_s)
        except HungError:
            await running.stop(signal.SIGKILL)
            words = _quote_end(running.output)
            raise JobError(
                f"did not end within {timeout_s:g} s and was killed{words}", place=place, next_step=_BY_HAND
            ) from None
        except FloodError:
            limit = self._workload.output_limit_bytes if self._workload else 0
            raise JobError(
                f"wrote more than {limit} bytes and was killed{_quote_end(running.output)}",
                place=place,
                next_step=_BY_HAND,
            ) from None
        if output.status != 0:
            ended = "exit status" if output.status is None or output.status > 0 else "was killed by signal"
            complaint = None if self._workload is None else self._workload.complaint(output)
            words = f": {complaint}" if complaint else _quote_end(output)
            raise self._make_error(f"{ended} {abs(output.status or 0)}{words}", place)
        return output

    async def _wait_for_server(self, server: Running) -> None:
        """Waits for the server's end. Its failure alone is ignored: the client's figures are what counts."""
        try:
            await server.finish(_SERVER_GRACE_S)
        except (HungError, FloodError):
            await server.stop()

    def _make_error(self, message: str, place: str) -> JobError:
        return JobError(message, place=place, next_step=_BY_HAND, repeatable=_PERMANENT.search(message) is None)

    def _figures(self) -> Figures | None:
        if self._workload is None or self._running_client is None:
            return None
        server = None if self._running_server is None else self._running_server.output
        figures = self._workload.parse(self.job, self._running_client.output, server)
        wrong = find_implausible(self.job, figures, self._link_bits_per_s())
        if wrong:
            raise WorkloadError(
                f"figures that cannot be so, which are refused: {'; '.join(wrong)}", place=self._place()
            )
        return figures

    def _ends_run(self) -> bool:
        client, workload = self._running_client, self._workload
        return client is not None and workload is not None and workload.ends_run(client.output)

    def _link_bits_per_s(self) -> float | None:
        rates = [end.link_bits_per_s for end in (self.client, self.server) if end is not None]
        return min(without_none(rates), default=None)

    def _store_output(self) -> tuple[str, ...]:
        files: tuple[str, ...] = ()
        environment = {} if self._workload is None else self._workload.environment
        for side, name, running, command in (
            ("client", self.job.client, self._running_client, self._client_command),
            ("server", self.job.server or "", self._running_server, self.server_command or ()),
        ):
            if running is not None:
                label = f"{self.number}-{self.job.workload}-{name}-{side}"
                files += self._raw.keep_process(label, command, environment, running.output)
        return files

    def _place(self, side: str = "client") -> str:
        name = self.job.client if side == "client" else self.job.server
        label = f"{self.job.label}, " if self.job.label else ""
        return f"{self.job.workload}, {label}{side} on {name}"

    def _describe_failure(self, failure: NicbenchError, files: tuple[str, ...]) -> str:
        place = self._place() if failure.place is None or isinstance(failure, WorkloadError) else failure.place
        if isinstance(failure, HostError | NotReadyError) and self.job.workload not in place:
            place = f"{self.job.workload} on {place}"
        hint = " (what it wrote is kept in raw)" if files and isinstance(failure, WorkloadError) else ""
        next_step = f"; next: {failure.next_step}" if failure.next_step else ""
        return clean(f"{place}: {failure.message}{hint}{next_step}").replace("\n", " ")


_BY_HAND: Final = "what it wrote is kept in the run folder's raw; run its command there by hand"


def _refuse(refusal: str | None) -> None:
    if refusal is not None:
        raise JobError(refusal, next_step="choose another workload, or ask for what this one can do", repeatable=False)


def _quote_end(output: Output) -> str:
    """Quotes the end of a process's stderr, or of its stdout, as the end of a sentence."""
    words = last_words(output.stderr) or last_words(output.stdout)
    return f"; its last words: {words}" if words else ", without a word"


READY_TIMEOUT_S = 15.0
_PORT_ADVICE = "`ss -lntup` there names the process: end it, or give other ports"


def kinds() -> Kinds[Workload]:
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
    outcomes = [await asyncio.to_thread(running.outcome) for running in running_jobs]
    explained = (_explain(outcome, ends, job) for outcome, job in zip(outcomes, request.jobs, strict=True))
    return tuple(await asyncio.gather(*explained))


async def _explain(outcome: JobOutcome, ends: Mapping[str, End], job: Job) -> JobOutcome:
    """Adds a note to a job that moved nothing: which packets its path carries."""
    if outcome.figures is None or job.server is None or all(flow.bits_per_s != 0 for flow in outcome.figures.flows):
        return outcome
    client, server = ends[job.client], ends[job.server]
    try:
        words = await describe_path(client.host, client.device, server.address)
    except HostError as error:
        words = f"its path cannot be looked at: {error.message}"
    return outcome.replace(notes=(*outcome.notes, f"nothing arrived: {words}"))


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
    hosts = {}
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
