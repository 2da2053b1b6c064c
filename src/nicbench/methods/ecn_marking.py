"""ECN marking (RFC 3168): from which load the DUT marks frames, how many of them, and whether it keeps to the rules.

Steps, for each frame size: a trial at each load with frames of one ECN codepoint, then with those of the next, so that
what becomes of one is not divided by chance among all. Of ECT(0) and ECT(1) the share that arrives with CE is counted
by stream and by flow. Between the highest load without a mark and the lowest with one further loads halve the gap.
Rules (RFC 3168 section 5; RFC 8311): no frame that is not ECT is marked; CE stays; an ECT codepoint becomes CE or
stays; the DSCP stays. Loss is reported too: a DUT that marks need not drop ECT frames at the same load. Verified: every
frame by its signature and its payload, and the traffic class of every frame that arrives.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSizes, Size, size_parameters
from nicbench.core.frozen import frozen
from nicbench.core.headers import Codepoint
from nicbench.core.quantity import Ratio
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.table import Column, Curve, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Purpose, StreamReading, Trial
from nicbench.core.units import format_rate
from nicbench.methods._loads import HIGHEST, FullLoad, FullRate, TrialTimes, full_rate, full_rate_words
from nicbench.methods._results import bounded_unless, bounds_between, result_at, verdict_of
from nicbench.methods.base import FRAME, Context, FrameMethod, Values
from nicbench.methods.pauses import judged
from nicbench.stats.latency import merge

Name = Literal["ect-0", "ect-1", "not-ect", "ce"]
_CODEPOINTS: Final = {
    "ect-0": Codepoint.ECT_0,
    "ect-1": Codepoint.ECT_1,
    "not-ect": Codepoint.NOT_ECT,
    "ce": Codepoint.CE,
}
_LOADS, _ONSET, _RULES = "loads", "onset", "rules"
_ALL: Final = "all"
_AS_ASKED: Final = "as RFC 3168"
_SENT_AS = Column("codepoint", "Sent as", form="text")
_LOAD = Column("load_percent", "Load", unit="% of {load_of}", form="trimmed")
_MARKED = Column("marked_percent", "Marked", unit="%", form="of_frames")
_FROM = Column("unmarked_frames_per_s", "Most without marks", is_main=True, better="higher", name="load without marks")


@frozen
class Marks:
    """What became of the codepoints of frames that were sent with one of them."""

    sent_as: Codepoint
    counts: Counts
    arrived: dict[Codepoint, int]
    other_dscp: int
    flows: int
    marked_flows: int

    @property
    def marked(self) -> int:
        """Frames that arrived with CE and were sent with another codepoint."""
        return 0 if self.sent_as is Codepoint.CE else self.arrived.get(Codepoint.CE, 0)

    @property
    def counted(self) -> int:
        """Frames that arrived with a traffic class."""
        return sum(self.arrived.values())

    def faults(self) -> Iterator[str]:
        """Yields the rules that were broken, in words with the number of frames."""
        allowed = {self.sent_as} | ({Codepoint.CE} if self.sent_as is not Codepoint.NOT_ECT else set())
        if self.sent_as is Codepoint.NOT_ECT and (marked := self.marked):
            yield f"marks {marked} frames that are Not-ECT"
            allowed = allowed | {Codepoint.CE}
        for codepoint, frames in sorted(self.arrived.items()):
            if codepoint not in allowed:
                verb = "clears the CE of" if self.sent_as is Codepoint.CE else "alters"
                yield f"{verb} {frames} frames, to {codepoint.words}"
        if self.other_dscp:
            yield f"alters the DSCP of {self.other_dscp} frames"


@dataclass(slots=True)
class _Onset:
    """The loads of one codepoint that were tried, and whether frames were marked; ``sound``: by undisturbed trials."""

    unmarked: float = 0.0
    marked: float | None = None
    highest: float = 0.0
    sound: set[float] = field(default_factory=set)
    trials: list[str] = field(default_factory=list)
    disturbances: list[str] = field(default_factory=list)

    def note(self, load: float, trial: Trial, disturbed: bool, is_marked: bool) -> None:
        self.trials.append(trial.id)
        self.highest = max(self.highest, load)
        if disturbed:
            self.disturbances.extend(trial.verdict.texts)
        if is_marked:
            self.sound |= set() if disturbed else {load}
            self.marked = load if self.marked is None else min(self.marked, load)
        elif self.marked is None or load < self.marked:
            self.unmarked = max(self.unmarked, load)
        if self.marked is not None and self.unmarked >= self.marked:
            self.unmarked = 0.0  # marks came at a lower load than one without: no load is known to be without

    def bounded(self, full: FullLoad) -> Bounded:
        if not self.trials:
            return Bounded(value=None, reason_null="no frame arrived at any load")
        if self.marked is None:
            return Bounded(value=self.highest, lower=self.highest, limited_by=full.limit_of(self.highest))
        return bounds_between(self.unmarked, self.marked, "frames were marked at the lowest load already")

    def limit(self, codepoint: Codepoint) -> str | None:
        if self.marked is not None:
            return None
        if not self.trials:
            return f"no {codepoint.words} frame arrived at any load"
        return f"no {codepoint.words} frame was marked at any load up to {format_rate(self.highest)}"


class EcnMarking(FrameMethod):
    """Marks against load, by codepoint."""

    gives_points = False
    kind = "ecn-marking"
    question = "From which load does {subject} mark frames (ECN), how many, and by the rules?"

    class Options(Frozen):
        """Options of the bench file."""

        frame_bytes: FrameSizes = (512,)
        """Frame sizes, and mixes by name."""
        rate: FullRate = HIGHEST
        """What a load of 100 % is: `line_rate`, `highest`, or a frame rate of each port."""
        loads: tuple[Ratio, ...] = Field(default=(0.5, 0.8, 0.9, 1.0), min_length=1, max_length=100)
        """Loads, as shares of `rate`; they should reach beyond what the DUT's output carries."""
        codepoints: tuple[Name, ...] = Field(default=("ect-0", "ect-1", "not-ect", "ce"), min_length=1)
        """The codepoints that frames are sent with, one after another."""
        refinements: int = Field(default=3, ge=0, le=20)
        """The number of times that the gap between the highest load without marks and the lowest with some is halved,
        for `ect-0` and `ect-1`.
        """
        trial: TrialTimes = TrialTimes()
        """Times of a trial."""

    options: Options

    def points(self) -> int:
        own = self.options
        ect = sum(name.startswith("ect") for name in own.codepoints)
        return len(own.frame_bytes) * (len(own.loads) * len(own.codepoints) + own.refinements * ect)

    def abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.FIELDS, Ability.TRAFFIC_CLASSES})

    async def results(self, context: Context) -> AsyncIterator[Result]:
        for size in context.sizes(self.options.frame_bytes):
            full = await full_rate(context, size, self.options.rate)
            made = []
            read: dict[Codepoint, list[StreamReading]] = {}
            for name in dict.fromkeys(self.options.codepoints):
                of_codepoint = read.setdefault(_CODEPOINTS[name], [])
                made += await self._measure(context, size, full, name, of_codepoint)
            for result in (*made, self._rules(size, read, made)):
                yield result

    async def _measure(
        self, context: Context, size: Size, full: FullLoad, name: Name, read: list[StreamReading]
    ) -> list[Result]:
        """Returns the results of each load of a codepoint, and for ECT the load from which frames are marked.

        What was ``read`` is appended.
        """
        codepoint, onset, results = _CODEPOINTS[name], _Onset(), list[Result]()

        async def at(share: float) -> None:
            nonlocal full
            load = full.load_frames_per_s(min(100.0 * share, full.highest_percent))
            request = self.options.trial.request(size, load, Purpose.LOSS)
            request = request.replace(codepoint=codepoint)
            point = {**size_parameters(size), "codepoint": name, "load_percent": float(f"{100 * share:g}")}
            trial, disturbed = await context.measure(point, request)
            every = marks_of(trial.reading.streams, codepoint)
            read.extend(trial.reading.streams)
            full = full.lower_to_sent(load, trial)
            if every.counted:
                onset.note(trial.request.sent_frames_per_s or load, trial, disturbed, every.marked > 0)
            results.extend(self._of_load(size, full, share, (name, codepoint), trial, disturbed))

        shares = sorted(dict.fromkeys(self.options.loads))
        for share in shares:
            await at(share)
        if not name.startswith("ect"):
            return results
        for _ in range(self.options.refinements):
            if onset.marked is None or not onset.unmarked:
                break
            await at((onset.unmarked + onset.marked) / 2.0 / full.load_frames_per_s(100.0))
        results.sort(key=lambda result: float(result.parameters["load_percent"]))
        values: Values = {
            _FROM.value: bounded_unless(onset.marked not in onset.sound, onset.bounded(full)),
            "marked_from_frames_per_s": onset.marked if onset.marked in onset.sound else None,
            "limit": onset.limit(codepoint),
        }
        verdict = ResultVerdict.DISTURBED if onset.disturbances else ResultVerdict.VALID
        last = result_at(
            self,
            size,
            values,
            verdict,
            trials=onset.trials,
            disturbances=onset.disturbances,
            parameters={"part": _ONSET, "codepoint": codepoint.words},
            point=f"{name}/onset",
        )
        return [*results, last]

    def _rules(self, size: Size, read: Mapping[Codepoint, Sequence[StreamReading]], made: Sequence[Result]) -> Result:
        """Returns the faults of all trials: which rules were broken, and how often."""
        seen = [marks_of(streams, codepoint) for codepoint, streams in read.items()]
        faults = [fault for marks in seen for fault in marks.faults()]
        unseen = [f"no {marks.sent_as.words} frame arrived" for marks in seen if not marks.counted]
        disturbed = any(one.verdict is not ResultVerdict.VALID for one in made)
        return result_at(
            self,
            size,
            {
                "codepoints": ", ".join(codepoint.words for codepoint in read),
                "arrived_frames": sum(marks.counted for marks in seen),
                "marked_frames": sum(marks.marked for marks in seen),
                **judged(faults, _AS_ASKED, () if faults else unseen),
            },
            ResultVerdict.DISTURBED if disturbed else ResultVerdict.VALID,
            trials=dict.fromkeys(trial for one in made for trial in one.trials),
            disturbances=(text for one in made for text in one.disturbances),
            parameters={"part": _RULES},
            point=_RULES,
        )

    def _of_load(
        self,
        size: Size,
        full: FullLoad,
        share: float,
        sent_as: tuple[Name, Codepoint],
        trial: Trial,
        disturbed: bool,
    ) -> Iterator[Result]:
        """Yields the result of all streams, and of each where the traffic has several."""
        name, codepoint = sent_as
        named = {stream.name.partition(" ")[2] for stream in trial.reading.streams}
        for stream in (_ALL, *sorted(named if len(named) > 1 else ())):
            of = [one for one in trial.reading.streams if stream in (_ALL, one.name.partition(" ")[2])]
            percent = float(f"{100 * share:.5g}")
            yield result_at(
                self,
                size,
                {"load_frames_per_s": trial.request.sent_frames_per_s, **values_of(of, codepoint)},
                verdict_of(trial, disturbed),
                trials=(trial.id,),
                disturbances=trial.verdict.texts,
                parameters={
                    "part": _LOADS,
                    "codepoint": codepoint.words,
                    "load_of": full_rate_words(self.options.rate),
                    "load_percent": percent,
                    "stream": stream,
                },
                point=f"{name}/{percent:g}/{stream}",
            )

    @classmethod
    def tables(cls) -> tuple[ResultTable, ...]:
        return (
            ResultTable(
                title="ECN marks: from which load",
                part=_ONSET,
                caption=(
                    "The highest load at which no frame arrived marked (CE), and the lowest with a mark, of frames of "
                    "senders that know ECN."
                ),
                columns=(
                    FRAME,
                    _SENT_AS,
                    _FROM,
                    _FROM.replace(head="Interval", aspect="interval", is_main=False),
                    Column("marked_from_frames_per_s", "Least with marks"),
                ),
                sentences=(
                    "marks nothing: {limit}",
                    "begins to mark {codepoint} frames at {unmarked_frames_per_s}",
                ),
                notes=(("limit", "Limit"),),
            ),
            ResultTable(
                title="ECN marks: by the rules",
                part=_RULES,
                caption=(
                    "RFC 3168 section 5, of all trials together: no frame that is not ECT is marked, CE stays CE, ECT "
                    "becomes CE or stays, the DSCP stays."
                ),
                columns=(
                    FRAME,
                    Column("codepoints", "Sent as", form="text"),
                    Column("arrived_frames", "Arrived", unit="frames", form="whole"),
                    Column("marked_frames", "Marked", unit="frames", form="whole"),
                    Column("handling", "Handled", form="text"),
                ),
                sentences=("handles ECN: {handling}",),
            ),
            ResultTable(
                title="ECN marks: by load",
                part=_LOADS,
                caption=(
                    "RFC 3168 section 5: frames of each codepoint at each load. Marked: of those that arrived, with CE "
                    "in place of the codepoint that they were sent with. Only ECT frames may be marked; CE stays CE."
                ),
                columns=(
                    FRAME,
                    _SENT_AS,
                    _LOAD,
                    Column("load_frames_per_s", "Load"),
                    Column("stream", "Stream", form="text"),
                    _MARKED,
                    Column("lost_percent", "Lost", unit="%", form="of_frames"),
                    Column("marked_frames", "Marked", unit="frames", form="whole"),
                    Column("flows_with_marks", "In flows", form="text"),
                    Column("latency_p50_ns", "Median latency"),
                    Column("latency_p99_ns", "p99"),
                    Column("handling", "Handled", form="text"),
                ),
                sentences=("marks {marked_percent} of {codepoint} frames at {load_percent}",),
                curve=Curve(
                    x=_LOAD,
                    y=_MARKED,
                    lines=(FRAME, _SENT_AS),
                    caption="The share of frames that arrived marked against the load, both in percent.",
                ),
            ),
        )


