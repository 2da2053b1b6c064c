"""The key ``runs`` of a bench file: a number, or how many runs warm up, how many count, and when they may end."""

from __future__ import annotations

from typing import Annotated, Any, Final, Self

from pydantic import BeforeValidator, Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.quantity import Ratio
from nicbench.core.runs import MOST_RUNS, Runs

_FEWEST: Final = 3
_CAP: Final = 20
_CONFIDENCE: Final = 0.95


class WrittenRuns(Frozen):
    """``{warm_up: 1, exactly: 5}``, or ``{warm_up: 1, at_least: 3, at_most: 20, until: 5 %, confidence: 95 %}``."""

    warm_up: int = Field(default=0, ge=0, le=100)
    exactly: int | None = Field(default=None, ge=1, le=MOST_RUNS)
    at_least: int | None = Field(default=None, ge=2, le=MOST_RUNS)
    at_most: int | None = Field(default=None, ge=2, le=MOST_RUNS)
    until: Ratio | None = Field(default=None, gt=0.0)
    confidence: Ratio | None = Field(default=None, ge=0.5, le=0.9999)

    @property
    def resolved(self) -> Runs:
        """The settings with every default filled in."""
        if self.until is None:
            return Runs(warm_up=self.warm_up, at_least=self.exactly or 1, at_most=self.exactly or 1)
        return Runs(
            warm_up=self.warm_up,
            at_least=self._fewest,
            at_most=self.at_most or max(_CAP, self._fewest),
            until_ratio=self.until,
            confidence_ratio=self.confidence or _CONFIDENCE,
        )

    @property
    def _fewest(self) -> int:
        return self.at_least or min(_FEWEST, self.at_most or _FEWEST)

    @model_validator(mode="after")
    def _check_keys_fit_together(self) -> Self:
        growing = [key for key in ("at_least", "at_most", "confidence") if getattr(self, key) is not None]
        if self.until is None and growing:
            raise ValueError(f"`{growing[0]}` needs `until`: add `until: 5 %`, or write `exactly: 5` alone")
        if self.until is not None and self.exactly is not None:
            raise ValueError("`exactly` fixes the number of runs and `until` lets it grow: write only one of them")
        if self.at_most is not None and self.at_most < self._fewest:
            raise ValueError(f"`at_least` ({self.at_least}) is more than `at_most` ({self.at_most})")
        return self


def _expand_number(value: Any) -> Any:
    """Turns a number that stands alone into ``{exactly: NUMBER}``."""
    if isinstance(value, dict):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return {"exactly": value}
    raise ValueError("write a whole number of runs, or `{at_least: 3, at_most: 20, until: 5 %}`")


RunsKey = Annotated[WrittenRuns, BeforeValidator(_expand_number)]
"""The key ``runs`` of a bench file."""
