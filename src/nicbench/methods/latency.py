"""Latency (RFC 2544 section 26.2) under load: every frame of a trial is timed, not a tagged few.

Steps, for each frame size: one judged trial for each load, a share of the throughput that an earlier test found, or one
of an exact number of frames. Latency runs from handing a frame to the port to its receipt. A percentile is given only
where a frame lies above it; delay variation is p99.9 - minimum (RFC 8219 section 7.3.1). The long tail counts the
frames in each latency bin. Lost frames have no latency: their share stands beside it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSizes, Size, label_of, size_label, size_parameters, size_words
from nicbench.core.quantity import Percent
from nicbench.core.result import RATE, Bounded, Result, ResultVerdict, number_of
from nicbench.core.table import Column, ImportColumn, ImportTable, ResultTable, Statement
from nicbench.core.traffic import Ability
from nicbench.core.trial import Latency as LatencyReading
from nicbench.core.trial import Purpose, Trial
from nicbench.methods._imports import LOAD, LOAD_RATE, LOSS, SIZE
from nicbench.methods._loads import (
    LOWERED_NOTE,
    NDR,
    RFC_2544_FRAME_BYTES,
    TrialTimes,
    explain_other_rate,
    lowered_values,
    missing_sizes,
)
from nicbench.methods._results import BROADCASTS_NOTE
from nicbench.methods._tail import (
    BINS_S,
    TAIL_COLUMNS,
    Bins,
    SlowestOf,
    by_core_table,
    by_core_values,
    scale_tail,
    slowest_table,
    slowest_values,
    tail_values,
)
from nicbench.methods.base import FRAME, Context, FrameMethod, Values
from nicbench.stats.latency import PERCENTILES

# RFC 2544 section 26.2 asks for the throughput; how latency grows towards it shows at lower loads.
LOADS_PERCENT = (100.0, 90.0, 50.0, 10.0)

_PERCENTILE_NAMES = {name: f"latency_p{name.replace('.', '_')}_ns" for name in PERCENTILES}
_SAID_BY = (
    ("latency_minimum_ns", "minimum latency", ("min latency", "latency min", "latency minimum", "minimum", "min")),
    (
        "latency_mean_ns",
        "average latency",
        ("avg latency", "mean latency", "latency avg", "latency average", "average", "avg", "mean", "latency"),
    ),
    ("latency_maximum_ns", "maximum latency", ("max latency", "latency max", "latency maximum", "maximum", "max")),
    ("pdv_ns", "PDV", ("delay variation", "packet delay variation")),
    *(
        (
            value,
            f"p{name}",
            (f"latency p{name}", f"{name} percentile", f"percentile {name}", f"p{name.replace('.', ' ')}"),
        )
        for name, value in _PERCENTILE_NAMES.items()
    ),
)
_IMPORTED = tuple(ImportColumn(value, name, also=also, quantity="time") for value, name, also in _SAID_BY)


_COLUMNS = (
    Column("latency_minimum_ns", "min", is_optional=True),
    Column("latency_mean_ns", "mean", is_optional=True),
    Column("latency_p50_ns", "p50", name="median latency", is_main=True, is_optional=True, better="lower"),
    Column("latency_p99_ns", "p99", is_optional=True),
    Column("latency_p99_9_ns", "p99.9", name="p99.9 latency", is_main=True, is_optional=True, better="lower"),
    Column("latency_p99_99_ns", "p99.99", is_optional=True),
    Column("latency_p99_999_ns", "p99.999", is_optional=True),
    Column("latency_p99_9999_ns", "p99.9999", is_optional=True),
    Column("latency_maximum_ns", "max", is_optional=True),
    Column("pdv_ns", "PDV", is_optional=True),
)
_LOST = Column("loss_percent", "Lost", unit="%", form="of_frames", is_optional=True)
_MEAN, _MEDIAN, _MOST = "{latency_mean_ns} on average", "{latency_p50_ns} in the median", "{latency_maximum_ns} at most"
_KNOWN = ((_MEAN, _MEDIAN, _MOST), (_MEAN, _MEDIAN), (_MEAN, _MOST), (_MEDIAN, _MOST), (_MEAN,), (_MEDIAN,), (_MOST,))
_SENTENCES = tuple(f"delays {{size}} frames by {' and '.join(parts)}, at {{load}}" for parts in _KNOWN)
"""The sentences of imported results, whose source may report any of the three values."""


class Latency(FrameMethod):
    """The latency of each frame size at each load."""

    kind = "latency"
    needs_ceiling = False
    needs_tester_latency = True
    takes_broadcasts = True
    times_one_way = True
    question = "How long does {subject} delay frames, by frame size and load?"

    class Options(Frozen):
        """Options of the bench file. ``at`` names the throughput test, ``of`` which of its rates is 100 %."""

        at: str
        """The name of an earlier throughput test."""
        of: str = NDR
        """Which of its rates is 100 %."""
        loads: tuple[Percent, ...] = Field(default=LOADS_PERCENT, min_length=1)
        """Loads, as shares of that rate."""
        frame_bytes: FrameSizes = RFC_2544_FRAME_BYTES
        """Frame sizes, measured by the earlier test."""
        bins: Bins = BINS_S
        """Upper bounds of the latency bins of the long tail. Frames are counted in each bin and outside each bound;
        the counts are scaled to 100 million where a trial timed at least that many.
        """
        frames: int | None = Field(default=None, ge=1, le=10**12)
        """The number of frames of each sending port after which a trial ends: `100000000` counts the long tail over
        exactly 100 million. Where `duration` is too short for so many, it ends the trial. Without it `duration` alone
        does.
        """
        slowest_of: SlowestOf = ()
        trial: TrialTimes = TrialTimes(duration=120.0)
        """Times of a trial."""

    options: Options

    def points(self) -> int:
        return len(self.options.frame_bytes) * len(self.options.loads)

    def abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.LATENCY} | ({Ability.FRAME_COUNT} if self.options.frames is not None else set()))

    def needs(self) -> str | None:
        return self.options.at

    def deviations(self) -> tuple[str, ...]:
        options, duration = self.options, self.options.trial.duration
        section = "RFC 2544 section 26.2"
        told = {
            f"trial {duration:g} s, {section} asks for 120 s": duration < 120.0,
            f"a trial ends after {options.frames} frames, {section} asks for 120 s": options.frames is not None,
            f"not at the throughput itself, as {section} asks (no load of 100 %)": 100.0 not in options.loads,
        }
        once = (
            f"one trial in which every stamped frame is timed, {section} tags one frame in each of 20 trials, and "
            "RFC 8219 section 7.3.1 takes the median PDV of 20"
        )
        # How long the trial lasts is said above, by this section.
        pauses = options.trial.replace(duration=120.0).deviations()
        runs = (
            "latency runs from handing a frame to the port to taking it from the port, RFC 1242 section 3.8 from its "
            "last bit in to its first bit out"
        )
        return (
            *(text for text, so in told.items() if so),
            *explain_other_rate(options.of, section),
            *pauses,
            *missing_sizes(options.frame_bytes),
            once,
            runs,
        )

    async def results(self, context: Context) -> AsyncIterator[Result]:
        for size in context.sizes(self.options.frame_bytes):
            for percent in self.options.loads:
                result = await self._measure(context, size, percent)
                yield result

    async def _measure(self, context: Context, size: Size, percent: float) -> Result:
        parameters = {**size_parameters(size), "load_of": self.options.of, "load_percent": percent}
        rate = self._throughput(context, size)
        if rate is None:
            reason = f"{self.options.at} found no {self.options.of} at {size_words(parameters)}"
            return self._result(parameters, {"latency_mean_ns": Bounded(value=None, reason_null=reason)}, None, False)
        load = rate * percent / 100.0
        request = self.options.trial.request_of_frames(size, load, Purpose.LATENCY, self.options.frames)
        trial, disturbed = await context.measure(parameters, request)
        own = await context.tester_latency(size)
        values = {
            **lowered_values(size, load, trial),
            "loss_ratio": trial.reading.counts.loss_ratio,
            **_latency_values(trial.reading.latency),
            **by_core_values(trial.reading.latency),
            **slowest_values(trial.reading.latency, self.options.slowest_of),
            "sent_frames": trial.reading.counts.sent,
            **tail_values(trial.reading.latency, self.options.bins),
            "tester_latency_p50_ns": own.percentiles_ns.get("50") if own else None,
        }
        return self._result(parameters, values, trial, disturbed)

    @classmethod
    def main_values(cls, result: Result) -> tuple[str, ...]:
        """Returns the median as the main value: a tail of few frames would require runs without end."""
        return ("latency_p50_ns",)

    @classmethod
    def table(cls) -> ResultTable:
        size = FRAME
        own = Column("tester_latency_p50_ns", "Tester's own", is_minor=True, is_optional=True, name="Tester, p50")
        return ResultTable(
            title="Latency at {load}",
            apart_by=("load_percent", "load_of"),
            caption=(
                "One way, from port to port through the DUT. The tester's own, the median without a DUT, is part of "
                "every number."
            ),
            caption_beside="Each configuration's load is a share of its own rate.",
            basis_of="Loads",
            columns=(
                size,
                Column("load_frames_per_s", "Load", is_minor=True, is_optional=True),
                _LOST,
                *_COLUMNS,
                Column(
                    "latency_uncertainty_ns",
                    "Uncertainty",
                    form="uncertainty",
                    is_minor=True,
                    is_optional=True,
                ),
                own,
                Column("timed_frames", "Frames timed", form="whole", is_minor=True, is_optional=True),
            ),
            statement=Statement(
                lead="At {load}",
                says="half of the {size} frames pass within",
                value="latency_p50_ns",
                also_says="99.9 % within",
                also="latency_p99_9_ns",
                both_say="the median and p99.9 latency of {size} frames are both",
                alone="was measured for latency only",
                beside="loss_percent",
                beside_says="Frames lost in that trial:",
            ),
            sentences=_SENTENCES,
            overview=(
                _LOST.replace(name="lost, latency test", is_main=True, better="lower"),
                *(column for column in _COLUMNS if column.is_main),
                own.replace(head="tester's own p50", is_minor=True),
            ),
            times_frames=True,
            notes=(LOWERED_NOTE, BROADCASTS_NOTE),
        )

    @classmethod
    def table_for(cls, table: ResultTable, results: Sequence[Result], options: Mapping[str, Any]) -> ResultTable:
        """Adds tables of the frames that a neighbour on the DUT's core may have delayed, and of the slowest of several.

        Each where there were any.
        """
        values = frozenset(name for result in results for name in result.values)
        size = table.columns[0]
        return table.replace(further=(*by_core_table(size, values), *slowest_table((size,), values, "frames")))

    @classmethod
    def table_values(cls, result: Result, trials: Mapping[str, Trial]) -> Values:
        """Returns the share lost in percent."""
        ratio = number_of(result.values.get("loss_ratio"))
        return {"loss_percent": None if ratio is None else 100.0 * ratio}

    @classmethod
    def imports(cls) -> ImportTable:
        """Returns the columns for minimum, average, maximum, percentiles and long-tail bins of each size and load."""
        return ImportTable(
            columns=(SIZE, LOAD, LOAD_RATE, *_IMPORTED, LOSS, *TAIL_COLUMNS),
            any_of=tuple(column.value for column in (*_IMPORTED, *TAIL_COLUMNS[1:])),
            rising=(
                ("latency_minimum_ns", *_PERCENTILE_NAMES.values(), "latency_maximum_ns"),
                ("latency_minimum_ns", "latency_mean_ns", "latency_maximum_ns"),
            ),
            caption="As the source defines latency.",
        )

    @classmethod
    def from_import(cls, parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
        loss_percent = values.pop("loss_percent", None)
        loss_ratio = loss_percent / 100.0 if isinstance(loss_percent, int | float) else None
        return parameters, {**values, "loss_ratio": loss_ratio, **scale_tail(values)}

    def _throughput(self, context: Context, size: Size) -> float | None:
        """Returns the rate that is 100 %."""
        key = self.options.of.lower()
        for result in context.results_of(self.options.at):
            if label_of(result.parameters) == size_label(size):
                rate = result.values.get(f"{key}{RATE}")
                return rate.value if isinstance(rate, Bounded) else None
        return None

    def _result(
        self,
        parameters: dict[str, Any],
        values: dict[str, Bounded | float | int | str | None],
        trial: Trial | None,
        disturbed: bool,
    ) -> Result:
        return Result(
            id=f"{self.name}/{label_of(parameters)}/{parameters['load_percent']:g}",
            method=self.kind,
            scope="per port",
            parameters=parameters,
            values=values,
            verdict=_verdict(trial, disturbed),
            disturbances=trial.verdict.texts if trial else (),
            trials=(trial.id,) if trial else (),
        )


def _verdict(trial: Trial | None, disturbed: bool) -> ResultVerdict:
    if trial is None:
        return ResultVerdict.INCOMPLETE
    return ResultVerdict.DISTURBED if disturbed else ResultVerdict.VALID


def _latency_values(latency: LatencyReading | None) -> dict[str, Bounded | float | int | str | None]:
    if latency is None:
        return {"latency_mean_ns": Bounded(value=None, reason_null="no frame came back")}
    percentiles = {f"latency_p{name.replace('.', '_')}_ns": latency.percentiles_ns.get(name) for name in PERCENTILES}
    tail = latency.percentiles_ns.get("99.9")
    return {
        "latency_minimum_ns": latency.minimum_ns,
        "latency_mean_ns": latency.mean_ns,
        **percentiles,
        "latency_maximum_ns": latency.maximum_ns,
        "latency_uncertainty_ns": latency.uncertainty_ns,
        "latency_resolution_ns": latency.resolution_ns,
        "latency_source": latency.source,
        "latency_received_by": latency.received_by,
        "latency_sample_of_frames": latency.sample_of,
        "latency_negative_frames": latency.negative,
        "pdv_ns": None if tail is None else tail - latency.minimum_ns,
    }
