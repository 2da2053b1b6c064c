"""Reset (RFC 2544 section 26.6 as updated by RFC 6201): how long the DUT forwards nothing when it is reset.

Steps: frames of the smallest size at the throughput; meanwhile a command of the bench file resets the DUT; the reset
time is that from the last frame that came back before to the first after it (time-stamp method, RFC 6201 section 1.3),
beside it frames lost / load (frame-loss method), which counts shorter gaps too and holds where the link stays up; the
average over several resets is reported. Verified: every frame by its signature, and that frames come back to the end of
the trial.
"""

from __future__ import annotations

import statistics
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSize, Size
from nicbench.core.result import Result
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Interruption, Purpose, Reading, Trial
from nicbench.core.units import format_digits
from nicbench.methods._loads import NDR, earlier_rate, explain_other_rate
from nicbench.methods._results import (
    RepeatedTrials,
    Values,
    average_ms,
    measure_sizes,
    reason_of,
    repeat_trial,
    result_at,
)
from nicbench.methods._trial_times import Pause, TrialTimes
from nicbench.methods.base import Context, FrameMethod

SMALLEST_FRAME_BYTES = 64
REPETITIONS = 5
FORWARDING_S = 15.0
# Where frames come back, they do so to within this of the transmission's end.
_LAST_FRAMES_S = 0.1

Words = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
"""A command and its arguments, as a list: no shell reads them."""


class ResetTimes(TrialTimes):
    """The times of a reset trial.

    ``after`` is when the command runs, from the start of the transmission (RFC 6201 section 4: 15 s).
    """

    after: Pause = FORWARDING_S
    """Time from the start of the transmission to the command (RFC 6201 section 4)."""


class Reset(FrameMethod):
    """How long the DUT forwards nothing when a command resets it."""

    kind: ClassVar[str] = "reset"
    question: ClassVar[str] = "For how long does {subject} forward nothing when it is reset?"

    class Options(Frozen):
        """Options of the bench file. ``at`` names the throughput test, ``of`` which of its rates is the throughput.

        ``command`` resets the DUT; it runs on the DUT's host, the tester's, or the controller's machine (``local``).
        """

        at: str
        """The name of an earlier throughput test."""
        of: str = NDR
        """Which of its rates is the throughput."""
        command: Words
        """The command that resets the DUT, as a list of words: `[reboot]`. No shell reads it. It must end with status
        0 before the trial ends.
        """
        host: Literal["dut", "tester", "local"] = "dut"
        """Where it runs: on the host of the DUT, of the tester, or on the controller's machine (`local`)."""
        reset: Literal["hardware", "software", "power"] = "software"
        """What kind of reset it is, for the report."""
        frame_bytes: tuple[FrameSize, ...] = Field(default=(SMALLEST_FRAME_BYTES,), min_length=1)
        """Frame sizes."""
        repetitions: int = Field(default=REPETITIONS, ge=1, le=1000)
        """Resets. Their average is the reset time."""
        trial: ResetTimes = ResetTimes()
        """Times of a trial. Frames must come back again within `duration`."""

    options: Options

    def needs(self) -> str | None:
        return self.options.at

    def abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.ARRIVALS, Ability.BESIDE})

    def estimate_s(self) -> float:
        return self.options.trial.estimate_s(self.points() * self.options.repetitions)

    def deviations(self) -> tuple[str, ...]:
        options = self.options
        sizes = [size for size in options.frame_bytes if size != SMALLEST_FRAME_BYTES]
        said = (
            (
                options.trial.after < FORWARDING_S,
                f"{options.trial.after:g} s of traffic before the reset, RFC 6201 section 4 asks for 15 s",
            ),
            (options.repetitions < 2, "one reset, RFC 6201 section 1.4 recommends the average of several"),
            (
                options.reset == "power",
                "the time includes the power interruption, RFC 6201 section 4.3.1 takes its 15 s off",
            ),
            (
                bool(sizes),
                f"frames of {', '.join(map(str, sizes))} bytes, RFC 2544 section 26.6 asks for the smallest",
            ),
        )
        # The section asks for no length of a trial: it lasts until frames come back.
        pauses = options.trial.replace(duration=60.0).deviations()
        return (
            *pauses,
            *(text for falls_short, text in said if falls_short),
            *explain_other_rate(options.of, "RFC 2544 section 26.6"),
        )

    async def run(self, context: Context) -> tuple[Result, ...]:
        return await measure_sizes(context, self.options.frame_bytes, self._at)

    async def _at(self, context: Context, size: Size) -> Result:
        throughput = earlier_rate(context, self.options.at, self.options.of, size)
        if throughput.value is None:
            return self._result(size, {"reset_time_ms": throughput}, RepeatedTrials())
        times = self.options.trial
        interruption = Interruption(
            command=self.options.command,
            on=self.options.host,
            after_s=times.after,
            timeout_s=times.duration + times.drain + times.settle,
        )
        request = times.request(size, throughput.value, Purpose.RESET)
        request = request.replace(interruption=interruption)
        made = await repeat_trial(context, size, request, self.options.repetitions)
        readings = made.readings
        values: Values = {
            "throughput_frames_per_s": throughput.value,
            **summary(readings),
            "by_loss_ms": 1e3 * statistics.fmean(by_loss_s(trial) for trial in made.trials),
            "average_lost_frames": statistics.fmean(reading.counts.failed for reading in readings),
            "without_loss": sum(1 for reading in readings if reading.counts.failed == 0),
            "link_went_down": sum(1 for reading in readings if any(port.link_changed for port in reading.ports)),
        }
        return self._result(size, values, made)

    def _result(self, size: Size, values: Values, made: RepeatedTrials) -> Result:
        reason = reason_of(values, "reset_time_ms")
        without = values.get("without_loss")
        spared = f"in {without} of {len(made.trials)} trials nothing was lost: was the DUT reset?" if without else None
        return result_at(
            self,
            size,
            {
                **values,
                "command": f"{' '.join(self.options.command)} ({_WHERE[self.options.host]})",
                "limit": reason or spared,
            },
            made.verdict,
            trials=made.trial_ids,
            disturbances=made.disturbances(reason),
            parameters={"reset": self.options.reset, "throughput_of": self.options.of},
        )

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Reset",
            caption=(
                "RFC 2544 section 26.6, updated by RFC 6201: the time from the last frame that came back before a "
                "reset to the first after it, the average of several resets. By loss it is the frames lost / load, "
                "which holds where the link stayed up, for frames are sent all the time."
            ),
            columns=(
                Column(value="size", head="Frame", unit="bytes", form="text"),
                Column(value="reset", head="Reset", form="text"),
                Column(value="throughput_frames_per_s", head="Throughput"),
                Column(
                    value="reset_time_ms", head="Reset time", unit="ms", form="number", is_main=True, better="lower"
                ),
                Column(value="minimum_ms", head="Minimum", unit="ms", form="number"),
                Column(value="maximum_ms", head="Maximum", unit="ms", form="number"),
                Column(value="by_loss_ms", head="By loss", unit="ms", form="number"),
                Column(value="repetitions", head="Resets", form="whole"),
                Column(value="average_lost_frames", head="Lost, average", unit="frames", form="trimmed"),
                Column(value="link_went_down", head="Link went down", unit="times", form="whole"),
            ),
            sentences=("forwards again {reset_time_ms} after a {reset} reset",),
            notes=(("command", "Command"), ("limit", "Limit")),
        )


