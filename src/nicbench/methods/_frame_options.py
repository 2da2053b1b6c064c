"""Options of the method ``frames``; defaults are those of the published study (docs/studies.md)."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.methods._failures import in_time
from nicbench.methods._frame_places import Places
from nicbench.methods._frame_profiles import PROFILES
from nicbench.model.base import Frozen
from nicbench.model.distinct import Distinct
from nicbench.model.link_failure import LinkFailure
from nicbench.model.quantity import Bytes, FilmRate, Ratio, Seconds, SomeBytes
from nicbench.model.traffic import Name
from nicbench.stats.frames import TARGET_FRAMES_PER_S, TOLERANCE_RATIO

Task = Literal["write", "read"]
INSTANCES: Final = tuple(range(1, 13))
_PATTERN: Final = re.compile(r"[^/%\0]*%(?:0[1-9]\d?)?d[^/%\0]*")
_PLAIN: Final = re.compile(r"(?!\.\.?$)[^/\0]+")
_LONGEST_NAME: Final = 200
_LIST: Final = "nicbench-frames.json"
_BLOCK_BYTES: Final = 4096


class BeforeEach(Frozen):
    """A command for ``sh -c`` on a host of the bench file."""

    host: Name
    run: str = Field(min_length=1, max_length=4000)
    timeout: Seconds = Field(default=120.0, gt=0.0, le=86_400.0)


class FramesOptions(Frozen):
    """Options of the bench file; see docs/streams.md."""

    instances: Distinct[Annotated[int, Field(ge=1, le=256)]] = Field(default=INSTANCES, min_length=1)
    directories: Places | None = None
    direction: Distinct[Task] = Field(default=("read", "write"), min_length=1)
    profile: Literal[PROFILES] = "4k"  # type: ignore[valid-type]
    frame_size: SomeBytes | None = None
    header_size: Bytes | None = None
    frames: int | None = Field(default=None, ge=1, le=10_000_000)
    frames_per_s: FilmRate | None = Field(default=TARGET_FRAMES_PER_S, gt=0.0, le=100_000.0)
    target: FilmRate | None = Field(default=None, gt=0.0, le=100_000.0)
    tolerance: Ratio = Field(default=TOLERANCE_RATIO, lt=1.0)
    warm_up: Seconds = Field(default=3.0, le=3600.0)
    duration: Seconds = Field(default=20.0, ge=0.1, le=86_400.0)
    pause: Seconds = Field(default=3.0, le=3600.0)
    timeout: Seconds = Field(default=60.0, gt=0.0, le=86_400.0)
    read_ahead: int = Field(default=1, ge=1, le=1000)
    order: Literal["forward", "reverse", "random"] = "forward"
    threads: int = Field(default=1, ge=1, le=64)
    engine: Literal["auto", "sync", "io_uring", "threads"] = "auto"
    depth: int = Field(default=4, ge=1, le=256)
    request_size: Bytes = 1_048_576
    direct: bool = False
    sync: Literal["none", "frame", "end"] = "none"
    streamed: bool = False
    pattern: str | None = None
    first: int | None = Field(default=None, ge=0, le=1_000_000_000)
    existing: bool = False
    content: Literal["unique", "stamped", "same"] = "unique"
    verify: Literal["none", "blocks", "full"] = "blocks"
    samples: bool = True
    restart_servers: bool | None = None
    drop_caches: bool = True
    before_each: tuple[BeforeEach, ...] = ()
    failure: LinkFailure | None = None

    @property
    def target_frames_per_s(self) -> float | None:
        """Of one instance; None where there is neither a target nor a limit."""
        return self.target if self.target is not None else self.frames_per_s

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.frames_per_s is None and self.frames is None and not self.existing:
            raise ValueError(
                "without a limit (`frames_per_s`) nobody knows how many frames there will be: write `frames` "
                "with the number that is read or written again and again"
            )
        in_time(self.failure, self.warm_up + self.duration)
        if self.existing and self.directories is None:
            raise ValueError("`existing` frames are somewhere: write `directories`")
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
