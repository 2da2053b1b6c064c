"""Load sweep: the share of frames returned intact at each of a list of loads, for each frame size.

The measurement of the published report on a four-port card (SmartBits, 2000): loads from 100 to 1 % of the line rate,
64 and 1000 bytes, in each mode of the link, on two and on four ports. Steps, for each frame size and load: one judged
trial. A load that tester or line do not carry is not measured, and the result says why. Where many ports send to one,
loads may be above what that one carries (overload, RFC 2285 section 3.5.4). Verified: the payload of every frame that
comes back, in place of the sniffer beside the published measurement.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSize, Size, size_label, size_parameters
from nicbench.core.quantity import LoadPercent
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
from nicbench.methods._loads import LINE_RATE, FullLoad, FullRate, full_rate, full_rate_words, link_words
from nicbench.methods._results import COLUMNS, HOW_IT_IS_CHECKED, returned_values, values_not_offered, verdict_of
from nicbench.methods._trial_times import TrialTimes
from nicbench.methods.base import Context, FrameMethod, Values

LOADS_PERCENT = (100.0, 75.0, 50.0, 45.0, 42.0, 35.0, 25.0, 20.0, 10.0, 1.0)
FRAME_BYTES = (64, 1000)

_SIZE = Column(value="size", head="Frame", unit="bytes", form="text")
_LOAD = Column(value="load_percent", head="Load", unit="% of {load_of}", form="trimmed")
_MODE = Column(value="mode", head="Link", form="text")
_PORTS = Column(value="ports", head="Ports", unit="ports", form="whole")
_RETURNED = Column(
    value="returned_percent", head="Returned intact", unit="%", form="of_frames", is_main=True, better="higher"
)


class LoadSweep(FrameMethod):
    """The share of frames returned intact at each load."""

    kind: ClassVar[str] = "load-sweep"
    question: ClassVar[str] = "What share of the frames comes back intact from {subject}, by load?"

    class Options(Frozen):
        """Options of the bench file; defaults are those of the published measurement."""

        frame_bytes: tuple[FrameSize, ...] = Field(default=FRAME_BYTES, min_length=1)
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

    def estimate_s(self) -> float:
        return self.options.trial.estimate_s(self.points())

    def deviations(self) -> tuple[str, ...]:
        of = self.options.of
        other = f"100 % is {full_rate_words(of)}, the published measurement takes the line rate"
        return (*self.options.trial.deviations(), *(() if of == LINE_RATE else (other,)))

    async def run(self, context: Context) -> tuple[Result, ...]:
        results = []
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
                context.publish(result)
                results.append(result)
        return tuple(results)

    def _result(self, parameters: dict[str, Any], full: FullLoad, trial: Trial | None, disturbed: bool) -> Result:
        """Returns the result of a load; without values if there is no trial, or the tester sent less than this load."""
        percent = parameters["load_percent"]
        offered = trial if full.carries(percent) else None
        return Result(
            id=f"{self.name}/{parameters['size']}/{percent:g}",
            method=self.kind,
            scope="per port",
            parameters=parameters,
            values=returned_values(offered, full) if offered else values_not_offered(percent, full),
            verdict=verdict_of(offered, disturbed),
            disturbances=tuple(found.text for found in offered.verdict.findings) if offered else (full.why_not_more,),
            trials=(trial.id,) if trial else (),
        )

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Load sweep",
            caption=f"The share of the offered frames that came back intact. {HOW_IT_IS_CHECKED}",
            columns=(
                *(_SIZE, _LOAD, _MODE, _PORTS.replace(unit=None), _RETURNED),
                *(column for column in COLUMNS if column.value != _RETURNED.value),
            ),
            sentences=("returns {returned_percent} of {size} frames intact at {load_percent}",),
            clean_sentence="returns every {size} frame intact at the loads tried up to {load_percent}",
            grid=Grid(rows=_LOAD, across=(_MODE, _PORTS), cell=_RETURNED, each=_SIZE),
            curve=Curve(
                x=_LOAD,
                y=_RETURNED,
                lines=(_SIZE, _MODE, _PORTS),
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
                ImportColumn(value="mode", name="mode", quantity="text", also=("link mode",), tells_apart=True),
                ImportColumn(value="duplex", name="duplex", quantity="text", tells_apart=True),
                ImportColumn(value="ports", name="ports", quantity="count", tells_apart=True),
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
