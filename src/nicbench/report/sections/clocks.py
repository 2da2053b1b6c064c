"""How the clocks of a tester's two machines were compared: in words, and for each trial in numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from nicbench.core.clocks import ClockMapping
from nicbench.core.units import format_digits
from nicbench.report.document.blocks import Block, Cell, FoldedBlocks
from nicbench.report.document.inlines import inlines
from nicbench.report.document.tables import caption, cell, head, heading, heads, name, paragraph, table
from nicbench.report.model import TrialGroup
from nicbench.report.numbers import microseconds, whole

_BY: Mapping[str, str] = MappingProxyType(
    {
        "test links": "by frames that went both ways over the test links",
        "control path": "by questions for the time that the controller asked both machines",
        "ptp": "by PTP, to which the clocks of both machines are synchronised",
    }
)


def clocks(groups: Sequence[TrialGroup]) -> Iterator[Block]:
    """Yields what is known of the clocks of both machines; nothing where the tester is on one."""
    trials = [trial for group in groups for trial in group.trials]
    mapped = [(trial.id, trial.reading.clocks) for trial in trials if trial.reading.clocks is not None]
    if not mapped:
        return
    yield heading(3, "Clocks of the two tester machines")
    yield paragraph(_say([mapping for _, mapping in mapped]))
    yield from (paragraph(said) for said in _say_ptp([mapping for _, mapping in mapped]))
    yield caption(
        "Half of the difference between the fastest frame there and the fastest one back is the offset; half of their "
        "sum bounds its error, for a slower way there cannot be told from a slower way back. The offset at the trial’s "
        "begin and the drift are of the line through earlier comparisons, by which its latencies were taken; how far "
        "the comparisons before and after the trial were from that line is its error. A latency’s uncertainty is the "
        "sum of both, and of the time that a burst takes."
    )
    titles = (
        head("Trial"),
        *heads("Compared by"),
        head("Offset", "ns"),
        head("Drift", "ppm"),
        head("Asymmetry at most", "µs"),
        head("Line missed by", "µs"),
        head("Uncertainty", "µs"),
        head("Comparisons"),
    )
    rows = table((titles,), (_row(trial, mapping) for trial, mapping in mapped))
    yield FoldedBlocks(inlines("The comparison of the clocks around each trial"), (rows,), is_detail=True)


def _say(mappings: Sequence[ClockMapping]) -> str:
    how = " or ".join(_BY.get(by, by) for by in dict.fromkeys(mapping.by for mapping in mappings))
    drifts = [mapping.drift_ppm for mapping in mappings]
    bounds = [mapping.asymmetry_bound_ns for mapping in mappings]
    misses = [mapping.fit_error_ns for mapping in mappings]
    gained, asymmetry = _range(drifts, 1, "ppm"), _range(bounds, 1000, "µs")
    return (
        "Frames are sent by one machine and received by the other, which have a clock each. These were compared before "
        f"and after each trial, {how}. The second clock gained {gained} on the first. Latencies are wrong by at most "
        f"{asymmetry} because both ways may differ, and by {_range(misses, 1000, 'µs')} because the clocks did not "
        "follow their line."
    )


def _say_ptp(mappings: Sequence[ClockMapping]) -> Iterator[str]:
    """A sentence for each machine that PTP synchronises, with the extremes over all trials."""
    states = [state for mapping in mappings for state in mapping.ptp]
    for host in dict.fromkeys(state.host for state in states):
        own = [state for state in states if state.host == host]
        offset = max((state.offset_ns for state in own), key=abs)
        system = max((state.system_ns or 0.0 for state in own), key=abs)
        path = max(state.path_delay_ns for state in own)
        yield (
            f"PTP on {host}: {own[0].state} of {own[0].grandmaster}, {own[0].stamping.lower()} stamps. In the trials "
            f"its clock was off its master’s by {offset:g} ns at most, over a path of {path:g} ns, and the system’s "
            f"clock off its own by {system:g} ns."
        )


def _range(values: Sequence[float], scale: int, unit: str) -> str:
    low, high = (format_digits(value / scale) for value in (min(values), max(values)))
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def _row(trial: str, mapping: ClockMapping) -> Iterator[Cell]:
    yield name(trial)
    yield cell(mapping.by)
    yield cell(whole(mapping.offset_ns))
    yield cell(f"{mapping.drift_ppm:.2f}")
    yield cell(f"± {microseconds(mapping.asymmetry_bound_ns)}")
    yield cell(f"± {microseconds(mapping.fit_error_ns)}")
    yield cell(f"± {microseconds(mapping.uncertainty_ns)}")
    yield cell(str(mapping.comparisons))
