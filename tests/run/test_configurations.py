"""Two configurations, twice each: measured in turns, kept apart, resumed in the right turn, reported side by side."""

from __future__ import annotations

import html
import itertools
import random
import re
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from nicbench import report
from nicbench.core.errors import HostError, NicbenchError
from nicbench.core.events import TurnFinished, TurnStarted
from nicbench.core.result import Result, ResultVerdict, Spread, Summary
from nicbench.stages import plan as plan_stage
from nicbench.store.folder import RunFolder
from nicbench.testbed.labs.base import Testbed
from nicbench.testbed.labs.simulated import SimulatedLab

from . import simulated_bench
from .lab_bench import TOLERANT, machine_state, rate_of, run_bench
from .simulated_bench import COMPARED, make_folder, measured, nothing_told, run_in_child, run_whole, trial_lines

TURNS = ["fast/1", "slow/1", "slow/2", "fast/2"]


class Reference(simulated_bench.Reference):
    """The run that nobody killed, and what its journal was writing at each write."""

    def writes_about_turns(self) -> list[int]:
        """Numbers of writes at the ends of turns, and of those right after."""
        about = [number for number, event in enumerate(self.events, 1) if isinstance(event, TurnStarted | TurnFinished)]
        return sorted({number for start in about for number in (start, start + 1) if number <= len(self.events)})


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    folder = make_folder(tmp_path_factory.mktemp("whole"), COMPARED)
    run_whole(folder)
    return Reference(folder)


@pytest.fixture(scope="module")
def summary(reference: Reference) -> Summary:
    found = reference.folder.summary()
    assert found is not None
    return found


@pytest.fixture(scope="module")
def page(reference: Reference) -> str:
    """What a reader of the report sees, without markup."""
    text = report.build(reference.folder.path).read_text(encoding="utf-8")
    text = re.sub(r"<(style|svg)\b.*?</\1>", " ", text, flags=re.DOTALL).replace("<wbr>", "")
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_configurations_take_turns_and_each_trial_says_whose_it_is(reference: Reference) -> None:
    turns = [key for key, _ in itertools.groupby("/".join(key.split("/")[:2]) for key in reference.trials)]
    assert turns == TURNS
    trials = reference.folder.journal.trials().values()
    assert [f"{trial.configuration}/{trial.run}" for trial in trials] == [
        key.rsplit("/", 3)[0] for key in reference.trials
    ]
    assert [trial.number for trial in trials] == list(range(1, len(reference.trials) + 1))


def test_each_configuration_finds_its_own_capacity_in_each_run(summary: Summary) -> None:
    assert summary.configurations == ("fast", "slow")
    for configuration, capacity in (("fast", 40_000.0), ("slow", 20_000.0)):
        found = [rate_of(result, "pdr") for result in of(summary.results, configuration)]
        assert len(found) == 2
        assert all(rate.lower and rate.upper and rate.lower <= 1.01 * capacity <= 1.1 * rate.upper for rate in found)
        (over,) = of(summary.over_runs, configuration)
        spread = over.values["pdr_frames_per_s"]
        assert isinstance(spread, Spread)
        assert (spread.n, spread.runs, over.run) == (2, 2, None)
        assert spread.minimum <= spread.median <= spread.maximum


def of(results: tuple[Result, ...], configuration: str) -> list[Result]:
    return [result for result in results if result.method == "throughput" and result.configuration == configuration]


def test_the_table_of_trials_has_configuration_and_run(reference: Reference) -> None:
    table = pq.read_table(reference.folder.path / "trials.parquet")
    assert {f"{row['configuration']}/{row['run']}" for row in table.to_pylist()} == set(TURNS)


def test_the_report_lists_what_differs_first_then_compares_and_keeps_each_run(page: str) -> None:
    places = [
        page.index(text)
        for text in (
            "“fast” passes 3",
            "times as much as “slow”; their intervals do not overlap.",
            "What is compared",
            "lab.capacity 40 kpps 20 kpps",
            "lab.loss not given 0.01 %",
            "Throughput side by side",
            "Latency at 50 % of the PDR One way,",
            "Long tail at 50 % of the PDR",
            "Each run by itself: fast 1, slow 1, slow 2, fast 2",
            "Throughput (fast, run 1)",
            "Lab (fast)",
            "Lab (slow)",
        )
    ]
    assert places == sorted(places)


