"""Throughput (RFC 2544 section 26.1): the highest rate at which the DUT loses no frame (NDR), or only a share (PDR).

Steps, for each frame size: the tester's own ceiling is known, measured without a DUT; a search looks, between a minimum
load and min(line rate, ceiling), for the highest load that meets each goal; every load is one judged trial, and one of
full length confirms the answer (section 24). Verified: each frame is recognised by its signature, its payload compared,
and a trial that the tester spoilt is not the DUT's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import ConfigDict, Field, ValidationError, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from nicbench.methods._imports import LINE_RATE, LOSS, SIZE, interval
from nicbench.methods._results import each_size
from nicbench.methods._trial_times import RFC_2544_FRAME_BYTES, TrialTimes, Validation, missing_sizes
from nicbench.methods.base import Context, FrameMethod
from nicbench.model.base import Frozen
from nicbench.model.frame_size import FrameSize, Size, size_label, size_parameters
from nicbench.model.import_table import ImportColumn, ImportTable
from nicbench.model.quantity import FramesPerSecond, Ratio
from nicbench.model.rate import Bounded, LimitedBy
from nicbench.model.result import Result, ResultVerdict
from nicbench.model.table import Column
from nicbench.model.trial import Purpose
from nicbench.registry import find
from nicbench.search.base import Goal, Limits, Outcome, Search

NDR_AND_PDR = {"NDR": 0.0, "PDR": 0.005}
# RFC 2544 section 24: a search may use shorter trials, "but the final determination SHOULD be made with full length".
FULL_TRIAL_S = 60.0

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


class SearchChoice(Frozen):
    """Which search, for which loss ratios, how narrow, and how many trials at most per frame size.

    What else the search lets its user choose stands beside these keys, and is read by the search's own ``Options``.
    """

    model_config = ConfigDict(extra="allow")

    kind: str = "mlr"
    goals: dict[str, Ratio] = Field(default_factory=lambda: dict(NDR_AND_PDR), min_length=1)
    precision: Ratio = 0.005
    maximum_trials: int = Field(default=60, ge=2)
    minimum_load: FramesPerSecond = 1000.0
    validation: Validation = FULL_TRIAL_S
    """Seconds; 0 is none, which is the default in a lab made on the spot."""

    @model_validator(mode="before")
    @classmethod
    def _read_by_the_search(cls, written: Any, information: ValidationInfo) -> Any:
        """The search's own keys; an unknown kind is told by the checks of the bench file, which know its place."""
        if not isinstance(written, dict):
            return written
        search = find("nicbench.search", Search).get(written.get("kind", "mlr"))
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

    def build(self) -> Search:
        """The search itself."""
        kind = find("nicbench.search", Search)[self.kind]
        return kind(kind.Options.model_validate(self.model_extra or {}))

    def validation_s(self, trial_s: float) -> float | None:
        """How long the trial that confirms the answer is; ``None`` where the others are as long, or none is wanted."""
        return self.validation if self.validation > trial_s else None


