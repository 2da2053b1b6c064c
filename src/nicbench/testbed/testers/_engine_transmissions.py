"""What a trial's request means for the engine's transmission, and what is added to what the engine says of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from nicbench.core.pattern import forward_of
from nicbench.core.trial import Reading, TrialRequest
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.testers._engine_groups import last_s

LEARNING_S: Final = 0.01
BURST_ROOM: Final = 1.25
"""The time that a burst may take, as a multiple of what its rate needs."""


def forward_ways(addressing: tuple[Addressing, ...]) -> tuple[Addressing, ...]:
    """The forward ways of the traffic: those whose reverse does not come before them."""
    forward = set(forward_of([(way.transmit, way.receive) for way in addressing]))
    return tuple(way for way in addressing if (way.transmit, way.receive) in forward)


def between_two_ports(addressing: tuple[Addressing, ...]) -> tuple[Addressing, ...]:
    """The first way and its reverse: the tester's own latency is measured over one cable."""
    ends = {addressing[0].transmit, addressing[0].receive}
    return tuple(replace(way, is_direct=True) for way in addressing if {way.transmit, way.receive} == ends)


def transmission_s(request: TrialRequest) -> float:
    """The longest time that the engine may send; bursts and phases end with their last frame and are not cut off."""
    if request.groups is not None:
        return last_s(request.groups, request) + LEARNING_S
    if request.pausing is not None:
        ends_s = max((train.ends_s for train in request.pausing.trains), default=0.0)
        return max(ends_s, request.pausing.load_begins_s + request.duration_s) + LEARNING_S
    if request.phases:
        return request.duration_s + LEARNING_S
    if request.frames is None or not request.load_frames_per_s:
        return request.duration_s
    return max(request.duration_s, BURST_ROOM * request.frames / request.load_frames_per_s + LEARNING_S)


def with_phases(reading: Reading, phases: Sequence[int]) -> Reading:
    """The reading with the number of its phase in each stream; unchanged without phases."""
    if not phases:
        return reading
    pairs = zip(reading.streams, phases, strict=True)
    return reading.replace(streams=tuple(stream.replace(phase=phase) for stream, phase in pairs))
