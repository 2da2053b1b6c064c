"""Parts of the method ``throughput``: the choice of its search, and the self-check against a rate that is known."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from nicbench.core.base import Frozen
from nicbench.core.described import OneLine
from nicbench.core.frame_size import Size, words_of
from nicbench.core.quantity import FramesPerSecond, Ratio, Seconds
from nicbench.core.registry import find
from nicbench.core.result import Bounded
from nicbench.core.units import format_digits, format_lower, format_rate, format_span, format_upper
from nicbench.methods._trial_times import TrialTimes, Validation
from nicbench.methods.base import Context, Values
from nicbench.search.base import Ended, Limits, Outcome, Search, check_loads
from nicbench.stats.intervals import Agreement

TRIALS_IN_TIME: Final = 12
EXPECTED_TRIALS: Final = 7
BESIDE_S: Final = 0.3
"""What a trial takes beside its traffic and pauses."""
NEAR_CEILING: Final = 0.95
"""A rate that comes so near what the tester sent may be the tester's."""
NDR_AND_PDR = {"NDR": 0.0, "PDR": 0.005}
# RFC 2544 section 24: a search may use shorter trials, "but the final determination SHOULD be made with full length".
FULL_TRIAL_S = 60.0

GoalRatio = Annotated[Ratio, Field(lt=1.0)]

_TAKEN_NAMES: Final = frozenset({"line_rate", "ceiling", "known_rate"})


def how_it_searches(kind: str) -> str | None:
    """Returns how a search chooses its loads: the first sentence of its module; None where there is none of this kind.

    It begins with a small letter, as it stands behind a colon.
    """
    search = find("nicbench.search", Search).get(kind)
    if search is None:
        return None
    said = " ".join((sys.modules[search.__module__].__doc__ or "").replace("``", "").split("\n\n")[0].split())
    first = re.split(r"(?<=[a-z)])\. ", said)[0].rstrip(".")
    return f"{first[:1].lower()}{first[1:]}." if not first[:2].isupper() else f"{first}."


class SearchChoice(Frozen):
    """The choice of a search, its goals (loss ratios), its precision, and the maximum number of trials per frame size.

    Further options of the search stand beside these keys, and are read by the search's own ``Options``.
    """

    model_config = ConfigDict(extra="allow")

    plugins: ClassVar[str] = "nicbench.search"

    kind: str = "guided"
    """The search: `guided`, `mlr` (MLRsearch, RFC 9971) or `step-down` (RFC 2544)."""
    goals: Annotated[dict[str, GoalRatio], OneLine()] = Field(default_factory=lambda: dict(NDR_AND_PDR), min_length=1)
    """The share of frames that may be lost, by name."""
    precision: Ratio = Field(default=0.005, gt=0.0, lt=0.5)
    """Relative width of the reported interval."""
    maximum_trials: int = Field(default=60, ge=2)
    """Most trials for each frame size. A search that ends early reports a wider interval."""
    time: Annotated[Seconds, Field(gt=0.0)] | None = None
    """The time for all frame sizes of the test. A search that runs out of it ends with what its trials showed. Without
    it, `guided` takes at most the time of twelve trials at each size, the others as many trials as they need.
    """
    minimum_load: Annotated[FramesPerSecond, Field(gt=0.0)] = 1.0
    """Below this load the search gives up."""
    maximum_load: FramesPerSecond | None = None
    """The highest load that is tried; without it the line rate, or what the tester can send. For a device that is
    known to be slow, or that a flood of frames stops for good. A device that passes it does at least that.
    """
    validation: Validation = FULL_TRIAL_S
    """Duration of the trial that the answer must pass in the end, where the others are shorter; `0 s` is none. In a
    lab made on the spot there is none.
    """

    @model_validator(mode="before")
    @classmethod
    def _read_by_the_search(cls, written: Any, information: ValidationInfo) -> Any:
        """Reads the search's own keys; an unknown kind is left to the bench file's checks, which know its position."""
        if not isinstance(written, dict):
            return written
        kind = written.get("kind", "guided")
        search = find("nicbench.search", Search).get(kind) if isinstance(kind, str) else None
        if search is None:
            return written
        own = {key: value for key, value in written.items() if key not in cls.model_fields}
        known = [*cls.model_fields, *search.Options.model_fields]
        unknown = [
            InitErrorDetails(
                type=PydanticCustomError("extra_forbidden", "unknown key", {"known": known}), loc=(key,), input=value
            )
            for key, value in own.items()
            if key not in known
        ]
        if unknown:
            raise ValidationError.from_exception_data("search", unknown)
        return {**written, **search.Options.model_validate(own, strict=True, context=information.context).model_dump()}

    @field_validator("goals", mode="after")
    @classmethod
    def _names_differ(cls, goals: dict[str, float]) -> dict[str, float]:
        """Values of results are named after goals in small letters, beside values of other names."""
        known: dict[str, str] = {}
        for name in goals:
            other = known.setdefault(name.lower(), name)
            if other != name:
                raise ValueError(f"the goals `{other}` and `{name}` differ by capital letters only: rename one")
            if name.lower() in _TAKEN_NAMES:
                raise ValueError(f"`{name}` is the name of another figure of the result: give the goal another one")
        return goals

    @model_validator(mode="after")
    def _loads_are_in_order(self) -> Self:
        check_loads(self.minimum_load, self.maximum_load)
        return self

    def build(self) -> Search:
        """Returns the search."""
        kind = find("nicbench.search", Search)[self.kind]
        return kind(kind.Options.model_validate(self.model_extra or {}))

    def time_s(self, times: TrialTimes, sizes: int) -> float | None:
        """Returns the time for so many frame sizes together; ``None`` where there is no limit."""
        if self.time is not None or self.kind != "guided":
            return self.time
        of_trial_s = times.estimate_s(1) + BESIDE_S
        validations_s = len(self.goals) * (self.validation_s(times.duration) or 0.0)
        return sizes * (min(TRIALS_IN_TIME, self.maximum_trials) * of_trial_s + validations_s)

    def validation_s(self, trial_s: float) -> float | None:
        """Returns the length of the trial that confirms the answer; ``None`` if all are as long or none is wanted."""
        return self.validation if self.validation > trial_s else None


