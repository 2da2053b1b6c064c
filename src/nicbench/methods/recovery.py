"""Recovery (RFC 2544 sections 26.5 and 26.6): from an overload, and from a reset."""

from __future__ import annotations

import statistics
from typing import Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSizes, Size, words_of
from nicbench.core.quantity import Percent, PercentOver
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.table import Column, Plot, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Interruption, Phase, Purpose, Reading
from nicbench.core.units import format_digits
from nicbench.methods._interruptions import (
    Words,
    by_loss_s,
    explain_no_return,
    lost_to_the_end,
    say_command,
    silence_s,
    turn_s,
)
from nicbench.methods._loads import (
    HIGHEST,
    NDR,
    RFC_2544_FRAME_BYTES,
    Duration,
    FullLoad,
    Pause,
    TrialTimes,
    earlier_rate,
    explain_other_rate,
    full_rate,
    missing_sizes,
)
from nicbench.methods._results import RepeatedTrials, average_ms, reason_of, repeat_trial, result_at
from nicbench.methods.base import FRAME, Context, FrameMethod, Values

SMALLEST_FRAME_BYTES = 64
REPETITIONS = 5
FORWARDING_S = 15.0


class ResetTimes(TrialTimes):
    """The times of a reset trial.

    ``after`` is when the command runs, from the start of the transmission (RFC 6201 section 4: 15 s).
    """

    after: Pause = FORWARDING_S
    """Time from the start of the transmission to the command (RFC 6201 section 4)."""


class Reset(FrameMethod):
    """How long the DUT forwards nothing when a command resets it."""

    kind = "reset"
    question = "For how long does {subject} forward nothing when it is reset?"
    steps = """
    Reset (RFC 2544 section 26.6 as updated by RFC 6201): how long the DUT forwards nothing when it is reset.
    Steps: frames of the smallest size at the throughput; meanwhile a command of the bench file resets the DUT; the
    reset time is that from the last frame that came back before to the first after it (time-stamp method, RFC 6201
    section 1.3), beside it frames lost / load (frame-loss method), which counts shorter gaps too and holds where
    the link stays up; the average over several resets is reported. Verified: every frame by its signature, and that
    frames come back to the end of the trial.
    """

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
        frame_bytes: FrameSizes = (SMALLEST_FRAME_BYTES,)
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

    async def measure_size(self, context: Context, size: Size) -> Result:
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
            **summarise_resets(readings),
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
                "command": say_command(self.options.command, self.options.host),
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
                FRAME,
                Column("reset", "Reset", form="text"),
                Column("throughput_frames_per_s", "Throughput"),
                Column("reset_time_ms", "Reset time", unit="ms", form="number", is_main=True, better="lower"),
                Column("minimum_ms", "Minimum", unit="ms", form="number"),
                Column("maximum_ms", "Maximum", unit="ms", form="number"),
                Column("by_loss_ms", "By loss", unit="ms", form="number"),
                Column("repetitions", "Resets", form="whole"),
                Column("average_lost_frames", "Lost, average", unit="frames", form="trimmed"),
                Column("link_went_down", "Link went down", unit="times", form="whole"),
            ),
            sentences=("forwards again {reset_time_ms} after a {reset} reset",),
            notes=(("command", "Command"), ("limit", "Limit")),
        )


def summarise_resets(readings: list[Reading]) -> Values:
    """Returns the average and the extremes, where frames came back after every reset."""
    times_s = [silence_s(reading) for reading in readings]

    def why_unknown() -> str:
        missing = [reading for reading, time_s in zip(readings, times_s, strict=True) if time_s is None]
        unknown = sum(1 for reading in missing if not _are_times_known(reading))
        if unknown:
            return f"in {unknown} of {len(times_s)} trials it is not known when frames arrived"
        return explain_no_return(missing, f"{len(missing)} of {len(times_s)} resets")

    return average_ms("reset_time_ms", times_s, why_unknown)


def _are_times_known(reading: Reading) -> bool:
    return all(stream.arrivals is not None and stream.arrivals.silence is not None for stream in reading.streams)


OVERLOAD_PERCENT, RECOVERY_PERCENT = 110.0, 50.0
OVERLOAD_S = 60.0
_TIME = Column("recovery_time_ms", "Recovery time", unit="ms", is_main=True, better="lower")


class RecoveryTimes(Frozen):
    """The times of a recovery trial.

    Defaults: RFC 2544's 60 s of overload (section 26.5), the same time to recover, and the pauses of section 23.
    """

    overload_time: Duration = OVERLOAD_S
    """Duration of the overload."""
    recovery_time: Duration = OVERLOAD_S
    """Duration of the load afterwards."""
    drain: Pause = 2.0
    """How long frames may arrive after the transmission."""
    settle: Pause = 5.0
    """Pause before and after a trial."""


