"""Convergence (RFC 6413, terms of RFC 6412): for how long frames are lost when a link or a route changes.

Steps, for each frame size: frames at the load; meanwhile the event of the bench file: a port of the DUT goes down, or a
command runs. Loss of connectivity is the loss as time: frames that a flow lost x time between two of its frames
(route-specific loss-derived method, RFC 6412 section 3.5.3); of the flow that lost most, and the mean of all flows
(section 3.6.6). It is the average of several trials, each known to one frame of a flow and to what the tester did not
send. Every frame that is lost in the trial counts. Verified: every frame by its signature, and that each flow comes
back.
"""

from __future__ import annotations

import statistics
from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSizes, Size
from nicbench.core.quantity import Seconds
from nicbench.core.result import Result
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Interruption, Purpose, Reading, StreamReading
from nicbench.methods._interruptions import Words, explain_no_return, loss_s, lost_to_the_end, say_command, turn_s
from nicbench.methods._loads import Duration, FullRate, Pause, TrialTimes, full_rate
from nicbench.methods._results import RepeatedTrials, average_ms, reason_of, repeat_trial, result_at, without_tester
from nicbench.methods.base import FRAME, Context, FrameMethod, Objection, Values

_LOSS = "loss_of_connectivity_ms"


class ConvergenceEvent(Frozen):
    """What happens while frames are sent: a port of the DUT goes down (``link``), or a ``command`` runs."""

    link: str | None = None
    """The port of the DUT whose link goes down, by its name. nicbench brings it up again."""
    command: Words | None = None
    """The command that is the event, in place of `link`, as a list of words: `[ip, route, del, 198.19.1.0/24]`. No
    shell reads them. It must end with status 0.
    """
    host: Literal["dut", "tester", "local"] = "dut"
    """Where commands run: on the host of the DUT, of the tester, or on the controller's machine (`local`)."""
    lasts: Seconds | None = None
    """Time from the event until the link comes up again, or `restore` runs."""
    restore: Words | None = None
    """The command that takes back what `command` did. It runs also where the trial fails, but not where nicbench is
    killed (SIGKILL).
    """

    @model_validator(mode="after")
    def _is_one_event(self) -> Self:
        if (self.link is None) == (self.command is None):
            raise ValueError("give either `link`, a port of the DUT, or `command`")
        if self.link is not None and (self.lasts is None or self.restore is not None):
            raise ValueError("a `link` needs `lasts`, and no `restore`: nicbench brings it up again")
        if self.command is not None and (self.lasts is None) != (self.restore is None):
            raise ValueError("`lasts` says when `restore` runs: give both or neither")
        return self

    @property
    def words(self) -> str:
        """The event in words, for the report."""
        ends = "" if self.lasts is None else f" for {self.lasts:g} s"
        if self.command is None:
            return f"link of {self.link} down{ends}"
        back = "" if self.restore is None else f"{ends}, then {' '.join(self.restore)}"
        return f"{say_command(self.command, self.host)}{back}"


class EventTimes(TrialTimes):
    """The times of a trial; ``after`` is when the event begins, from the start of the transmission."""

    duration: Duration = 10.0
    """Duration of the transmission. Frames must come back within it."""
    after: Pause = 1.0
    """Time from the start of the transmission to the event."""


