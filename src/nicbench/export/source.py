"""From a run folder to the document of an export. It reads the folder and nothing else, and changes nothing."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel

from nicbench.compare.matching import unfinished_summary
from nicbench.core.events import ResultReady, RunStarted
from nicbench.core.plan import Plan
from nicbench.core.result import (
    Bounded,
    ImportedRow,
    Result,
    ResultVerdict,
    RunStatistics,
    Spread,
    Summary,
    Value,
    name_of_test,
)
from nicbench.export.document import (
    ExportDocument,
    ExportedResult,
    ExportedValue,
    RunOfExport,
    storable,
    storable_deeply,
)
from nicbench.export.tables import Cell, Column, Table, kind_of, long_table, unit_of, wide_table
from nicbench.store.files import PLAN, SUMMARY, damaged_error
from nicbench.store.folder import RunFolder

Record = TypeVar("Record", bound=BaseModel)


def summary_of(folder: RunFolder) -> Summary:
    """The summary; of a run that wrote none, or goes on, its results so far, which are incomplete."""
    summary = folder.summary()
    if summary is not None and folder.finished:
        return summary
    plan = folder.plan()
    return unfinished_summary(folder.journal.results(), plan, folder.run_id, plan.title if plan else folder.run_id)


def document_of(folder: RunFolder, summary: Summary | None = None) -> ExportDocument:
    """Everything that is exported of a run, in the order of its summary; what is over runs comes last."""
    summary = summary or summary_of(folder)
    tests = _tests(folder, summary)
    results = [_result(folder, result, "run", tests) for result in summary.results]
    results += [_result(folder, result, "over_runs", tests) for result in summary.over_runs]
    return ExportDocument(run=_run(folder, summary), results=tuple(results))


def _run(folder: RunFolder, summary: Summary) -> RunOfExport:
    plan = folder.plan()
    started = next((event for event in folder.journal.events() if isinstance(event, RunStarted)), None)
    version = plan.nicbench_version if plan else started.nicbench_version if started else None
    imported = summary.imported
    return RunOfExport(
        run_id=storable(folder.run_id),
        title=storable(summary.title),
        started=storable(started.wall_time) if started else None,
        nicbench_version=storable(version) if version else None,
        verdict=summary.verdict.value,
        finished=folder.finished,
        changed_files=tuple(storable(sentence) for sentence in folder.differences()),
        configurations=tuple(storable(name) for name in summary.configurations),
        imported=storable(imported.statement) if imported else None,
        source=storable(imported.named) if imported else None,
    )


def _tests(folder: RunFolder, summary: Summary) -> dict[str, str]:
    """The test of each result that is too old to say it."""
    if all(result.test is not None for result in (*summary.results, *summary.over_runs)):
        return {}
    return {event.result.id: event.test for event in folder.journal.events() if isinstance(event, ResultReady)}


def _result(
    folder: RunFolder, result: Result, span: Literal["run", "over_runs"], tests: dict[str, str]
) -> ExportedResult:
    near = {found.value: found.text for found in result.near_tester_limit or ()}
    _check(folder, result.id, "parameters", result.parameters)
    return ExportedResult(
        result=storable(result.id),
        span=span,
        test=storable(name_of_test(result, tests)),
        method=storable(result.method),
        configuration=storable(result.configuration),
        run=result.run,
        warm_up=result.warm_up,
        scope=storable(result.scope),
        verdict=result.verdict.value,
        disturbances=tuple(storable(text) for text in result.disturbances),
        imported=result.imported is not None or result.verdict is ResultVerdict.IMPORTED,
        imported_line=result.imported.line if result.imported else None,
        samples=tuple(storable(name) for name in result.trials),
        parameters=storable_deeply(result.parameters),
        values=tuple(_value(folder, result, name, near.get(name)) for name in result.values),
        by_port=_clean(result.by_port) if result.by_port else None,
    )


def _value(folder: RunFolder, result: Result, name: str, near: str | None) -> ExportedValue:
    found = _figures(result.values[name])
    _check(folder, result.id, name, found)
    row = result.imported or ImportedRow(line=0, printed={})
    printed = row.printed.get(name)
    return ExportedValue(
        name=storable(name),
        unit=unit_of(name),
        near_limit=None if near is None else storable(near),
        printed=storable(printed.text) if printed else None,
        printed_unit=storable(printed.unit) if printed and printed.unit else None,
        computed=name in row.computed,
        errata=tuple(_clean(erratum) for erratum in row.errata if erratum.value == name),
        **found,
    )


def _figures(value: Value) -> dict[str, Any]:
    """What a value comes to, without further arithmetic."""
    if isinstance(value, Bounded):
        return {
            "kind": "rate" if value.limited_by or value.value is None else "interval",
            "value": value.value,
            "lower": value.lower,
            "upper": value.upper,
            "some": value.some,
            "half": value.half,
            "loss_floor_ratio": value.loss_floor.ratio if value.loss_floor else None,
            "at_least": value.at_least,
            "limited_by": value.limited_by.value if value.limited_by else None,
            "n": value.n,
            "reason_null": None if value.reason_null is None else storable(value.reason_null),
        }
    if isinstance(value, Spread):
        mean, found = value.of_mean, value.statistics
        return {
            "kind": "spread",
            "value": value.median,
            "lower": value.minimum,
            "upper": value.maximum,
            "at_least": value.at_least,
            "limited_by": value.limited_by.value if value.limited_by else None,
            "n": value.n,
            "runs": value.runs,
            "mean": mean.mean if mean else found.mean if found else None,
            "mean_lower": mean.lower if mean else None,
            "mean_upper": mean.upper if mean else None,
            "mean_confidence_ratio": mean.confidence_ratio if mean else None,
            **(_statistics(found) if found else {}),
        }
    if isinstance(value, str):
        return {"kind": "text", "text": storable(value)}
    return {"kind": "unknown"} if value is None else {"kind": "number", "value": value}


def _statistics(found: RunStatistics) -> dict[str, Any]:
    of_median, of_mean = found.median_interval, found.mean_interval
    return {
        "sample_standard_deviation": found.sample_standard_deviation,
        "population_standard_deviation": found.population_standard_deviation,
        "coefficient_of_variation": found.coefficient_of_variation,
        "median_bootstrap_lower": of_median.lower,
        "median_bootstrap_upper": of_median.upper,
        "mean_bootstrap_lower": of_mean.lower,
        "mean_bootstrap_upper": of_mean.upper,
        "bootstrap_confidence_ratio": of_median.confidence_ratio,
        "bootstrap_seed": of_median.seed,
        "outlier_runs": ", ".join(str(one.run) for one in found.outliers) or None,
    }


def _clean(record: Record) -> Record:
    """A record of the summary whose texts can be written."""
    return type(record).model_validate(storable_deeply(record.model_dump()))


def _check(folder: RunFolder, result: str, name: str, value: Any) -> None:
    """HostError where something is not a number that a file can hold: only a damaged folder has one."""
    if isinstance(value, dict):
        for key, each in value.items():
            _check(folder, result, f"{name}.{key}", each)
    elif isinstance(value, list | tuple):
        for each in value:
            _check(folder, result, name, each)
    elif isinstance(value, int | float) and not _is_finite(value):
        problem = ValueError(f"{result}: {name} is not a finite number")
        raise damaged_error(problem, folder.path / SUMMARY)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False


TABLES: Final = ("results", "values", "trials", "rounds")
"""The tables of a run that ``--table`` names."""
_DEEPEST: Final = 100
_SETTINGS: Final = (PLAN, "tuning.json")
_MACHINE: Final = ("inventory.json",)


class ExportSource:
    """A run to be exported, or several of which one table is wanted; run folders are read and never changed."""

    def __init__(self, folder: RunFolder, *more: RunFolder) -> None:
        self.folder = folder
        self._folders = (folder, *more)

    @cached_property
    def documents(self) -> tuple[ExportDocument, ...]:
        """Every result in one shape, by run."""
        return tuple(document_of(folder) for folder in self._folders)

    @property
    def document(self) -> ExportDocument:
        """That of the first run, which mostly is the only one."""
        return self.documents[0]

    @property
    def changed_files(self) -> tuple[str, ...]:
        """Sentences about files that changed after their run."""
        return tuple(sentence for document in self.documents for sentence in document.run.changed_files)

    @cached_property
    def plan(self) -> Plan | None:
        """The bench file as resolved; None where the run ended before."""
        return self.folder.plan()

    def table(self, name: str) -> Table:
        """One of ``TABLES``; results and values are those of all runs."""
        if name == "results":
            return wide_table(*self.documents)
        if name == "values":
            return long_table(*self.documents)
        from nicbench.export import arrow  # here: pyarrow takes long to load

        found = arrow.trials(self.folder) if name == "trials" else arrow.rounds(self.folder)
        return arrow.as_table(name, found)

    @cached_property
    def settings(self) -> Table:
        """How the run was made: of the run itself, the plan and the tuning, a row for each setting."""
        return _flat("settings", {"run": self.document.run.model_dump(mode="json"), **self._files(_SETTINGS)})

    @cached_property
    def machine(self) -> Table:
        """What is disclosed of the machines, a row for each fact."""
        return _flat("machine", self._files(_MACHINE))

    def _files(self, names: tuple[str, ...]) -> dict[str, Any]:
        contents = ((name, self.folder.read_json(name)) for name in names)
        found = {name.removesuffix(".json"): content for name, content in contents if content is not None}
        for name, content in found.items():
            if _depth_exceeds(content, _DEEPEST):
                raise damaged_error(ValueError("it is nested too deep"), self.folder.path / f"{name}.json")
        return found


def _flat(name: str, content: dict[str, Any]) -> Table:
    """A row for each value in a tree: where it stands, and what it is."""
    rows: list[tuple[Cell, ...]] = []
    waiting: list[tuple[str, Any]] = [("", content)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict) and value:
            waiting += [(f"{place}.{key}" if place else str(key), each) for key, each in reversed(value.items())]
        elif isinstance(value, list) and value:
            waiting += [(f"{place}[{number}]", each) for number, each in reversed([*enumerate(value)])]
        else:
            rows.append((storable(place), _leaf(value)))
    columns = (Column("setting", about="where it stands"), Column("value", kind_of(row[1] for row in rows)))
    return Table(name, columns, tuple(rows))


def _leaf(value: Any) -> Cell:
    if isinstance(value, str):
        return storable(value)
    return None if isinstance(value, dict | list) else value


def _depth_exceeds(content: Any, most: int) -> bool:
    level = [content]
    for _ in range(most):
        level = [
            each
            for value in level
            if isinstance(value, dict | list)
            for each in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return False
    return True
