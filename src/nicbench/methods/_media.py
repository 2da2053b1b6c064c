"""Media frames: their properties and location, the jobs of the instances, and what must be there before they start."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nicbench.core.base import Distinct, Frozen
from nicbench.core.bond import LinkFailure
from nicbench.core.frozen import frozen
from nicbench.core.machine import parse_cpu_list
from nicbench.core.quantity import Bytes, FilmRate, Ratio, Seconds, SomeBytes
from nicbench.core.round import (
    FramesSpec,
    HostCommand,
    Job,
    JobSpec,
    OwnFolder,
    Placement,
    Preparation,
    RestartServers,
    RoundRequest,
)
from nicbench.core.traffic import Name
from nicbench.methods._round_figures import require_link_back
from nicbench.methods.base import RoundContext
from nicbench.stats.frames import TARGET_FRAMES_PER_S, TOLERANCE_RATIO

# The properties of media frames, their location, and the options of methods that read or write them.


_PICTURES: Final = {
    "sd": (720, 486),
    "hd": (1920, 1080),
    "uhd": (3840, 2160),
    "2k": (2048, 1556),
    "4k": (4096, 3112),
    "8k": (8192, 6224),
}
_PIXEL_BYTES: Final = {"": 4.0, "-10": 4.0, "-12": 6.0, "-16": 6.0, "-exr": 0.7 * 6.0}
"""Bytes of a pixel by format.

For EXR this is an upper limit: its compression leaves 40 to 70 %, different for each frame.
"""
HEADER_BYTES: Final = 65_536
PROFILES: Final = tuple(f"{picture}{depth}" for picture in _PICTURES for depth in _PIXEL_BYTES)
BLOCK_BYTES: Final = 4096


def largest_frame_bytes(profile: str, frame_bytes: int | None = None, header_bytes: int | None = None) -> int:
    """Returns the size of the largest frame: header and picture, padded to whole blocks.

    ``frame_bytes`` replaces the size of the profile; it comes without a header unless one is given. Raises KeyError for
    an unknown profile.
    """
    if frame_bytes is not None:
        picture, header = frame_bytes, header_bytes or 0
    else:
        name, dash, depth = profile.partition("-")
        width, height = _PICTURES[name]
        picture = round(width * height * _PIXEL_BYTES[dash + depth])
        header = HEADER_BYTES if header_bytes is None else header_bytes
    return -(-(picture + header) // BLOCK_BYTES) * BLOCK_BYTES


INSTANCE: Final = "{instance}"
"""The placeholder in a directory for the number of the instance."""


def _directory(path: str) -> str:
    if not path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"a directory is given with its whole path, as in /mnt/d{INSTANCE}, not {path!r}")
    rest = path.replace(INSTANCE, "")
    if "{" in rest or "}" in rest or "\0" in rest or "\n" in rest:
        raise ValueError(f"{path!r}: the only name in braces that a directory may have is {INSTANCE}")
    return path.rstrip("/") or "/"


def _cpus(value: Any) -> Any:
    """Accepts ``0-3,8``, or a single number."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return value
    try:
        return parse_cpu_list(str(value)) or ()
    except ValueError as error:
        raise ValueError(f"{value!r} is no list of CPUs; write 0-3,8") from error


Directory = Annotated[str, AfterValidator(_directory)]
Cpus = Annotated[tuple[int, ...], BeforeValidator(_cpus), Field(min_length=1)]


class Place(Frozen):
    """The place of an instance. ``client`` is the name of a client's port; None: clients in turn.

    The CPUs are those of the client's host.
    """

    directory: Directory
    """The directory."""
    client: Name | None = None
    """The client (the name of its port); without it the clients take turns."""
    cpus: Cpus | None = None
    """CPUs of the instance, as `0-7`; without it any."""
    memory_node: int | None = Field(default=None, ge=0, le=1023)
    """NUMA node of its memory; without it any."""

    @model_validator(mode="before")
    @classmethod
    def _directory_alone(cls, value: Any) -> Any:
        return {"directory": value} if isinstance(value, str) else value

    @property
    def placement(self) -> Placement:
        return Placement(cpus=self.cpus, memory_node=self.memory_node)


