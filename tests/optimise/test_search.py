"""``nicbench optimise``: its bench files, the folder that a search goes on from, and what the confirming runs claim."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicbench.bench_file.load import parse
from nicbench.bench_file.optimised import BEST, WRITTEN
from nicbench.bench_file.reader import read
from nicbench.cli.commands.optimise import gain_percent
from nicbench.cli.main import main
from nicbench.core.errors import BenchFileError, UsageError
from nicbench.core.result import Result, ResultVerdict, Summary
from nicbench.optimise import Search

pytest.importorskip("optuna")

BENCH = """\
nicbench: 1
title: The best of six devices
lab: {kind: simulated}
dut: {kind: simulated}
tests:
  - name: loss
    method: load-sweep
    frame_bytes: [64, 512]
    loads: [50 %]
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {precision: 5 %, maximum_trials: 12}
    trial: {duration: 50 ms, drain: 50 ms, settle: 0 s}
optimise:
  goal: {test: throughput, value: ndr_frames_per_s}
  trials: 4
  over:
    capacity:
      400k: {lab: {capacity: 400 kpps}}
      500k: {lab: {capacity: 500 kpps}}
      600k: {lab: {capacity: 600 kpps}}
    queue:
      256: {lab: {queue_frames: 256}}
      none: {lab: {queue_frames: null}}
