"""Single core: what a DUT forwards on one core, averaged over a trial, and the cycles per packet.

The test of the published DPDK reports (two ports on one core, 8192 UDP flows, 60 s). Steps, for each frame size or mix:
the load is the highest that tester and line carry (or a share of it); one judged trial; the rate is what came back
intact over the time of the transmission, whatever was lost. With ``traffic: {bidirectional: true}`` both ports carry
traffic, and rates and line rate are sums of both. Cycles are the DUT's own record (its forwarding loop while packets
were handled), of the time-stamp counter and of the core, whose clock is another: two fields. Verified: each frame by
its signature; that a rate above the line rate is refused. Where many ports send to one, the line rate is that of the
receiving port.
"""

from __future__ import annotations

from typing import Final

from nicbench.core.base import Frozen
from nicbench.core.errors import NicbenchError
from nicbench.core.frame_size import FrameSizes, Size, size_parameters
from nicbench.core.machine import DutWork
from nicbench.core.quantity import Percent
from nicbench.core.result import Bounded, LimitedBy, Result
from nicbench.core.table import Column, ImportColumn, ImportTable, Plot, ResultTable
from nicbench.core.trial import Purpose, Trial
from nicbench.core.units import l1_bits_per_s, l2_bits_per_s
from nicbench.methods._imports import LINE_RATE, LOSS, SIZE, interval_columns
from nicbench.methods._loads import FullLoad, TrialTimes
from nicbench.methods._results import (
    PER_PORT,
    bounded_unless,
    result_at,
    sending_ports,
    verdict_of,
    without_tester,
)
from nicbench.methods.base import FRAME, Context, FrameMethod, Values

FRAME_BYTES: Final = (64, 128, 256, 512, 1024, 1280, 1518)
# Below this share of what was offered nobody says that the DUT was at its limit: rings fill and drain.
_CHARGED_SHARE: Final = 0.001
# A transmission ends within a burst of its time.
_ROUNDING: Final = 1.001


_RATE: Final = Column(
    "frame_rate_frames_per_s",
    "Frame rate",
    unit="Mpps",
    form="mpps",
    is_main=True,
    better="higher",
    adjective="fast",
)
_FORWARDS: Final = "forwards {frame_rate_frames_per_s} of {size} frames on one core"

NO_RECORD: Final = "this DUT keeps no record of its cycles"


class SingleCore(FrameMethod):
    """What one core of the DUT forwards, and its cycles per packet."""

    kind = "single-core"
    question = "How many frames a second does one core of {subject} forward, and with how many cycles a packet?"

    class Options(Frozen):
        """Options of the bench file. ``load`` is a share of the highest load that tester and line carry."""

        frame_bytes: FrameSizes = FRAME_BYTES
        """Frame sizes, and mixes by name."""
        load: Percent = 100.0
        """The load, as a share of the highest that tester and line carry."""
        trial: TrialTimes = TrialTimes()
        """Times of a trial."""

    options: Options

    def deviations(self) -> tuple[str, ...]:
        duration = self.options.trial.duration
        return (f"trial {duration:g} s, the published test averages over 60 s",) if duration < 60.0 else ()

    async def measure_size(self, context: Context, size: Size) -> Result:
        line_rate = context.line_rate_frames_per_s(size)
        ceiling = await context.ceiling_frames_per_s(size)
        full = FullLoad("line rate", line_rate, line_rate, ceiling)
        if full.is_sent_nothing:
            return without_tester(self, size, full, _RATE.value)
        highest = min(line_rate, ceiling if ceiling is not None else line_rate)
        load = highest * self.options.load / 100.0
        request = self.options.trial.request(size, load, Purpose.AVERAGE)
        trial, disturbed = await context.measure(size_parameters(size), request)
        ports = sending_ports(trial)
        return result_at(
            self,
            size,
            values_of(trial, line_rate, ceiling, self.options.load, disturbed=disturbed),
            verdict_of(trial, disturbed),
            trials=(trial.id,),
            disturbances=trial.verdict.texts if disturbed else (),
            parameters={"load_percent": self.options.load},
            scope=PER_PORT if ports == 1 else f"sum of {ports} ports",
        )

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Single core",
            caption=(
                "The average over a trial at the highest load that tester and line carry. Throughput counts the frame "
                "with its FCS (L2). Cycles are those that the DUT spent on packets, by its own record: of the "
                "time-stamp counter (TSC), whose rate is fixed, and of its core, whose clock is probed."
            ),
            columns=(
                FRAME,
                _RATE,
                Column("line_rate_frames_per_s", "Line rate"),
                Column("percent_of_line_rate", "% of line rate", form="percent"),
                Column("throughput_l2_bits_per_s", "Throughput"),
                Column("limited_by", "Limited by", form="text"),
                Column("ceiling_frames_per_s", "Tester's ceiling"),
                Column("core_clock_hz", "DUT's core"),
                Column("tsc_cycles_per_packet", "TSC cycles per packet", is_main=True, better="lower"),
                Column("core_cycles_per_packet", "Core cycles per packet"),
            ),
            sentences=(
                f"{_FORWARDS}, in {{tsc_cycles_per_packet}} cycles of the time-stamp counter each",
                _FORWARDS,
            ),
            plots=(Plot(x=FRAME, y=(_RATE,), caption="The average frame rate on one core, at the highest load."),),
            notes=(("cycles_source", "Record of cycles"),),
        )

    @classmethod
    def imports(cls) -> ImportTable:
        """Returns the columns of the published table; cycles must name their clock, as counter and core differ."""
        rate, share, throughput = (
            ImportColumn("frame_rate_frames_per_s", "frame rate", "frame_rate", also=("rate",)),
            ImportColumn("percent_of_line_rate", "% of line rate", "percent"),
            ImportColumn("throughput_l2_bits_per_s", "throughput", "bit_rate"),
        )
        return ImportTable(
            columns=(
                *(SIZE, *interval_columns(rate), LINE_RATE, share, throughput, LOSS),
                ImportColumn("core_clock_hz", "core clock", "clock", also=("CPU frequency", "DUT's core")),
                ImportColumn("tsc_cycles_per_packet", "TSC cycles per packet", "number"),
                ImportColumn("core_cycles_per_packet", "core cycles per packet", "number"),
            ),
            any_of=(rate.value, share.value),
            line_rate=LINE_RATE.value,
            shares=((rate.value, share.value),),
            bit_rates=((rate.value, throughput.value),),
            caption="What one core of the DUT forwards. Throughput counts the frame with its FCS (L2).",
        )


