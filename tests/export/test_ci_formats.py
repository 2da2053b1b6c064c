"""What monitoring and CI read: OpenMetrics by a strict parser, JUnit with what failed and what was skipped."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests.web._history import FIRST, facts, make_finished, result

from nicbench.compare.history.figures import Figure, Measure, Told, median_figure
from nicbench.core.events import TrialFinished
from nicbench.core.registry import find
from nicbench.core.result import Bounded, LimitedBy, ResultVerdict
from nicbench.export.formats.base import ExportFormat
from nicbench.export.formats.reports import BadgeFormat, badge, badge_of
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
    outcome, why = cases(exported(path, "junit"))["longest_gap_ms"]
    assert outcome == "skipped"
    assert "held up for 31.4 ms" in why
    path = with_gap_limit(measured, tmp_path, default=50.0)
    assert cases(exported(path, "junit"))["longest_gap_ms"][0] == "failure"


def with_gap_limit(run: Path, parent: Path, *, default: float) -> Path:
    """The same run, whose limit of the tester's pauses is 20 ms; unfinished, so that the plan may be written anew."""
    old = RunFolder.open(run)
    folder = RunFolder.create(parent, "nicbench: 1\n", "limited")
    plan = old.plan()
    rows = [row.replace(name="longest_gap_ms", default=default) for row in plan.thresholds[:1]]
    folder.write_json("plan.json", plan.replace(thresholds=tuple(rows)))
    for event in old.journal.events():
        if not isinstance(event, TrialFinished) or event.trial.test == "throughput":
            folder.journal.append(event)
    folder.journal.close()
    return folder.path


SVG = "{http://www.w3.org/2000/svg}"
NDR = Told("ndr_frames_per_s", "NDR", "Mpps", True, True)


def texts(svg: str) -> list[str]:
    """What is seen of a badge, from left to right."""
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def measure(given: str = '{"frame_bytes": 64}', told: Told = NDR) -> Measure:
    return Measure("throughput", "throughput", "default", "per port", given, told)


@pytest.mark.parametrize(
    ("figure", "shown"),
    [
        (Figure(14_200_000.0, "valid", 14_200_000.0, 14_250_000.0, "dut"), "14.20 Mpps"),
        (Figure(14_200_000.0, "valid", 14_200_000.0, None, "tester"), "at least 14.20 Mpps"),
        (Figure(14_880_952.0, "valid", 14_880_952.0, None, "line_rate"), "14.88 Mpps"),
        (Figure(0.0, "valid", None, 1000.0, "dut"), "0 Mpps"),
        (Figure(None, "valid", None, 12_341.0, "dut"), "< 12.35 kpps"),
        (Figure(14_200.0, "disturbed"), "14.20 kpps (disturbed)"),
    ],
)
def test_a_badge_says_value_unit_and_a_verdict_that_is_not_valid(figure: Figure, shown: str) -> None:
    assert texts(badge_of(measure(), figure)) == ["NDR, 64 bytes", shown]


def test_the_badge_of_a_run_whose_main_value_is_only_known_as_a_bound_shows_the_bound(tmp_path: Path) -> None:
    below = Bounded(value=None, upper=12_000.0, limited_by=LimitedBy.DUT, reason_null="no load that was tried passed")
    values = [{"ndr_frames_per_s": below, "pdr_frames_per_s": 200e3}, {"ndr_frames_per_s": 80e3}]
    results = [result("throughput", 64 + place, each, ResultVerdict.VALID) for place, each in enumerate(values)]
    folder = RunFolder.open(make_finished(tmp_path, "2026-01-31T120000Z-one", FIRST, "One", results, facts("25G", 1)))
    written = io.BytesIO()
    BadgeFormat().write(SimpleNamespace(folder=folder), "", written)  # type: ignore[arg-type]
    assert texts(written.getvalue().decode()) == ["NDR, 64 bytes", "< 12.00 kpps"]


def test_a_badge_has_a_title_with_its_verdict() -> None:
    told = Told("latency_p50_ns", "median latency", "µs", True, False)
    svg = badge_of(measure('{"frame_bytes": 64, "load_of": "NDR", "load_percent": 50}', told), Figure(5290.0, "valid"))
    root = ElementTree.fromstring(svg)
    said = "median latency, 64 bytes, 50 % of NDR: 5.290 µs, valid"
    assert (root.findtext(f"{SVG}title"), root.get("aria-label"), root.get("role")) == (said, said, "img")
    assert "style" not in svg


def test_texts_of_strangers_stay_texts() -> None:
    svg = badge('<script>alert(1)</script>" onload="x', "1 & 2\x00", "valid")
    assert texts(svg)[0] == '<script>alert(1)</script>" onload="x'
    assert [each.tag for each in ElementTree.fromstring(svg).iter() if "script" in each.tag] == []
    assert len(texts(badge("x" * 500, "1", "valid"))[0]) == 60


def test_the_badge_of_several_runs_shows_their_median_and_the_worst_verdict(tmp_path: Path) -> None:
    rates = [(80e3, ResultVerdict.VALID), (120e3, ResultVerdict.DISTURBED), (100e3, ResultVerdict.VALID)]
    results = [
        result("throughput", 64, {"ndr_frames_per_s": rate}, verdict).replace(
            run=run, id=f"bare/{run}/throughput/64", configuration="bare"
        )
        for run, (rate, verdict) in enumerate(rates, 1)
    ]
    folder = RunFolder.open(make_finished(tmp_path, "2026-01-31T120000Z-one", FIRST, "One", results, facts("25G", 1)))
    written = io.BytesIO()
    BadgeFormat().write(SimpleNamespace(folder=folder), "", written)  # type: ignore[arg-type]
    assert texts(written.getvalue().decode()) == ["bare: NDR, 64 bytes", "100.0 kpps (disturbed)"]


@pytest.mark.parametrize(
    ("figures", "shown"),
    [
        ([Figure(0.0, "valid", None, 10.0), Figure(5e6, "valid", 5e6, 5.1e6, "dut"), Figure(6e6, "valid", 6e6, 6.1e6)],
         "5.000 Mpps"),
        ([Figure(None, "valid", None, 1000.0), Figure(None, "valid", None, 2000.0), Figure(5e6, "valid", 5e6, 5.1e6)],
         "< 2.000 kpps"),
        ([Figure(5e6, "valid", 5e6, None, "tester")] * 2, "at least 5.000 Mpps"),
    ],
)  # fmt: skip
def test_the_median_of_runs_is_a_bound_where_those_in_the_middle_are(figures: list[Figure], shown: str) -> None:
    assert texts(badge_of(measure(), median_figure(figures)))[1] == shown
