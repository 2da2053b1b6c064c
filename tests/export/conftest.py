"""Runs to export: one with every shape of a value, one as it could have been measured, one whose texts mean harm."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nicbench.core.events import RunFinished, RunStarted
from nicbench.core.plan import Plan, ThresholdRow
from nicbench.core.result import (
    Bounded,
    Erratum,
    ImportedRow,
    LimitedBy,
    MeanInterval,
    NearLimit,
    PrintedValue,
    Result,
    ResultVerdict,
    Spread,
    Summary,
    Value,
)
from nicbench.export.source import ExportSource
from nicbench.store import RunFolder

HOSTILE = (
    '=cmd|"/C calc"!A0',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "\uff1d1+1",
    "<r>&lt;</r>",
    "<r><t>x</t></r>",
    "</testcase><script>alert(1)</script>]]>",
    'a"b\\c\nd,e;f',
    "nul\x00 bell\x07 escape\x1b[31m",
    "\u202eright to left",
    "{braces} # EOF\n# EOF",
    "x" * 40_000,
    "http://example.invalid/",
    "../../etc/passwd",
)
"""What a title, a host or a tool may be called, to harm whoever opens the file."""

EVERY_SHAPE = {
    "ndr_frames_per_s": Bounded(
        value=0.1 + 0.2, lower=0.1 + 0.2, upper=1234567.8901234567, limited_by=LimitedBy.DUT, n=8
    ),
    "pdr_frames_per_s": Bounded(value=14880952.380952382, limited_by=LimitedBy.LINE_RATE, lower=14880952.380952382),
    "idle_frames_per_s": Bounded(
        value=None, upper=17.0, reason_null="passes nothing: no frame came back", passes_nothing=True
    ),
    "latency_p50_ns": 5400,
    "latency_mean_ns": 1 / 3,
    "tiny_ratio": 5e-324,
    "sent_frames": 2**53 + 1,
    "loss_percent": 0.0,
    "loss_ratio": None,
    "latency_source": "software",
}
OVER_RUNS = {
    "ndr_frames_per_s": Spread(
        median=3.3e5,
        minimum=3.1e5,
        maximum=3.4e5,
        n=3,
        runs=4,
        limited_by=LimitedBy.DUT,
        of_mean=MeanInterval(mean=3.25e5, lower=3.0e5, upper=3.5e5, confidence_ratio=0.95, asked_ratio=0.1),
    )
}


def made(parent: Path, results: tuple[Result, ...], over_runs: tuple[Result, ...] = (), title: str = "A run") -> Path:
    """A finished run folder with these results."""
    folder = RunFolder.create(parent, "nicbench: 1\n", "a run")
    folder.journal.append(
        RunStarted(
            run_id=folder.run_id, title=title, nicbench_version="0.1.0", wall_time="2026-01-31T12:00:00+00:00", seed=1
        )
    )
    row = ThresholdRow(name="longest_gap_ms", value=20.0, default=20.0, unit="ms", why="frames wait in the ring")
    folder.write_json(
        "plan.json",
        Plan(
            run_id=folder.run_id,
            title=title,
            nicbench_version="0.1.0",
            seed=1,
            thresholds=(row, row.replace(name="unsent_share", value=0.01, default=0.001)),
        ),
    )
    folder.write_json("inventory.json", {"tester": {"host_name": title, "nested": [1, {"deep": title}]}})
    folder.journal.append(RunFinished(verdict=ResultVerdict.VALID, measured_s=1.0))
    folder.finish(Summary(title=title, verdict=ResultVerdict.VALID, results=results, over_runs=over_runs))
    return folder.path


def result(name: str, values: dict[str, Value] | None = None, **others: Any) -> Result:
    """A result of a throughput test."""
    given = {"test": "first", "method": "throughput", "parameters": {"frame_bytes": 64}, **others}
    return Result(id=name, values=EVERY_SHAPE if values is None else values, **given)


@pytest.fixture(scope="session")
def every_shape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with every shape of a value, a warm-up, a disturbed result, an imported one, and one over runs."""
    imported = ImportedRow(
        line=7,
        printed={"latency_p50_ns": PrintedValue(text="5.4", unit="us")},
        computed=("loss_percent",),
        errata=(Erratum(value="latency_p50_ns", place="7:3", printed="5.4", computed="4.5", reason="digits swapped"),),
    )
    return made(
        tmp_path_factory.mktemp("runs"),
        (
            result("first/64", run=1, warm_up=True),
            result(
                "first/64/2",
                run=2,
                near_tester_limit=(NearLimit(value="ndr_frames_per_s", limit="x", text="near the ceiling"),),
            ),
            result(
                "first/mix",
                run=2,
                parameters={"frame_bytes": "imix", "ports": ["a", "b"]},
                verdict=ResultVerdict.DISTURBED,
                disturbances=("NDR: the least disturbed of 4 trials was used", "and more"),
                values={"latency_p50_ns": "not timed", "met": "no", "target_frames_per_s": 24.0},
            ),
            result("second/64", test=None, verdict=ResultVerdict.IMPORTED, imported=imported),
        ),
        (result("first/64/over", OVER_RUNS),),
    )


@pytest.fixture(scope="session")
def missed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that reliably missed a target, and did not do what its bench file accepts."""
    values = ({"met": "no", "target_frames_per_s": 24.0}, {"accepted": "no", "answer": "it paused too late"})
    results = (result(f"first/{number}", found) for number, found in enumerate(values))
    return made(tmp_path_factory.mktemp("runs"), tuple(results))


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose title, names, parameters and words are all hostile; one of its results for each text."""
    results = tuple(
        Result(
            id=f"{text}/{number}",
            test=text,
            method=text,
            configuration=text,
            scope=text,
            parameters={"host": text, f"key {text}": text, "list": [text, {text: text}]},
            values={"said": text, f"rate {text}": 1.5, "ndr_frames_per_s": Bounded(value=None, reason_null=text)},
            verdict=ResultVerdict.DISTURBED,
            disturbances=(text,),
        )
        for number, text in enumerate(HOSTILE)
    )
    return made(tmp_path_factory.mktemp("runs"), results, title="\n".join(HOSTILE[:-3]))


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    """The synthetic run of the report's tests."""
    folder = Path(__file__).parents[1] / "report"
    spec = importlib.util.spec_from_file_location(
        "tests_of_report", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    sys.modules["tests_of_report"] = importlib.util.module_from_spec(spec)
    return importlib.import_module("tests_of_report._synthetic")


@pytest.fixture(scope="session")
def measured(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two frame sizes, one of them disturbed, with latency and all trials."""
    run = synthetic.SyntheticRun(tmp_path_factory.mktemp("runs")).start()
    run.measure((64, 512), disturbed_size=512)
    return run.finish()


def source(path: Path) -> ExportSource:
    return ExportSource(RunFolder.open(path))
