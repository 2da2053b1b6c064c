"""Results: what a method concludes, in the shape of summary.json (docs/summary.schema.json)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from nicbench.model.base import Frozen
from nicbench.model.ports import PortFigures
from nicbench.model.rate import Bounded


class ResultVerdict(StrEnum):
    """Whether a result, or a run, may be relied on."""

    VALID = "valid"
    DISTURBED = "disturbed"
    INCOMPLETE = "incomplete"


class NearLimit(Frozen):
    """One value so near to the tester's own ``limit`` (both names in ``values``) that it may be the tester's."""

    value: str
    limit: str
    text: str


class Result(Frozen):
    """One row: one test, one configuration, one set of parameters. Names in ``values`` carry their unit."""

    id: str
    method: str
    configuration: str = "default"
    scope: str = "default"
    parameters: dict[str, Any]
    values: dict[str, Bounded | float | int | str | None]
    verdict: ResultVerdict = ResultVerdict.VALID
    disturbances: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    near_tester_limit: tuple[NearLimit, ...] | None = Field(default=None, exclude_if=lambda found: found is None)
    """Since format 1.1, which always says it; None, and not written, in a result of format 1.0."""
    by_port: PortFigures | None = Field(default=None, exclude_if=lambda found: found is None)
    """Where several ways between ports carried traffic at once: each port, each way, and all together."""


class Summary(Frozen):
    """The whole of summary.json."""

    format: str = "1.1"
    title: str
    verdict: ResultVerdict
    results: tuple[Result, ...] = Field(default_factory=tuple)
