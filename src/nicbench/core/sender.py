"""The sender of a TCP stream over time, by its own kernel: what it delivered, what of that was marked, its window.

Source: ``tcp_info`` of Linux (include/uapi/linux/tcp.h), as ``ss -ti`` prints it.
"""

from __future__ import annotations

from nicbench.core.base import Frozen


class SenderLook(Frozen):
    """The counts of a connection at one time, since it began; None where the kernel or ``ss`` does not tell."""

    at_s: float
    """Seconds since the clients of the round began."""
    acked_bytes: int
    """Payload that the receiver acknowledged."""
    delivered: int | None = None
    """Segments that arrived."""
    delivered_marked: int | None = None
    """Those of them whose acknowledgement reported a mark. A receiver of RFC 3168 repeats it until the sender answers,
    one of DCTCP (RFC 8257) does not.
    """
    resent: int = 0
    """Segments that were sent again."""
    round_trip_ns: float | None = None
    """The smoothed round-trip time."""
    window: int | None = None
    """The congestion window in segments."""


class SenderTrace(Frozen):
    """The connection of a job. ``job`` counts from 1; ``ecn`` is whether both ends agreed on ECN; None is unknown."""

    job: int
    congestion_control: str | None = None
    ecn: bool | None = None
    looks: tuple[SenderLook, ...] = ()