def test_killed_where_a_turn_begins_or_ends_it_goes_on_in_the_right_one(
    reference: Reference, draw: random.Random, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_stage, "collect", nothing_told)
    inside = draw.randint(1, len(reference.events))
    for write in sorted({draw.choice(reference.writes_about_turns()), inside}):
        check_killed(f"{write}:{draw.choice(('before', 'torn', 'after'))}", reference, tmp_path)


@pytest.mark.acceptance
@pytest.mark.parametrize("moment", ["before", "torn", "after"])
def test_killed_at_each_journal_write_it_resumes_to_the_same_bytes(
    moment: str, reference: Reference, tmp_path: Path
) -> None:
    for write in range(1, len(reference.events) + 1):
        check_killed(f"{write}:{moment}", reference, tmp_path)


def check_killed(kill_at: str, reference: Reference, parent: Path) -> None:
    folder = make_folder(parent, COMPARED)
    status = run_in_child(folder, kill_at=kill_at)
    if status == 0:  # how many notes there are depends on the machine's load: this run did not come so far
        assert int(kill_at.partition(":")[0]) > len(list(folder.journal.events()))
        return
    assert status == -signal.SIGKILL
    before = trial_lines(folder)
    ended = sum(isinstance(event, TurnFinished) for event in folder.journal.events())
    begun = len(turns_begun(folder))
    assert run_in_child(folder) == 0
    again = RunFolder.open(folder.path)
    assert measured(again) == reference.summary, kill_at
    assert trial_lines(again) == reference.trials, kill_at
    assert trial_lines(again)[: len(before)] == before
    assert turns_begun(again)[begun:] == list(range(ended + 1, 5)), "a finished turn is not made again"


def turns_begun(folder: RunFolder) -> list[int]:
    return [event.number for event in folder.journal.events() if isinstance(event, TurnStarted)]


def test_a_configuration_that_cannot_start_ends_the_run_and_what_was_measured_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    up = SimulatedLab.up

    async def refuses(self: SimulatedLab, changes: object, local: object) -> Testbed:
        if self.options.loss:
            raise HostError("the card is gone", place="slot 3")
        return await up(self, changes, local)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(SimulatedLab, "up", refuses)
        folder = make_folder(tmp_path, COMPARED)
        with pytest.raises(NicbenchError, match="the card is gone"):
            run_whole(folder)
    kept = folder.summary()
    assert kept.verdict is ResultVerdict.INCOMPLETE
    assert {(result.configuration, result.run) for result in kept.results} == {("fast", 1)}
    assert "With 64-byte frames, “fast” passes" in report.build(folder.path).read_text(encoding="utf-8")
    run_whole(RunFolder.open(folder.path))
    resumed = RunFolder.open(folder.path).summary()
    assert resumed.verdict is ResultVerdict.VALID


def test_several_runs_of_one_configuration_are_kept_apart_as_well(tmp_path: Path) -> None:
    start, end = COMPARED.index("configurations:"), COMPARED.index("tests:")
    folder = make_folder(tmp_path, COMPARED[:start] + COMPARED[end:])
    run_whole(folder)
    summary = folder.summary()
    assert [result.id for result in summary.results if result.method == "throughput"] == [
        "default/1/throughput/64",
        "default/2/throughput/64",
    ]
    text = report.build(folder.path).read_text(encoding="utf-8")
    assert "(PDR, median of 2 runs)" in text
    assert "no difference shown" not in text


COMPARED_IN_A_LAB = """
nicbench: 1
title: {title}
seed: 3
runs: {runs}
lab: {{kind: veth}}
dut: {dut}
{more}
configurations:
{configurations}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [{frame_bytes}]
    search: {{kind: mlr, goals: {goals}, precision: {precision}, maximum_trials: {trials}, trials_per_bound: 1}}
    trial: {{duration: {duration}, drain: 200 ms, settle: 100 ms}}
"""


