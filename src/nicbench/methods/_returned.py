"""What came back of a trial at a given load: the values of one point, for every method that offers loads."""

from __future__ import annotations

import math

from nicbench.errors import NicbenchError
from nicbench.methods._full_rate import Full
from nicbench.model.rate import Bounded
from nicbench.model.result import ResultVerdict
from nicbench.model.table import Column
from nicbench.model.trial import Reading, Trial

Values = dict[str, Bounded | float | int | str | None]
# A transmission ends within a burst of its time.
_ROUNDING = 1.001

COLUMNS = (
    Column(value="load_frames_per_s", head="Offered load", unit="Mpps", form="mpps"),
    Column(value="percent_of_line_rate", head="% of line rate", form="trimmed"),
    Column(value="offered_frames", head="Offered frames", form="whole"),
    Column(value="returned_frames", head="Returned intact", form="whole"),
    Column(value="lost_frames", head="Lost", form="whole"),
    Column(value="refused_frames", head="Refused", form="whole"),
    Column(value="altered_frames", head="Altered", form="whole"),
    Column(value="late_frames", head="Late", form="whole"),
    Column(value="checked_bytes", head="Compared of each", unit="bytes", form="whole"),
    Column(value="returned_percent", head="Returned intact", unit="%", form="of_frames"),
    Column(value="loss_percent", head="Loss", unit="%", form="of_frames"),
    Column(value="returned_by_way", head="Returned each way", unit="%", form="text"),
)
"""Of a table with a row for each point."""

HOW_IT_IS_CHECKED = (
    "Every frame that comes back is compared with what was sent, signature and payload, over the bytes of the column "
    "Compared; an altered one is not returned intact. Where nothing stands there, this tester compares nothing."
)


def returned(trial: Trial, full: Full) -> Values:
    """The values of a trial: frames of all ports, loads of each port and direction.

    Loss is RFC 2544's (section 26.3): offered less returned, where frames that came after the drain count as late and
    not as lost, and what a lossless port refused as offered and lost.
    """
    reading = trial.reading
    counts = reading.counts
    load = trial.request.load_frames_per_s or 0.0
    line_rate = full.line_rate_frames_per_s
    if load > line_rate * full.most_line_rates * _ROUNDING:
        raise NicbenchError(
            f"{load:.0f} frames/s were offered where the lines carry {line_rate * full.most_line_rates:.0f}",
            place=f"trial {trial.id}",
            next_step="report it with the run folder",
        )
    offered = counts.sent + counts.unsent_backpressure
    checked = [stream.checked_bytes for stream in reading.streams if stream.checked_bytes is not None]
    return {
        "load_frames_per_s": load,
        "line_rate_frames_per_s": line_rate,
        "ceiling_frames_per_s": full.ceiling_frames_per_s,
        "percent_of_line_rate": 100.0 * load / line_rate,
        "intended_frames": counts.intended,
        "offered_frames": offered,
        "returned_frames": counts.received,
        "lost_frames": counts.lost,
        "refused_frames": counts.unsent_backpressure,
        "altered_frames": None if counts.corrupted is None else counts.corrupted + (counts.unattributed or 0),
        "late_frames": counts.late,
        "checked_bytes": min(checked) if checked else None,
        "returned_percent": 100.0 * counts.received / offered if offered else None,
        "loss_percent": 100.0 * counts.loss_ratio if offered else None,
        "returned_by_way": _by_way(reading),
    }


def not_offered(percent: float, full: Full) -> Values:
    """The values of a load that nobody could send."""
    load = full.load_frames_per_s(percent)
    reason = full.why_not_more
    return {
        "load_frames_per_s": load,
        "line_rate_frames_per_s": full.line_rate_frames_per_s,
        "ceiling_frames_per_s": full.ceiling_frames_per_s,
        "percent_of_line_rate": 100.0 * load / full.line_rate_frames_per_s,
        "returned_percent": Bounded(value=None, reason_null=reason),
        "loss_percent": Bounded(value=None, reason_null=reason),
    }


def verdict_of(trial: Trial | None, disturbed: bool) -> ResultVerdict:
    """Without a trial there is nothing to rely on."""
    if trial is None:
        return ResultVerdict.INCOMPLETE
    return ResultVerdict.DISTURBED if disturbed else ResultVerdict.VALID


def _by_way(reading: Reading) -> str | None:
    """Each stream by itself where there are several: a figure for all ports may hide a port that returns nothing."""
    if len(reading.streams) < 2:
        return None
    shares = []
    for stream in reading.streams:
        offered = stream.counts.sent + stream.counts.unsent_backpressure
        # Rounded down: 100 is every frame.
        share = f"{math.floor(1e5 * stream.counts.received / offered) / 1e3:g}" if offered else "nothing offered"
        shares.append(f"{stream.name}: {share}")
    return ", ".join(shares)
