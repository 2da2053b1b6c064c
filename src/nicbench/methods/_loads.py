"""Loads and times of trials (RFC 2544 sections 23 and 24): what 100 % is, and how long frames are sent and awaited."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

from nicbench.core.base import Frozen
from nicbench.core.described import Unit, Words
from nicbench.core.frame_size import MAXIMUM, MINIMUM, Size, label_of, mean_bytes, size_label, words_of
from nicbench.core.frozen import frozen
from nicbench.core.pattern import Pattern
from nicbench.core.quantity import Seconds
from nicbench.core.result import Bounded, LimitedBy, Value
from nicbench.core.trial import Purpose, Trial, TrialRequest
from nicbench.core.units import (
    RATE_UNITS,
    Percent,
    format_bits_per_s,
    format_digits,
    format_rate,
    l1_bits_per_s,
    parse_rate,
)
from nicbench.methods.base import Context

# The times of a trial, shared by every method that sends frames (RFC 2544 sections 23 and 24).


# RFC 2544 section 9.1 for Ethernet.
RFC_2544_FRAME_BYTES = (64, 128, 256, 512, 1024, 1280, 1518)


def missing_sizes(frame_bytes: Iterable[int | str]) -> tuple[str, ...]:
    """Returns the sizes of RFC 2544 section 9.1 that are not measured, in words for the report."""
    smallest, *_, largest = RFC_2544_FRAME_BYTES
    extremes: dict[int | str, int] = {MINIMUM: smallest, MAXIMUM: largest}
    measured = {extremes.get(size, size) for size in frame_bytes}
    missing = [str(size) for size in RFC_2544_FRAME_BYTES if size not in measured]
    asked = "RFC 2544 section 9.1 asks for seven"
    return (f"no frames of {', '.join(missing)} bytes, {asked}",) if missing else ()


SHORTEST_TRIAL_S = 0.001
LONGEST_TIME_S = 86_400.0
# Extra time for a trial that ends with its last frame; the engine's own count ends it in time.
_SLACK = 1.01


def _sensible_duration(duration_s: float) -> float:
    if not SHORTEST_TRIAL_S <= duration_s <= LONGEST_TIME_S:
        why = f"a trial of {duration_s:g} s measures nothing useful"
        raise _refusal(why, "1 ms to 1 day; RFC 2544 asks for 60 s, 1 s is a quick look")
    return duration_s


def _sensible_pause(pause_s: float) -> float:
    if pause_s > LONGEST_TIME_S:
        raise _refusal(f"{pause_s:g} s is longer than a day", "at most 1 day; RFC 2544 asks for 2 s and 5 s")
    return pause_s


def _refusal(why: str, accepted: str) -> PydanticCustomError:
    """Returns an error in the wording of the quantities' errors (core/quantity.py)."""
    return PydanticCustomError("quantity", "{why}", {"why": why, "accepted": accepted})


Duration = Annotated[Seconds, AfterValidator(_sensible_duration)]
Pause = Annotated[Seconds, AfterValidator(_sensible_pause)]
Validation = Annotated[Seconds, AfterValidator(_sensible_pause)]
"""The duration of a validation trial; zero for no validation trial."""


class TrialTimes(Frozen):
    """The times of a trial. The defaults are RFC 2544's.

    These are 60 s (section 24), 2 s for late frames and 5 s to settle (section 23).
    """

    duration: Duration = 60.0
    """Duration of the transmission (RFC 2544 section 24: 60 s)."""
    drain: Pause = 2.0
    """How long frames may arrive after the transmission (section 23)."""
    settle: Pause = 5.0
    """Pause before and after a trial (section 23)."""

    def request(self, size: Size, load_frames_per_s: float | None, purpose: Purpose) -> TrialRequest:
        """Returns the request for a trial with these times."""
        return TrialRequest(
            frame_bytes=mean_bytes(size),
            mix=None if isinstance(size, int) else size,
            load_frames_per_s=load_frames_per_s,
            duration_s=self.duration,
            drain_s=self.drain,
            settle_s=self.settle,
            purpose=purpose,
        )

    def request_of_frames(
        self, size: Size, load_frames_per_s: float, purpose: Purpose, frames: int | None
    ) -> TrialRequest:
        """Returns the request for a trial that ends after a number of frames of each port, if it lasts long enough."""
        request = self.request(size, load_frames_per_s, purpose)
        if frames is None or load_frames_per_s * self.duration < frames:
            return request
        long_enough_s = min(self.duration, _SLACK * frames / load_frames_per_s)
        return request.replace(frames=frames, duration_s=long_enough_s)

    def estimate_s(self, trials: int) -> float:
        """Returns the time that a number of trials take: learning frames, settle, transmission, drain, settle."""
        return trials * (self.duration + self.drain + 2 * self.settle)

    def deviations(self, validation_s: float | None = None) -> tuple[str, ...]:
        """Returns where these times are shorter than RFC 2544 requires, in words for the report.

        A search may use shorter trials where one of full length, of ``validation_s``, confirms its answer.
        """
        standard = TrialTimes()
        pairs = (
            (
                "validation trial" if validation_s else "trial duration",
                validation_s or self.duration,
                standard.duration,
                "24",
            ),
            ("drain", self.drain, standard.drain, "23"),
            ("settle time", self.settle, standard.settle, "23"),
        )
        return tuple(
            f"{name} {mine:g} s, RFC 2544 section {section} asks for {theirs:g} s"
            for name, mine, theirs, section in pairs
            if mine < theirs
        )