def _one_or_several(value: Any) -> Any:
    if value is None:
        return None
    several = tuple(value) if isinstance(value, list | tuple) else (value,)
    for each in several:
        if not isinstance(each, str | dict | Place):
            raise ValueError(
                f"{each!r} is no directory; write /mnt/d{INSTANCE}, or a list with a directory "
                "(or {directory: /mnt/d1, client: c0}) for each instance"
            )
    return several


Places = Annotated[tuple[Place, ...], BeforeValidator(_one_or_several), Field(min_length=1)]


@frozen
class Seat:
    """The seat of one instance: its number from 1, the client's port, its directory there and its placement."""

    instance: int
    client: str
    directory: str
    placement: Placement

    @property
    def label(self) -> str:
        return f"instance {self.instance}"


def assign_seats(places: Sequence[Place] | None, most: int, context: RoundContext) -> tuple[Seat, ...]:
    """Returns the seats of the instances 1 to ``most``; fewer where a list of places is shorter.

    Without places, the shares of the DUT are used. A single place is used by every instance; several places are used by
    one instance each.
    """
    if places is None:
        return tuple(Seat(mount.share, mount.endpoint, mount.directory, Placement()) for mount in context.mounts[:most])
    of_each = [places[0]] * most if len(places) == 1 else list(places[:most])
    return tuple(_iterate_seats(of_each, [client.name for client in context.clients]))


def _iterate_seats(of_each: Sequence[Place], clients: Sequence[str]) -> Iterator[Seat]:
    for number, place in enumerate(of_each, 1):
        client = place.client or clients[(number - 1) % len(clients)]
        yield Seat(number, client, place.directory.replace(INSTANCE, str(number)), place.placement)


Task = Literal["write", "read"]
Doing = Literal["write", "read", "both"]
"""What the instances of a round do; of `both`, the first of each two reads and the second writes."""
INSTANCES: Final = tuple(range(1, 13))
_PATTERN: Final = re.compile(r"[^/%\0]*%(?:0[1-9]\d?)?d[^/%\0]*")
_PLAIN: Final = re.compile(r"(?!\.\.?$)[^/\0]+")
_LONGEST_NAME: Final = 200
_LIST: Final = "nicbench-frames.json"
_BLOCK_BYTES: Final = 4096


class BeforeEach(Frozen):
    """A command for ``sh -c`` on a host of the bench file, run before each round."""

    host: Name
    """Where it runs."""
    run: str = Field(min_length=1, max_length=4000)
    """The command, for `sh -c`. Where it fails, or does not end in time, the run ends. What it leaves in the
    background must not keep its output open: `... >/dev/null 2>&1 &`. In a lab's namespace, `mount` and `umount` hold
    for that one command alone.
    """
    timeout: Seconds = Field(default=120.0, gt=0.0, le=86_400.0)
    """How long it may take."""