@pytest.mark.lab
@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.acceptance
def test_two_policers_are_each_found_at_their_own_rate(draw: random.Random, tmp_path: Path) -> None:
    rates = {"low": draw.randrange(90_000, 120_000), "high": draw.randrange(180_000, 300_000)}
    bench = COMPARED_IN_A_LAB.format(
        title="Two rates",
        frame_bytes=draw.choice((64, 1518)),
        runs=1,
        dut="{kind: policer, burst: 1000}",
        more="tester: {catch_up: 10 ms}\nthresholds: {dut_contended_share: 1.0}",
        configurations="\n".join(f"  {name}: {{dut: {{rate: {rate} pps}}}}" for name, rate in rates.items()),
        goals="{NDR: 0 %}",
        precision="1 %",
        trials=12,
        duration="500 ms",
    )
    before = machine_state()
    summary, trials = run_bench(tmp_path, bench)
    assert machine_state() == before
    for result in summary.results:
        found, truth = rate_of(result), rates[result.configuration] + 1000 / 0.5  # what a full bucket lets pass
        assert found.lower is not None
        assert abs(found.lower - truth) <= 0.02 * truth, (result.configuration, truth, found)
    assert {result.configuration for result in summary.results} == set(rates)
    lossy = [trial.reading for trial in trials if trial.test == "throughput" and trial.reading.counts.lost]
    assert lossy
    assert all(reading.unexplained == 0 for reading in lossy)  # the policer's own counter accounts for every frame


@pytest.mark.lab
@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.acceptance
def test_forwarding_through_filter_rules_is_slower_than_without(tmp_path: Path) -> None:
    bench = COMPARED_IN_A_LAB.format(
        title="Rules",
        frame_bytes=64,
        runs=2,
        dut="{kind: kernel-forward, backlog_frames: 500}",
        more=TOLERANT,
        configurations="  bare:\n  rules: {dut: {filter_rules: 2000}}",
        goals="{PDR: 5 %}",
        precision="10 %",
        trials=8,
        duration="500 ms",
    )
    before = machine_state()
    summary, trials = run_bench(tmp_path, bench)
    assert machine_state() == before
    found = {name: [rate_of(result, "pdr") for result in of(summary.results, name)] for name in ("bare", "rules")}
    slowest_bare = min(rate.lower or 0.0 for rate in found["bare"])
    fastest_rules = max(rate.upper or float("inf") for rate in found["rules"])
    assert fastest_rules < slowest_bare, found
    (folder,) = tmp_path.iterdir()
    assert re.search(
        r"“bare” passes \S+ to \S+ times as much as “rules”|“bare” passes at least \S+ times", page_of(folder)
    )
    assert {(trial.configuration, trial.run) for trial in trials} == {
        (name, run) for name in ("bare", "rules") for run in (1, 2)
    }


def page_of(folder: Path) -> str:
    return html.unescape(report.build(folder).read_text(encoding="utf-8")).replace("\u00a0", " ")


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.acceptance
def test_killed_in_its_second_turn_a_run_in_the_lab_tidies_up_and_goes_on(tmp_path: Path) -> None:
    bench = COMPARED_IN_A_LAB.format(
        title="Killed in a lab",
        frame_bytes=64,
        runs=1,
        dut="{kind: policer, burst: 1000}",
        more=TOLERANT,
        configurations="  low: {dut: {rate: 100 kpps}}\n  high: {dut: {rate: 200 kpps}, lab: {mtu: 2000}}",
        goals="{NDR: 0 %}",
        precision="10 %",
        trials=3,
        duration="300 ms",
    )
    before = machine_state()
    folder = make_folder(tmp_path, bench)
    assert run_in_child(folder, kill_at="26:after") == -signal.SIGKILL  # while the second calibrates its tester
    assert turns_begun(folder) == [1, 2]
    kept = trial_lines(folder)
    assert machine_state() != before
    assert run_in_child(folder) == 0
    assert machine_state() == before
    again = RunFolder.open(folder.path)
    assert trial_lines(again)[: len(kept)] == kept
    assert len(set(trial_lines(again))) == len(trial_lines(again))
    summary = again.summary()
    assert {result.configuration for result in summary.results} == {"low", "high"}
    assert turns_begun(again) == [1, 2, 2]