class BurstPauses(Frozen):
    """The pauses of a burst: 2 s for buffers to empty (RFC 9004 section 6.2), 5 s to settle (RFC 2544 section 23)."""

    drain: Pause = 2.0
    """How long buffers have to empty after a burst (RFC 9004 section 6.2)."""
    settle: Pause = 5.0
    """Pause before a burst (RFC 2544 section 23)."""


# What a load of 100 % is: the line rate, the most that tester and line carry, a given rate, or an earlier result.
#
# An earlier result is the rate that an earlier test found at the frame size.


LINE_RATE: Final = "line_rate"
HIGHEST: Final = "highest"
# Below the ceiling, so that a tester whose rate wavers can send it.
_ROOM: Final = 0.01
# Loads that differ by less, relatively, are the same load: only rounding lies between them.
_CLOSE: Final = 1e-6
_ACCEPTED = '`line_rate`, `highest` (the most that tester and line carry), or a frame rate such as "800 kpps"'


def _read(value: Any) -> Any:
    """Passes the two words and a frame rate; refuses everything else in the way that quantities do."""
    if value in (LINE_RATE, HIGHEST) or (isinstance(value, float) and value > 0.0):
        return value
    try:
        rate = parse_rate(value) if isinstance(value, str) else None
    except ValueError:
        rate = None
    if rate is None or isinstance(rate, Percent) or rate == 0.0:
        why = f"{value} is no rate that could be 100 %"
        raise PydanticCustomError("quantity", "{why}", {"why": why, "accepted": _ACCEPTED})
    return rate


_WORDS: Final = ((LINE_RATE, "the line rate"), (HIGHEST, "the highest load"))
FullRate = Annotated[Literal["line_rate", "highest"] | float, Unit.FRAMES_PER_S, Words(_WORDS), BeforeValidator(_read)]
"""The rate in a bench file: ``line_rate``, ``highest``, or frames per second of each port, from "800 kpps"."""


@frozen
class FullLoad:
    """The rate of a 100 % load at one frame size, in frames per second of one port in one direction.

    ``highest_percent`` is the highest load that tester and line carry, in percent of that rate: 100 where they carry
    all of it. Several ports that send to one can offer it ``most_line_rates`` line rates, more than the receiving line
    carries.
    """

    words: str
    rate_frames_per_s: float
    line_rate_frames_per_s: float
    ceiling_frames_per_s: float | None
    most_line_rates: float = 1.0
    is_of_a_trial: bool = False
    """Whether the ceiling is what one trial sent of a greater load; another may have sent more."""

    @property
    def is_sent_nothing(self) -> bool:
        """Whether the tester was found to send nothing, not even without a DUT."""
        return self.ceiling_frames_per_s is not None and self.ceiling_frames_per_s <= 0.0

    @property
    def highest_percent(self) -> float:
        """The highest load in percent that tester and line carry, limited to 100."""
        highest = highest_frames_per_s(self.line_rate_frames_per_s, self.ceiling_frames_per_s)
        return min(100.0, 100.0 * highest / self.rate_frames_per_s)

    def carries(self, percent: float) -> bool:
        """Returns whether tester and lines carry this load to the DUT."""
        offered = highest_frames_per_s(self.line_rate_frames_per_s * self.most_line_rates, self.ceiling_frames_per_s)
        return self.load_frames_per_s(percent) <= offered * (1.0 + _CLOSE)

    def load_frames_per_s(self, percent: float) -> float:
        """Returns the load in frames per second of one port in one direction."""
        return self.rate_frames_per_s * percent / 100.0

    def lower_to_sent(self, load_frames_per_s: float, trial: Trial) -> FullLoad:
        """Returns this object; with the sent rate as the ceiling where the context had to lower that trial's load."""
        expected = trial.request.sent_frames_per_s
        if expected is None or expected >= load_frames_per_s * (1.0 - _CLOSE):
            return self
        return replace(self, ceiling_frames_per_s=trial.sent_frames_per_s or expected, is_of_a_trial=True)

    def limit_of(self, load_frames_per_s: float) -> LimitedBy:
        """Returns what kept the highest load that was offered from being higher: line, tester, or who asked for it."""
        if load_frames_per_s >= self.line_rate_frames_per_s * (1.0 - _CLOSE):
            return LimitedBy.LINE_RATE
        ceiling = self.ceiling_frames_per_s
        if ceiling is not None and load_frames_per_s >= ceiling * (1.0 - _ROOM) * (1.0 - _CLOSE):
            return LimitedBy.TESTER
        return LimitedBy.MAXIMUM_LOAD

    @property
    def why_not_more(self) -> str:
        """The reason why a load above ``highest_percent`` cannot be offered."""
        line_rate, ceiling = self.line_rate_frames_per_s, self.ceiling_frames_per_s
        if ceiling is not None and ceiling < line_rate * self.most_line_rates:
            share = 100.0 * ceiling / line_rate
            sends = "sent" if self.is_of_a_trial else "sends no more than"
            return f"the tester {sends} {format_rate(ceiling)}, {format_digits(share)} % of the line rate"
        if self.most_line_rates > 1.0:
            return f"the lines of all senders carry no more than {format_rate(line_rate * self.most_line_rates)}"
        return f"the line carries no more than {format_rate(line_rate)}"