class FramesOptions(Frozen):
    """Options of the bench file; see docs/streams.md."""

    instances: Distinct[Annotated[int, Field(ge=1, le=256)]] = INSTANCES
    """How many instances work at once. Each number is a round for each direction."""
    directories: Places | None = None
    """`/mnt/d{instance}`, or a list with one entry for each instance: a path, or `{directory: /mnt/d1, client: c0,
    cpus: 0-7, memory_node: 0}`. Without it the shares of the DUT.
    """
    direction: Distinct[Doing] = ("read", "write")
    """Which rounds there are: all instances `read`, all `write`, or `both` at once: of each two the first reads and
    the second writes.
    """
    profile: Literal[PROFILES] = "4k"  # type: ignore[valid-type]
    """The size of a frame. `-10`, `-12` and `-16` are DPX with that number of bits; sizes of `-exr` vary."""
    frame_size: SomeBytes | None = None
    """Any other size, then without a header."""
    header_size: Bytes | None = None
    """Size of the header; without it the profile's."""
    frames: int | None = Field(default=None, ge=1, le=10_000_000)
    """The number of frames that are read or written again and again; without it as many as have their turn. Needed
    where `frames_per_s` is `null`.
    """
    frames_per_s: FilmRate | None = Field(default=TARGET_FRAMES_PER_S, gt=0.0, le=100_000.0)
    """The rate that each instance is held to. `null`: as fast as it goes."""
    target: FilmRate | None = Field(default=None, gt=0.0, le=100_000.0)
    """The rate that each instance must reach; without it `frames_per_s`."""
    tolerance: Ratio = Field(default=TOLERANCE_RATIO, lt=1.0)
    """The target is met at (1 − tolerance) × target."""
    warm_up: Seconds = Field(default=3.0, le=3600.0)
    """The warm-up of a round, of which nothing is counted."""
    ramp_delay: Seconds = Field(default=0.0, le=600.0)
    """Time from the start of one instance to that of the next. The warm-up of each lasts until that of the last is
    over, so that all are measured at the same time.
    """
    duration: Seconds = Field(default=20.0, ge=0.1, le=86_400.0)
    """Duration of a round after the warm-up."""
    pause: Seconds = Field(default=3.0, le=3600.0)
    """Pause before each round, after the commands."""
    timeout: Seconds = Field(default=60.0, gt=0.0, le=86_400.0)
    """Time beyond its duration after which an instance that hangs is ended."""
    read_ahead: int = Field(default=1, ge=1, le=1000)
    """The frame times after its turn at which a frame is due."""
    order: Literal["forward", "reverse", "random"] = "forward"
    """The order of reading."""
    threads: int = Field(default=1, ge=1, le=64)
    """Workers of each instance."""
    engine: Literal["auto", "sync", "io_uring", "threads"] = "auto"
    """How requests are made. The report says which it was."""
    depth: int = Field(default=4, ge=1, le=256)
    """Requests in flight of each worker."""
    request_size: Bytes = 1_048_576
    """Size of one request; 0 is a whole frame."""
    direct: bool = False
    """O_DIRECT."""
    sync: Literal["none", "frame", "end"] = "none"
    """When written data must be on the disk."""
    streamed: bool = False
    """One file holds all frames."""
    pattern: str | None = None
    """The names of the files, for example `shot_%06d.dpx`; without it `frame_%06d.dpx`."""
    first: int | None = Field(default=None, ge=0, le=1_000_000_000)
    """The number of the first file; without it 0."""
    existing: bool = False
    """Read the frames that are there, whatever sizes they have, by `pattern` and `first`. Where they are fewer than a
    round needs they come again, perhaps out of the client's memory; `direct: true` prevents that.
    """
    content: Literal["unique", "stamped", "same"] = "unique"
    """What is written: `unique` bytes in every frame, the `same` bytes with a stamp in each (`stamped`), or the `same`
    bytes.
    """
    verify: Literal["none", "blocks", "full"] = "blocks"
    """How much of what is read is compared."""
    samples: bool = True
    """Keep the times of every frame, in `frames/` of the run folder: about 19 bytes a frame."""
    restart_servers: bool | None = None
    """Restart the servers of the DUT's shares before each round, after those commands; every client then uses its
    mounts before the round goes on. Without it: of `nfs`, not of `sftp`, and not where `directories` are given.
    """
    drop_caches: bool = True
    """`sync`, and drop the page caches of all machines that take part, before each round and after those commands."""
    before_each: tuple[BeforeEach, ...] = ()
    """Commands before each round, in this order."""
    failure: LinkFailure | None = None
    """A link of a bond goes down during each round."""

    @property
    def target_frames_per_s(self) -> float | None:
        """The target rate of one instance; None where there is neither a target nor a limit."""
        return self.target if self.target is not None else self.frames_per_s

    def ramp_s(self, instances: int) -> float:
        """Returns the time from the beginning of the first instance to that of the last."""
        return self.ramp_delay * (instances - 1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.frames_per_s is None and self.frames is None and not self.existing:
            raise ValueError(
                "without a limit (`frames_per_s`) nobody knows how many frames there will be: write `frames` "
                "with the number that is read or written again and again"
            )
        least = None if self.target is None else self.target * (1.0 - self.tolerance)
        if self.frames_per_s is not None and least is not None and least > self.frames_per_s:
            raise ValueError(
                f"the `target` of {self.target:g} frames/s is more than instances are held to: write `frames_per_s: "
                f"{self.target:g} fps` too, or `null` for no limit"
            )
        require_link_back(self.failure, self.warm_up + self.duration)
        if self.existing and self.directories is None:
            raise ValueError("`existing` frames are somewhere: write `directories`")
        if "both" in self.direction and min(self.instances) < 2:
            raise ValueError("one instance cannot do `both`: give `instances` of 2 and more")
        if self.existing and self.direction != ("read",):
            raise ValueError("`existing` frames are read and never written: write `direction: [read]`")
        if self.pattern is not None and (len(self.pattern.encode()) > _LONGEST_NAME or self.pattern == _LIST):
            raise ValueError(f"`pattern` names files, in at most {_LONGEST_NAME} bytes, and not {_LIST}")
        if self.pattern is not None and self.streamed and not _PLAIN.fullmatch(self.pattern):
            raise ValueError(f"`pattern` of a stream is the name of its file, without a slash: {self.pattern!r}")
        if self.pattern is not None and not self.streamed and not _PATTERN.fullmatch(self.pattern):
            raise ValueError(
                f"`pattern` has one %d or %06d for the number, and no slash, as in shot_%06d.dpx: {self.pattern!r}"
            )
        if self.request_size % _BLOCK_BYTES:
            raise ValueError(f"`request_size` are whole blocks of {_BLOCK_BYTES} bytes, or 0 for a whole frame")
        if self.directories is not None and len(self.directories) > 1 and max(self.instances) > len(self.directories):
            raise ValueError(
                f"{max(self.instances)} instances are asked for, and there are {len(self.directories)} directories"
            )
        return self


# The jobs of the instances of a frames test, and what must be there before they start.


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


def task_of(doing: Doing, instance: int) -> Task:
    """Returns what an instance does in a round."""
    if doing != "both":
        return doing
    return "read" if instance % 2 else "write"


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
    """Returns the duration of a round with this number of instances."""
    return options.ramp_s(instances) + options.warm_up + options.duration + options.pause + _OVERHEAD_S


def preparation_of(options: FramesOptions, test: str, everyone: Sequence[Seat], context: RoundContext) -> Preparation:
    """Returns the folders for everything that will be written, and the jobs that write the frames to be read."""
    if options.existing:
        return Preparation()
    frames = count_frames(options)
    needed = frames * largest_frame_bytes(options.profile, options.frame_size, options.header_size)
    wanted = dict.fromkeys((seat, task_of(doing, seat.instance)) for doing in options.direction for seat in everyone)
    folders = tuple(
        OwnFolder(
            endpoint=seat.client,
            parent=seat.directory,
            name=_name(test, seat, task, context),
            needed_bytes=needed,
        )
        for seat, task in wanted
    )
    jobs = tuple(_prepare(options, test, seat, frames, context) for seat, task in wanted if task == "read")
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
    options: FramesOptions, test: str, doing: Doing, seats: Sequence[Seat], context: RoundContext
) -> RoundRequest:
    """Returns the request for one round of the given instances at once."""
    jobs = tuple(
        _job(
            seat,
            job_spec_of(
                options,
                task_of(doing, seat.instance),
                directory_of(options, test, seat, task_of(doing, seat.instance), context),
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
        before=(*_delete_written(options, test, doing, seats, context), *_commands_before(options, seats, context)),
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
    options: FramesOptions, test: str, doing: Doing, seats: Sequence[Seat], context: RoundContext
) -> Iterator[HostCommand]:
    """Returns commands that delete earlier files, so that these affect neither the round nor its preparation."""
    hosts = {client.name: client.host for client in context.clients}
    for seat in [seat for seat in seats if task_of(doing, seat.instance) == "write"]:
        folder = shlex.quote(directory_of(options, test, seat, "write", context))
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