def values_of(
    trial: Trial,
    line_rate_frames_per_s: float,
    ceiling_frames_per_s: float | None,
    load_percent: float = 100.0,
    *,
    disturbed: bool = False,
) -> Values:
    """Returns the values of a trial: the rates of a port, and the total of all traffic, on the same basis."""
    reading, frame_bytes = trial.reading, trial.request.frame_bytes
    ports = sending_ports(trial)
    basis = line_rate_frames_per_s * ports
    rate = reading.counts.received * 1e9 / reading.offering_ns
    if rate > basis * _ROUNDING:
        raise NicbenchError(
            f"{rate:.0f} frames/s came back where the line carries {basis:.0f}: the time or the speed is wrong",
            place=f"trial {trial.id}",
            next_step="check the lab's `link`, or report it with the run folder",
        )
    limit = _limit(trial, line_rate_frames_per_s, load_percent)
    at_limit = limit is LimitedBy.DUT
    words = "the load" if limit is None else limit.words
    if disturbed and at_limit:
        words = "not known (disturbed)"
    work = reading.dut_work
    return {
        "frame_rate_frames_per_s": bounded_unless(
            disturbed, Bounded(value=rate, lower=rate, upper=rate if at_limit else None, limited_by=limit, n=1)
        ),
        "limited_by": words,
        "line_rate_frames_per_s": basis,
        "percent_of_line_rate": 100.0 * rate / basis,
        "throughput_l2_bits_per_s": l2_bits_per_s(rate, frame_bytes),
        "throughput_l1_bits_per_s": l1_bits_per_s(rate, frame_bytes),
        "offered_frames_per_s": reading.counts.intended * 1e9 / reading.offering_ns,
        "loss_ratio": reading.counts.loss_ratio,
        "ceiling_frames_per_s": None if ceiling_frames_per_s is None else ceiling_frames_per_s * ports,
        **_cycles(work),
    }


def _cycles(work: DutWork | None) -> dict[str, float | str | None]:
    if work is None:
        return {
            "tsc_cycles_per_packet": None,
            "core_cycles_per_packet": None,
            "tsc_hz": None,
            "core_clock_hz": None,
            "cycles_source": NO_RECORD,
        }
    polls = "empty polls count" if work.counts_empty_polls else "empty polls do not count"
    batches = "" if work.packets_per_batch is None else f"; {work.packets_per_batch:.1f} packets at once"
    return {
        "tsc_cycles_per_packet": work.tsc_cycles_per_packet,
        "core_cycles_per_packet": work.core_cycles_per_packet,
        "tsc_hz": work.tsc_hz,
        "core_clock_hz": work.mean_core_clock_hz,
        "cycles_source": f"{work.source}; {polls}{batches}",
    }


def _limit(trial: Trial, line_rate_frames_per_s: float, load_percent: float) -> LimitedBy | None:
    """Returns what kept the rate from being higher; None where a smaller load was requested and passed."""
    counts = trial.reading.counts
    if counts.failed > _CHARGED_SHARE * max(1, counts.intended):
        return LimitedBy.DUT
    load = trial.request.sent_frames_per_s
    if load_percent < 100.0:
        return None
    return LimitedBy.LINE_RATE if load is not None and load >= line_rate_frames_per_s else LimitedBy.TESTER