WITHIN_RATIO: Final = 0.005
"""An interval agrees that contains the known rate, and whose ends are no farther from it than this share of it."""
SELF_CHECK: Final = ("self_check", "Known rate")
"""The value and the subject of the note below a table of rates."""


def known_rate_values(context: Context, size: Size, outcome: Outcome, trial_s: float) -> Values:
    """Returns the DUT's known rate for trials of ``trial_s``, and whether the lossless rate agrees with it.

    Empty where no rate is known.
    """
    longest_s = outcome.passed_for_s or trial_s
    known = context.known_rate_frames_per_s(longest_s)
    if known is None:
        return {}
    rate = outcome.rate
    found = _agreement(rate, known, 1.0 / longest_s)
    words = {Agreement.AGREE: "agrees", Agreement.DISAGREE: "does not agree", Agreement.UNKNOWN: "cannot be told"}
    return {
        "known_rate_frames_per_s": known,
        "agreement": found.value,
        "self_check": f"at {words_of(size)} expected {format_rate(known)}, found {_span(rate)}: {words[found]}",
    }


def _agreement(rate: Bounded, known: float, frame_frames_per_s: float) -> Agreement:
    """Returns whether the interval contains the known rate, to a frame of a trial, and says it to half a percent.

    One bound alone can contradict the rate, and so can a wide interval; neither can confirm it.
    """
    lower, upper = rate.lower, rate.upper
    too_high = lower is not None and lower > known + frame_frames_per_s
    too_low = upper is not None and upper < known - frame_frames_per_s
    if too_high or too_low:
        return Agreement.DISAGREE
    if lower is None or upper is None:
        return Agreement.UNKNOWN
    farthest = max(known - lower, upper - known)
    return Agreement.AGREE if farthest <= WITHIN_RATIO * known + frame_frames_per_s else Agreement.UNKNOWN


def _span(rate: Bounded) -> str:
    if rate.lower is not None and rate.upper is not None:
        return format_span(rate.lower, rate.upper)
    if rate.lower is not None:
        return f"at least {format_lower(rate.lower)}"
    return "no rate" if rate.upper is None else f"less than {format_upper(rate.upper)}"


_ENDED: Final = {
    Ended.TRIALS: "the trials were spent",
    Ended.TIME: "the time was spent",
    Ended.STOPPED: "the run was interrupted",
}


def say_notes(outcome: Outcome, limits: Limits) -> tuple[str, ...]:
    """Returns in words what a search left open, and what was misleading."""
    said = []
    rate, why = outcome.rate, _ENDED.get(outcome.ended, "the search ended")
    if outcome.disturbed:
        said.append("in the trials that failed the tester was disturbed: their losses may be due to it")
    if not outcome.is_settled and rate.lower is not None and rate.upper is not None:
        width = format_digits(100.0 * (1.0 - rate.lower / rate.upper))
        said.append(f"{why} after {outcome.trials} trials: the ends are {width} % apart")
    elif not outcome.is_settled and outcome.wanted_validation_s is None:
        said.append(f"{why} after {outcome.trials} trials")
    if outcome.wanted_validation_s is not None:
        said.append(f"{why} before a trial of {outcome.wanted_validation_s:g} s could confirm the rate")
    if outcome.misleading_frames_per_s is not None:
        said.append(
            f"at {format_rate(outcome.misleading_frames_per_s)} shorter trials met the goal and one of "
            f"{limits.longest_trial_s:g} s did not: below it only trials of that length count"
        )
    return tuple(said)
