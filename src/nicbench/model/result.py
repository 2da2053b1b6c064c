"""Results: what a method concludes, in the shape of summary.json (docs/summary.schema.json)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import Field

from nicbench.model.base import Frozen
from nicbench.model.imported import Imported, ImportedRow
from nicbench.model.ports import PortFigures
from nicbench.model.rate import Bounded
from nicbench.model.runs import RunsMade
from nicbench.model.spread import Spread
from nicbench.model.turn import DEFAULT


class ResultVerdict(StrEnum):
    """Whether a result, or a run, may be relied on."""

    VALID = "valid"
    DISTURBED = "disturbed"
    INCOMPLETE = "incomplete"
    IMPORTED = "imported"
    """Since format 1.3: not measured by nicbench, which can say nothing of how it was."""


Value = Bounded | Spread | float | int | str | None
"""A ``Spread`` only in results over several runs."""


class NearLimit(Frozen):
    """One value so near to the tester's own ``limit`` (both names in ``values``) that it may be the tester's."""

    value: str
    limit: str
    text: str


class Result(Frozen):
    """One row: one test, one configuration, one set of parameters. Names in ``values`` carry their unit."""

    id: str
    test: str | None = Field(default=None, exclude_if=lambda found: found is None)
    """The test's name in the bench file; not written before format 1.2."""
    method: str
    configuration: str = DEFAULT
    run: int | None = Field(default=None, exclude_if=lambda run: run is None)
    """Of the configuration, from 1; None over all its runs, and not written before format 1.2."""
    warm_up: bool = Field(default=False, exclude_if=lambda warm_up: not warm_up)
    """Since format 1.4: of a run that warms up, which is shown and part of nothing that is concluded."""
    scope: str = "default"
    parameters: dict[str, Any]
    values: dict[str, Value]
    verdict: ResultVerdict = ResultVerdict.VALID
    disturbances: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    near_tester_limit: tuple[NearLimit, ...] | None = Field(default=None, exclude_if=lambda found: found is None)
    """Since format 1.1, which always says it; None, and not written, in a result of format 1.0."""
    by_port: PortFigures | None = Field(default=None, exclude_if=lambda found: found is None)
    """Where several ways between ports carried traffic at once: each port, each way, and all together."""
    imported: ImportedRow | None = Field(default=None, exclude_if=lambda found: found is None)
    """Since format 1.3, of a result that was not measured by nicbench."""

    @property
    def run_number(self) -> int | None:
        """Of which run it is: its own word, or of an imported one its parameter; None where nobody numbered any."""
        if self.run is not None:
            return self.run
        run = self.parameters.get("run")
        return run if isinstance(run, int) else None


def name_of_test(result: Result, tests: Mapping[str, str]) -> str:
    """The name of its test; where the result is too old to say it, ``tests`` may, by the result's id."""
    return result.test or tests.get(result.id, result.id.partition("/")[0])


def title_of_test(result: Result, tests: Mapping[str, str]) -> str:
    """The name of its test, and whose it is where configurations are compared."""
    name = name_of_test(result, tests)
    return name if result.configuration == DEFAULT else f"{name} ({result.configuration})"


class Summary(Frozen):
    """The whole of summary.json."""

    format: str = "1.5"
    title: str
    verdict: ResultVerdict
    results: tuple[Result, ...] = Field(default_factory=tuple)
    configurations: tuple[str, ...] = Field(default=(), exclude_if=lambda names: names == ())
    """Those that are compared, in the order of the bench file."""
    over_runs: tuple[Result, ...] = Field(default=(), exclude_if=lambda results: results == ())
    """Where each configuration has several runs: each point over all of them, numbers as median and range."""
    imported: Imported | None = Field(default=None, exclude_if=lambda found: found is None)
    """Since format 1.3, of results that were not measured by nicbench: their source."""
    runs: RunsMade | None = Field(default=None, exclude_if=lambda found: found is None)
    """Since format 1.4, where runs warm up or their number grows."""

    @property
    def counted(self) -> tuple[Result, ...]:
        """The results without those of runs that warm up: what conclusions rest on."""
        return tuple(result for result in self.results if not result.warm_up)

    @property
    def beside_each_other(self) -> tuple[Result, ...]:
        """What is compared, over the runs where there are several: configurations in the order of the bench file."""
        results = self.over_runs or self.counted
        order = {name: number for number, name in enumerate(self.configurations)}
        return tuple(sorted(results, key=lambda result: order.get(result.configuration, 0)))
