"""Media frames as files: the request to a process that writes or reads them, and its figures (protocol/frames.md)."""

from __future__ import annotations

from typing import Literal

from nicbench.core.base import Frozen

FramesTask = Literal["prepare", "write", "read"]
"""The task of a process; ``prepare`` writes the files that are read later, as fast as possible."""


class FramesSpec(Frozen):
    """The fields of ``configure`` of the protocol in protocol/frames.md; None leaves a field to the program's default.

    ``directory`` is a path on the host where the process runs.
    """

    task: FramesTask
    directory: str
    profile: str | None = None
    frame_bytes: int | None = None
    header_bytes: int | None = None
    frames: int | None = None
    after_s: float = 0.0
    """How long the process waits, once everything is ready, before its first frame."""
    warm_up_s: float = 0.0
    frames_per_s: float | None = None
    read_ahead_frames: int = 1
    order: Literal["forward", "reverse", "random"] = "forward"
    seed: int = 1
    threads: int = 1
    engine: Literal["auto", "sync", "io_uring", "threads"] = "auto"
    depth: int = 4
    request_bytes: int = 1_048_576
    """Bytes of one read or write call; 0 means a whole frame at once."""
    direct: bool = False
    sync: Literal["none", "frame", "end"] = "none"
    streamed: bool = False
    pattern: str | None = None
    first: int | None = None
    existing: bool = False
    content: Literal["unique", "stamped", "same"] = "unique"
    verify: Literal["none", "blocks", "full"] = "blocks"
    repeat: bool = False
    samples: bool = False
    """Whether the times of every single frame are kept."""


class FrameTimes(Frozen):
    """One component of the time that each frame took. ``histogram`` is HdrHistogram V2 in base64, in nanoseconds."""

    count: int
    minimum_ns: int
    mean_ns: float
    maximum_ns: int
    histogram: str


class FrameInterval(Frozen):
    """Figures of one interval, in nanoseconds since the first frame was due; ``dropped`` is None without a limit."""

    from_ns: int
    interval_ns: int
    frames: int
    bytes: int
    dropped: int | None = None


class FrameFigures(Frozen):
    """What one process reported of its measurement, without the warm-up.

    ``due_frames`` is the number of frames that were due during the measurement, ``dropped_frames`` the number of those
    that were completed too late; None where the process ran without a limit. ``lateness`` is 0 for frames on time.
    """

    engine: str
    measured_ns: int
    frames: int
    bytes: int
    frames_per_s: float
    bytes_per_s: float
    dropped_frames: int | None = None
    due_frames: int | None = None
    open: FrameTimes | None = None
    io: FrameTimes | None = None
    sync: FrameTimes | None = None
    close: FrameTimes | None = None
    completion: FrameTimes | None = None
    """The time for open, I/O, sync and close together."""
    lateness: FrameTimes | None = None
    cpu_ns: int | None = None
    """CPU time of the process and its kernel workers, over all ``all_frames`` frames."""
    all_frames: int | None = None
    sync_at_end_ns: int | None = None
    intervals: tuple[FrameInterval, ...] = ()
