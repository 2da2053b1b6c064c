"""Throughput (RFC 2544 section 26.1): the highest rate at which the DUT loses no frame (NDR), or only a share (PDR).

Steps, for each frame size: a search looks, between a minimum load and the line rate, for the highest load that meets
each goal; every load is one judged trial, and one of full length confirms the answer (section 24). Where a rate comes
near what the tester sends, its ceiling is measured without a DUT. Verified: each frame is recognised by its signature,
its payload compared; losses that the tester may have caused are not charged to the DUT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSize, Size, size_label, size_parameters
from nicbench.core.result import (
    RATE,
    Bounded,
    LimitedBy,
    Result,
    ResultVerdict,
    counted_number,
    number_of,
)
from nicbench.core.table import (
    ImportColumn,
    ImportTable,
    ResultTable,
    SearchedRates,
)
from nicbench.core.trial import Purpose, Trial, TrialRequest
from nicbench.core.units import l1_bits_per_s, l2_bits_per_s
from nicbench.methods._imports import LINE_RATE, LOSS, SIZE, interval_columns
from nicbench.methods._rate_columns import (
    CEILING,
    FRAME,
    LINE_RATE_COLUMN,
    columns_of,
    explain_rates,
    goals_of,
    in_bits,
    keys_of_goals,
    overview_of,
    zero_loss,
)
from nicbench.methods._results import BROADCASTS_NOTE, measure_sizes
from nicbench.methods._throughput import (
    EXPECTED_TRIALS,
    NEAR_CEILING,
    SELF_CHECK,
    TRIALS_IN_TIME,
    SearchChoice,
    how_it_searches,
    known_rate_values,
    say_notes,
)
from nicbench.methods._trial_times import RFC_2544_FRAME_BYTES, TrialTimes, missing_sizes
from nicbench.methods.base import Context, FrameMethod, Promise, Values
from nicbench.search.base import Ended, Limits, Outcome, highest_load, lowest_load
from nicbench.search.base import Goal as SearchGoal
from nicbench.stats.shortfalls import describe_share

_NDR = ImportColumn(
    value="ndr_frames_per_s",
    name="frame rate",
    quantity="frame_rate",
    also=("NDR", "throughput", "zero loss rate", "rate"),
)
_PDR = ImportColumn(value="pdr_frames_per_s", name="PDR", quantity="frame_rate")
_NDR_SHARE = ImportColumn(
    value="ndr_percent_of_line_rate",
    name="% of line rate",
    quantity="percent",
    also=("NDR % of line rate", "line rate %", "line rate percent"),
)
_PDR_SHARE = ImportColumn(value="pdr_percent_of_line_rate", name="PDR % of line rate", quantity="percent")


_CONFIRMED = ", and one of full length confirms the answer (section 24)"


class Throughput(FrameMethod):
    """The throughput of each frame size."""

    kind: ClassVar[str] = "throughput"
    takes_broadcasts: ClassVar[bool] = True
    needs_ceiling: ClassVar[bool] = False
    question: ClassVar[str] = "How many frames a second does {subject} pass without loss, by frame size?"

    class Options(Frozen):
        """Options of the bench file."""

        frame_bytes: tuple[FrameSize, ...] = Field(default=RFC_2544_FRAME_BYTES, min_length=1)
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
        text = super().procedure(options)
        search, times = ((options or {}).get(part) for part in ("search", "trial"))
        if not isinstance(search, Mapping) or not isinstance(times, Mapping):
            return text
        kind = search.get("kind")
        if isinstance(kind, str) and (how := how_it_searches(kind)) is not None:
            text = f"{text} The search is {kind}: {how}"
        trial_s, validation_s = times.get("duration"), search.get("validation")
        if not isinstance(trial_s, int | float) or not isinstance(validation_s, int | float):
            return text
        longer = f", and one of {validation_s:g} s confirms the answer (section 24)"
        none = f", and no trial longer than {trial_s:g} s confirms the answer"
        return text.replace(_CONFIRMED, longer if validation_s > trial_s else none)

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
            notes=(SELF_CHECK, BROADCASTS_NOTE),
        )

    @classmethod
    def table_values(cls, result: Result, trials: Mapping[str, Trial]) -> Values:
        """Returns each rate in bits, without and with the per-frame overhead on the wire."""
        frame_bytes = result.parameters.get("frame_bytes")
        rates = {key: counted_number(result.values[f"{key}{RATE}"]) for key in keys_of_goals((result,))}
        if not isinstance(frame_bytes, int | float):
            return {}
        return {
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
            *((zero_loss(lossless),) if lossless and has_lossless else ()),
            in_bits(goals),
        )
        return table.replace(
            caption=caption,
            columns=(FRAME, *(column for goal in goals for column in columns_of(goal)), LINE_RATE_COLUMN),
            rates=SearchedRates(goals=goals, line_rate=LINE_RATE_COLUMN.value, ceiling=CEILING.value),
            further=further,
            overview=(*(column for goal in goals for column in overview_of(goal)), CEILING),
        )

    async def run(self, context: Context) -> tuple[Result, ...]:
        self._time_left_s, self._sizes_left = (
            self.options.search.time_s(self.options.trial, self.points()),
            self.points(),
        )
        return await measure_sizes(context, self.options.frame_bytes, self._measure_size)

    async def _measure_size(self, context: Context, size: Size) -> Result:
        """Searches at one frame size, in its part of the time that is left for the test.

        The tester's ceiling is measured without a DUT only where a rate comes near what the tester sent.
        """
        options, times = self.options.search, self.options.trial
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
            time_s=None if self._time_left_s is None else max(1e-3, self._time_left_s / self._sizes_left),
        )
        goals = tuple(SearchGoal(name=name, loss_ratio=ratio) for name, ratio in options.goals.items())
        request = self._request(size)
        found = await context.search(options.build(), size_parameters(size), request, goals, limits)
        self._sizes_left -= 1
        if self._time_left_s is not None:
            self._time_left_s -= found.took_s
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
        """Returns the known rate beside the goal without loss, which is what the rate of a DUT is known for."""
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
