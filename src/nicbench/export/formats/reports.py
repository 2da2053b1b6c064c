"""What other systems show of a run: a badge, JUnit XML and OpenMetrics."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, Final, Literal

from markupsafe import Markup

from nicbench.compare.history.figures import Figure, FigureReader, Measure, median_figure
from nicbench.compare.history.selection import figure_in_words, measure_in_words
from nicbench.core.errors import UsageError
from nicbench.core.frozen import frozen
from nicbench.core.judging import Finding
from nicbench.core.lists import grouped
from nicbench.core.plan import ThresholdRow
from nicbench.core.result import ResultVerdict
from nicbench.core.round import Round
from nicbench.core.trial import Trial
from nicbench.export.document import ExportDocument, ExportedResult, ExportedValue, replace_controls
from nicbench.export.formats.base import ExportFormat
from nicbench.export.source import ExportSource
from nicbench.export.tables import plain
from nicbench.stats.intervals import Agreement

_LETTER: Final = 6.6
"""Width of a letter of 11 pixels, about; ``textLength`` makes every font keep to it."""
_MARGIN: Final = 6
_LONGEST: Final = 60
_COLOURS: Final = {"valid": "#1a7f37", "imported": "#57606a", "disturbed": "#9a6700"}
_OTHERWISE: Final = "#b42318"
_BADGE: Final = Markup(
    '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{said}">'
    "<title>{said}</title>"
    '<rect width="{width}" height="20" rx="3" fill="{colour}"/>'
    '<path d="M3 0h{left_flat}v20h-{left_flat}a3 3 0 0 1-3-3v-14a3 3 0 0 1 3-3z" fill="#3c434a"/>'
    '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
    '<text x="{margin}" y="14" textLength="{label_width}">{label}</text>'
    '<text x="{value_at}" y="14" textLength="{value_width}">{value}</text></g></svg>\n'
)


class BadgeFormat(ExportFormat):
    """The first main value of a run: of several runs the median, of several configurations that of the first."""

    kind = "badge"
    suffix = ".svg"

    def write(self, source: ExportSource, table: str, stream: BinaryIO) -> None:
        found = grouped(
            (measure, figure) for _, measure, figure in FigureReader().figures_of(source.folder) if measure.told.is_main
        )
        plan = source.folder.plan()
        compared = plan.compared if plan is not None else ()
        of_first = (measure for measure in found if measure.configuration in compared[:1])
        main = next(of_first, next(iter(found), None))
        if main is None:
            raise UsageError(
                "has no main value that a badge could show", place=source.folder.run_id, next_step="finish the run"
            )
        stream.write(badge_of(main, median_figure(found[main])).encode())


def badge_of(measure: Measure, figure: Figure) -> str:
    """Returns the badge of a figure: what was measured, its value, and its verdict where it is not simply valid."""
    value = figure_in_words(measure.told, figure)
    return badge(measure_in_words(measure), value, figure.verdict)


def badge(label: str, value: str, verdict: str) -> str:
    """Returns a badge as SVG with a title; its colour and its words say the verdict."""
    shown = value if verdict == "valid" else f"{value} ({verdict})"
    label, shown = (_short(text) for text in (label, shown))
    label_width, value_width = (round(_LETTER * len(text)) for text in (label, shown))
    left = label_width + 2 * _MARGIN
    return str(
        _BADGE.format(
            width=left + value_width + 2 * _MARGIN,
            said=f"{label}: {_short(value)}, {verdict}",
            colour=_COLOURS.get(verdict, _OTHERWISE),
            left_flat=left - 3,
            margin=_MARGIN,
            label_width=label_width,
            label=label,
            value_at=left + _MARGIN,
            value_width=value_width,
            value=shown,
        )
    )


def _short(text: str) -> str:
    clean = " ".join(replace_controls(text).split())
    return clean if len(clean) <= _LONGEST else f"{clean[: _LONGEST - 1]}…"


_THRESHOLDS: Final = "thresholds"
_UNRELIABLE: Final = (ResultVerdict.DISTURBED.value, ResultVerdict.INCOMPLETE.value)


@frozen
class Case:
    """A test case; ``why`` says why it did not pass."""

    suite: str
    name: str
    outcome: Literal["passed", "failure", "skipped"] = "passed"
    why: str = ""
    detail: str = ""
    time_s: float = 0.0


class JunitFormat(ExportFormat):
    """The dialect that Jenkins, GitLab and others read; results of runs that warm up are not in it."""

    kind = "junit"
    suffix = ".xml"

    def write(self, source: ExportSource, table: str, stream: BinaryIO) -> None:
        samples = _samples_by_id(source)
        cases = [*_results(source.document, samples), *_thresholds(source, samples)]
        run = source.document.run
        told = {key: getattr(run, key) for key in ("run_id", "verdict", "nicbench_version", "source")}
        stream.write(junit_of(run.title, cases, told, run.started))


def junit_of(title: str, cases: list[Case], told: Mapping[str, str | None], started: str | None = None) -> bytes:
    """Returns the cases as JUnit XML, a suite for each name; ``told`` are properties of each suite."""
    root = ElementTree.Element("testsuites", _attributes(cases, title))
    for name in dict.fromkeys(case.suite for case in cases):
        _suite(root, name, [case for case in cases if case.suite == name], told, started)
    ElementTree.indent(root)
    head = b'<?xml version="1.0" encoding="utf-8"?>\n'
    body: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=False)
    return head + body + b"\n"


def _samples_by_id(source: ExportSource) -> Mapping[str, Trial | Round]:
    """Every trial and round of the run, by its id."""
    journal = source.folder.journal
    samples: tuple[Trial | Round, ...] = (*journal.trials().values(), *journal.rounds().values())
    return {sample.id: sample for sample in samples}


def _results(document: ExportDocument, samples: Mapping[str, Trial | Round]) -> Iterator[Case]:
    for result in document.results:
        if not result.warm_up:
            time_s = sum(samples[name].measured_s for name in result.samples if name in samples)
            missed = _describe_missed(result)
            detail = "\n".join(_figures(result))
            suite = f"{result.test} ({result.configuration})"
            if result.verdict in _UNRELIABLE:
                said = (result.verdict, *((missed,) if missed else ()), *result.disturbances, *_reasons(result))
                yield Case(suite, result.result, "skipped", "; ".join(said), detail, time_s)
            elif missed:
                yield Case(suite, result.result, "failure", missed, detail, time_s)
            else:
                yield Case(suite, result.result, detail=detail, time_s=time_s)


def _describe_missed(result: ExportedResult) -> str | None:
    """What the bench file asked for and did not get, in words."""
    known = {value.name: value for value in result.values}
    if "met" in known and known["met"].text == "no":
        target = known.get("target_frames_per_s")
        asked = "" if target is None or target.value is None else f" of {target.value!r} frames/s"
        return f"the target{asked} was missed"
    if "accepted" in known and known["accepted"].text == "no":
        return (known["answer"].text if "answer" in known else None) or "it is not accepted"
    if "agreement" in known and known["agreement"].text == Agreement.DISAGREE.value:
        return (known["answer"].text if "answer" in known else None) or "the tools do not agree within the bound"
    return None


def _reasons(result: ExportedResult) -> Iterator[str]:
    for value in result.values:
        if value.reason_null:
            yield f"{value.name}: {value.reason_null}"


def _figures(result: ExportedResult) -> Iterator[str]:
    for name, parameter in result.parameters.items():
        yield f"{name} = {plain(parameter)}"
    for value in result.values:
        number = value.text if value.value is None else repr(value.value)
        bounds = f" [{value.lower!r}, {value.upper!r}]" if value.lower is not None or value.upper is not None else ""
        yield f"{value.name} = {'unknown' if number is None else number}{bounds}"


def _thresholds(source: ExportSource, samples: Mapping[str, Trial | Round]) -> Iterator[Case]:
    plan = source.plan
    passed = _group_findings(source.document, samples) if plan and plan.thresholds else {}
    for row in plan.thresholds if plan else ():
        findings = passed.get(row.name)
        if not findings:
            yield Case(_THRESHOLDS, row.name, detail=_limit(row))
        else:
            is_asked = row.default is not None and row.value != row.default
            why = f"{len(findings)} of the samples that results rest on: {findings[0].text}"
            yield Case(_THRESHOLDS, row.name, "failure" if is_asked else "skipped", why, _limit(row))


def _group_findings(document: ExportDocument, samples: Mapping[str, Trial | Round]) -> Mapping[str, list[Finding]]:
    """By threshold, the findings of samples that results rest on."""
    used = dict.fromkeys(name for result in document.results if not result.warm_up for name in result.samples)
    found = grouped(
        (finding.threshold, finding)
        for name in used
        for finding in (samples[name].verdict.findings if name in samples else ())
    )
    return found


def _limit(row: ThresholdRow) -> str:
    return f"limit {row.value!r} {row.unit}: {row.why}"


def _suite(
    root: ElementTree.Element, name: str, cases: list[Case], told: Mapping[str, str | None], started: str | None
) -> None:
    skipped = sum(case.outcome == "skipped" for case in cases)
    suite = ElementTree.SubElement(root, "testsuite", {**_attributes(cases, name), "skipped": str(skipped)})
    if started:
        suite.set("timestamp", replace_controls(started))
    properties = ElementTree.SubElement(suite, "properties")
    for key, value in told.items():
        if value:
            ElementTree.SubElement(properties, "property", {"name": key, "value": replace_controls(str(value))})
    for case in cases:
        names = {
            "classname": replace_controls(name),
            "name": replace_controls(case.name),
            "time": _seconds(case.time_s),
        }
        element = ElementTree.SubElement(suite, "testcase", names)
        if case.outcome != "passed":
            failed = ElementTree.SubElement(element, case.outcome, {"message": replace_controls(case.why)})
            failed.text = replace_controls(case.why)
            if case.outcome == "failure":
                failed.set("type", "missed")
        if case.detail:
            ElementTree.SubElement(element, "system-out").text = replace_controls(case.detail)


def _attributes(cases: list[Case], name: str) -> dict[str, str]:
    """Those that ``testsuites`` and ``testsuite`` share; the former has no attribute ``skipped``."""
    return {
        "name": replace_controls(name),
        "tests": str(len(cases)),
        "failures": str(sum(case.outcome == "failure" for case in cases)),
        "errors": "0",
        "time": _seconds(sum(case.time_s for case in cases)),
    }


def _seconds(time_s: float) -> str:
    return f"{time_s:.3f}"


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
    started = _epoch_seconds(run.started)
    if started is not None:
        sample = _sample(_STARTED, {"run_id": run.run_id}, started)
        yield _Family(_STARTED, "gauge", "when the run began, seconds since 1970-01-01 UTC", "seconds", [sample])
    yield _verdicts(document)
    values = {}
    taken = {_RUN_INFO, f"{_RUN_INFO}_info", _STARTED, _VERDICT}
    for result in document.results:
        labels = _labels(document, result)
        for value in result.values:
            if value.value is not None:
                if value.name not in values:
                    values[value.name] = _family(value, taken)
                values[value.name].samples += _sample_lines(values[value.name].name, labels, value)
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


def _sample_lines(name: str, labels: Mapping[str, str | None], value: ExportedValue) -> Iterator[str]:
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


def _epoch_seconds(wall_time: str | None) -> float | None:
    """None unless the label is a time with its zone."""
    try:
        moment = datetime.fromisoformat(wall_time or "")
        return moment.timestamp() if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
