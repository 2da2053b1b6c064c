"""What monitoring and CI read: OpenMetrics by a strict parser, JUnit with what failed and what was skipped."""

from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from nicbench.core.events import TrialFinished
from nicbench.core.registry import find
from nicbench.export.formats.base import ExportFormat
from nicbench.export.source import ExportSource
from nicbench.store import RunFolder

FORMATS = find("nicbench.export.formats", ExportFormat)  # type: ignore[type-abstract]


def exported(path: Path, kind: str) -> str:
    stream = io.BytesIO()
    FORMATS[kind]().write(ExportSource(RunFolder.open(path)), "results", stream)
    return stream.getvalue().decode("utf-8")


def test_open_metrics_are_read_by_the_strict_parser(every_shape: Path, measured: Path, hostile_run: Path) -> None:
    for path in (every_shape, measured, hostile_run):
        text = exported(path, "openmetrics")
        assert text.endswith("# EOF\n")
        assert list(text_string_to_metric_families(text))


def test_open_metrics_have_exact_numbers_units_and_labels(every_shape: Path) -> None:
    families = {family.name: family for family in text_string_to_metric_families(exported(every_shape, "openmetrics"))}
    rates = families["nicbench_ndr_frames_per_s"]

    assert (rates.type, rates.unit) == ("gauge", "frames_per_s")
    assert families["nicbench_latency_p50_ns"].unit == "ns"
    found = {(sample.labels["result"], sample.labels["bound"]): sample for sample in rates.samples}
    assert found["first/64", "value"].value == 0.1 + 0.2
    assert found["first/64", "upper"].value == 1234567.8901234567
    assert found["first/64", "value"].labels["limited_by"] == "dut"
    assert found["first/64", "value"].labels["parameter_frame_bytes"] == "64"
    assert found["first/64", "value"].labels["warm_up"] == "true"
    assert found["first/64/over", "lower"].labels["span"] == "over_runs"
    assert all(sample.timestamp is None for family in families.values() for sample in family.samples)
    assert families["nicbench_run_started_timestamp_seconds"].samples[0].value == 1769860800.0
    assert "nicbench_loss_ratio" not in families, "what is unknown has no sample"
    verdicts = families["nicbench_result_verdict"].samples
    disturbed = [sample for sample in verdicts if sample.labels["result"] == "first/mix" and sample.value]
    assert [sample.labels["nicbench_result_verdict"] for sample in disturbed] == ["disturbed"]


def cases(text: str) -> dict[str, tuple[str, str]]:
    """By name: what became of a test case, and why."""
    found = {}
    for case in ElementTree.fromstring(text).iter("testcase"):
        not_passed = [child for child in case if child.tag in ("failure", "skipped")]
        outcome = not_passed[0].tag if not_passed else "passed"
        found[case.attrib["name"]] = (outcome, not_passed[0].attrib["message"] if not_passed else "")
    return found


def test_what_was_missed_fails_where_the_result_is_reliable(missed_run: Path, every_shape: Path) -> None:
    found = cases(exported(missed_run, "junit"))
    assert found["first/0"] == ("failure", "the target of 24.0 frames/s was missed")
    assert found["first/1"] == ("failure", "it paused too late")
    outcome, why = cases(exported(every_shape, "junit"))["first/mix"]
    assert outcome == "skipped"
    assert why.startswith("disturbed; the target of 24.0 frames/s was missed; ")


def test_what_warms_up_is_left_out(every_shape: Path) -> None:
    found = cases(exported(every_shape, "junit"))

    assert found["first/64/2"] == ("passed", "")
    assert "first/64" not in found
    root = ElementTree.fromstring(exported(every_shape, "junit"))
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("6", "0", None)
    assert sum(int(suite.get("skipped") or 0) for suite in root) == 1


def test_a_test_case_takes_as_long_as_its_trials(measured: Path) -> None:
    root = ElementTree.fromstring(exported(measured, "junit"))
    times = {case.attrib["name"]: float(case.attrib["time"]) for case in root.iter("testcase")}
    assert times["throughput/64"] > 0
    assert times["total_gap_share"] == 0
    assert float(root.attrib["time"]) == pytest.approx(sum(times.values()), abs=0.01)


def test_what_is_disturbed_is_skipped_with_its_reason(measured: Path) -> None:
    found = cases(exported(measured, "junit"))

    assert found["throughput/64"] == ("passed", "")
    outcome, why = found["throughput/512"]
    assert outcome == "skipped"
    assert "the least disturbed of 4 trials" in why


def test_a_threshold_fails_only_where_the_bench_file_sets_it(measured: Path, tmp_path: Path) -> None:
    found = cases(exported(measured, "junit"))
    assert found["total_gap_share"] == ("passed", "")
    assert found["unsent_share"] == ("passed", "")

    path = with_gap_limit(measured, tmp_path, default=20.0)
    outcome, why = cases(exported(path, "junit"))["longest_gap"]
    assert outcome == "skipped"
    assert "held up for 31.4 ms" in why
    path = with_gap_limit(measured, tmp_path, default=50.0)
    assert cases(exported(path, "junit"))["longest_gap"][0] == "failure"


def with_gap_limit(run: Path, parent: Path, *, default: float) -> Path:
    """The same run, whose limit of the tester's pauses is 20 ms; unfinished, so that the plan may be written anew."""
    old = RunFolder.open(run)
    folder = RunFolder.create(parent, "nicbench: 1\n", "limited")
    plan = old.plan()
    assert plan is not None
    rows = [row.replace(name="longest_gap", default=default) for row in plan.thresholds[:1]]
    folder.write_json("plan.json", plan.replace(thresholds=tuple(rows)))
    for event in old.journal.events():
        if not isinstance(event, TrialFinished) or event.trial.test == "throughput":
            folder.journal.append(event)
    folder.journal.close()
    return folder.path
