"""Throughput (RFC 2544 section 26.1): the highest rate at which the DUT loses no frame (NDR), or only a share (PDR)."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from nicbench.core.base import Frozen
from nicbench.core.described import OneLine
from nicbench.core.frame_size import FrameSizes, Size, size_label, size_parameters, words_of
from nicbench.core.quantity import FramesPerSecond, Ratio, Seconds
from nicbench.core.registry import find
from nicbench.core.result import RATE, Bounded, LimitedBy, Result, ResultVerdict, counted_number, number_of
from nicbench.core.table import (
    Column,
    FurtherTable,
    Goal,
    ImportColumn,
    ImportTable,
    RateBars,
    ResultTable,
    SearchedRates,
)
from nicbench.core.trial import Purpose, Trial, TrialRequest
from nicbench.core.units import (
    format_lower,
    format_rate,
    format_span,
    format_upper,
    l1_bits_per_s,
    l2_bits_per_s,
)
from nicbench.methods._imports import LINE_RATE, LOSS, SIZE, interval_columns
from nicbench.methods._loads import RFC_2544_FRAME_BYTES, TrialTimes, Validation, missing_sizes
from nicbench.methods._results import BROADCASTS_NOTE
from nicbench.methods._turns import take_turns
from nicbench.methods.base import FRAME, Context, FrameMethod, GiveWay, Promise, Values
from nicbench.search.base import Ended, Limits, Outcome, Search, check_loads, highest_load, lowest_load
from nicbench.search.base import Goal as SearchGoal
from nicbench.stats.intervals import Agreement
from nicbench.stats.limits import describe_share

# The columns of throughput tables, with rate, interval, limit and share for each goal, and their explanation.


_BOUNDS = frozenset({"line_rate", "ceiling", "known_rate"})
"""Prefixes of rates that are not the result of a search."""
LINE_RATE_COLUMN = Column("line_rate_frames_per_s", "Line rate", is_minor=True)
KNOWN_RATE = Column("known_rate_frames_per_s", "Known rate", is_optional=True)
CEILING = Column("ceiling_frames_per_s", "Tester's ceiling", is_minor=True, is_optional=True)


def explain_confirmation(results: Sequence[Result]) -> tuple[str, ...]:
    """Returns a sentence on the longest trial that each rate has passed; empty where the results do not contain it."""
    found = (
        number_of(result.values.get(f"{key}_passed_for_s")) for result in results for key in keys_of_goals((result,))
    )
    lengths = {length for length in found if length is not None}
    if not lengths:
        return ()
    if len(lengths) == 1:
        return (f"Every rate has passed a trial of {min(lengths):g} s.",)
    return (f"Every rate has passed a trial of {min(lengths):g} s at least, and {max(lengths):g} s at most.",)


def keys_of_goals(results: Iterable[Result]) -> tuple[str, ...]:
    """Returns the prefix of the names of each goal's values: "ndr"."""
    names = (name for result in results for name, value in result.values.items() if not isinstance(value, str))
    rates = (name for name in names if name.endswith(RATE))
    keys = dict.fromkeys(name.removesuffix(RATE) for name in rates)
    return tuple(key for key in keys if key not in _BOUNDS)


def goals_of(results: Iterable[Result], options: Mapping[str, Any]) -> tuple[Goal, ...]:
    """Returns the goals of the results, strictest first; their loss ratios are in the options of the test."""
    search = options.get("search")
    written = search.get("goals") if isinstance(search, Mapping) else None
    ratios = written if isinstance(written, Mapping) else {}
    known = {str(name).lower(): (str(name), _ratio_of(ratio)) for name, ratio in ratios.items()}
    goals = []
    for key in keys_of_goals(results):
        name, ratio = known.get(key, (_name_of(key), None))
        goals.append(Goal(value=f"{key}{RATE}", share=f"{key}_percent_of_line_rate", name=name, loss_ratio=ratio))
    return tuple(sorted(goals, key=lambda goal: (goal.loss_ratio is None, goal.loss_ratio or 0.0, goal.value)))