def highest_frames_per_s(line_rate_frames_per_s: float, ceiling_frames_per_s: float | None) -> float:
    """Returns the highest rate that tester and line carry."""
    if ceiling_frames_per_s is None:
        return line_rate_frames_per_s
    return min(line_rate_frames_per_s, ceiling_frames_per_s)


async def full_rate(context: Context, size: Size, of: float | str, *, most_line_rates: float = 1.0) -> FullLoad:
    """Returns the 100 % load that ``of`` stands for at this frame size, on this tester and line.

    A method that overloads a port on purpose passes ``most_line_rates`` of its context.
    """
    line_rate = context.line_rate_frames_per_s(size)
    ceiling = await context.ceiling_frames_per_s(size)
    highest = highest_frames_per_s(line_rate, None if ceiling is None else ceiling * (1.0 - _ROOM))
    rates = {LINE_RATE: line_rate, HIGHEST: highest}
    rate = rates[of] if isinstance(of, str) else of
    return FullLoad(full_rate_words(of), rate, line_rate, ceiling, most_line_rates)


def full_rate_words(of: float | str) -> str:
    """Returns the words that follow "% of": "line rate", "the highest load", "800 kpps"."""
    if isinstance(of, str):
        return {LINE_RATE: "line rate", HIGHEST: "the highest load"}[of]
    return next((f"{of / factor:.4g} {unit}" for factor, unit in RATE_UNITS if of >= factor), f"{of:g} pps")


LOWERED_NOTE: Final = ("lowered", "Load")
"""The value and the subject of the note below a table where less was sent than was asked for."""


def lowered_values(size: Size, load_frames_per_s: float, trial: Trial) -> dict[str, float | str]:
    """Returns the load that was sent, and a note where that is less than the one that was asked for."""
    sent = trial.request.sent_frames_per_s
    if sent is None or sent >= load_frames_per_s * (1.0 - _CLOSE):
        return {"load_frames_per_s": load_frames_per_s}
    asked, told = format_rate(load_frames_per_s), format_rate(sent)
    return {"load_frames_per_s": sent, LOWERED_NOTE[0]: f"at {words_of(size)} the tester sent {told}, not {asked}"}


def link_words(context: Context, size: Size) -> str:
    """Describes port speed and direction of traffic: "10 Gb/s, one way", "10 Gb/s, many-to-one, both ways"."""
    speed = format_bits_per_s(l1_bits_per_s(context.line_rate_frames_per_s(size), mean_bytes(size)))
    ways = "both ways" if context.bidirectional else "one way"
    if context.pattern is Pattern.ONE_TO_ONE:
        return f"{speed}, {ways}"
    extra = f", {ways}" if context.bidirectional and not context.pattern.goes_both_ways else ""
    return f"{speed}, {context.pattern.value}{extra}"


NDR = "NDR"


def earlier_rate(context: Context, test: str, goal: str, size: Size) -> Bounded:
    """Returns the rate that an earlier test found, in frames per second of one port.

    It has no value, but a reason, where that test found no rate.
    """
    rate = earlier_value(context, test, f"{goal.lower()}_frames_per_s", size)
    if isinstance(rate, Bounded) and rate.value:
        return rate
    return Bounded(value=None, reason_null=f"{test} found no {goal} at {words_of(size)}")


def earlier_value(context: Context, test: str, name: str, size: Size) -> Value:
    """Returns a value of an earlier test at a frame size; None where that test has none."""
    found = (one.values.get(name) for one in context.results_of(test) if label_of(one.parameters) == size_label(size))
    return next((value for value in found if value is not None), None)


def explain_other_rate(of: str, section: str) -> tuple[str, ...]:
    """Explains, for the report, a rate that is not the throughput, which is without loss (RFC 1242 section 3.17)."""
    return () if of == NDR else (f"100 % is the {of}, {section} takes the throughput, which is without loss",)
