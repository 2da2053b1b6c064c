"""What a method takes for a frame size: a number of bytes, or the name of a mix of sizes, which is one size to it."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.quantity import FrameBytes

MINIMUM: Final = "minimum"
"""Among the sizes of a test: the smallest frame that holds the headers and the signature."""

MAXIMUM: Final = "maximum"
"""Among the sizes of a test: the largest frame of the ports."""

STREAMS: Final = "streams"
"""Among the sizes of a test: each stream of a port has a size, or a mix, of its own."""

MOST_SIZES: Final = 16_384
"""The most sizes of a sweep, as many as the engine takes."""

MixName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")]
"""A frame size as written among those of a test."""

FrameSize = FrameBytes | MixName
"""One entry of a test's ``frame_bytes``."""


class WeightedSize(Frozen):
    """One size of a mix: so many frames of the sum of all weights."""

    frame_bytes: FrameBytes
    weight: int = Field(ge=1, le=65_536)


class SizeSweep(Frozen):
    """Every size from ``smallest`` to ``largest`` in turn; an end that is left out is the extreme that can be sent."""

    smallest: FrameBytes | None = None
    largest: FrameBytes | None = None
    step: int = Field(default=1, ge=1, le=65_535)

    @model_validator(mode="after")
    def _has_sizes(self) -> SizeSweep:
        if self.smallest is not None and self.largest is not None:
            if self.smallest > self.largest:
                raise ValueError(f"it begins at {self.smallest} bytes and ends before, at {self.largest}")
            if len(self.frame_bytes) > MOST_SIZES:
                raise ValueError(f"it has {len(self.frame_bytes)} sizes: make `step` larger, for at most {MOST_SIZES}")
        return self

    @property
    def frame_bytes(self) -> range:
        """The sizes of the sweep; none where an end is not known."""
        if self.smallest is None or self.largest is None:
            return range(0)
        return range(self.smallest, self.largest + 1, self.step)

    def fill_ends(self, smallest: int, largest: int | None) -> SizeSweep:
        """Fills in omitted ends, where they are known. ValueError where that leaves no size."""
        ends = {"smallest": self.smallest or smallest, "largest": self.largest or largest}
        return SizeSweep(**ends, step=self.step)

    def __str__(self) -> str:
        steps = f" in steps of {self.step}" if self.step > 1 else ""
        return f"{self.smallest} to {self.largest} bytes in turn{steps}"


class Mix(Frozen):
    """Sizes in exact proportions, in turn, or of several streams. Every bit rate follows from their mean."""

    name: str
    sizes: tuple[WeightedSize, ...] = ()
    sweep: SizeSweep | None = None
    mean_of_streams_bytes: float | None = None
    """Where each stream of a port has sizes of its own."""

    @property
    def frame_bytes(self) -> float:
        """The mean size, FCS counted."""
        if self.mean_of_streams_bytes is not None:
            return self.mean_of_streams_bytes
        if self.sweep is not None:
            return sum(self.sweep.frame_bytes) / len(self.sweep.frame_bytes)
        frames = sum(size.weight for size in self.sizes)
        return sum(size.frame_bytes * size.weight for size in self.sizes) / frames

    def __str__(self) -> str:
        if self.mean_of_streams_bytes is not None:
            return f"the streams' own sizes (mean {self.frame_bytes:.1f})"
        if self.sweep is not None:
            return f"{self.sweep} (mean {self.frame_bytes:.1f})"
        parts = " + ".join(f"{size.weight} x {size.frame_bytes}" for size in self.sizes)
        return f"{parts} bytes (mean {self.frame_bytes:.1f})"


Size = int | Mix
"""The frame size of a trial."""

_IMIX_SIZES: Final = ((64, 7), (570, 4), (1518, 1))
IMIX: Final = Mix(
    name="imix",
    sizes=tuple(WeightedSize(frame_bytes=frame_bytes, weight=weight) for frame_bytes, weight in _IMIX_SIZES),
)
"""The simple IMIX of seven small, four medium and one large frame."""


def mean_bytes(size: Size) -> int | float:
    """Returns the bytes per frame, for a mix the mean."""
    return size if isinstance(size, int) else size.frame_bytes


def size_label(size: Size) -> str:
    """Returns the number of bytes, or the name of a mix."""
    return str(size) if isinstance(size, int) else size.name


def size_parameters(size: Size) -> dict[str, Any]:
    """How results and trials name the size among their parameters."""
    return {"frame_bytes": size} if isinstance(size, int) else {"frame_bytes": size.frame_bytes, "mix": size.name}


def label_of(parameters: dict[str, Any]) -> str | None:
    """The label of the size that ``size_parameters`` wrote; None where there is none."""
    size = parameters.get("mix", parameters.get("frame_bytes"))
    return None if size is None else str(size)


def size_words(parameters: dict[str, Any]) -> str:
    """Describes a size for a sentence: "64 bytes", "imix"."""
    return str(parameters["mix"]) if parameters.get("mix") else f"{parameters.get('frame_bytes')} bytes"


def words_of(size: Size) -> str:
    """Describes a size as it is in a trial, for a sentence."""
    return size_words(size_parameters(size))