def _ratio_of(written: Any) -> float | None:
    """Returns a loss ratio as a plan has it; None where the file was damaged, and holds something else there."""
    return float(written) if isinstance(written, int | float) and 0 <= written <= 1 else None


def _name_of(key: str) -> str:
    """Returns the name of a goal whose options are unknown: NDR and PDR are abbreviations, others are words."""
    return key.upper() if key[1:3] == "dr" else key


@lru_cache(maxsize=64)
def _columns_of(goal: Goal) -> tuple[Column, ...]:
    rate = Column(
        goal.value,
        "Frame rate",
        name=goal.name,
        group=goal.name,
        aspect="rate",
        is_main=True,
        better="higher",
        adjective="fast",
    )
    return (
        rate,
        Column(goal.value, "Interval", group=goal.name, aspect="interval", is_minor=True),
        Column(goal.value, "Limited by", group=goal.name, aspect="limit"),
        Column(goal.share, "% of line rate", group=goal.name, form="percent", is_optional=True),
    )


@lru_cache(maxsize=64)
def _overview_of(goal: Goal) -> tuple[Column, ...]:
    return (
        Column(goal.value, goal.name, aspect="span", is_main=True),
        Column(goal.share, "% of line rate", form="percent", is_optional=True),
        Column(goal.value, "limited by", aspect="limit"),
    )


@lru_cache(maxsize=64)
def _in_bits(goals: tuple[Goal, ...]) -> FurtherTable:
    layers = [
        Column(goal.value.replace(RATE, f"_{layer}_bits_per_s"), layer.upper(), group=goal.name)
        for goal in goals
        for layer in ("l2", "l1")
    ]
    return FurtherTable(
        title="The same in bits",
        caption="",
        columns=(FRAME, *layers, CEILING),
    )


@lru_cache(maxsize=64)
def _zero_loss(goal: Goal) -> FurtherTable:
    size = Column("size", "Frame size", unit="bytes", form="text")
    rate = Column(goal.value, "Frame rate", aspect="exact", is_main=True)
    line_rate = Column(LINE_RATE_COLUMN.value, "Line rate")
    share = Column(goal.share, "% of line rate", form="trimmed")
    return FurtherTable(
        title="Zero packet loss",
        caption="The highest frame rate at which every frame came back.",
        columns=(size, rate, line_rate, share),
        bars=RateBars(x=size, rate=rate, share=share, goal=goal),
    )


def explain_rates(table: ResultTable, results: Sequence[Result], goals: Sequence[Goal]) -> str:
    """Explains the rates: the search that found them, and the meaning of each goal."""
    told = [f"{goal.name}: {goal.clause}." for goal in goals if goal.loss_ratio is not None]
    return " ".join((table.caption, *told, *explain_confirmation(results)))


# Parts of the method ``throughput``: the choice of its search, and the self-check against a rate that is known.


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
    """Returns how a search chooses its loads, in words behind a colon; None without a search of this kind."""
    search = find("nicbench.search", Search).get(kind)
    return None if search is None else search.how


class SearchChoice(Frozen):
    """The choice of a search, its goals (loss ratios), its precision, and the maximum number of trials per frame size.

    Further options of the search stand next to these keys, and are read by the search's own ``Options``.
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
    """The time for all frame sizes of the test, which then take turns, trial by trial. A search that runs out of it
    ends with what its trials showed; one whose trials disagree uses all of it. Without it, `guided` takes at most the
    time of twelve trials at each size, the others as many trials as they need.
    """
    minimum_load: Annotated[FramesPerSecond, Field(gt=0.0)] = 1.0
    """Below this load the search gives up."""
    maximum_load: FramesPerSecond | None = None
    """The highest load that is tried; without it the line rate, or what the tester can send. For a device that is
    known to be slow, or that a flood of frames stops for good. A device that passes it does at least that.
    """
    validation: Validation = FULL_TRIAL_S
    """Duration of the trial that the answer must pass in the end, where the others are shorter; `0 s` for no such
    trial. A lab made on the spot has none.
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
        """Values of results are named after goals in small letters, next to values of other names."""
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
        """Returns the time for a number of frame sizes together; None without a limit."""
        if self.time is not None or self.kind != "guided":
            return self.time
        of_trial_s = times.estimate_s(1) + BESIDE_S
        validations_s = len(self.goals) * (self.validation_s(times.duration) or 0.0)
        return sizes * (min(TRIALS_IN_TIME, self.maximum_trials) * of_trial_s + validations_s)

    def validation_s(self, trial_s: float) -> float | None:
        """Returns the length of the trial that confirms the answer; ``None`` if all are as long or none is wanted."""
        return self.validation if self.validation > trial_s else None


