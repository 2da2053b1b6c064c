"""What a method takes for a frame size: a number of bytes, or the name of a mix of sizes, which is one size to it."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from nicbench.model.base import Frozen
from nicbench.model.quantity import FrameBytes

MixName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")]
"""As it stands among the frame sizes of a test."""

FrameSize = FrameBytes | MixName
"""One entry of a test's ``frame_bytes``."""


class WeightedSize(Frozen):
    """One size of a mix: so many frames of the sum of all weights."""

    frame_bytes: FrameBytes
    weight: int = Field(ge=1, le=65_536)


class Mix(Frozen):
    """Sizes in exact proportions. ``frame_bytes`` is their mean, from which every bit rate follows."""

    name: str
    sizes: tuple[WeightedSize, ...]

    @property
    def frame_bytes(self) -> float:
        """The mean size, FCS counted."""
        frames = sum(size.weight for size in self.sizes)
        return sum(size.frame_bytes * size.weight for size in self.sizes) / frames

    def __str__(self) -> str:
        parts = " + ".join(f"{size.weight} x {size.frame_bytes}" for size in self.sizes)
        return f"{parts} bytes (mean {self.frame_bytes:.1f})"


Size = int | Mix
"""A frame size as a trial has it."""

_IMIX_SIZES: Final = ((64, 7), (570, 4), (1518, 1))
IMIX: Final = Mix(
    name="imix",
    sizes=tuple(WeightedSize(frame_bytes=frame_bytes, weight=weight) for frame_bytes, weight in _IMIX_SIZES),
)
"""The simple IMIX of seven small, four medium and one large frame."""


def mean_bytes(size: Size) -> int | float:
    """Bytes per frame: exactly, or in the mean of a mix."""
    return size if isinstance(size, int) else size.frame_bytes


def size_label(size: Size) -> str:
    """The number of bytes, or the name of a mix."""
    return str(size) if isinstance(size, int) else size.name


def size_parameters(size: Size) -> dict[str, Any]:
    """How results and trials name the size among their parameters."""
    return {"frame_bytes": size} if isinstance(size, int) else {"frame_bytes": size.frame_bytes, "mix": size.name}


def label_of(parameters: dict[str, Any]) -> str | None:
    """The label of the size that ``size_parameters`` wrote; None where there is none."""
    size = parameters.get("mix", parameters.get("frame_bytes"))
    return None if size is None else str(size)


def size_words(parameters: dict[str, Any]) -> str:
    """For a sentence: "64 bytes", "imix"."""
    return str(parameters["mix"]) if parameters.get("mix") else f"{parameters.get('frame_bytes')} bytes"


def words_of(size: Size) -> str:
    """The same of a size itself."""
    return size_words(size_parameters(size))
