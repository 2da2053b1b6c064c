"""nicbench-frames, our own program: writes or reads media frames as files and times each (protocol/frames.md).

One process stands for one editor. It needs no server process: what serves its directory is what is measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from nicbench.core.reading import Times
from nicbench.core.round import Figures, FrameFigures, FrameInterval, FramesSpec, Job, JobSpec
from nicbench.workloads.base import (
    MEBIBYTE,
    Command,
    End,
    LeftFile,
    Listening,
    Output,
    Workload,
    WorkloadError,
    last_words,
)
from nicbench.workloads.tool_output import json_object

_TIMES: Final = ("open", "io", "sync", "close", "completion", "lateness")
_SAMPLES: Final = "samples"
# After these failures any other round in that directory would fail as well.
_ENDS_RUN: Final = frozenset({"disk_full", "vanished", "permission"})
_COULD_NOT_BEGIN: Final = 3
"""Its exit status where the directory, space or frames are missing."""


class NicbenchFrames(Workload):
    """nicbench-frames, which needs no server process."""

    kind = "nicbench-frames"
    package = "nicbench"
    version_pattern = re.compile(r"nicbench-frames (\S+)")
    is_ours = True
    ports_per_job = 0
    output_limit_bytes = 64 * MEBIBYTE
    """Larger than others', because the output has an interval for each second."""

    def refusal(self, ask: JobSpec) -> str | None:
        if ask.operation != "frames" or ask.frames is None:
            return "nicbench-frames writes and reads files of media frames; it sends nothing by itself"
        return None

    def server_command(self, job: Job, client: End, server: End) -> Command | None:
        return None

    def client_command(self, job: Job, client: End, server: End | None) -> Command:
        return (self.kind, *_arguments(_frames_of(job), job.ask.duration_s), *self._samples(job, client), "--json")

    def leaves(self, job: Job) -> tuple[LeftFile, ...]:
        return (LeftFile(_SAMPLES, "frame samples"),) if _frames_of(job).samples else ()

    def _samples(self, job: Job, client: End) -> Command:
        if client.folder is None or not self.leaves(job):
            return ()
        return ("--samples", f"{client.folder}/{_SAMPLES}")

    def listens(self, job: Job, server: End) -> tuple[Listening, ...]:
        return ()

    def expected_s(self, job: Job) -> float | None:
        if job.ask.duration_s is None:
            return None
        return _frames_of(job).after_s + _frames_of(job).warm_up_s + job.ask.duration_s

    def complaint(self, output: Output) -> str | None:
        """Returns the failure of a frame from the result, or what it wrote on stderr when it could not begin."""
        failure = _failure(output)
        if failure is not None:
            return f"{failure.get('message')} ({failure.get('next')})"
        if output.status == 0:
            return None
        return last_words(output.stderr.removeprefix("nicbench-frames: ")) or None

    def ends_run(self, output: Output) -> bool:
        failure = _failure(output)
        return output.status == _COULD_NOT_BEGIN or (failure is not None and failure.get("kind") in _ENDS_RUN)

    def parse(self, job: Job, client: Output, server: Output | None) -> Figures:
        said = _result(client)
        try:
            return Figures(frames=_figures(said))
        except (ValidationError, KeyError, TypeError, ValueError) as error:
            raise WorkloadError(f"its result is not as protocol/frames.md says: {error}") from error


def _arguments(asked: FramesSpec, duration_s: float | None) -> Iterator[str]:
    yield from (asked.task, asked.directory)
    with_values: tuple[tuple[str, Any], ...] = (
        ("--profile", asked.profile),
        ("--frame-size", asked.frame_bytes),
        ("--header-size", asked.header_bytes),
        ("--frames", asked.frames),
        ("--seconds", duration_s),
        ("--warm-up", asked.warm_up_s or None),
        ("--after", asked.after_s or None),
        ("--fps", asked.frames_per_s),
        ("--read-ahead", asked.read_ahead_frames),
        ("--order", asked.order),
        ("--seed", asked.seed),
        ("--threads", asked.threads),
        ("--engine", asked.engine.replace("_", "-")),
        ("--depth", asked.depth),
        ("--request", asked.request_bytes or "frame"),
        ("--sync", asked.sync),
        ("--first", asked.first),
        ("--content", asked.content if asked.task != "read" else None),
        ("--verify", asked.verify if asked.task == "read" else None),
    )
    for name, value in with_values:
        if value is not None:
            yield from (name, f"{value:.12g}" if isinstance(value, float) else str(value))
    if asked.pattern is not None:
        yield f"--pattern={asked.pattern}"  # in one word, because it may begin with a dash
    for name, wanted in (
        ("--direct", asked.direct),
        ("--streamed", asked.streamed),
        ("--existing", asked.existing),
        ("--repeat", asked.repeat),
    ):
        if wanted:
            yield name


def _frames_of(job: Job) -> FramesSpec:
    if job.ask.frames is None:
        raise ValueError("a job of nicbench-frames without what it is asked")
    return job.ask.frames


def _result(output: Output) -> Mapping[str, Any]:
    try:
        return json_object(output.stdout, "nicbench-frames")
    except WorkloadError as error:
        words = last_words(output.stderr or output.stdout[-300:])
        raise WorkloadError(f"it printed no result; it ends: {words}") from error


def _failure(output: Output) -> dict[str, Any] | None:
    try:
        failure = json_object(output.stdout, "nicbench-frames").get("failure")
    except WorkloadError:
        return None
    return failure if isinstance(failure, dict) else None


def _figures(said: Mapping[str, Any]) -> FrameFigures:
    return FrameFigures(
        engine=said["engine"],
        measured_ns=said["measured_ns"],
        frames=said["frames"],
        bytes=said["bytes"],
        frames_per_s=said["frames_per_s"] or 0.0,
        bytes_per_s=said["bytes_per_s"] or 0.0,
        # A frame that never completed was not in time either.
        dropped_frames=said["missed"],
        due_frames=said["due"],
        cpu_ns=said["cpu_user_ns"] + said["cpu_system_ns"],
        all_frames=said["all_frames"],
        sync_at_end_ns=said["sync_at_end_ns"],
        intervals=tuple(FrameInterval.model_validate(_drop_unknown(FrameInterval, each)) for each in said["intervals"]),
        **{name: Times.model_validate(_drop_unknown(Times, said[name])) for name in _TIMES if said[name] is not None},
    )


def _drop_unknown(model: type[Times | FrameInterval], said: Any) -> dict[str, Any]:
    """Drops fields that the model does not know, which a newer program may print. TypeError if it is not an object."""
    if not isinstance(said, dict):
        raise TypeError(f"{str(said)[:60]!r} is no object")
    return {name: value for name, value in said.items() if name in model.model_fields}
