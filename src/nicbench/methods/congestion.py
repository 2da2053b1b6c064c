"""Congestion: loads of single ways of a mesh, microbursts (RFC 8239), and head-of-line blocking (RFC 2889)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from nicbench.core.base import Distinct, Frozen
from nicbench.core.frame_size import FrameSizes, Size, size_parameters
from nicbench.core.frozen import frozen
from nicbench.core.pattern import Pattern, Way, WayLoad, way_of_stream
from nicbench.core.quantity import LossVerification
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Purpose, StreamReading, Trial, TrialRequest
from nicbench.methods._loads import (
    HIGHEST,
    LINE_RATE,
    RFC_2544_FRAME_BYTES,
    BurstPauses,
    FullRate,
    TrialTimes,
    full_rate,
    full_rate_words,
    missing_sizes,
)
from nicbench.methods._results import SeveralTrials, bounded_unless, bounds_between, result_at, verdict_of
from nicbench.methods.base import FRAME, TRIALS, Context, FrameMethod, Objection, Values
from nicbench.methods.connection_capacity import Fill, most_held

# What tests of congestion share: loads of single ways between ports of a mesh, and what came of each way.


ABILITIES: Final = frozenset({Ability.WAY_LOADS})


def mesh_objection(context: Any, fewest_ports: int) -> Objection | None:
    """Returns why ports or pattern do not suit: single ways are chosen of all that there are."""
    if context.pattern is not Pattern.FULL_MESH:
        return Objection(
            message=f"the test chooses ways of all that ports have, and the pattern is {context.pattern.value}",
            next_step="write `pattern: full-mesh` under `traffic`",
        )
    if context.ports < fewest_ports:
        return Objection(
            message=f"it needs {fewest_ports} ports, and has {context.ports}",
            next_step=f"give lab and DUT {fewest_ports} `ports`",
        )
    return None


def with_ways(request: TrialRequest, ways: tuple[WayLoad, ...]) -> TrialRequest:
    """Returns the request with these loads."""
    return request.replace(ways=ways)


def streams_of(trial: Trial, ways: frozenset[Way]) -> list[StreamReading]:
    """Returns the streams of these ways."""
    return [stream for stream in trial.reading.streams if way_of_stream(stream.name) in ways]


def counts_to(trial: Trial, receive: int) -> Counts:
    """Returns the counts of all frames for one port."""
    to = (way for stream in trial.reading.streams if (way := way_of_stream(stream.name)) and way[1] == receive)
    return Counts.sum_of(stream.counts for stream in streams_of(trial, frozenset(to)))


_SHORTEST_S = 0.001
_ROOM = 1.25  # a burst ends with its frames, and is not cut off where the tester is late
_BURST = Column("burst_frames", "Longest burst at a port", unit="frames", form="whole", is_main=True, better="higher")
_BUFFER = Column("buffer_frames", "Held by the buffer", unit="frames", form="whole")


@frozen
class Senders:
    """How many ports send to how many, the rate of each sender, and the frame size."""

    senders: int
    receivers: int
    rate_frames_per_s: float
    size: Size

    @property
    def at_a_port_frames_per_s(self) -> float:
        """Returns what all senders together send to a port."""
        return self.senders * self.rate_frames_per_s / self.receivers


class Microburst(FrameMethod):
    """The longest burst of several senders without loss."""

    kind = "microburst"
    chooses_ways = True
    question = "How long a burst of several senders at once does {subject} pass to a port without loss?"
    steps = """
    Microbursts (RFC 8239 sections 3 and 4): the longest burst of several senders to a port of which no frame is
    lost.
    Steps, for each frame size and number of receiving ports: all other ports send at once, each an equal part of a
    burst to each receiving port, as fast as the `rate` says; a binary search for the longest burst at a port of
    which every frame arrives; after each burst a pause in which buffers empty. What a port sent while the burst
    came in was not in a buffer: the rest is how many frames the buffer held. With more receiving ports at once a
    buffer that ports share holds less for each. Verified: every frame by its signature and its payload.
    """

    class Options(Frozen):
        """Options of the bench file."""

        most: int = Field(default=65_536, ge=2, le=10_000_000)
        """The longest burst to try: frames at one receiving port."""
        receivers: Distinct[Annotated[int, Field(ge=1)]] = (1,)
        """How many ports receive a burst at once, each number by itself: `[1, 2]` shows whether ports share a
        buffer.
        """
        frame_bytes: FrameSizes = (64,)
        """Frame sizes, and mixes by name."""
        rate: FullRate = HIGHEST
        """The rate of each sender in a burst; all together must send more to a port than it carries."""
        loss_verification: LossVerification = 1
        """The repetitions of a burst with loss before it counts."""
        trial: BurstPauses = BurstPauses()
        """Pauses of a burst."""

    options: Options

    def points(self) -> int:
        return len(self.options.frame_bytes) * len(self.options.receivers)

    def abilities(self) -> frozenset[Ability]:
        return ABILITIES | {Ability.FRAME_COUNT, Ability.ARRIVALS}

    def estimate_s(self) -> float:
        trials = self.points() * (1 + self.options.loss_verification) * (1 + (self.options.most - 1).bit_length())
        return self._times(_SHORTEST_S).estimate_s(trials)

    def objection(self, context: Any) -> Objection | None:
        return mesh_objection(context, 2 + max(self.options.receivers))

    async def results(self, context: Context) -> AsyncIterator[Result]:
        for size in context.sizes(self.options.frame_bytes):
            for receivers in self.options.receivers:
                full = await full_rate(context, size, self.options.rate)
                of = Senders(context.ports - receivers, receivers, full.rate_frames_per_s, size)
                if full.carries(100.0):
                    result = await self._measure(context, of)
                else:
                    result = self._without_rate(of, full.why_not_more)
                yield result

    async def _measure(self, context: Context, of: Senders) -> Result:
        passed: dict[int, Trial] = {}
        not_sent: set[int] = set()
        sound: set[int] = set()
        trials = SeveralTrials(context)

        async def burst(frames: int) -> Fill:
            """Has each sender send a number of frames to each receiving port."""
            for attempt in range(1, 2 + self.options.loss_verification):
                at_a_port = frames * of.senders
                point = {**size_parameters(of.size), "receivers": of.receivers, "frames": at_a_port, "attempt": attempt}
                trial, disturbed = await trials.measure(point, self._request(of, frames))
                if trial.reading.counts.failed == 0 and trial.reading.counts.unsent == 0:
                    passed[frames] = trial
                    return Fill(frames, True)
                if trial.reading.counts.failed == 0:
                    not_sent.add(frames)
                if not disturbed:
                    sound.add(frames)
            return Fill(frames, False)

        lower, upper = await most_held(burst, max(1, self.options.most // of.senders), 0.0)
        most = None if upper is None else upper * of.senders
        longest = bounded_unless(
            upper not in sound,
            bounds_between(
                lower * of.senders,
                most,
                "even the shortest burst lost",
                "the tester did not send the shortest burst whole" if upper in not_sent else None,
            ),
        )
        values: Values = {
            _BURST.value: longest,
            _BUFFER.value: _buffer(longest, passed.get(lower), of),
            "of_all_ports_frames": None if longest.value is None else longest.value * of.receivers,
            "burst_rate_frames_per_s": of.at_a_port_frames_per_s,
            "trials": len(trials.ids),
        }
        return self._result(of, values, trials.verdict, trials.ids, trials.disturbances)

    def _request(self, of: Senders, frames: int) -> TrialRequest:
        """Returns the request for a burst of a number of frames of each sender to each receiving port."""
        each = of.rate_frames_per_s / of.receivers
        request = self._times(frames / each).request(of.size, of.rate_frames_per_s, Purpose.BURST)
        ways = tuple(
            WayLoad(transmit=sender, receive=receiver, load_frames_per_s=each, frames=frames)
            for sender in range(of.receivers, of.receivers + of.senders)
            for receiver in range(of.receivers)
        )
        return with_ways(request, ways)

    def _times(self, sent_s: float) -> TrialTimes:
        return TrialTimes(duration=max(_SHORTEST_S, _ROOM * sent_s), **self.options.trial.model_dump())

    def _without_rate(self, of: Senders, why: str) -> Result:
        values: Values = {_BURST.value: Bounded(value=None, reason_null=why)}
        return self._result(of, values, ResultVerdict.INCOMPLETE, (), (why,))

    def _result(
        self, of: Senders, values: Values, verdict: ResultVerdict, trials: Iterable[str], disturbances: Iterable[str]
    ) -> Result:
        return result_at(
            self,
            of.size,
            values,
            verdict,
            trials=trials,
            disturbances=disturbances,
            parameters={"receivers": of.receivers, "senders": of.senders},
            point=str(of.receivers),
            scope="at each receiving port",
        )

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Microbursts",
            caption=(
                "RFC 8239 sections 3 and 4: the longest burst, of all senders together, of which every frame came to "
                "its port. Held by the buffer is what the port had not sent when the burst ended. Ports that share a "
                "buffer take shorter bursts where several receive at once."
            ),
            columns=(
                FRAME,
                Column("receivers", "Receiving ports", form="whole"),
                Column("senders", "Senders", form="whole"),
                _BURST,
                _BURST.replace(head="Interval", aspect="interval", is_main=False),
                Column("of_all_ports_frames", "At all ports", unit="frames", form="whole"),
                _BUFFER,
                _BUFFER.replace(head="Interval", aspect="interval"),
                Column("burst_rate_frames_per_s", "Rate to a port"),
                TRIALS,
            ),
            sentences=("passes a burst of {burst_frames} to each receiving port without loss",),
            has_basis=False,
        )


def _buffer(longest: Bounded, trial: Trial | None, of: Senders) -> Bounded:
    """Returns what a buffer held: the burst without what its port sent meanwhile (as in RFC 9004 section 6.4).

    A port that the DUT served late sent less than its rate allows meanwhile: the buffer held at most the whole burst.
    """
    if longest.value is None or trial is None:
        return Bounded(value=None, reason_null=longest.reason_null or "no burst passed")
    rates = [rate for port in range(of.receivers) if (rate := drained_frames_per_s(trial, port)) is not None]
    if not rates:
        return Bounded(value=None, reason_null="it is not known when frames arrived")
    meanwhile = min(1.0, max(rates) * trial.reading.offering_ns / 1e9 / longest.value)
    held, upper = longest.value * (1.0 - meanwhile), longest.upper
    if upper is None:
        return Bounded(value=held, lower=held, limited_by=longest.limited_by)
    return Bounded(value=held, lower=held, upper=upper, limited_by=LimitedBy.DUT)


def drained_frames_per_s(trial: Trial, port: int) -> float | None:
    """Returns the rate at which frames of a burst came to a port; None where it is not known."""
    to = [one for one in trial.reading.streams if (way := way_of_stream(one.name)) is not None and way[1] == port]
    times = [stream.arrivals for stream in to if stream.arrivals is not None]
    if not times:
        return None
    lasted_ns = max(one.last_ns for one in times) - min(one.first_ns for one in times)
    return (counts_to(trial, port).received - 1) * 1e9 / lasted_ns if lasted_ns > 0 else None


PORTS = 4
_UNCONGESTED, _CONGESTED = 2, 3
_TESTERS_SHARE = 0.001
"""The share of the frames that a tester may leave unsent in a valid trial (the threshold `unsent_share`)."""
_LOST = Column(
    "uncongested_loss_percent", "Lost to the free port", unit="%", form="of_frames", is_main=True,
    better="lower",
)  # fmt: skip
_CONGESTED_LOST = Column("congested_loss_percent", "Lost to the congested port", unit="%", form="of_frames")


class CongestionControl(FrameMethod):
    """What a congested port costs another one."""

    kind = "congestion-control"
    chooses_ways = True
    question = "Does a congested port of {subject} cost frames for another port?"
    steps = """
    Congestion control (RFC 2889 section 5.5): whether a congested port costs frames for another, and who is held
    back.
    Steps, for each frame size: the first port sends half of its load to the third and half to the fourth, the
    second all of its load to the fourth, which is sent one and a half times what a port carries. Frames lost on the
    way to the third, a port that is free, are head-of-line blocking (RFC 8239 section 5 asks for the same). Without
    a lost frame on the way to the fourth the senders were held back: back pressure. Verified: every frame by its
    signature and its payload.
    """

    class Options(Frozen):
        """Options of the bench file."""

        frame_bytes: FrameSizes = RFC_2544_FRAME_BYTES
        """Frame sizes, and mixes by name."""
        rate: FullRate = LINE_RATE
        """What each of the two sending ports sends: what a port of the DUT carries."""
        trial: TrialTimes = TrialTimes()
        """Times of a trial."""

    options: Options

    def abilities(self) -> frozenset[Ability]:
        return ABILITIES

    def deviations(self) -> tuple[str, ...]:
        rate = self.options.rate
        other = f"ports send {full_rate_words(rate)}, RFC 2889 section 5.5 takes the line rate"
        said = () if rate == LINE_RATE else (other,)
        return (*self.options.trial.deviations(), *missing_sizes(self.options.frame_bytes), *said)

    def objection(self, context: Any) -> Objection | None:
        return mesh_objection(context, PORTS)

    async def measure_size(self, context: Context, size: Size) -> Result:
        full = await full_rate(context, size, self.options.rate)
        if not full.carries(100.0):
            return self._without_figure(size, full.why_not_more)
        load = full.rate_frames_per_s
        request = self.options.trial.request(size, load, Purpose.LOSS)
        ways = (
            WayLoad(transmit=0, receive=_UNCONGESTED, load_frames_per_s=load / 2.0),
            WayLoad(transmit=0, receive=_CONGESTED, load_frames_per_s=load / 2.0),
            WayLoad(transmit=1, receive=_CONGESTED, load_frames_per_s=load),
        )
        trial, disturbed = await context.measure(size_parameters(size), with_ways(request, ways))
        if is_uncongested(trial):
            why = "the port that was to be congested forwarded one and a half times `rate`: give a higher one"
            return self._without_figure(size, why, (trial.id,))
        return result_at(
            self,
            size,
            values_of(trial),
            verdict_of(trial, disturbed),
            trials=(trial.id,),
            disturbances=trial.verdict.texts if disturbed else (),
            scope="at each receiving port",
        )

    def _without_figure(self, size: Size, why: str, trials: Sequence[str] = ()) -> Result:
        values: Values = {_LOST.value: Bounded(value=None, reason_null=why), "why": why}
        return result_at(self, size, values, ResultVerdict.INCOMPLETE, trials=trials, disturbances=(why,))

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Congestion control",
            caption=(
                "RFC 2889 section 5.5: of four ports the first sends to the third and the fourth, the second to the "
                "fourth alone, which is offered one and a half times a sender's load. Frames lost to the third port, "
                "which is free, are head-of-line blocking."
            ),
            columns=(
                FRAME,
                Column("load_frames_per_s", "Load of a sender"),
                _LOST,
                Column("uncongested_rate_frames_per_s", "Forwarded to the free port"),
                _CONGESTED_LOST,
                Column("congested_rate_frames_per_s", "Forwarded to the congested port"),
                Column("head_of_line_blocking", "Head-of-line blocking", form="text"),
                Column("back_pressure", "Back pressure", form="text"),
            ),
            sentences=(
                "loses {uncongested_loss_percent} of the frames to a port that is free when another is congested",
            ),
            notes=(("why", "Limit"),),
            has_basis=False,
        )


def is_uncongested(trial: Trial) -> bool:
    """Returns whether every frame to the port that was to be congested was sent and arrived.

    The few frames that a tester may fall short by do not count as back pressure.
    """
    counts = counts_to(trial, _CONGESTED)
    held_back = counts.unsent_backpressure or counts.unsent_tester > _TESTERS_SHARE * counts.intended
    return not counts.failed and not held_back


def values_of(trial: Trial) -> Values:
    """Returns what came of both ports, and what follows of it.

    Frames that a sender was held back from sending are not lost: they are how back pressure shows.
    """
    free, congested = counts_to(trial, _UNCONGESTED), counts_to(trial, _CONGESTED)
    seconds = trial.reading.offering_ns / 1e9
    return {
        "load_frames_per_s": trial.request.sent_frames_per_s,
        _LOST.value: _loss_percent(free),
        _CONGESTED_LOST.value: _loss_percent(congested),
        "uncongested_lost_frames": _lost(free),
        "congested_lost_frames": _lost(congested),
        "held_back_frames": free.unsent + congested.unsent,
        "uncongested_rate_frames_per_s": free.received / seconds,
        "congested_rate_frames_per_s": congested.received / seconds,
        "head_of_line_blocking": "yes" if _lost(free) else "no",
        "back_pressure": "no" if _lost(congested) else "yes",
    }


def _lost(counts: Counts) -> int:
    return counts.failed - counts.unsent_backpressure


def _loss_percent(counts: Counts) -> float:
    return 100.0 * _lost(counts) / counts.sent if counts.sent else 0.0
