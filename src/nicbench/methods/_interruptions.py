"""What an interruption of the DUT does to frames: the longest silence, and the frames lost as a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field

from nicbench.core.trial import Reading, StreamReading, Trial
from nicbench.core.units import format_digits

# Where frames come back, they do so to within this of the transmission's end.
_LAST_FRAMES_S: Final = 0.1

Words = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
"""A command and its arguments, as a list: no shell reads them."""

WHERE: Final = {"dut": "on the DUT's host", "tester": "on the tester's host", "local": "on the controller's machine"}
"""The hosts on which a command may run, in words."""


def silence_s(reading: Reading) -> float | None:
    """Returns the seconds from the last frame before the longest silence to the first after it.

    The stream with the longest silence counts. None where a stream never resumed, or its silence is not known.
    """
    longest = 0.0
    for stream in reading.streams:
        arrivals = stream.arrivals
        if arrivals is None or arrivals.silence is None:
            return None
        if reading.transmit_ns - arrivals.last_ns > _LAST_FRAMES_S * 1e9:
            return None
        longest = max(longest, arrivals.silence.length_ns / 1e9)
    return longest if reading.streams else None


def explain_no_return(readings: Sequence[Reading], what: str, lack: str = "no frames came back") -> str:
    """Says that no frames came back in these readings. ``what`` counts the events, as in "1 of 2 resets"."""
    reason = f"after {what} {lack} to the end of the trial"
    latest = max((_command_ended_s(reading) for reading in readings), default=0.0)
    if latest > 0.0:
        transmission = max(reading.transmit_ns for reading in readings) / 1e9
        ended, of = format_digits(latest), format_digits(transmission)
        reason += f"; the command ended {ended} s after the transmission of {of} s began"
    return reason


def _command_ended_s(reading: Reading) -> float:
    times = reading.interrupted
    return 0.0 if times is None else times.restored_s or times.ended_s


def loss_s(stream: StreamReading, duration_s: float) -> float:
    """Returns the lost frames of a stream divided by its load."""
    counts = stream.counts
    return duration_s * counts.failed / counts.intended if counts.intended else 0.0


def by_loss_s(trial: Trial) -> float:
    """Returns the lost frames divided by the load, for the way that lost most."""
    return max((loss_s(stream, trial.request.duration_s) for stream in trial.reading.streams), default=0.0)


def turn_s(stream: StreamReading, duration_s: float) -> float:
    """Returns the time between two frames of one flow of a stream that is sent for ``duration_s``."""
    flows = stream.flows.flows if stream.flows else 1
    return flows * duration_s / max(1, stream.counts.intended)


def lost_to_the_end(stream: StreamReading) -> bool:
    """Returns whether frames were lost that nothing of their flow came after: the last ones."""
    lost = stream.counts.lost + (stream.counts.unattributed or 0)
    return lost > (sum(stream.intervals.missing) if stream.intervals else 0)


def say_command(command: Sequence[str], host: str) -> str:
    """Returns a command and where it runs, for the report."""
    return f"{' '.join(command)} ({WHERE[host]})"