WITHIN_RATIO: Final = 0.005
"""An interval agrees that contains the known rate, and whose ends are at most this share of it away."""


_DOUBT: Final = ("known_rate_doubt", "Known rate")
"""The value and the subject of the note below a table of rates: a known rate that was not found."""


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
    why = _ENDED.get(outcome.ended, "the search ended")
    if outcome.disturbed:
        said.append("in the trials that failed the tester was disturbed: their losses may be due to it")
    has_ends = outcome.rate.lower is not None and outcome.rate.upper is not None
    if not outcome.is_settled and (has_ends or outcome.wanted_validation_s is None):
        said.append(f"{why} after {outcome.trials} trials")
    if outcome.wanted_validation_s is not None:
        said.append(f"{why} before a trial of {outcome.wanted_validation_s:g} s could confirm the rate")
    if outcome.misleading_frames_per_s is not None:
        said.append(
            f"at {format_rate(outcome.misleading_frames_per_s)} shorter trials met the goal and one of "
            f"{limits.longest_trial_s:g} s did not: below it only trials of that length count"
        )
    return tuple(said)


_NDR = ImportColumn(
    "ndr_frames_per_s",
    "frame rate",
    "frame_rate",
    also=("NDR", "throughput", "zero loss rate", "rate"),
)
_PDR = ImportColumn("pdr_frames_per_s", "PDR", "frame_rate")
_NDR_SHARE = ImportColumn(
    "ndr_percent_of_line_rate",
    "% of line rate",
    "percent",
    also=("NDR % of line rate", "line rate %", "line rate percent"),
)
_PDR_SHARE = ImportColumn("pdr_percent_of_line_rate", "PDR % of line rate", "percent")


_STEPS = """
Throughput (RFC 2544 section 26.1): the highest rate at which the DUT loses no frame, or only a share.
Steps, for each frame size: a search, up to the line rate, for the highest load that meets each goal; every load is one
judged trial, and {confirmed}. Near a rate that the tester itself may limit, its ceiling is measured without a DUT.
Verified: each frame by its signature and payload; losses that the tester may have caused are not charged to the DUT.
"""
_BY_FULL_LENGTH = "one of full length confirms the answer (section 24)"


