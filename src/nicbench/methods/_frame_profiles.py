"""Sizes of media frames, as the engine has them (protocol/frames.md): what is to be on a disk is known beforehand."""

from __future__ import annotations

from typing import Final

_PICTURES: Final = {
    "sd": (720, 486),
    "hd": (1920, 1080),
    "uhd": (3840, 2160),
    "2k": (2048, 1556),
    "4k": (4096, 3112),
    "8k": (8192, 6224),
}
_PIXEL_BYTES: Final = {"": 4.0, "-10": 4.0, "-12": 6.0, "-16": 6.0, "-exr": 0.7 * 6.0}
"""Of EXR at most: its compression leaves 40 to 70 %, differently for each frame."""
HEADER_BYTES: Final = 65_536
PROFILES: Final = tuple(f"{picture}{depth}" for picture in _PICTURES for depth in _PIXEL_BYTES)
BLOCK_BYTES: Final = 4096


def most_frame_bytes(profile: str, frame_bytes: int | None = None, header_bytes: int | None = None) -> int:
    """The header and the picture of the largest frame, filled up to whole blocks; ``frame_bytes`` replaces the profile.

    A size of one's own comes without a header, where none is asked for. KeyError for a profile that is not there.
    """
    if frame_bytes is not None:
        picture, header = frame_bytes, header_bytes or 0
    else:
        name, dash, depth = profile.partition("-")
        width, height = _PICTURES[name]
        picture = round(width * height * _PIXEL_BYTES[dash + depth])
        header = HEADER_BYTES if header_bytes is None else header_bytes
    return -(-(picture + header) // BLOCK_BYTES) * BLOCK_BYTES
