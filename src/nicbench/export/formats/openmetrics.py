"""OpenMetrics 1.0 text: a gauge for each value, with result, configuration, run and parameters as labels.

No sample has a time stamp: a run is over when it is exported, and collectors drop or refuse old ones. When it began is
a metric of its own. Units are those of the names, unconverted (``_ns``, not seconds): every number is summary.json's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, Final

from nicbench.core.result import ResultVerdict
from nicbench.export.document import ExportDocument, ExportedResult, ExportedValue
from nicbench.export.formats.base import ExportFormat
from nicbench.export.source import ExportSource
from nicbench.export.tables import plain
from nicbench.export.text import replace_controls

_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]+")
_RUN_INFO: Final = "nicbench_run"
_STARTED: Final = "nicbench_run_started_timestamp_seconds"
_VERDICT: Final = "nicbench_result_verdict"
_BOUNDS: Final = ("value", "lower", "upper")


@dataclass
class _Family:
    """One metric: its samples stand together, as the format asks."""

    name: str
    kind: str
    about: str
    unit: str | None = None
    samples: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        yield f"# TYPE {self.name} {self.kind}"
        if self.unit:
            yield f"# UNIT {self.name} {self.unit}"
        yield f"# HELP {self.name} {_escape(self.about)}"
        yield from self.samples


class OpenMetricsFormat(ExportFormat):
    """Values that are words are left out; those that are unknown have no sample."""

    kind = "openmetrics"
    suffix = ".openmetrics.txt"

    def write(self, source: ExportSource, table: str, stream: BinaryIO) -> None:
        for family in _families(source.document):
            stream.writelines(f"{line}\n".encode() for line in family.lines())
        stream.write(b"# EOF\n")


def _families(document: ExportDocument) -> Iterator[_Family]:
    run = document.run
    told = {"run_id": run.run_id, "title": run.title, "verdict": run.verdict, "nicbench_version": run.nicbench_version,
            "source": run.source}  # fmt: skip
    yield _Family(_RUN_INFO, "info", "the run that was exported", samples=[_sample(f"{_RUN_INFO}_info", told, 1)])
    started = _seconds(run.started)
    if started is not None:
        sample = _sample(_STARTED, {"run_id": run.run_id}, started)
        yield _Family(_STARTED, "gauge", "when the run began, seconds since 1970-01-01 UTC", "seconds", [sample])
    yield _verdicts(document)
    values: dict[str, _Family] = {}
    taken = {_RUN_INFO, f"{_RUN_INFO}_info", _STARTED, _VERDICT}
    for result in document.results:
        labels = _labels(document, result)
        for value in result.values:
            if value.value is not None:
                if value.name not in values:
                    values[value.name] = _family(value, taken)
                values[value.name].samples += _samples(values[value.name].name, labels, value)
    yield from values.values()


def _family(value: ExportedValue, taken: set[str]) -> _Family:
    """A name of its own: where two names differ in nothing that a metric's name may hold, the second is numbered."""
    stem = _NOT_IN_NAMES.sub("_", f"nicbench_{value.name}")
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    taken.add(name)
    unit = value.unit if value.unit and name.endswith(f"_{value.unit}") else None
    return _Family(name, "gauge", f"{value.name} in summary.json{f', {value.unit}' if value.unit else ''}", unit)


def _samples(name: str, labels: Mapping[str, str | None], value: ExportedValue) -> Iterator[str]:
    for bound in _BOUNDS:
        number = getattr(value, bound)
        if number is not None:
            yield _sample(name, {**labels, "bound": bound, "limited_by": value.limited_by}, number)


def _verdicts(document: ExportDocument) -> _Family:
    samples = []
    for result in document.results:
        for verdict in ResultVerdict:
            labels = {**_labels(document, result), _VERDICT: verdict.value}
            samples.append(_sample(_VERDICT, labels, int(result.verdict == verdict.value)))
    return _Family(_VERDICT, "stateset", "whether a result may be relied on", samples=samples)


def _labels(document: ExportDocument, result: ExportedResult) -> dict[str, str | None]:
    labels: dict[str, str | None] = {
        "run_id": document.run.run_id,
        "result": result.result,
        "span": result.span,
        "test": result.test,
        "method": result.method,
        "configuration": result.configuration,
        "run": None if result.run is None else str(result.run),
        "warm_up": "true" if result.warm_up else "false",
        "scope": result.scope,
    }
    for parameter, value in result.parameters.items():
        name = _NOT_IN_NAMES.sub("_", f"parameter_{parameter}")
        while name in labels:
            name += "_"
        labels[name] = None if value is None else _label_of(plain(value))
    return labels


def _label_of(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _sample(name: str, labels: Mapping[str, str | None], number: float) -> str:
    """A label that is unknown is left out, which the format holds equal to an empty one."""
    told = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items() if text)
    return f"{name}{{{told}}} {number!r}"


def _escape(text: str) -> str:
    clean = replace_controls(text).replace("\r", "\ufffd")
    return clean.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _seconds(wall_time: str | None) -> float | None:
    """None where the label is no time with its zone."""
    try:
        moment = datetime.fromisoformat(wall_time or "")
        return moment.timestamp() if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