class SystemRecovery(FrameMethod):
    """How long the DUT loses frames after an overload has ended."""

    kind = "system-recovery"
    question = "For how long does {subject} still lose frames once an overload has ended?"
    steps = """
    System recovery (RFC 2544 section 26.5): how long after an overload the DUT goes on losing frames.
    Steps, for each frame size: frames at 110 % of the throughput (or the most that tester and line carry, if that
    is less), then, in the same transmission, at half of that. The recovery time runs from the change of rate to the
    sending of the last frame that is lost; the average over several trials is reported. Verified: every frame by
    its signature; frames lost at the very end mean that the DUT did not recover. Unless the overload of every trial
    lost frames, there is no recovery time.
    """

    class Options(Frozen):
        """Options of the bench file. ``at`` names the throughput test, ``of`` which of its rates is the throughput.

        ``overload`` is a percentage of the throughput, ``recovery`` one of the overload.
        """

        at: str
        """The name of an earlier throughput test."""
        of: str = NDR
        """Which of its rates is the throughput."""
        frame_bytes: FrameSizes = RFC_2544_FRAME_BYTES
        """Frame sizes, measured by the earlier test."""
        overload: PercentOver = OVERLOAD_PERCENT
        """The overload, as a share of the throughput; at most what tester and line carry."""
        recovery: Percent = RECOVERY_PERCENT
        """The load afterwards, as a share of the overload."""
        repetitions: int = Field(default=REPETITIONS, ge=1, le=1000)
        """Trials. Their average is the recovery time."""
        trial: RecoveryTimes = RecoveryTimes()
        """Times of a trial."""

    options: Options

    def needs(self) -> str | None:
        return self.options.at

    def abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.PHASES, Ability.ARRIVALS})

    def estimate_s(self) -> float:
        return self._times().estimate_s(self.points() * self.options.repetitions)

    def deviations(self) -> tuple[str, ...]:
        options = self.options
        said = [
            (
                options.trial.overload_time < OVERLOAD_S,
                f"overload for {options.trial.overload_time:g} s, RFC 2544 section 26.5 asks for 60 s",
            ),
            (
                options.overload != OVERLOAD_PERCENT,
                f"overload at {options.overload:g} % of the throughput, RFC 2544 section 26.5 asks for 110 %",
            ),
            (
                options.recovery != RECOVERY_PERCENT,
                f"{options.recovery:g} % of the overload afterwards, RFC 2544 section 26.5 asks for 50 %",
            ),
            (options.repetitions < 2, "one trial, RFC 2544 section 26.5 asks for the average of several"),
        ]
        pauses = TrialTimes(drain=options.trial.drain, settle=options.trial.settle).deviations()
        return (
            *(text for falls_short, text in said if falls_short),
            *explain_other_rate(options.of, "RFC 2544 section 26.5"),
            *pauses,
            *missing_sizes(options.frame_bytes),
        )

    async def measure_size(self, context: Context, size: Size) -> Result:
        throughput = earlier_rate(context, self.options.at, self.options.of, size)
        if throughput.value is None:
            return self._result(size, {"recovery_time_ms": throughput}, RepeatedTrials())
        full = await full_rate(context, size, HIGHEST)
        if full.is_sent_nothing:
            nothing = Bounded(value=None, reason_null=full.why_not_more)
            return self._result(size, {"recovery_time_ms": nothing}, RepeatedTrials())
        overload = min(throughput.value * self.options.overload / 100.0, full.rate_frames_per_s)
        phases = (
            Phase(load_frames_per_s=overload, duration_s=self.options.trial.overload_time),
            Phase(
                load_frames_per_s=overload * self.options.recovery / 100.0, duration_s=self.options.trial.recovery_time
            ),
        )
        request = self._times().request(size, overload, Purpose.RECOVERY)
        request = request.replace(phases=phases)
        made = await repeat_trial(context, size, request, self.options.repetitions)
        values: Values = {
            "throughput_frames_per_s": throughput.value,
            "overload_frames_per_s": overload,
            "recovery_frames_per_s": phases[1].load_frames_per_s,
            **summarise_recoveries(made.readings, phases),
            **_of_trials(made.readings, phases),
        }
        overloaded = self._short_of_overload(size, throughput.value, overload, full)
        result = self._result(size, {**values, "overload": overloaded}, made)
        if all(_lost_in_overload(reading) > 0 for reading in made.readings):
            return result
        return result.replace(verdict=ResultVerdict.INCOMPLETE)

    def _times(self) -> TrialTimes:
        times = self.options.trial
        return TrialTimes(duration=times.overload_time + times.recovery_time, drain=times.drain, settle=times.settle)

    def _short_of_overload(self, size: Size, throughput: float, overload: float, full: FullLoad) -> str | None:
        """Explains why the overload was less than requested; None where it was not."""
        percent = 100.0 * overload / throughput
        if percent < self.options.overload - 0.01:
            return f"at {words_of(size)} it is {format_digits(percent, 4)} % of the throughput, for {full.why_not_more}"
        return None

    def _result(self, size: Size, values: Values, made: RepeatedTrials) -> Result:
        reason = reason_of(values, "recovery_time_ms")
        return result_at(
            self,
            size,
            {**values, "limit": f"at {words_of(size)} {reason}" if reason else None},
            made.verdict,
            trials=made.trial_ids,
            disturbances=made.disturbances(reason),
            parameters={"throughput_of": self.options.of},
        )

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="System recovery",
            caption=(
                "RFC 2544 section 26.5: after an overload the rate falls, and the time is that from the change to the "
                "sending of the last frame that was lost, the average of several trials; 0 where none was lost any "
                "more. It is known to one frame of a flow (resolution)."
            ),
            columns=(
                FRAME,
                Column("throughput_frames_per_s", "Throughput"),
                Column("overload_frames_per_s", "Overload"),
                Column("recovery_frames_per_s", "Afterwards"),
                _TIME,
                Column("minimum_ms", "Minimum", unit="ms", form="number"),
                Column("maximum_ms", "Maximum", unit="ms", form="number"),
                Column("resolution_ms", "Resolution", unit="ms", form="number"),
                Column("repetitions", "Trials", form="whole"),
                Column("overload_lost_frames", "Lost in the overload, average", unit="frames", form="whole"),
                Column("recovery_lost_frames", "Lost afterwards, average", unit="frames", form="whole"),
                Column("reordered_frames", "Reordered afterwards, average", unit="frames", form="whole"),
            ),
            sentences=(
                "recovers from an overload of {size} frames in {recovery_time_ms} (average, to within {resolution_ms})",
                "recovers from an overload of {size} frames in {recovery_time_ms} (average)",
            ),
            plots=(
                Plot(
                    x=FRAME,
                    y=(_TIME,),
                    lower="minimum_ms",
                    upper="maximum_ms",
                    caption="The average recovery time; the bar behind it reaches from the shortest to the longest.",
                ),
            ),
            notes=(("overload", "Overload"), ("limit", "Limit")),
        )