class Convergence(FrameMethod):
    """For how long each stream loses frames at an event."""

    kind = "convergence"
    question = "For how long does {subject} lose frames when a link or a route changes?"
    gives_points = False  # one for each stream

    class Options(Frozen):
        """Options of the bench file. ``rate`` is the load of each port, ``event`` what happens to the DUT."""

        rate: FullRate
        """The load of each port: `line_rate`, `highest`, or a frame rate, `10 kpps`. The more frames a flow has, the
        shorter a loss it shows. At a load that the DUT does not carry, loss is not the event's.
        """
        event: ConvergenceEvent
        """What happens while frames are sent."""
        frame_bytes: FrameSizes = (64,)
        """Frame sizes, and mixes by name."""
        repetitions: int = Field(default=5, ge=1, le=1000)
        """Events, each in a trial of its own."""
        trial: EventTimes = EventTimes()
        """Times of a trial."""

        @model_validator(mode="after")
        def _ends_in_time(self) -> Self:
            ends = self.trial.after + (self.event.lasts or 0.0)
            if ends >= self.trial.duration:
                raise ValueError(
                    f"the event ends {ends:g} s after the transmission begins, which lasts {self.trial.duration:g} s: "
                    "give a longer `duration`"
                )
            return self

    options: Options

    def abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.ARRIVALS, Ability.BESIDE})

    def estimate_s(self) -> float:
        return self.options.trial.estimate_s(self.points() * self.options.repetitions)

    def deviations(self) -> tuple[str, ...]:
        few = self.options.repetitions < 2
        return ("one event: how much events differ is not known",) if few else ()

    def objection(self, context: Any) -> Objection | None:
        link = self.options.event.link
        if link is None or link in context.dut_links:
            return None
        ports = ", ".join(context.dut_links) or "none: it has no host"
        return Objection(
            message=f"the DUT has no port called {link} whose link nicbench can take down (there are {ports})",
            next_step="name one of its ports, or give a `command`",
        )

    async def results(self, context: Context) -> AsyncIterator[Result]:
        event, times = self.options.event, self.options.trial
        interruption = Interruption(
            command=event.command or (),
            on=event.host,
            after_s=times.after,
            timeout_s=times.duration + times.drain + times.settle,
            link=event.link,
            lasts_s=event.lasts,
            restore=event.restore or (),
        )
        for size in context.sizes(self.options.frame_bytes):
            full = await full_rate(context, size, self.options.rate)
            if full.is_sent_nothing:
                yield without_tester(self, size, full, _LOSS)
                continue
            load = full.load_frames_per_s(full.highest_percent)
            request = times.request(size, load, Purpose.CONVERGENCE).replace(interruption=interruption)
            made = await repeat_trial(context, size, request, self.options.repetitions)
            for number, stream in enumerate(made.readings[0].streams):
                name = stream.name if len(made.readings[0].streams) > 1 else None
                yield self._result(size, made, number, name)

    def _result(self, size: Size, made: RepeatedTrials, number: int, name: str | None) -> Result:
        """Returns the result of one stream; without a ``name`` it is the only one."""
        streams = [reading.streams[number] for reading in made.readings]
        sent_s = [trial.request.duration_s for trial in made.trials]
        values: Values = {
            "load_frames_per_s": made.trials[0].request.sent_frames_per_s,
            **summarise_losses(streams, sent_s, made.readings),
            **_events(made.readings),
            "event": self.options.event.words,
        }
        reason = reason_of(values, _LOSS)
        whole = sum(1 for stream in streams if stream.counts.failed == 0)
        spared = f"in {whole} of {len(streams)} trials no frame was lost" if whole else None
        return result_at(
            self,
            size,
            {**values, "limit": reason or spared},
            made.verdict,
            trials=made.trial_ids,
            disturbances=made.disturbances(reason),
            parameters={} if name is None else {"stream": name},
            point=name,
        )

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Convergence",
            caption=(
                "RFC 6412: for how long frames are lost at an event, by frames lost: of the flow that lost most (route "
                "loss of connectivity period, section 3.6.5), and the mean of all flows (section 3.6.6). It is known "
                "to one frame of a flow, and to frames that the tester did not send (resolution). The longest silence "
                "is that of all flows together, by arrivals: it needs no such frame, and holds where every flow is "
                "away at once. The event lasted between two times by the controller's clock, for a command takes time "
                "itself."
            ),
            columns=(
                FRAME,
                Column("stream", "Stream", form="text", is_optional=True),
                Column("load_frames_per_s", "Load"),
                Column(_LOSS, "Loss of connectivity", unit="ms", form="number", is_main=True, better="lower"),
                Column("minimum_ms", "Minimum", unit="ms", form="number"),
                Column("maximum_ms", "Maximum", unit="ms", form="number"),
                Column("resolution_ms", "Resolution", unit="ms", form="number"),
                Column("mean_of_flows_ms", "Mean of all flows", unit="ms", form="number"),
                Column("longest_silence_ms", "Longest silence", unit="ms", form="number", is_optional=True),
                Column("event_at_least_ms", "Event, at least", unit="ms", form="number", is_optional=True),
                Column("event_at_most_ms", "Event, at most", unit="ms", form="number", is_optional=True),
                Column("flows", "Flows", form="whole"),
                Column("flows_with_loss", "Flows with loss, most", form="whole"),
                Column("average_lost_frames", "Lost, average", unit="frames", form="trimmed"),
                Column("repetitions", "Events", form="whole"),
            ),
            sentences=(
                "loses the frames of a flow for {loss_of_connectivity_ms} (average, each to within {resolution_ms})",
            ),
            notes=(("event", "Event"), ("limit", "Limit")),
        )


