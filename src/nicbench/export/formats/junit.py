"""JUnit XML: what a CI shows. A test case for each result, and one for each threshold of the verdicts.

A result fails where it missed its target (``met`` is ``no``), or tools disagree beyond their bound; it is skipped where
it is disturbed or incomplete. A threshold that the bench file sets fails where a sample that results rest on passed it;
one that has its default is skipped then, as are the results that it disturbed. The time of a result is that of the
trials or rounds that it rests on.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final, Literal

from nicbench.core.judging import Finding
from nicbench.core.plan import ThresholdRow
from nicbench.core.result import ResultVerdict
from nicbench.core.round import Round
from nicbench.core.trial import Trial
from nicbench.export.document import ExportDocument, ExportedResult
from nicbench.export.formats.base import ExportFormat
from nicbench.export.source import ExportSource
from nicbench.export.tables import plain
from nicbench.export.text import replace_controls
from nicbench.stats.intervals import Agreement

_THRESHOLDS: Final = "thresholds"
_UNRELIABLE: Final = (ResultVerdict.DISTURBED.value, ResultVerdict.INCOMPLETE.value)


@dataclass(frozen=True, slots=True)
class _Case:
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
        samples = _samples(source)
        cases = [*_results(source.document, samples), *_thresholds(source, samples)]
        root = ElementTree.Element("testsuites", _attributes(cases, source.document.run.title))
        for name in dict.fromkeys(case.suite for case in cases):
            _suite(root, name, [case for case in cases if case.suite == name], source.document)
        ElementTree.indent(root)
        stream.write(b'<?xml version="1.0" encoding="utf-8"?>\n')
        ElementTree.ElementTree(root).write(stream, encoding="utf-8", xml_declaration=False)
        stream.write(b"\n")


def _samples(source: ExportSource) -> Mapping[str, Trial | Round]:
    """Every trial and round of the run, by its id."""
    journal = source.folder.journal
    samples: tuple[Trial | Round, ...] = (*journal.trials().values(), *journal.rounds().values())
    return {sample.id: sample for sample in samples}


def _results(document: ExportDocument, samples: Mapping[str, Trial | Round]) -> Iterator[_Case]:
    for result in document.results:
        if not result.warm_up:
            time_s = sum(samples[name].measured_s for name in result.samples if name in samples)
            missed = _describe_missed(result)
            detail = "\n".join(_figures(result))
            suite = f"{result.test} ({result.configuration})"
            if result.verdict in _UNRELIABLE:
                said = (result.verdict, *((missed,) if missed else ()), *result.disturbances, *_reasons(result))
                yield _Case(suite, result.result, "skipped", "; ".join(said), detail, time_s)
            elif missed:
                yield _Case(suite, result.result, "failure", missed, detail, time_s)
            else:
                yield _Case(suite, result.result, detail=detail, time_s=time_s)


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


def _thresholds(source: ExportSource, samples: Mapping[str, Trial | Round]) -> Iterator[_Case]:
    plan = source.plan
    passed = _group_findings(source.document, samples) if plan and plan.thresholds else {}
    for row in plan.thresholds if plan else ():
        findings = passed.get(row.name)
        if not findings:
            yield _Case(_THRESHOLDS, row.name, detail=_limit(row))
        else:
            is_asked = row.default is not None and row.value != row.default
            why = f"{len(findings)} of the samples that results rest on: {findings[0].text}"
            yield _Case(_THRESHOLDS, row.name, "failure" if is_asked else "skipped", why, _limit(row))


def _group_findings(document: ExportDocument, samples: Mapping[str, Trial | Round]) -> Mapping[str, list[Finding]]:
    """By threshold, the findings of samples that results rest on."""
    used = dict.fromkeys(name for result in document.results if not result.warm_up for name in result.samples)
    found: dict[str, list[Finding]] = {}
    for name in used:
        for finding in samples[name].verdict.findings if name in samples else ():
            found.setdefault(finding.threshold, []).append(finding)
    return found


def _limit(row: ThresholdRow) -> str:
    return f"limit {row.value!r} {row.unit}: {row.why}"


def _suite(root: ElementTree.Element, name: str, cases: list[_Case], document: ExportDocument) -> None:
    skipped = sum(case.outcome == "skipped" for case in cases)
    suite = ElementTree.SubElement(root, "testsuite", {**_attributes(cases, name), "skipped": str(skipped)})
    if document.run.started:
        suite.set("timestamp", replace_controls(document.run.started))
    properties = ElementTree.SubElement(suite, "properties")
    for key in ("run_id", "verdict", "nicbench_version", "source"):
        value = getattr(document.run, key)
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


def _attributes(cases: list[_Case], name: str) -> dict[str, str]:
    """Those that ``testsuites`` and ``testsuite`` share; ``skipped`` is no attribute of the former."""
    return {
        "name": replace_controls(name),
        "tests": str(len(cases)),
        "failures": str(sum(case.outcome == "failure" for case in cases)),
        "errors": "0",
        "time": _seconds(sum(case.time_s for case in cases)),
    }


def _seconds(time_s: float) -> str:
    return f"{time_s:.3f}"
