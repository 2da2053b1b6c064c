"""What each stream of a port sends: a share of the port's load, or a rate of its own whatever the load is."""

from __future__ import annotations

from typing import Final

from nicbench.model.traffic import Traffic

MOST_OF_A_LOAD: Final = 0.99
"""Of a load that is smaller than the streams' own rates these take so much, in proportion; the shares keep the rest."""


def stream_rates_frames_per_s(traffic: Traffic, load_frames_per_s: float | None) -> tuple[float, ...]:
    """Per stream, in their order; 0 is as fast as the port takes frames, which is what a load of None asks for."""
    streams = traffic.each_stream()
    if load_frames_per_s is None:
        return tuple(0.0 for _ in streams)
    own = sum(stream.rate or 0.0 for stream in streams)
    scale = min(1.0, MOST_OF_A_LOAD * load_frames_per_s / own) if own else 1.0
    rest = load_frames_per_s - own * scale
    return tuple(stream.rate * scale if stream.rate is not None else rest * (stream.share or 0.0) for stream in streams)