class Throughput(FrameMethod):
    """The throughput of each frame size."""

    kind = "throughput"
    takes_broadcasts = True
    needs_ceiling = False
    question = "How many frames a second does {subject} pass without loss, by frame size?"
    steps = _STEPS

    class Options(Frozen):
        """Options of the bench file."""

        frame_bytes: FrameSizes = RFC_2544_FRAME_BYTES
        """Frame sizes, and mixes by name."""
        search: SearchChoice = SearchChoice()
        """How the rate is searched for."""
        trial: TrialTimes = TrialTimes()
        """Times of a trial."""

    options: Options

    def promises(self, result: Result) -> tuple[Promise, ...]:
        """Returns each rate that was found, up to which its goal is met; none where frames are lost at any load."""
        rates = (
            (name, f"{name.lower()}{RATE}", ratio, result.values.get(f"{name.lower()}{RATE}"))
            for name, ratio in self.options.search.goals.items()
        )
        return tuple(
            Promise(name=name, value=value, load_frames_per_s=rate.value, loss_ratio=ratio)
            for name, value, ratio, rate in rates
            if isinstance(rate, Bounded) and rate.value is not None and rate.loss_floor is None
        )

    @classmethod
    def lab_options(cls, options: Frozen) -> Frozen:
        """Returns options without a validation trial unless one is given, as a lab on one machine is for quick runs."""
        if not isinstance(options, cls.Options) or "validation" in options.search.model_fields_set:
            return options
        search = options.search.replace(validation=0.0)
        return options.replace(search=search)

    def expected_s(self) -> float:
        share = EXPECTED_TRIALS / TRIALS_IN_TIME if self.options.search.kind == "guided" else 1.0
        return share * self.estimate_s()

    def estimate_s(self) -> float:
        """Returns an estimate; at a soft knee nearly all trials may be as long as the validation, mostly only a few."""
        search, trial = self.options.search, self.options.trial
        time_s = search.time_s(trial, self.points())
        if time_s is not None:
            return time_s
        longest = trial.replace(duration=search.validation_s(trial.duration) or trial.duration)
        return longest.estimate_s(self.points() * search.maximum_trials)

    def deviations(self) -> tuple[str, ...]:
        search, trial = self.options.search, self.options.trial
        trials = search.build().options.trials_per_bound
        confirmed = f"up to {trials} trials confirm each end of the interval, RFC 2544 section 26.1 uses one"
        return (
            *trial.deviations(search.validation_s(trial.duration)),
            *missing_sizes(self.options.frame_bytes),
            *((confirmed,) if trials > 1 else ()),
        )

    @classmethod
    def procedure(cls, options: Mapping[str, Any] | None = None) -> str:
        """Returns the steps, with what this search looks for and the trial that confirms its answer, if any."""
        text, confirmed = super().procedure(options), _BY_FULL_LENGTH
        search, times = ((options or {}).get(part) for part in ("search", "trial"))
        if isinstance(search, Mapping) and isinstance(times, Mapping):
            kind = search.get("kind")
            if isinstance(kind, str) and (how := how_it_searches(kind)) is not None:
                text = f"{text} The search is {kind}: {how}"
            trial_s, validation_s = times.get("duration"), search.get("validation")
            if isinstance(trial_s, int | float) and isinstance(validation_s, int | float):
                longer = f"one of {validation_s:g} s confirms the answer (section 24)"
                none = f"no trial longer than {trial_s:g} s confirms the answer"
                confirmed = longer if validation_s > trial_s else none
        return text.format(confirmed=confirmed)

    @classmethod
    def imports(cls) -> ImportTable | None:
        """Returns the columns of the zero-loss table in card makers' reports, with PDR and intervals where present."""
        return ImportTable(
            columns=(SIZE, *interval_columns(_NDR), *interval_columns(_PDR), LINE_RATE, _NDR_SHARE, _PDR_SHARE, LOSS),
            any_of=(_NDR.value, _PDR.value, _NDR_SHARE.value, _PDR_SHARE.value),
            line_rate=LINE_RATE.value,
            shares=((_NDR.value, _NDR_SHARE.value), (_PDR.value, _PDR_SHARE.value)),
            rising=((_NDR.value, _PDR.value),),
            lossless=((_NDR.value, LOSS.value),),
            caption="The highest rate that met the goal.",
        )

    @classmethod
    def options_of_import(cls, goals: Mapping[str, float]) -> dict[str, Any]:
        return {"search": {"goals": dict(goals)}}

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Throughput",
            caption=(
                "The rate is the highest load that met the goal; the interval ends at the lowest load that did not."
            ),
            basis_of="Frame rates",
            columns=(FRAME, LINE_RATE_COLUMN),
            overview=(CEILING,),
            search_notes="Search",
            notes=(_DOUBT, BROADCASTS_NOTE),
        )

    @classmethod
    def table_values(cls, result: Result, trials: Mapping[str, Trial]) -> Values:
        """Returns each rate in bits, without and with the overhead on the wire, and a known rate that was missed."""
        is_found = result.values.get("agreement") == Agreement.AGREE.value
        doubt = {} if is_found or "self_check" not in result.values else {_DOUBT[0]: result.values["self_check"]}
        frame_bytes = result.parameters.get("frame_bytes")
        rates = {key: counted_number(result.values[f"{key}{RATE}"]) for key in keys_of_goals((result,))}
        if not isinstance(frame_bytes, int | float):
            return doubt
        return {
            **doubt,
            **{f"{key}_l2_bits_per_s": rate and l2_bits_per_s(rate, frame_bytes) for key, rate in rates.items()},
            **{f"{key}_l1_bits_per_s": rate and l1_bits_per_s(rate, frame_bytes) for key, rate in rates.items()},
        }

    @classmethod
    def table_for(cls, table: ResultTable, results: Sequence[Result], options: Mapping[str, Any]) -> ResultTable:
        """Adds four columns for each goal, whatever its name; the same rates in bits; and the zero-loss table."""
        goals = goals_of(results, options)
        lossless = next((goal for goal in goals if goal.loss_ratio == 0.0), None)
        # Of a virtual link no rate is a share of anything, and a table of shares says nothing.
        has_lossless = lossless and any(
            number_of(result.values.get(lossless.value)) and number_of(result.values.get(lossless.share or ""))
            for result in results
        )
        caption = explain_rates(table, results, goals)
        further = (
            *((_zero_loss(lossless),) if lossless and has_lossless else ()),
            _in_bits(goals),
        )
        return table.replace(
            caption=caption,
            columns=(FRAME, *(column for goal in goals for column in _columns_of(goal)), KNOWN_RATE, LINE_RATE_COLUMN),
            rates=SearchedRates(goals=goals, line_rate=LINE_RATE_COLUMN.value, ceiling=CEILING.value),
            further=further,
            overview=(*(column for goal in goals for column in _overview_of(goal)), CEILING),
        )

    async def run(self, context: Context) -> tuple[Result, ...]:
        """Measures one size after the other; where a time is given they take turns, so that each sees all of it."""
        search = self.options.search
        self._time_left_s, self._sizes_left = search.time_s(self.options.trial, self.points()), self.points()
        if search.time is None or self.points() == 1:
            return await super().run(context)
        sizes = context.sizes(self.options.frame_bytes)
        results = await take_turns([functools.partial(self._measure, context, size) for size in sizes])
        stopped: asyncio.CancelledError | None = None
        for result in results:
            try:
                context.publish(result)
            except asyncio.CancelledError as cancelled:
                stopped = cancelled
        if stopped is not None:
            raise stopped
        return tuple(results)

    async def measure_size(self, context: Context, size: Size) -> Result:
        return await self._measure(context, size)

    async def _measure(self, context: Context, size: Size, give_way: GiveWay | None = None) -> Result:
        """Searches at one frame size, in its part of the time that is left for the test, or by turns in all of it.

        The tester's ceiling is measured without a DUT only where a rate comes near what the tester sent.
        """
        options, times, parts = self.options.search, self.options.trial, self._sizes_left if give_way is None else 1
        line_rate = context.line_rate_frames_per_s(size)
        maximum, limited_by = highest_load(line_rate, None, options.maximum_load)
        limits = Limits(
            minimum_load_frames_per_s=lowest_load(options.minimum_load, maximum),
            maximum_load_frames_per_s=maximum,
            maximum_limited_by=limited_by,
            precision=options.precision,
            trial_duration_s=times.duration,
            validation_duration_s=options.validation_s(times.duration),
            maximum_trials=options.maximum_trials,
            time_s=None if self._time_left_s is None else max(1e-3, self._time_left_s / parts),
            searches=1 if give_way is None else self.points(),
            spends_time=options.time is not None,
        )
        goals = tuple(SearchGoal(name=name, loss_ratio=ratio) for name, ratio in options.goals.items())
        request = self._request(size)
        found = await context.search(options.build(), size_parameters(size), request, goals, limits, give_way)
        if give_way is None and self._time_left_s is not None:
            self._sizes_left, self._time_left_s = self._sizes_left - 1, self._time_left_s - found.took_s
        if not found.most_sent_frames_per_s:
            return self._without_tester(size, line_rate)
        rates = {name.lower(): outcome.rate for name, outcome in found.outcomes.items()}
        is_near = any((rate.value or 0.0) >= NEAR_CEILING * found.most_sent_frames_per_s for rate in rates.values())
        ceiling = await context.ceiling_frames_per_s(size) if is_near and not found.is_stopped else None
        return Result(
            id=f"{self.name}/{size_label(size)}",
            method=self.kind,
            scope="per port",
            parameters=size_parameters(size),
            values={
                **{f"{name}_frames_per_s": rate for name, rate in rates.items()},
                **{f"{name}_percent_of_line_rate": _percent(rate, line_rate) for name, rate in rates.items()},
                **{f"{name.lower()}_passed_for_s": outcome.passed_for_s for name, outcome in found.outcomes.items()},
                "line_rate_frames_per_s": line_rate,
                "ceiling_frames_per_s": ceiling,
                **self._known_rate(context, size, found.outcomes),
                "search_trials": len(found.trial_ids),
                "search_traffic_s": found.traffic_s,
            },
            verdict=_verdict(found.outcomes),
            disturbances=(
                *(f"{name}: {note}" for name, outcome in found.outcomes.items() for note in say_notes(outcome, limits)),
                *((describe_share(found.sent_share),) if found.sent_share < 1.0 else ()),
            ),
            trials=found.trial_ids,
        )

    def _request(self, size: Size) -> TrialRequest:
        """Returns the request of which the search changes load and duration."""
        return self.options.trial.request(size, None, Purpose.SEARCH)

    def _without_tester(self, size: Size, line_rate: float) -> Result:
        """Returns the result of a tester that can send nothing: no trial is made."""
        reason = "the tester sent nothing"
        nothing = Bounded(value=None, limited_by=LimitedBy.TESTER, n=0, reason_null=reason)
        names = [name.lower() for name in self.options.search.goals]
        return Result(
            id=f"{self.name}/{size_label(size)}",
            method=self.kind,
            scope="per port",
            parameters=size_parameters(size),
            values={
                **{f"{name}_frames_per_s": nothing for name in names},
                **{f"{name}_percent_of_line_rate": None for name in names},
                "line_rate_frames_per_s": line_rate,
                "ceiling_frames_per_s": 0.0,
            },
            verdict=ResultVerdict.INCOMPLETE,
            disturbances=(reason,),
        )

    def _known_rate(self, context: Context, size: Size, outcomes: Mapping[str, Outcome]) -> Values:
        """Returns the known rate for the goal without loss, which is what the rate of a DUT is known for."""
        name = next((name for name, ratio in self.options.search.goals.items() if ratio == 0.0), None)
        return {} if name is None else known_rate_values(context, size, outcomes[name], self.options.trial.duration)


def _percent(rate: Bounded, line_rate: float) -> float | None:
    """Returns the percentage of the line rate; both are of one port in one direction."""
    number = counted_number(rate)
    return None if number is None else 100.0 * number / line_rate


def _verdict(outcomes: Mapping[str, Outcome]) -> ResultVerdict:
    """Returns the verdict; incomplete without a usable trial, which is not the same as a DUT that passes nothing, and
    where the run was interrupted.
    """
    if any(outcome.trials == 0 or outcome.ended is Ended.STOPPED for outcome in outcomes.values()):
        return ResultVerdict.INCOMPLETE
    if any(outcome.disturbed for outcome in outcomes.values()):
        return ResultVerdict.DISTURBED
    return ResultVerdict.VALID
