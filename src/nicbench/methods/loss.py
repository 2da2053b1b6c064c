"""The share of frames that the DUT returns: at falling loads (RFC 2544 section 26.3), and at a list of loads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSizes, Size, size_label, size_parameters
from nicbench.core.frame_size import words_of as size_words
from nicbench.core.quantity import LoadPercent, Percent
from nicbench.core.result import Result
from nicbench.core.table import Column, Curve, Grid, ImportColumn, ImportTable, ResultTable
from nicbench.core.trial import Purpose, Trial
from nicbench.methods._imports import (
    COUNTED_SHARES,
    COUNTED_SUMS,
    COUNTS,
    COUNTS_RISE,
    LOAD,
    LOAD_RATE,
    LOSS,
    RETURNED_SHARE,
    SIZE,
)
from nicbench.methods._loads import (
    LINE_RATE,
    RFC_2544_FRAME_BYTES,
    FullLoad,
    FullRate,
    TrialTimes,
    full_rate,
    full_rate_words,
    link_words,
    missing_sizes,
)
from nicbench.methods._results import (
    BROADCASTS_NOTE,
    COLUMNS,
    HOW_IT_IS_CHECKED,
    result_at,
    returned_values,
    values_not_offered,
    verdict_of,
    without_tester,
)
from nicbench.methods.base import FRAME, Context, FrameMethod, Values

SMALLEST_STEP_PERCENT, LARGEST_STEP_PERCENT = 0.1, 10.0
TRIALS_WITHOUT_LOSS = 2
# Closer than that two loads are one: only rounding lies between them.
_CLOSE_PERCENT = 1e-6

_LOAD = Column("load_percent", "Load", unit="% of {load_of}", form="trimmed")
_LOSS = Column("loss_percent", "Frame loss rate", unit="%", form="of_frames", is_main=True, better="lower")


def _step(percent: float) -> float:
    """Validates the step of the load: at most 10 %, a finer one is encouraged (RFC 2544 section 26.3)."""
    if not SMALLEST_STEP_PERCENT <= percent <= LARGEST_STEP_PERCENT:
        why = f"the load cannot fall by {percent:g} % each time"
        accepted = f"{SMALLEST_STEP_PERCENT:g} % to {LARGEST_STEP_PERCENT:g} %, which RFC 2544 section 26.3 allows"
        raise PydanticCustomError("quantity", "{why}", {"why": why, "accepted": accepted})
    return percent


Step = Annotated[Percent, AfterValidator(_step)]


class FrameLoss(FrameMethod):
    """The frame loss rate of each frame size at falling loads."""

    kind = "frame-loss"
    takes_broadcasts = True
    question = "What share of the frames does {subject} lose as the load falls, by frame size?"
    steps = """
    Frame loss rate (RFC 2544 section 26.3): the share of frames that the DUT does not return, at falling loads.
    Steps, for each frame size: a judged trial at 100 % of the line rate (or of a given rate, or, where the tester
    cannot send that, at the most it can), then in steps of at most 10 % downwards, until two successive trials lose
    nothing. The loss rate is (offered - returned) / offered. Verified: every frame by its signature and its
    payload.
    """

    class Options(Frozen):
        """Options of the bench file. ``of`` is what 100 % is, ``load_step`` how far the load falls each time."""

        frame_bytes: FrameSizes = RFC_2544_FRAME_BYTES
        """Frame sizes, and mixes by name."""
        of: FullRate = LINE_RATE
        """What 100 % is: the line rate; `highest`, the most that tester and line carry (1 % below the tester's
        ceiling); or a frame rate of each port, `800 kpps`.
        """
        load_step: Step = LARGEST_STEP_PERCENT
        """How far the load falls each time, of that 100 %."""
        trial: TrialTimes = TrialTimes()
        """Times of a trial."""

    options: Options

    def points(self) -> int:
        return len(self.options.frame_bytes) * len(list(falling_loads(100.0, self.options.load_step)))

    def deviations(self) -> tuple[str, ...]:
        of = self.options.of
        other = f"100 % is {full_rate_words(of)}, RFC 2544 section 26.3 begins at the line rate"
        return (
            *self.options.trial.deviations(),
            *missing_sizes(self.options.frame_bytes),
            *(() if of == LINE_RATE else (other,)),
        )

    async def results(self, context: Context) -> AsyncIterator[Result]:
        for size in context.sizes(self.options.frame_bytes):
            full = await full_rate(context, size, self.options.of)
            if full.is_sent_nothing:
                parameters = {"load_of": full.words, "load_percent": 100.0}
                yield without_tester(self, size, full, "returned_percent", parameters)
                continue
            async for result in self._measure_falling(context, size, full):
                yield result

    async def _measure_falling(self, context: Context, size: Size, full: FullLoad) -> AsyncIterator[Result]:
        """Measures falling loads until two successive trials lose nothing; a disturbed trial does not count."""
        without_loss, is_first = 0, True
        for percent in falling_loads(full.highest_percent, self.options.load_step):
            if not full.carries(percent):
                continue
            load = full.load_frames_per_s(percent)
            parameters = {**size_parameters(size), "load_of": full.words, "load_percent": percent}
            request = self.options.trial.request(size, load, Purpose.LOSS)
            trial, disturbed = await context.measure(parameters, request)
            full = full.lower_to_sent(load, trial)
            lossless = not disturbed and trial.reading.counts.failed == 0
            without_loss = without_loss + 1 if lossless else 0
            ended = without_loss == TRIALS_WITHOUT_LOSS
            lowest = percent <= self.options.load_step + _CLOSE_PERCENT
            notes = {
                "start": full.why_not_more if is_first and full.highest_percent < 100.0 else None,
                "end": "no two successive undisturbed trials lost nothing" if lowest and not ended else None,
            }
            yield self._result(size, full, min(percent, full.highest_percent), trial, disturbed, notes)
            is_first = False
            if ended:
                break

    def _result(
        self, size: Size, full: FullLoad, percent: float, trial: Trial, disturbed: bool, notes: dict[str, str | None]
    ) -> Result:
        return result_at(
            self,
            size,
            {
                **returned_values(trial, full),
                **{name: f"at {size_words(size)} {text}" if text else None for name, text in notes.items()},
            },
            verdict_of(trial, disturbed),
            trials=(trial.id,),
            disturbances=trial.verdict.texts,
            parameters={"load_of": full.words, "load_percent": float(f"{percent:g}")},
            point=f"{percent:g}",
        )

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Frame loss rate",
            caption=(
                f"RFC 2544 section 26.3: (offered - returned) / offered, at loads that fall until "
                f"{TRIALS_WITHOUT_LOSS} successive trials lose nothing; lower loads were not tried. What came after "
                f"the drain is late and not lost. {HOW_IT_IS_CHECKED}"
            ),
            columns=(FRAME, _LOAD, _LOSS, *(column for column in COLUMNS if column.value != _LOSS.value)),
            sentences=("loses {loss_percent} of {size} frames at {load_percent}",),
            clean_sentence="loses no {size} frame at the loads tried up to {load_percent}",
            notes=(("start", "Highest load"), ("end", "Lowest load"), BROADCASTS_NOTE),
            grid=Grid(rows=_LOAD, across=(FRAME,), cell=_LOSS),
            curve=Curve(
                x=_LOAD,
                y=_LOSS,
                lines=(FRAME,),
                clean=0.0,
                caption="RFC 2544 section 26.3: the frame loss rate against the load, both from 0 to 100 %.",
            ),
        )

    @classmethod
    def imports(cls) -> ImportTable:
        return ImportTable(
            columns=(SIZE, LOAD, LOSS, RETURNED_SHARE, *COUNTS, LOAD_RATE),
            any_of=(LOSS.value, RETURNED_SHARE.value),
            rising=COUNTS_RISE,
            complements=((LOSS.value, RETURNED_SHARE.value),),
            percentages=COUNTED_SHARES,
            sums=COUNTED_SUMS,
            load_of=full_rate_words(LINE_RATE),
            caption="The share of the offered frames that did not come back, at each load.",
        )


def falling_loads(highest_percent: float, step_percent: float) -> Iterator[float]:
    """Yields loads in percent: the highest, then the lower multiples of the step below 100 % and above 0."""
    yield highest_percent
    number = 1
    while (percent := 100.0 - number * step_percent) > _CLOSE_PERCENT:
        if percent < highest_percent - _CLOSE_PERCENT:
            yield percent
        number += 1


LOADS_PERCENT = (100.0, 75.0, 50.0, 45.0, 42.0, 35.0, 25.0, 20.0, 10.0, 1.0)
FRAME_BYTES = (64, 1000)

_MODE = Column("mode", "Link", form="text")
_PORTS = Column("ports", "Ports", unit="ports", form="whole")
_RETURNED = Column("returned_percent", "Returned intact", unit="%", form="of_frames", is_main=True, better="higher")


class LoadSweep(FrameMethod):
    """The share of frames returned intact at each load."""

    kind = "load-sweep"
    question = "What share of the frames comes back intact from {subject}, by load?"
    steps = """
    Load sweep: the share of frames returned intact at each of a list of loads, for each frame size.
    The measurement of the published report on a four-port card (SmartBits, 2000): loads from 100 to 1 % of the line
    rate, 64 and 1000 bytes, in each mode of the link, on two and on four ports. Steps, for each frame size and
    load: one judged trial. A load that tester or line do not carry is not measured, and the result says why. Where
    many ports send to one, loads may be above what that one carries (overload, RFC 2285 section 3.5.4). Verified:
    the payload of every frame that comes back, in place of the sniffer of the published measurement.
    """

    class Options(Frozen):
        """Options of the bench file; defaults are those of the published measurement."""

        frame_bytes: FrameSizes = FRAME_BYTES
        """Frame sizes, and mixes by name."""
        of: FullRate = LINE_RATE
        """What 100 % is, as of `frame-loss`."""
        loads: tuple[LoadPercent, ...] = Field(default=LOADS_PERCENT, min_length=1)
        """Shares of it; above 100 % where several ports send to one."""
        trial: TrialTimes = TrialTimes()
        """Times of a trial."""

    options: Options

    def points(self) -> int:
        return len(self.options.frame_bytes) * len(self.options.loads)

    def deviations(self) -> tuple[str, ...]:
        of = self.options.of
        other = f"100 % is {full_rate_words(of)}, the published measurement takes the line rate"
        return (*self.options.trial.deviations(), *(() if of == LINE_RATE else (other,)))

    async def results(self, context: Context) -> AsyncIterator[Result]:
        for size in context.sizes(self.options.frame_bytes):
            full = await full_rate(context, size, self.options.of, most_line_rates=context.most_line_rates)
            for percent in self.options.loads:
                load = full.load_frames_per_s(percent)
                parameters = _parameters(context, size, full, percent)
                trial, disturbed = None, False
                if full.carries(percent):
                    request = self.options.trial.request(size, load, Purpose.LOSS)
                    trial, disturbed = await context.measure(parameters, request)
                    full = full.lower_to_sent(load, trial)
                result = self._result(parameters, full, trial, disturbed)
                yield result

    def _result(self, parameters: dict[str, Any], full: FullLoad, trial: Trial | None, disturbed: bool) -> Result:
        """Returns the result of a load; without values if the trial is missing or offered less."""
        percent = parameters["load_percent"]
        offered = trial if full.carries(percent) else None
        return Result(
            id=f"{self.name}/{parameters['size']}/{percent:g}",
            method=self.kind,
            scope="per port",
            parameters=parameters,
            values=returned_values(offered, full) if offered else values_not_offered(percent, full),
            verdict=verdict_of(offered, disturbed),
            disturbances=offered.verdict.texts if offered else (full.why_not_more,),
            trials=(trial.id,) if trial else (),
        )

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Load sweep",
            caption=(
                "The share of the offered frames that came back intact. Loads are those of each port, all of which "
                f"send at once. {HOW_IT_IS_CHECKED}"
            ),
            has_basis=False,  # two and four ports stand in one table, as published
            columns=(
                *(FRAME, _LOAD, _MODE, _PORTS.replace(unit=None), _RETURNED),
                *(column for column in COLUMNS if column.value != _RETURNED.value),
            ),
            sentences=("returns {returned_percent} of {size} frames intact at {load_percent}",),
            clean_sentence="returns every {size} frame intact at the loads tried up to {load_percent}",
            grid=Grid(rows=_LOAD, across=(_MODE, _PORTS), cell=_RETURNED, each=FRAME),
            curve=Curve(
                x=_LOAD,
                y=_RETURNED,
                lines=(FRAME, _MODE, _PORTS),
                clean=100.0,
                caption="The share of frames that came back intact, against the load.",
            ),
        )

    @classmethod
    def imports(cls) -> ImportTable:
        """Returns the columns of loads by mode and ports; the mode may be given as the link's speed and duplex."""
        return ImportTable(
            columns=(
                *(SIZE, LOAD, RETURNED_SHARE, LOSS),
                ImportColumn("mode", "mode", "text", also=("link mode",), tells_apart=True),
                ImportColumn("duplex", "duplex", "text", tells_apart=True),
                ImportColumn("ports", "ports", "count", tells_apart=True),
                *(*COUNTS, LOAD_RATE),
            ),
            any_of=(RETURNED_SHARE.value, LOSS.value),
            rising=COUNTS_RISE,
            complements=((RETURNED_SHARE.value, LOSS.value),),
            percentages=COUNTED_SHARES,
            sums=COUNTED_SUMS,
            load_of=full_rate_words(LINE_RATE),
            overload=True,
            caption="The share of the offered frames that came back intact.",
        )

    @classmethod
    def from_import(cls, parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
        duplex = parameters.get("duplex")
        said = (parameters.get("link"), f"{duplex} duplex" if duplex else None)
        mode = parameters.get("mode") or ", ".join(text for text in said if text) or "link not named"
        return {**parameters, "mode": mode}, values


def _parameters(context: Context, size: Size, full: FullLoad, percent: float) -> dict[str, Any]:
    return {
        **size_parameters(size),
        "size": size_label(size),
        "load_of": full.words,
        "load_percent": percent,
        "mode": link_words(context, size),
        "ports": context.ports,
    }
