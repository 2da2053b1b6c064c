"""How much of its physical core a CPU had, look by look over a trial."""

from __future__ import annotations

import zlib
from base64 import b64decode
from binascii import Error as NotBase64
from typing import Final, NamedTuple

from nicbench.core.trial import Looks

SLOW_SHARE: Final = 0.8
"""A look that finds less of the core than this share of its best finds it shared (the engine's ``core_watch``)."""
_MOST_SLOTS: Final = 2**20
"""Of a series that is read: the engine keeps a sixteenth of this."""


class Look(NamedTuple):
    """The core's speed in the slot that began at ``time_ns`` since the first frame was due, of its best."""

    time_ns: int
    share: float


def decode_looks(looks: Looks) -> tuple[Look, ...]:
    """Returns the looks in the order of their time, slots without one left out; ValueError where they are damaged."""
    unpack = zlib.decompressobj()
    try:
        shares = unpack.decompress(b64decode(looks.shares, validate=True), _MOST_SLOTS)
    except (NotBase64, zlib.error) as problem:
        raise ValueError(f"the looks at a core are damaged: {problem}") from problem
    if not unpack.eof or unpack.unused_data:
        raise ValueError(f"the looks at a core are cut off, or more than {_MOST_SLOTS}")
    begins_ns, slot_ns = looks.begins_ns, looks.slot_ns
    return tuple(Look(begins_ns + slot * slot_ns, share / 100) for slot, share in enumerate(shares) if share)


def shared_share(looks: Looks, from_ns: int, until_ns: int) -> float | None:
    """Returns the share of the looks of a period that found the core shared; None where nobody looked in it."""
    seen = [look.share for look in decode_looks(looks) if from_ns <= look.time_ns < until_ns]
    return sum(share < SLOW_SHARE for share in seen) / len(seen) if seen else None