def marks_of(streams: Sequence[StreamReading], sent_as: Codepoint) -> Marks:
    """Returns what became of the frames of these streams; those without a count of classes have none."""
    arrived: dict[Codepoint, int] = {}
    other_dscp = flows = marked_flows = 0
    for stream in streams:
        classes = stream.traffic_classes
        if classes is None:
            continue
        flows += len(classes.marked_flows)
        marked_flows += sum(1 for frames in classes.marked_flows if frames)
        for value, frames in classes.received:
            codepoint = Codepoint(value & Codepoint.CE)
            arrived[codepoint] = arrived.get(codepoint, 0) + frames
            if classes.sent is not None and value >> 2 != classes.sent >> 2:
                other_dscp += frames
    counts = Counts.sum_of(stream.counts for stream in streams)
    return Marks(sent_as, counts, arrived, other_dscp, flows, marked_flows)


def values_of(streams: Sequence[StreamReading], sent_as: Codepoint) -> Values:
    """Returns counts, shares in percent, latencies in ns, and which rules were broken."""
    marks = marks_of(streams, sent_as)
    latency = merge([stream.latency for stream in streams if stream.latency is not None])
    has_flows = marks.flows > 0 and sent_as is not Codepoint.CE
    percentiles = {} if latency is None else latency.percentiles_ns
    return {
        "sent_frames": marks.counts.sent,
        "arrived_frames": marks.counted,
        "marked_frames": marks.marked,
        "marked_percent": 100.0 * marks.marked / marks.counted if marks.counted else None,
        "lost_percent": 100.0 * marks.counts.loss_ratio,
        "flows_with_marks": f"{marks.marked_flows} of {marks.flows}" if has_flows else None,
        "latency_p50_ns": percentiles.get("50"),
        "latency_p99_ns": percentiles.get("99"),
        "handling": ", ".join(marks.faults()) or (_AS_ASKED if marks.counted else "no frame arrived"),
    }
