"""What a report says of time stamps: by what each end was stamped, and how the clocks of the ports fared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from nicbench.core.reading import Stamps
from nicbench.core.trial import Latency, Trial

_SENT: Mapping[str, str] = MappingProxyType(
    {
        "software": "software when their burst is handed to the port",
        "scheduled": "the schedule, with the time at which they were due",
    }
)
_RECEIVED: Mapping[str, str] = MappingProxyType(
    {
        "tsc": "software (TSC) when their burst has been received",
        "card": "the card, each when it arrives",
        "kernel": "the kernel, each when the driver hands it up",
    }
)


@dataclass(frozen=True, slots=True)
class ClockRow:
    """The clock of one port over the trial of one frame size."""

    size: str
    port: str
    stamps: Stamps


def words(latencies: Iterable[Latency]) -> tuple[str, ...]:
    """A sentence for each pair of sources, with the resolution of the coarser of the two stamps."""
    said: dict[str, None] = {}
    for latency in latencies:
        sent = _SENT.get(latency.source, latency.source)
        received = _RECEIVED.get(latency.received_by, latency.received_by)
        resolution = (
            "" if latency.resolution_ns is None else f", in steps of {float(f'{latency.resolution_ns:.3g}'):g} ns"
        )
        sample = "" if latency.sample_of is None else ": a sample of the frames, not every one"
        said[f"sent frames are stamped by {sent}, received ones by {received}{resolution}{sample}"] = None
    return tuple(said)


def clock_rows(trials: Iterable[tuple[str, Trial]]) -> tuple[ClockRow, ...]:
    """Of every port whose frames bear stamps of its own clock; a size goes with each trial."""
    return tuple(
        ClockRow(size, port.name, port.timestamps)
        for size, trial in trials
        for port in trial.reading.ports
        if port.timestamps is not None
    )


def warnings(size: str, trial: Trial) -> tuple[str, ...]:
    """What of a trial's stamps cannot be right, a sentence each."""
    said = []
    latency = trial.reading.latency
    if latency is not None and latency.negative:
        said.append(
            f"{latency.negative} of {latency.count} frames of {size} arrived, by their stamps, up to "
            f"{latency.negative_maximum_ns} ns before they were sent; they are timed as 0"
        )
    for port in trial.reading.ports:
        stamps = port.timestamps
        if stamps is None:
            continue
        if stamps.unstamped or stamps.implausible:
            said.append(
                f"of the frames of {size} at port {port.name}, {stamps.unstamped} bore no stamp and "
                f"{stamps.implausible} one that cannot be: they have the time at which software had received them"
            )
        if stamps.early:
            said.append(
                f"{stamps.early} stamps of {size} at port {port.name} are up to {stamps.early_maximum_ns} ns later "
                "than the moment at which their frames had been received"
            )
    return tuple(said)
