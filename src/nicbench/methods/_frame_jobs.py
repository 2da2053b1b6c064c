"""The jobs of the instances of a frames test, and what must be there before they start."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from nicbench.core.round import (
    FramesSpec,
    HostCommand,
    Job,
    JobSpec,
    OwnFolder,
    Preparation,
    RestartServers,
    RoundRequest,
)
from nicbench.methods._frame_options import FramesOptions, Seat, Task, largest_frame_bytes
from nicbench.methods.base import RoundContext

WORKLOAD: Final = "nicbench-frames"
_SPARE_FRAMES: Final = 2
_DROP: Final = "sync; echo 3 > /proc/sys/vm/drop_caches"
_DROP_S: Final = 1800.0
"""Seconds to allow for dropping caches: data that was written last is flushed to the disks first."""
_REMOVAL_S: Final = 1800.0
_SEEDS: Final = 2**64
_OVERHEAD_S: Final = 2.0
"""Seconds for processes to start, allocate their memory and end."""


def job_spec_of(
    options: FramesOptions, direction: Task, directory: str, seed: int, place: int = 1, instances: int = 1
) -> JobSpec:
    """Returns the job specification of one instance in one round.

    ``place`` is its place among the ``instances`` of the round: each begins a ramp delay after the one before it, and
    its warm-up lasts until that of the last one is over, so that all are measured at the same time.
    """
    asked = FramesSpec(
        task=direction,
        directory=directory,
        **_size(options, direction),
        frames=None if options.existing else options.frames,
        after_s=options.ramp_s(place),
        warm_up_s=options.warm_up + options.ramp_s(instances) - options.ramp_s(place),
        frames_per_s=options.frames_per_s,
        read_ahead_frames=options.read_ahead,
        order=options.order if direction == "read" else "forward",
        seed=seed,
        threads=options.threads,
        engine=options.engine,
        depth=options.depth,
        request_bytes=options.request_size,
        direct=options.direct,
        sync=options.sync if direction == "write" else "none",
        streamed=options.streamed,
        pattern=options.pattern,
        first=options.first,
        existing=options.existing,
        content=options.content,
        verify=options.verify if direction == "read" and not options.existing else "none",
        repeat=options.frames is not None or options.existing,
        samples=options.samples,
    )
    return JobSpec(operation="frames", duration_s=options.duration, frames=asked)


def _size(options: FramesOptions, direction: Task) -> dict[str, str | int | None]:
    """Returns the frame size to write, or to cut an existing stream into; frames that are read are as large as they
    were written.
    """
    if direction == "read" and not (options.existing and options.streamed):
        return {}
    return {
        "profile": options.profile if options.frame_size is None else None,
        "frame_bytes": options.frame_size,
        "header_bytes": options.header_size,
    }


def count_frames(options: FramesOptions) -> int:
    """Returns the number of frames of one instance in a round, or of the frames that are written in rotation."""
    if options.frames is not None:
        return options.frames
    if options.frames_per_s is None:
        raise ValueError("without a limit the number of frames is given")
    longest_s = options.ramp_s(max(options.instances)) + options.warm_up + options.duration
    return math.ceil(options.frames_per_s * longest_s) + _SPARE_FRAMES


def round_s(options: FramesOptions, instances: int) -> float:
    """Returns the duration of a round of so many instances."""
    return options.ramp_s(instances) + options.warm_up + options.duration + options.pause + _OVERHEAD_S


def preparation_of(options: FramesOptions, test: str, everyone: Sequence[Seat], context: RoundContext) -> Preparation:
    """Returns the folders for everything that will be written, and the jobs that write the frames to be read."""
    if options.existing:
        return Preparation()
    frames = count_frames(options)
    needed = frames * largest_frame_bytes(options.profile, options.frame_size, options.header_size)
    folders = tuple(
        OwnFolder(
            endpoint=seat.client,
            parent=seat.directory,
            name=_name(test, seat, direction, context),
            needed_bytes=needed,
        )
        for direction in options.direction
        for seat in everyone
    )
    jobs = tuple(_prepare(options, test, seat, frames, context) for seat in everyone if "read" in options.direction)
    return Preparation(folders=folders, jobs=jobs)


def _prepare(options: FramesOptions, test: str, seat: Seat, frames: int, context: RoundContext) -> Job:
    directory = directory_of(options, test, seat, "read", context)
    asked = FramesSpec(
        task="prepare",
        directory=directory,
        **_size(options, "write"),
        frames=frames,
        seed=seed_of(seat, context),
        # Whatever is measured: as fast as it goes, and on the disk before anything is read.
        sync="end",
        streamed=options.streamed,
        pattern=options.pattern,
        first=options.first,
        content=options.content,
        direct=options.direct,
    )
    return _job(seat, JobSpec(operation="frames", frames=asked))


def round_request(
    options: FramesOptions, test: str, direction: Task, seats: Sequence[Seat], context: RoundContext
) -> RoundRequest:
    """Returns the request for one round of the given instances at once."""
    jobs = tuple(
        _job(
            seat,
            job_spec_of(
                options,
                direction,
                directory_of(options, test, seat, direction, context),
                seed_of(seat, context),
                place,
                len(seats),
            ),
        )
        for place, seat in enumerate(seats, 1)
    )
    return RoundRequest(
        jobs=jobs,
        duration_s=options.ramp_s(len(seats)) + options.warm_up + options.duration,
        timeout_s=options.timeout,
        before=(*_delete_written(options, test, direction, seats, context), *_commands_before(options, seats, context)),
        pause_s=options.pause,
        failure=options.failure,
    )


def _job(seat: Seat, ask: JobSpec) -> Job:
    return Job(
        workload=WORKLOAD,
        client=seat.client,
        server=None,
        ask=ask,
        port=0,
        client_placement=seat.placement,
        label=seat.label,
    )


def _delete_written(
    options: FramesOptions, test: str, direction: Task, seats: Sequence[Seat], context: RoundContext
) -> Iterator[HostCommand]:
    """Returns commands that delete earlier files, so that these affect neither the round nor its preparation."""
    hosts = {client.name: client.host for client in context.clients}
    for seat in seats if direction == "write" else ():
        folder = shlex.quote(directory_of(options, test, seat, direction, context))
        run = f"rm -rf --one-file-system -- {folder} && mkdir -- {folder}"
        yield HostCommand(host=hosts[seat.client], run=run, timeout_s=_REMOVAL_S)


def _commands_before(
    options: FramesOptions, seats: Sequence[Seat], context: RoundContext
) -> Iterator[HostCommand | RestartServers]:
    """Returns the actions before a round: the bench file's commands in order, a restart, then dropping all caches.

    Caches are dropped on every machine that takes part.
    """
    for command in options.before_each:
        yield HostCommand(host=command.host, run=command.run, timeout_s=command.timeout)
    if restarts_servers(options, context):
        yield RestartServers()
    if options.drop_caches:
        used = {seat.client for seat in seats}
        # Clients first: what they still have to write goes into the server's memory.
        ends = (*(client for client in context.clients if client.name in used), *context.servers)
        for host in {end.machine: end.host for end in ends}.values():
            yield HostCommand(host=host, run=_DROP, timeout_s=_DROP_S, on_machine=True)


def restarts_servers(options: FramesOptions, context: RoundContext) -> bool:
    """Whether the servers of the DUT's shares are restarted before each round; by default, if all mounts survive it."""
    survive = options.directories is None and can_restart(context)
    return survive if options.restart_servers is None else options.restart_servers


def can_restart(context: RoundContext) -> bool:
    """Whether there are shares, and the mounts of all of them survive a restart of their servers."""
    return bool(context.mounts) and all(mount.survives_restart for mount in context.mounts)


def directory_of(options: FramesOptions, test: str, seat: Seat, direction: Task, context: RoundContext) -> str:
    """Returns the directory of an instance: a folder made by nicbench, or the folder of existing frames."""
    if options.existing:
        return seat.directory
    return f"{seat.directory.rstrip('/')}/{_name(test, seat, direction, context)}"


def _name(test: str, seat: Seat, direction: Task, context: RoundContext) -> str:
    return f"{context.own_folder}/{test}-{seat.instance}-{direction}"


def seed_of(seat: Seat, context: RoundContext) -> int:
    """Returns a seed that differs for each instance, so that a server that deduplicates data cannot save work."""
    return (context.seed * 1000 + seat.instance) % _SEEDS