def flow_loss_s(stream: StreamReading, duration_s: float) -> float | None:
    """Returns for how long the flow that lost most lost frames; None where a flow did not come back.

    Flows that the tester does not tell apart are one.
    """
    if lost_to_the_end(stream):
        return None
    if stream.flows is None:
        return loss_s(stream, duration_s)
    _, frames = stream.flows.most_lost or (0, 0)
    return frames * turn_s(stream, duration_s)


def resolution_s(stream: StreamReading, duration_s: float) -> float:
    """Returns how exactly a loss is known: to one frame of a flow, and to frames that the tester did not send."""
    counts = stream.counts
    return turn_s(stream, duration_s) + duration_s * counts.unsent_tester / max(1, counts.intended)


def summarise_losses(streams: Sequence[StreamReading], sent_s: Sequence[float], readings: Sequence[Reading]) -> Values:
    """Returns the losses of one stream as times, over the trials in which it was sent for ``sent_s`` each."""
    times_s = [flow_loss_s(*pair) for pair in zip(streams, sent_s, strict=True)]

    def why_unknown() -> str:
        missing = [reading for reading, time_s in zip(readings, times_s, strict=True) if time_s is None]
        return explain_no_return(missing, f"{len(missing)} of {len(times_s)} events", "a flow lost frames")

    flows = [stream.flows for stream in streams if stream.flows is not None]
    return {
        **average_ms(_LOSS, times_s, why_unknown),
        "resolution_ms": 1e3 * max(resolution_s(*pair) for pair in zip(streams, sent_s, strict=True)),
        "mean_of_flows_ms": 1e3 * statistics.fmean(loss_s(*pair) for pair in zip(streams, sent_s, strict=True)),
        "longest_silence_ms": _mean_silence_ms(streams),
        "flows": flows[0].flows if flows else None,
        "flows_with_loss": max((one.with_loss for one in flows), default=None),
        "average_lost_frames": statistics.fmean(stream.counts.failed for stream in streams),
    }


def _mean_silence_ms(streams: Sequence[StreamReading]) -> float | None:
    """Returns the longest time without a frame of any flow, as the mean of the trials; None where one is unknown."""
    silences = [stream.arrivals.silence for stream in streams if stream.arrivals is not None]
    known = [silence.length_ns / 1e6 for silence in silences if silence is not None]
    return statistics.fmean(known) if len(known) == len(streams) else None


def _events(readings: Sequence[Reading]) -> Values:
    """Returns how long the events lasted, by the controller's clock: between their commands, and with them."""
    least, most = list[float](), list[float]()
    for reading in readings:
        times = reading.interrupted
        if times is not None and times.restore_began_s is not None and times.restored_s is not None:
            least.append(1e3 * (times.restore_began_s - times.ended_s))
            most.append(1e3 * (times.restored_s - times.began_s))
    return {"event_at_least_ms": min(least), "event_at_most_ms": max(most)} if least else {}
