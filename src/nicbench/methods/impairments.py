"""What a path does to the frames of a given load: delay, loss, duplication, reordering, alteration, side by side.

The metrics are those of the IETF's IP Performance Metrics: one-way delay (RFC 7679), its variation as p99.9 - minimum
(RFC 5481 section 4.2), one-way loss (RFC 7680), duplication (RFC 5560), reordering (RFC 4737); and frames altered on
their way. Steps, for each frame size: one judged trial at the load. Lost are shares of the frames sent; doubled and
altered of those that arrived; reordered, which arrived after a later one of their flow, of those that arrived intact.
Each share has its exact binomial interval (Clopper and Pearson), which takes each frame as an independent draw.
Verified: every frame by its signature and its payload; every frame is timed.
"""

from __future__ import annotations

from typing import Final

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSizes, Size, size_parameters
from nicbench.core.quantity import Confidence
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Latency, Purpose, Reading
from nicbench.methods._loads import FullLoad, FullRate, TrialTimes, full_rate
from nicbench.methods._results import result_at, verdict_of, without_tester
from nicbench.methods.base import FRAME, Context, FrameMethod, Values
from nicbench.stats.intervals import share_interval

_PERCENTILES: Final = ("50", "99", "99.9")
_NO_FRAME: Final = "no frame came back"


def _share(value: str, head: str) -> Column:
    return Column(value, head, unit="%", form="of_frames", is_main=True, better="lower")


_COLUMNS: Final = (
    FRAME,
    Column("load_frames_per_s", "Load"),
    Column("sent_frames", "Sent", form="whole"),
    _share("lost_percent", "Lost"),
    _share("duplicated_percent", "Doubled"),
    _share("reordered_percent", "Reordered"),
    _share("altered_percent", "Altered"),
    Column("latency_minimum_ns", "Least delay"),
    Column("latency_p50_ns", "Median delay", is_main=True, better="lower"),
    Column("latency_mean_ns", "Mean delay"),
    Column("latency_p99_ns", "p99"),
    Column("latency_maximum_ns", "Greatest delay"),
    Column("pdv_ns", "Delay variation"),
)


class Impairments(FrameMethod):
    """Delay, loss, duplication, reordering and alteration of each frame size at one load."""

    kind = "impairments"
    sees_faults = True
    question = "What does {subject} do to frames: how many are delayed, lost, doubled, reordered, altered?"

    class Options(Frozen):
        """Options of the bench file. ``rate`` is the load of each port, ``confidence`` that of the intervals."""

        rate: FullRate
        """The load of each port: `line_rate`, `highest`, or a frame rate, `2 kpps`."""
        frame_bytes: FrameSizes = (64,)
        """Frame sizes, and mixes by name."""
        confidence: Confidence = 0.95
        """Confidence of the intervals. They take each frame as an independent draw: losses in bursts are known less
        well.
        """
        trial: TrialTimes = TrialTimes()
        """Times of a trial."""

    options: Options

    def abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.LATENCY})

    async def measure_size(self, context: Context, size: Size) -> Result:
        full = await full_rate(context, size, self.options.rate)
        if full.is_sent_nothing:
            return without_tester(self, size, full, "lost_percent")
        load = full.load_frames_per_s(full.highest_percent)
        request = self.options.trial.request(size, load, Purpose.AVERAGE)
        trial, disturbed = await context.measure(size_parameters(size), request)
        return result_at(
            self,
            size,
            {**_load(full, trial.request.sent_frames_per_s), **values_of(trial.reading, self.options.confidence)},
            verdict_of(trial, disturbed),
            trials=(trial.id,),
            disturbances=trial.verdict.texts,
        )

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Impairments",
            caption=(
                "What became of the frames of one load. Lost: of those sent (RFC 7680). Doubled (RFC 5560) and "
                "altered: of those that arrived. Reordered: of those that arrived intact, after a later one of their "
                "flow (RFC 4737). Delay is one way (RFC 7679), of every frame; its variation is p99.9 - minimum (RFC "
                "5481)."
            ),
            columns=_COLUMNS,
            sentences=(
                (
                    "loses {lost_percent}, doubles {duplicated_percent}, reorders {reordered_percent} and alters "
                    "{altered_percent} of {size} frames, and delays them by {latency_p50_ns} (median)"
                ),
                "loses {lost_percent} of {size} frames",
            ),
            notes=(("load_lowered", "Load"),),
        )


def values_of(reading: Reading, confidence: float) -> Values:
    """Returns shares in percent, each with the bounds of its interval, and delays in nanoseconds."""
    counts = reading.counts
    arrived = max(0, counts.sent - counts.lost)
    altered = None if counts.corrupted is None else counts.corrupted + (counts.unattributed or 0)
    return {
        "sent_frames": counts.sent,
        "confidence_percent": 100.0 * confidence,
        **_share_values("lost", counts.lost, counts.sent, confidence),
        **_share_values("duplicated", counts.duplicated, arrived, confidence),
        **_share_values("reordered", counts.reordered, counts.received, confidence),
        **_share_values("altered", altered, arrived, confidence),
        "checked_bytes": _check_share(reading),
        **_delays(reading.latency, counts),
    }


def _share_values(name: str, frames: int | None, of: int, confidence: float) -> Values:
    if frames is None:
        return {f"{name}_percent": Bounded(value=None, reason_null="the tester cannot tell such frames from others")}
    if not of:
        return {f"{name}_percent": Bounded(value=None, reason_null=_NO_FRAME)}
    # A frame may come more than twice: a share of copies is then above all of them, and no binomial one.
    bounds = share_interval(frames, of, confidence) if frames <= of else (None, None)
    lower, upper = (None if bound is None else 100.0 * bound for bound in bounds)
    return {
        f"{name}_frames": frames,
        f"{name}_of_frames": of,
        f"{name}_percent": 100.0 * frames / of,
        f"{name}_lower_percent": lower,
        f"{name}_upper_percent": upper,
    }


def _check_share(reading: Reading) -> int | None:
    checked = [stream.checked_bytes for stream in reading.streams if stream.checked_bytes is not None]
    return min(checked) if checked else None


def _delays(latency: Latency | None, counts: Counts) -> Values:
    if latency is None:
        why = _NO_FRAME if counts.received == 0 else "this tester does not time frames"
        return {"latency_p50_ns": Bounded(value=None, reason_null=why)}
    tail = latency.percentiles_ns.get("99.9")
    return {
        "latency_minimum_ns": latency.minimum_ns,
        "latency_mean_ns": latency.mean_ns,
        **{f"latency_p{name.replace('.', '_')}_ns": latency.percentiles_ns.get(name) for name in _PERCENTILES},
        "latency_maximum_ns": latency.maximum_ns,
        "latency_uncertainty_ns": latency.uncertainty_ns,
        "latency_source": latency.source,
        "latency_received_by": latency.received_by,
        "pdv_ns": None if tail is None else tail - latency.minimum_ns,
    }


def _load(full: FullLoad, sent: float | None) -> Values:
    lowered = full.highest_percent < 100.0
    return {
        "load_frames_per_s": sent,
        "line_rate_frames_per_s": full.line_rate_frames_per_s,
        "load_lowered": full.why_not_more if lowered else None,
    }