_WHERE = {"dut": "on the DUT's host", "tester": "on the tester's host", "local": "on the controller's machine"}


def reset_s(reading: Reading) -> float | None:
    """Returns the seconds from the last frame before the longest silence to the first after it.

    The stream with the longest silence counts. None where a stream never resumed, or its silence is not known.
    """
    longest = 0.0
    for stream in reading.streams:
        arrivals = stream.arrivals
        if arrivals is None or arrivals.silence is None:
            return None
        if reading.transmit_ns - arrivals.last_ns > _LAST_FRAMES_S * 1e9:
            return None
        longest = max(longest, arrivals.silence.length_ns / 1e9)
    return longest if reading.streams else None


def _are_times_known(reading: Reading) -> bool:
    return all(stream.arrivals is not None and stream.arrivals.silence is not None for stream in reading.streams)


def by_loss_s(trial: Trial) -> float:
    """Returns the lost frames divided by the load, for the way that lost most."""
    duration_s = trial.request.duration_s
    shares = (
        stream.counts.failed / stream.counts.intended for stream in trial.reading.streams if stream.counts.intended
    )
    return max(shares, default=0.0) * duration_s


def summary(readings: list[Reading]) -> Values:
    """Returns the average and the extremes, where frames came back after every reset."""
    times_s = [reset_s(reading) for reading in readings]

    def why_unknown() -> str:
        missing = [reading for reading, time_s in zip(readings, times_s, strict=True) if time_s is None]
        unknown = sum(1 for reading in missing if not _are_times_known(reading))
        reason = f"after {len(missing)} of {len(times_s)} resets no frames came back to the end of the trial"
        if unknown:
            reason = f"in {unknown} of {len(times_s)} trials it is not known when frames arrived"
        latest = max((_command_ended_s(reading) for reading in missing), default=0.0)
        if latest > 0.0:
            transmission = max(reading.transmit_ns for reading in missing) / 1e9
            ended, of = format_digits(latest), format_digits(transmission)
            reason += f"; the command ended {ended} s after the transmission of {of} s began"
        return reason

    return average_ms("reset_time_ms", times_s, why_unknown)


def _command_ended_s(reading: Reading) -> float:
    return reading.interrupted.ended_s if reading.interrupted is not None else 0.0
