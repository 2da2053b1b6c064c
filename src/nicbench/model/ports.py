"""What one trial came to at each port, on each way between two ports, and in all: parts of a result."""

from __future__ import annotations

from nicbench.model.base import Frozen


class Passed(Frozen):
    """Frames offered to the DUT and what became of them, with rates over the time of the transmission.

    ``failed_frames`` is all that the DUT is charged with (lost, altered, refused), ``loss_ratio`` its share of offered.
    """

    offered_frames: int
    received_frames: int
    lost_frames: int
    failed_frames: int
    loss_ratio: float
    offered_frames_per_s: float
    received_frames_per_s: float
    latency_minimum_ns: int | None = None
    latency_mean_ns: float | None = None
    latency_p50_ns: int | None = None
    latency_p99_ns: int | None = None
    latency_maximum_ns: int | None = None


class WayPassed(Passed):
    """On one way: an ordered pair of the tester's ports, by name."""

    transmit_port: str
    receive_port: str


class PortPassed(Frozen):
    """At one port of the tester: what it sent, what came of what was sent to it, and what was not ours."""

    port: str
    offered_frames: int
    expected_frames: int
    """Offered to the DUT by any port, for this one."""
    received_frames: int
    offered_frames_per_s: float
    received_frames_per_s: float
    foreign_frames: int | None


class PortFigures(Frozen):
    """Of the trial that tells most of a result: at the highest load without a failed frame, else of the least failed.

    ``combined`` is the sum of all ways.
    """

    trial: str
    load_frames_per_s: float | None
    ways: tuple[WayPassed, ...]
    ports: tuple[PortPassed, ...]
    combined: Passed
