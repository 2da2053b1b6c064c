"""stress-ng's STREAM (ColinIanKing/stress-ng): memory throughput, or a load on memory during a measurement.

Its options: stress-ng(1). It reads and writes as STREAM's four kernels do together, and warns that it is not STREAM
itself. Its MB are 2^20 bytes (``stress-stream.c``). It says a rate only of runs that lasted 4.5 seconds.
"""

from __future__ import annotations

import re
from typing import Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.round import Figures, Job, JobSpec
from nicbench.workloads.base import MEBIBYTE, Command, End, Listening, Output, Workload, WorkloadError, last_words
from nicbench.workloads.tool_output import number_of

_LEAST_MEASURED_S: Final = 5
_RATE = re.compile(r"stream: memory rate: (\S{1,40}) MB read/sec, (\S{1,40}) MB write/sec,.{0,80}\(instance (\d+)\)")
_ONE_RATE = re.compile(r"stream: memory rate: \S{1,40} MB/sec")
_DONE = re.compile(r"\] stream +\d+(?: +\S{1,40}){5}")
_ERROR = re.compile(r"^(stress-ng: (?:error|fail): .*|stress-ng: unrecogni[sz]ed option.*)$", re.MULTILINE)


class StressNgOptions(Frozen):
    """Options of ``workload: {kind: stress-ng, ..}``."""

    cache_bytes: int | None = Field(default=None, ge=1024 * 1024)
    """Arrays are made for a cache of this size (`--stream-l3-size`); without it the machine's."""


class StressNg(Workload):
    """stress-ng with as many processes as ``streams`` says, on one host."""

    kind = "stress-ng"
    Options = StressNgOptions
    options: StressNgOptions
    package = "stress-ng"
    tried = ("0.15", "0.22")
    version_pattern = re.compile(r"stress-ng, version (\d+(?:\.\d+)+)")
    ports_per_job = 0

    def refusal(self, ask: JobSpec) -> str | None:
        if ask.operation != "memory":
            return "stress-ng keeps memory busy; it sends nothing"
        if ask.duration_s is None or ask.duration_s != int(ask.duration_s) or ask.duration_s < 1:
            return "stress-ng runs for whole seconds, at least 1"
        return None

    def refusal_of_ends(self, job: Job, client: End, server: End | None) -> str | None:
        if job.role != "memory" and (job.ask.duration_s or 0) < _LEAST_MEASURED_S:
            return f"stress-ng measures memory over at least {_LEAST_MEASURED_S} s"
        return None

    def server_command(self, job: Job, client: End, server: End) -> Command | None:
        return None

    def client_command(self, job: Job, client: End, server: End | None) -> Command:
        cache = self.options.cache_bytes
        return (
            *("stress-ng", "--stream", str(job.ask.streams), "--timeout", f"{job.ask.duration_s or 10:.0f}"),
            *("--metrics-brief", "--no-rand-seed"),
            *(("--stream-l3-size", str(cache)) if cache is not None else ()),
        )

    def listens(self, job: Job, server: End) -> tuple[Listening, ...]:
        return ()

    def complaint(self, output: Output) -> str | None:
        found = _ERROR.search(f"{output.stdout}\n{output.stderr}")
        return last_words(found[1]) if found else None

    def parse(self, job: Job, client: Output, server: Output | None) -> Figures:
        text = f"{client.stdout}\n{client.stderr}"
        rates = {number: (read, written) for read, written, number in _RATE.findall(text)}
        note = "the four kernels of STREAM together, read and written bytes; stress-ng's are not STREAM's own figures"
        if len(rates) == job.ask.streams:
            total = sum(
                number_of(read, "stress-ng: MB read/sec") + number_of(written, "stress-ng: MB write/sec")
                for read, written in rates.values()
            )
            return Figures(memory_bytes_per_s=total * MEBIBYTE, notes=(note,))
        if job.role == "memory" and _DONE.search(text):
            return Figures(notes=("stress-ng ran, and was too short for a rate",))
        if _ONE_RATE.search(text):
            raise WorkloadError(
                "this stress-ng says one rate of reads and writes, which is not read; 0.15 and later say two"
            )
        raise WorkloadError(
            f"stress-ng tells the rates of {len(rates)} of {job.ask.streams} processes; it ends: "
            f"{last_words(text[-300:])}"
        )
