"""Maximum forwarding rate (RFC 2889 section 5.6): the most frames a second the DUT forwards at any load, lost or not.

Steps, for each frame size: from the throughput, which an earlier test found, the load rises in equal steps to the
maximum offered load, which is what tester and line carry; at each load one judged trial counts the frames that came
back in a second. The highest of these rates is the maximum forwarding rate (RFC 2285 section 3.6.3), and the last is
the forwarding rate at the maximum offered load (section 3.6.2): a DUT under pressure may forward less. Verified: each
frame is recognised by its signature, its payload compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSizes, Size, size_parameters
from nicbench.core.quantity import Percent
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.table import Column, Plot, ResultTable
from nicbench.core.trial import Purpose
from nicbench.methods._loads import (
    LOWERED_NOTE,
    NDR,
    RFC_2544_FRAME_BYTES,
    TrialTimes,
    earlier_rate,
    lowered_values,
    missing_sizes,
)
from nicbench.methods._results import PER_PORT, SeveralTrials, result_at
from nicbench.methods.base import FRAME, Context, FrameMethod, Values

# Of the line rate; RFC 2889 section 5.6 leaves the step to the tester: a smaller one takes more trials.
STEP_PERCENT = 1.0
# Loads that differ by less, relatively, are the same load: only rounding lies between them.
_CLOSE = 1e-6

_MAXIMUM = Column(
    "maximum_forwarding_rate_frames_per_s",
    "Maximum forwarding rate",
    is_main=True,
    better="higher",
    adjective="fast",
)
_AT_MAXIMUM_LOAD = Column("rate_at_maximum_load_frames_per_s", "Rate at the maximum offered load")
_FORWARDS = "forwards up to {maximum_forwarding_rate_frames_per_s} of {size} frames"


class MaximumForwardingRate(FrameMethod):
    """The maximum forwarding rate of each frame size."""

    kind = "maximum-forwarding-rate"
    question = "How many frames a second does {subject} forward at most, by frame size?"

    class Options(Frozen):
        """Options of the bench file. ``at`` names the throughput test, ``load_step`` is a share of the line rate."""

        at: str
        """The name of an earlier throughput test: loads begin at its NDR."""
        frame_bytes: FrameSizes = RFC_2544_FRAME_BYTES
        """Frame sizes, and mixes by name."""
        load_step: Percent = STEP_PERCENT
        """How far the load rises each time, of the line rate."""
        trial: TrialTimes = TrialTimes()
        """Times of a trial."""

    options: Options

    def estimate_s(self) -> float:
        return self.options.trial.estimate_s(self.points() * (1 + int(100.0 / self.options.load_step)))

    def needs(self) -> str | None:
        return self.options.at

    def deviations(self) -> tuple[str, ...]:
        return (*self.options.trial.deviations(), *missing_sizes(self.options.frame_bytes))

    async def measure_size(self, context: Context, size: Size) -> Result:
        throughput, ports = earlier_rate(context, self.options.at, NDR, size), context.sending_ports
        scope = PER_PORT if ports == 1 else f"sum of {ports} ports"
        if throughput.value is None:
            return result_at(self, size, {_MAXIMUM.value: throughput}, ResultVerdict.INCOMPLETE, scope=scope)
        line_rate = context.line_rate_frames_per_s(size)
        ceiling = await context.ceiling_frames_per_s(size)
        most = min(line_rate, ceiling if ceiling is not None else line_rate)
        rates: list[tuple[float, float]] = []
        trials = SeveralTrials(context)
        lowered: dict[str, float | str] = {}
        for load in rising(throughput.value, most, line_rate * self.options.load_step / 100.0):
            request = self.options.trial.request(size, load, Purpose.LOSS)
            trial, _ = await trials.measure({**size_parameters(size), "load_frames_per_s": load}, request)
            lowered = lowered_values(size, load, trial)
            sent = trial.request.sent_frames_per_s or load
            rates.append((trial.reading.counts.received * 1e9 / trial.reading.offering_ns, sent * ports))
            if sent < load * (1.0 - _CLOSE):
                break  # higher loads cannot be sent either
        highest, load = max(rates, key=lambda found: (found[0], -found[1]))
        values: Values = {
            _MAXIMUM.value: highest,
            "load_of_maximum_frames_per_s": load,
            _AT_MAXIMUM_LOAD.value: rates[-1][0],
            "maximum_offered_load_frames_per_s": rates[-1][1],
            "throughput_frames_per_s": throughput.value * ports,
            "line_rate_frames_per_s": line_rate * ports,
            "percent_of_line_rate": 100.0 * highest / (line_rate * ports),
            "loads": len(rates),
            LOWERED_NOTE[0]: lowered.get(LOWERED_NOTE[0]),
        }
        return result_at(
            self,
            size,
            values,
            trials.verdict,
            trials=trials.ids,
            disturbances=trials.disturbances,
            scope=scope,
        )

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Maximum forwarding rate",
            caption=(
                "RFC 2889 section 5.6: the highest rate at which frames came back at any load from the throughput to "
                "the maximum offered load, which is what tester and line carry; frames may be lost there."
            ),
            columns=(
                FRAME,
                _MAXIMUM,
                Column("load_of_maximum_frames_per_s", "At the load"),
                _AT_MAXIMUM_LOAD,
                Column("maximum_offered_load_frames_per_s", "Maximum offered load"),
                Column("throughput_frames_per_s", "Throughput"),
                Column("percent_of_line_rate", "% of line rate", form="percent"),
                Column("loads", "Loads tried", form="whole"),
            ),
            sentences=(f"{_FORWARDS}, and {{{_AT_MAXIMUM_LOAD.value}}} at the maximum offered load", _FORWARDS),
            notes=(LOWERED_NOTE,),
            plots=(
                Plot(
                    x=FRAME, y=(_MAXIMUM, _AT_MAXIMUM_LOAD), caption="The highest rate, and that at the highest load."
                ),
            ),
        )


def rising(first_frames_per_s: float, most_frames_per_s: float, step_frames_per_s: float) -> Iterator[float]:
    """Yields loads that rise from the first in equal steps, and finally the highest.

    Only the highest is yielded where the first is not below it.
    """
    load = first_frames_per_s
    while load < most_frames_per_s * (1.0 - _CLOSE):
        yield load
        load += step_frames_per_s
    yield most_frames_per_s