"""


@pytest.fixture
def begin(tmp_path: Path) -> Callable[[str], Search]:
    """Begins a search of a bench file."""

    def begun(text: str = BENCH) -> Search:
        return Search.begin(parse(text.encode(), tmp_path / "bench.yaml"), tmp_path / "searches")

    return begun


def summary(rate: float, verdict: str = "valid") -> Summary:
    """A run that found this rate."""
    result = Result(
        id="throughput/64",
        test="throughput",
        method="throughput",
        scope="per port",
        parameters={"frame_bytes": 64},
        values={"ndr_frames_per_s": rate},
        verdict=ResultVerdict(verdict),
    )
    return Summary(title="t", verdict=ResultVerdict(verdict), results=(result,))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param("title:", "runs: 3\ntitle:", "either `optimise` or `runs`", id="runs"),
        pytest.param("      none: {lab: {queue_frames: null}}\n", "", "two or more values", id="one value"),
        pytest.param("capacity: 600 kpps", "capasity: 600 kpps", "capasity", id="wrong overlay of a later value"),
        pytest.param("trials: 4", "trails: 4", "did you mean `trials`", id="wrong key"),
        pytest.param("trials: 4", "trials: 2", "at least 4", id="few trials"),
    ],
)
def test_a_wrong_search_is_refused_with_its_place(begin: Any, old: str, new: str, words: str) -> None:
    with pytest.raises(BenchFileError, match=r"bench\.yaml:") as raised:
        begin(BENCH.replace(old, new))
    assert words in str(raised.value)


def test_a_trial_is_an_ordinary_bench_file_with_its_overlays(begin: Any) -> None:
    search = begin()
    trial = search.begin_trial()
    text = (search.runs / trial.run / "bench.yaml").read_text()
    written = read(text.encode(), "bench.yaml").plain()
    assert trial.choice == {"capacity": "400k", "queue": "256"}
    assert written["lab"] == {"kind": "simulated", "capacity": "400 kpps", "queue_frames": 256}
    assert "optimise" not in written
    assert written["tests"] == read(BENCH.encode(), "bench.yaml").plain()["tests"]


def test_a_search_goes_on_with_the_trial_that_was_interrupted(begin: Any) -> None:
    search = begin()
    first = search.begin_trial()
    assert Search.open(search.path).begin_trial() == first
    search.end_trial(summary(4e5))
    second = search.begin_trial()
    assert second.choice != first.choice
    again = Search.open(search.path)
    assert (again.begin_trial(), again.state.tried[0].value) == (second, 4e5)
    again.refuse_trial("the card has no such ring")
    assert [one.refused for one in Search.open(search.path).state.tried] == [False, True]


def test_a_disturbed_trial_has_no_value(begin: Any) -> None:
    search = begin()
    search.begin_trial()
    search.end_trial(summary(4e5, "disturbed"))
    assert (search.state.tried[0].value, search.state.tried[0].why) == (None, "disturbed")
    assert search.best is None


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        pytest.param("goal: {test: loss}", "0 points of “loss”", id="not measured"),
        pytest.param("goal: {test: throughput, value: ndr}", "did you mean `ndr_frames_per_s`", id="value"),
        pytest.param("goal: {test: throughput, at: {frame_bytes: 128}}", "frame_bytes: 64", id="point"),
    ],
)
def test_a_goal_that_a_run_does_not_have_is_refused_with_those_that_it_has(begin: Any, goal: str, words: str) -> None:
    search = begin(BENCH.replace("goal: {test: throughput, value: ndr_frames_per_s}", goal))
    search.begin_trial()
    with pytest.raises(UsageError, match=r"optimise\.goal") as raised:
        search.end_trial(summary(4e5))
    assert words in str(raised.value)


def test_the_confirming_run_compares_two_configurations_in_turns(begin: Any) -> None:
    search = begin()
    folder = search.begin_confirmation({"capacity": "600k", "queue": "none"})
    bench = search.bench_of(folder)
    assert [each.configuration for each in bench.configurations] == [WRITTEN, BEST]
    assert [each.written["lab"] for each in bench.configurations] == [
        {"kind": "simulated", "capacity": "400 kpps", "queue_frames": 256},
        {"kind": "simulated", "capacity": "600 kpps"},
    ]
    assert bench.runs.at_most == 6
    assert Search.open(search.path).begin_confirmation({"capacity": "600k", "queue": "none"}).path == folder.path


def confirmed(search: Search, rates: dict[str, list[float]]) -> Any:
    """What is claimed of confirming runs at these rates."""
    results = tuple(
        summary(rate).results[0].replace(id=f"{name}/{run}", configuration=name, run=run)
        for name, of in rates.items()
        for run, rate in enumerate(of, 1)
    )
    return search.claim(summary(1.0).replace(results=results, configurations=(WRITTEN, BEST)), "run")


def test_a_gain_is_claimed_with_its_interval(begin: Any) -> None:
    noise = random.Random(1)
    rates = {
        name: [rate * (1 + noise.gauss(0.0, 0.01)) for _ in range(6)] for name, rate in ((WRITTEN, 4e5), (BEST, 5e5))
    }
    found = confirmed(begin(), rates)
    lower, upper = gain_percent(found) or (0.0, 0.0)
    assert found.better == BEST
    assert 20.0 < lower < 25.0 < upper < 30.0


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_gained_where_nothing_matters(begin: Any, seed: int) -> None:
    noise = random.Random(f"flat {seed}")
    rates = {name: [4e5 * (1 + noise.gauss(0.0, 0.02)) for _ in range(6)] for name in (WRITTEN, BEST)}
    found = confirmed(begin(), rates)
    assert found.better != BEST


def test_run_names_the_command_that_searches(begin: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bench.yaml").write_text(BENCH)
    assert main(("validate", str(tmp_path / "bench.yaml"))) == 0
    assert "4 trials among 6 combinations, then 12 runs that confirm" in capsys.readouterr().out
    assert main(("run", str(tmp_path / "bench.yaml"), "--runs", str(tmp_path / "runs"))) == 2
    assert "nicbench optimise" in capsys.readouterr().err
    assert main(("optimise", str(tmp_path))) == 2
    assert "not the folder of a search" in capsys.readouterr().err


@pytest.mark.acceptance
def test_the_fastest_of_simulated_devices_is_found_and_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench.yaml").write_text(BENCH)
    assert main(("optimise", "bench.yaml", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["best"]["capacity"] == "600k"
    assert found["claim"]["better"] == BEST
    assert found["claim"]["percent"] == pytest.approx([50.0, 50.0], abs=3.0)
