"""What a check compares: finished runs, and their results by the point that they are of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.model.plan import Plan
from nicbench.model.result import Result, Summary, name_of_test
from nicbench.model.turn import DEFAULT
from nicbench.store.folder import RunFolder

_NOT_OF_A_POINT: Final = frozenset({"run"})
"""Of imported results, which number their runs there."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A finished run."""

    folder: RunFolder
    summary: Summary
    plan: Plan | None

    @property
    def name(self) -> str:
        """The id of the run."""
        return self.folder.run_id


@dataclass(frozen=True, slots=True)
class Point:
    """What two results must share to be of the same thing. ``parameters`` are JSON with sorted keys."""

    test: str
    method: str
    configuration: str
    scope: str
    parameters: str

    @property
    def words(self) -> str:
        """For people: the test and the parameters."""
        given = ", ".join(f"{name} {value}" for name, value in json.loads(self.parameters).items())
        named = self.test if self.configuration == DEFAULT else f"{self.test} ({self.configuration})"
        return f"{named}: {given}" if given else named


def finished_run(folder: RunFolder) -> Measured | str:
    """The run; a sentence where it cannot be compared. HostError where its files are damaged."""
    summary = folder.summary()
    if summary is None or not folder.finished:
        return f"{folder.run_id} is not finished"
    return Measured(folder, summary, folder.plan())


def by_point(runs: Sequence[Measured]) -> dict[Point, list[Result]]:
    """Every result of all of these runs that counts, in order."""
    found: dict[Point, list[Result]] = {}
    for run in runs:
        for result in run.summary.counted:
            given = {name: value for name, value in result.parameters.items() if name not in _NOT_OF_A_POINT}
            point = Point(
                name_of_test(result, {}),
                result.method,
                result.configuration,
                result.scope,
                json.dumps(given, sort_keys=True, default=str),
            )
            found.setdefault(point, []).append(result)
    return found