class Throughput(FrameMethod):
    """The throughput of each frame size."""

    kind: ClassVar[str] = "throughput"
    question: ClassVar[str] = "How many frames a second does {subject} pass without loss, by frame size?"

    class Options(Frozen):
        """Options of the bench file."""

        frame_bytes: tuple[FrameSize, ...] = Field(default=RFC_2544_FRAME_BYTES, min_length=1)
        search: SearchChoice = SearchChoice()
        trial: TrialTimes = TrialTimes()

    options: Options

    def points(self) -> int:
        return len(self.options.frame_bytes)

    def frame_sizes(self) -> tuple[int | str, ...]:
        return self.options.frame_bytes

    @classmethod
    def in_a_lab(cls, options: Frozen) -> Frozen:
        """No validation trial unless one is written: a lab of this machine is for quick runs."""
        if not isinstance(options, cls.Options) or "validation" in options.search.model_fields_set:
            return options
        search = options.search.model_copy(update={"validation": 0.0})
        return options.model_copy(update={"search": search})

    def estimate_s(self) -> float:
        """At a soft knee nearly all trials may have to be as long as the validation; mostly a few are."""
        search, trial = self.options.search, self.options.trial
        longest = trial.model_copy(update={"duration": search.validation_s(trial.duration) or trial.duration})
        return longest.estimate_s(self.points() * search.maximum_trials)

    def deviations(self) -> tuple[str, ...]:
        search, trial = self.options.search, self.options.trial
        votes = search.build().options.trials_per_bound
        majority = f"a bound is settled by the majority of {votes} trials, RFC 2544 section 26.1 uses one"
        return (
            *trial.deviations(search.validation_s(trial.duration)),
            *missing_sizes(self.options.frame_bytes),
            *((majority,) if votes > 1 else ()),
        )

    @classmethod
    def imports(cls) -> ImportTable:
        """The zero-loss table of card makers' reports, with a PDR and intervals where there are any."""
        return ImportTable(
            columns=(SIZE, *interval(_NDR), *interval(_PDR), LINE_RATE, _NDR_SHARE, _PDR_SHARE, LOSS),
            any_of=(_NDR.value, _PDR.value, _NDR_SHARE.value, _PDR_SHARE.value),
            line_rate=LINE_RATE.value,
            shares=((_NDR.value, _NDR_SHARE.value), (_PDR.value, _PDR_SHARE.value)),
            rising=((_NDR.value, _PDR.value),),
            lossless=((_NDR.value, LOSS.value),),
        )

    @classmethod
    def main_values(cls, result: Result) -> tuple[str, ...]:
        """The rate of each goal."""
        rates = (name for name, value in result.values.items() if isinstance(value, Bounded))
        return tuple(name for name in rates if name.endswith("_frames_per_s"))

    @classmethod
    def column_of(cls, result: Result, name: str) -> Column | None:
        """The rate of a goal, whatever the bench file calls it."""
        if name not in cls.main_values(result):
            return None
        goal = name.removesuffix("_frames_per_s").upper()
        return Column(value=name, head=goal, unit="Mpps", form="mpps", better="higher", comparative="faster")

    async def run(self, context: Context) -> tuple[Result, ...]:
        return await each_size(context, self.options.frame_bytes, self._measure_size)

    async def _measure_size(self, context: Context, size: Size) -> Result:
        options = self.options.search
        times = self.options.trial
        line_rate = context.line_rate_frames_per_s(size)
        ceiling = await context.ceiling_frames_per_s(size)
        tester_first = ceiling is not None and ceiling < line_rate
        maximum = min(line_rate, ceiling if ceiling is not None else line_rate)
        limits = Limits(
            minimum_load_frames_per_s=min(options.minimum_load, maximum / 2),
            maximum_load_frames_per_s=maximum,
            maximum_limited_by=LimitedBy.TESTER if tester_first else LimitedBy.LINE_RATE,
            precision=options.precision,
            trial_duration_s=times.duration,
            validation_duration_s=options.validation_s(times.duration),
            maximum_trials=options.maximum_trials,
        )
        goals = tuple(Goal(name=name, loss_ratio=ratio) for name, ratio in options.goals.items())
        request = times.request(size, None, Purpose.SEARCH)
        found = await context.search(options.build(), size_parameters(size), request, goals, limits)
        rates = {name.lower(): outcome.rate for name, outcome in found.outcomes.items()}
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
                "search_trials": len(found.trial_ids),
                "search_traffic_s": found.traffic_s,
            },
            verdict=_verdict(found.outcomes),
            disturbances=_notes(found.outcomes),
            trials=found.trial_ids,
        )


def _percent(rate: Bounded, line_rate: float) -> float | None:
    """The same basis on both sides: one port, one direction."""
    return None if rate.value is None else 100.0 * rate.value / line_rate


def _verdict(outcomes: Mapping[str, Outcome]) -> ResultVerdict:
    """Without one usable trial nothing is known of the DUT, which is not the same as a DUT that passes nothing."""
    if any(outcome.trials == 0 for outcome in outcomes.values()):
        return ResultVerdict.INCOMPLETE
    disturbed = any(outcome.disturbed for outcome in outcomes.values())
    return ResultVerdict.DISTURBED if disturbed else ResultVerdict.VALID


def _notes(outcomes: Mapping[str, Outcome]) -> tuple[str, ...]:
    return tuple(f"{name}: {note}" for name, outcome in outcomes.items() for note in outcome.notes)
