"""The key ``search`` of a throughput test: which search, its goals, its precision, and how many trials it may take."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import ConfigDict, Field, ValidationError, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from nicbench.core.base import Frozen
from nicbench.core.described import OneLine
from nicbench.core.quantity import FramesPerSecond, Ratio
from nicbench.core.registry import find
from nicbench.methods._trial_times import Validation
from nicbench.search.base import Search, check_loads

NDR_AND_PDR = {"NDR": 0.0, "PDR": 0.005}
# RFC 2544 section 24: a search may use shorter trials, "but the final determination SHOULD be made with full length".
FULL_TRIAL_S = 60.0

GoalRatio = Annotated[Ratio, Field(lt=1.0)]


class SearchChoice(Frozen):
    """The choice of a search, its goals (loss ratios), its precision, and the maximum number of trials per frame size.

    Further options of the search stand beside these keys, and are read by the search's own ``Options``.
    """

    model_config = ConfigDict(extra="allow")

    plugins: ClassVar[str] = "nicbench.search"

    kind: str = "mlr"
    """The search: `mlr` (MLRsearch), `bisect`, `estimate` or `step-down`."""
    goals: Annotated[dict[str, GoalRatio], OneLine()] = Field(default_factory=lambda: dict(NDR_AND_PDR), min_length=1)
    """The share of frames that may be lost, by name."""
    precision: Ratio = Field(default=0.005, gt=0.0, lt=0.5)
    """Relative width of the reported interval."""
    maximum_trials: int = Field(default=60, ge=2)
    """Most trials for each frame size, without repeats and without the first trial that shows what the tester cannot
    send. A search that ends early reports a wider interval.
    """
    minimum_load: FramesPerSecond = 1000.0
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

    @model_validator(mode="after")
    def _loads_are_in_order(self) -> Self:
        check_loads(self.minimum_load, self.maximum_load)
        return self

    def build(self) -> Search:
        """Returns the search."""
        kind = find("nicbench.search", Search)[self.kind]
        return kind(kind.Options.model_validate(self.model_extra or {}))

    def validation_s(self, trial_s: float) -> float | None:
        """Returns the length of the trial that confirms the answer; ``None`` if all are as long or none is wanted."""
        return self.validation if self.validation > trial_s else None
