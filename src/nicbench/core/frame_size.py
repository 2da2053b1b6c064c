"""The frame sizes of a method: a number of bytes, or a named mix of sizes, which a method treats as one size."""

from __future__ import annotations

import math
from typing import Annotated, Any, Final

from pydantic import Discriminator, Field, Tag, model_validator

from nicbench.core.base import Frozen, optional
from nicbench.core.quantity import FrameBytes

MINIMUM: Final = "minimum"
"""The smallest frame that holds the headers and the signature, as an entry of a test's ``frame_bytes``."""

MAXIMUM: Final = "maximum"
"""The largest frame of the ports, as an entry of a test's ``frame_bytes``."""

STREAMS: Final = "streams"
"""The entry of a test's ``frame_bytes`` with which each stream of a port has a size, or a mix, of its own."""

CAPTURE: Final = "capture"
"""The entry of a test's ``frame_bytes`` with which frames have the sizes of the traffic's capture."""

MOST_SIZES: Final = 16_384
"""The largest number of sizes in a sweep; the engine's limit."""

MixName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")]
"""The name of a mix, as an entry of a test's ``frame_bytes``."""

FrameSize = FrameBytes | MixName
"""One entry of a test's ``frame_bytes``."""

FrameSizes = Annotated[tuple[FrameSize, ...], Field(min_length=1)]
"""The ``frame_bytes`` of a test: one entry at least."""


MOST_WEIGHT: Final = 65_536
"""The limit of the sum of a mix's weights without their common divisor: the engine stores the order of that many
frames.
"""


class WeightedSize(Frozen):
    """One size of a mix; its weight is the number of frames out of the sum of all weights."""

    frame_bytes: FrameBytes
    """The frame size, FCS included."""
    weight: int = Field(ge=1, le=MOST_WEIGHT)
    """How many frames of this size there are among as many as the sum of the weights."""


class SizeSweep(Frozen):
    """Every size from ``smallest`` to ``largest`` in turn; an omitted end is the extreme that can be sent."""

    smallest: FrameBytes | None = None
    """The first size; without it the smallest frame that holds headers and signature."""
    largest: FrameBytes | None = None
    """The last size; without it the largest frame that the lab's ports carry."""
    step: int = Field(default=1, ge=1, le=65_535)
    """The distance of two sizes, in bytes."""

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
        """The sizes of the sweep; empty where an end is unknown."""
        if self.smallest is None or self.largest is None:
            return range(0)
        return range(self.smallest, self.largest + 1, self.step)

    def fill_ends(self, smallest: int, largest: int | None) -> SizeSweep:
        """Fills in omitted ends where they are known. Raises ValueError where no size is left."""
        ends = {"smallest": self.smallest or smallest, "largest": self.largest or largest}
        return SizeSweep(**ends, step=self.step)

    def __str__(self) -> str:
        steps = f" in steps of {self.step}" if self.step > 1 else ""
        return f"{self.smallest} to {self.largest} bytes in turn{steps}"


def _kind_of_mix(written: Any) -> str:
    return "SizeSweep" if isinstance(written, dict | SizeSweep) else "WeightedSize"


MixSizes = Annotated[
    Annotated[tuple[WeightedSize, ...], Tag("WeightedSize")] | Annotated[SizeSweep, Tag("SizeSweep")],
    Discriminator(_kind_of_mix),
]
"""The sizes of a mix: weighted sizes, or every size in turn; the tags are the names by which errors find the keys."""


def check_mix(name: str, sizes: MixSizes) -> None:
    """Raises ValueError where a mix of the bench file has a name with another meaning, or sizes that make none."""
    if name in (MINIMUM, MAXIMUM, STREAMS, CAPTURE):
        raise ValueError(f"`{name}` has a meaning of its own among frame sizes: give the mix another name")
    if isinstance(sizes, SizeSweep):
        return
    if not sizes or len({size.frame_bytes for size in sizes}) < len(sizes):
        raise ValueError(f"the mix {name} has no sizes, or one of them twice: give each size one weight")
    weights = [size.weight for size in sizes]
    if (whole := sum(weights) // math.gcd(*weights)) > MOST_WEIGHT:
        raise ValueError(
            f"the weights of the mix {name} add up to {whole}, more than {MOST_WEIGHT}: round them, so that "
            "they have a common divisor"
        )


class Mix(Frozen):
    """A mix of sizes, in exact proportions, in turn, or of several streams. Bit rates follow from the mean size."""

    name: str
    sizes: tuple[WeightedSize, ...] = ()
    sweep: SizeSweep | None = None
    mean_of_streams_bytes: float | None = None
    """The mean size of the streams, where each stream of a port has sizes of its own."""
    mean_of_capture_bytes: float | None = optional(None)
    """The mean size of the frames of a capture."""

    @property
    def frame_bytes(self) -> float:
        """The mean size in bytes, including the FCS."""
        if self.mean_of_streams_bytes is not None:
            return self.mean_of_streams_bytes
        if self.mean_of_capture_bytes is not None:
            return self.mean_of_capture_bytes
        if self.sweep is not None:
            return sum(self.sweep.frame_bytes) / len(self.sweep.frame_bytes)
        frames = sum(size.weight for size in self.sizes)
        return sum(size.frame_bytes * size.weight for size in self.sizes) / frames

    def __str__(self) -> str:
        if self.mean_of_streams_bytes is not None:
            return f"the streams' own sizes (mean {self.frame_bytes:.1f})"
        if self.mean_of_capture_bytes is not None:
            return f"the sizes of the capture (mean {self.frame_bytes:.1f})"
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
    """Returns the bytes per frame; for a mix, the mean."""
    return size if isinstance(size, int) else size.frame_bytes


def size_label(size: Size) -> str:
    """Returns the number of bytes, or the name of a mix."""
    return str(size) if isinstance(size, int) else size.name


def size_parameters(size: Size) -> dict[str, Any]:
    """Returns the parameters by which results and trials identify the size."""
    return {"frame_bytes": size} if isinstance(size, int) else {"frame_bytes": size.frame_bytes, "mix": size.name}


def label_of(parameters: dict[str, Any]) -> str | None:
    """Returns the label of a size that ``size_parameters`` wrote; None where the parameters have no size."""
    size = parameters.get("mix", parameters.get("frame_bytes"))
    return None if size is None else str(size)


def size_words(parameters: dict[str, Any]) -> str:
    """Describes the size in a result's parameters for a sentence: "64 bytes" or "imix"."""
    return str(parameters["mix"]) if parameters.get("mix") else f"{parameters.get('frame_bytes')} bytes"


def words_of(size: Size) -> str:
    """Describes a trial's frame size for a sentence: "64 bytes" or "imix"."""
    return size_words(size_parameters(size))