def recovery_s(reading: Reading, phases: tuple[Phase, Phase]) -> float | None:
    """Returns the time from the change of rate to the sending of the last frame that was lost after it.

    0: no frame was lost; None: frames were lost to the end. A lost frame is detected by the next frame of its flow, and
    was due one frame of the flow earlier.
    """
    latest = 0.0
    for stream in reading.streams:
        counts = stream.counts
        if stream.phase != 2 or counts.lost + (counts.unattributed or 0) == 0:
            continue
        if stream.last_jump_ns is None or lost_to_the_end(stream):
            return None
        turn = turn_s(stream, phases[1].duration_s)
        latest = max(latest, stream.last_jump_ns / 1e9 - turn - phases[0].duration_s)
    return latest


def summarise_recoveries(readings: list[Reading], phases: tuple[Phase, Phase]) -> Values:
    """Returns the average and the extremes; or only the reason, where the DUT was not overloaded or did not recover."""
    without_loss = sum(_lost_in_overload(reading) == 0 for reading in readings)
    if without_loss:
        trials = f"{without_loss} of {len(readings)} trials"
        reason = f"nothing was lost in the overload of {trials}: there was nothing to recover from"
        unknown = Bounded(value=None, n=len(readings), reason_null=reason)
        return {"recovery_time_ms": unknown, "repetitions": len(readings)}
    times_s = [recovery_s(reading, phases) for reading in readings]

    def why_unknown() -> str:
        missing = sum(1 for time_s in times_s if time_s is None)
        return f"frames were lost to the end, {phases[1].duration_s:g} s after the overload, in {missing} of the trials"

    return average_ms("recovery_time_ms", times_s, why_unknown)


def _lost_in_overload(reading: Reading) -> int:
    return sum(stream.counts.failed for stream in reading.streams if stream.phase == 1)


def _of_trials(readings: list[Reading], phases: tuple[Phase, Phase]) -> Values:
    """Returns the frame counts, on average of the trials."""

    def total(phase: int) -> Counts:
        return Counts.sum_of(
            stream.counts for reading in readings for stream in reading.streams if stream.phase == phase
        )

    def mean(frames: int | None) -> float | None:
        return None if frames is None else frames / len(readings)

    after = [stream for reading in readings for stream in reading.streams if stream.phase == 2]
    return {
        "resolution_ms": 1e3 * max(turn_s(stream, phases[1].duration_s) for stream in after),
        "overload_lost_frames": mean(total(1).failed),
        "recovery_lost_frames": mean(total(2).failed),
        "reordered_frames": mean(total(2).reordered),
    }
