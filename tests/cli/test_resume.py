"""What may be resumed, and what may not: a finished run, a changed bench file, a changed folder."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nicbench.bench_file import parse
from nicbench.cli.commands.run import refuse_tampering
from nicbench.cli.main import main
from nicbench.cli.output import ReaderGoneError
from nicbench.core.errors import HostError, UsageError
from nicbench.core.events import RunFinished, TestStarted, TrialStarted
from nicbench.core.result import Result, ResultVerdict, Summary
from nicbench.core.trial import Trial
from nicbench.measure.trials import TrialMaker
from nicbench.run import finish_measured
from nicbench.stages.turns import make_run_started, refuse_changed_bench
from nicbench.stats.activity import Activity
from nicbench.store.files import write_atomically
from nicbench.store.folder import RunFolder

BENCH = """
nicbench: 1
title: Resumed
lab: {kind: simulated}
dut: {kind: simulated}
tests: [{name: throughput, method: throughput, frame_bytes: [64]}]
"""

QUICK = """
nicbench: 1
title: Quick
lab: {kind: simulated, capacity: 40 kpps, queue_frames: 16, delay: 20 us}
dut: {kind: simulated}
tests:
  - name: loss
    method: frame-loss
    frame_bytes: [64]
    trial: {duration: 20 ms, drain: 5 ms, settle: 0 ms}
"""


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder.create(tmp_path, BENCH, "Resumed")
    bench = parse(BENCH.encode(), folder.path / "bench.yaml")
    folder.journal.append(make_run_started(bench, folder.run_id, resumed=False))
    return folder


def finish(folder: RunFolder, *, complete: bool) -> None:
    folder.journal.append(RunFinished(verdict=ResultVerdict.INCOMPLETE, complete=complete))
    folder.finish(Summary(title="Resumed", verdict=ResultVerdict.INCOMPLETE))


@pytest.mark.parametrize("complete", [True, False], ids=["ended by itself", "broke off"])
def test_only_a_run_that_broke_off_has_something_left(folder: RunFolder, complete: bool) -> None:
    finish(folder, complete=complete)
    assert folder.journal.is_complete is complete


def test_a_killed_run_is_not_complete(folder: RunFolder) -> None:
    folder.journal.close()
    assert not folder.journal.is_complete


def test_another_bench_file_is_refused_before_its_trials_are_passed_off(folder: RunFolder) -> None:
    folder.journal.close()
    changed = parse(BENCH.replace("[64]", "[128]").encode(), folder.path / "bench.yaml")
    with pytest.raises(UsageError, match="changed since this run began"):
        refuse_changed_bench(changed, folder.journal.events())
    refuse_changed_bench(parse(BENCH.encode(), folder.path / "bench.yaml"), folder.journal.events())


def test_a_folder_that_was_changed_after_the_run_is_refused(folder: RunFolder) -> None:
    finish(folder, complete=False)
    refuse_tampering(folder)
    (folder.path / "journal.ndjson").unlink()
    with pytest.raises(UsageError, match="missing"):
        refuse_tampering(folder)


def test_a_folder_that_another_process_measures_in_is_busy_and_stays_as_it_is(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path.name for path in folder.path.iterdir())
    assert main(["resume", str(folder.path)]) == 3
    assert "another nicbench process is writing this run" in capsys.readouterr().err
    assert sorted(path.name for path in folder.path.iterdir()) == before


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    """A bench file whose run takes a fraction of a second."""
    path = tmp_path / "quick.yaml"
    path.write_text(QUICK)
    return path


def run_to(runs: Path, bench: Path) -> tuple[int, RunFolder]:
    """Runs a bench file; returns the exit status and the folder."""
    status = main(["run", str(bench), "--runs", str(runs), "--no-progress", "--no-report"])
    [path] = runs.iterdir()
    return status, RunFolder.open(path)


def resume(folder: RunFolder, *options: str) -> int:
    return main(["resume", str(folder.path), "--no-progress", "--no-report", *options])


def test_a_run_that_a_fault_of_nicbench_ended_goes_on(
    quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def crash(self: TrialMaker, *arguments: Any) -> Trial:
        if len(made) == 2:
            raise ZeroDivisionError("division by zero")
        made.append(await make(self, *arguments))
        return made[-1]

    made = []
    make = TrialMaker.make
    with monkeypatch.context() as patched:
        patched.setattr(TrialMaker, "make", crash)
        status, folder = run_to(tmp_path / "runs", quick)
    assert status == 1
    assert (folder.path / "error.txt").is_file()
    assert not folder.differences()

    capsys.readouterr()
    assert main(["report", str(folder.path)]) == 0
    assert "changed" not in capsys.readouterr().err

    assert resume(folder) == 0
    assert "2 trials are kept" in capsys.readouterr().err
    assert not folder.differences()
    (folder.path / "error.txt").unlink()  # nobody needs it any more
    assert not folder.differences()


def test_what_a_resumed_run_has_of_a_test_counts_as_done(
    quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stop(self: TrialMaker, *arguments: Any) -> Trial:
        if len(made) == 3:
            raise HostError("the DUT died")
        made.append(await make(self, *arguments))
        return made[-1]

    made = []
    make = TrialMaker.make
    with monkeypatch.context() as patched:
        patched.setattr(TrialMaker, "make", stop)
        status, folder = run_to(tmp_path / "runs", quick)
    assert status == 4
    assert resume(folder) == 0

    first, again = (event for event in folder.journal.events() if isinstance(event, TestStarted))
    assert (first.kept, first.kept_s) == (0, 0.0)
    assert (again.kept, again.kept_s) == (3, pytest.approx(sum(trial.took_s or 0.0 for trial in made)))
    began = TrialStarted(test="loss", parameters={}, purpose="loss", load_frames_per_s=1e3, duration_s=0.02, repeat=0)
    activity = Activity().after(again).after(began)
    assert activity.current.number == 4


def without_its_end(self: RunFolder, *_: object) -> None:
    raise HostError("the disk is full; what was measured so far is kept", place=str(self.path))


def accept_nothing(self: Any, result: Result) -> Result:
    return result.replace(test="loss", values={**result.values, "accepted": "no"})


async def find_nothing(*_: object) -> tuple[Result, ...]:
    return ()


@pytest.mark.parametrize(
    ("name", "instead", "status", "told"),
    [
        ("nicbench.measure.samples.LiveContext.complete", accept_nothing, 6, "not accepted: "),
        ("nicbench.methods.loss.FrameLoss.run", find_nothing, 5, "no test gave a result"),
    ],
    ids=["not accepted", "nothing measured"],
)
def test_a_run_whose_end_was_not_written_ends_as_it_would_have(
    name: str,
    instead: Any,
    status: int,
    told: str,
    quick: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(name, instead)
        patched.setattr(RunFolder, "finish", without_its_end)
        first, folder = run_to(tmp_path / "runs", quick)
    assert first == 7
    assert "the disk is full" in capsys.readouterr().err

    assert resume(folder, "--json") == status
    ended = capsys.readouterr()
    assert "had measured everything" in ended.err
    assert told in ended.err
    assert json.loads(ended.out)["error"]["exit_status"] == status
    assert folder.finished


# What comes after measuring cannot unmake it: the results are given, whatever becomes of report and summary.


def full(*_: object) -> Path:
    raise HostError("the disk is full; what was measured so far is kept", place="report.html")


def no_memory(*_: object) -> Path:
    raise MemoryError


def fault(*_: object) -> Path:
    raise ValueError("a fault of a chart")


def killed(*_: object) -> Path:
    os.kill(os.getpid(), signal.SIGKILL)
    return Path()


@pytest.fixture
def report_is(monkeypatch: pytest.MonkeyPatch, run_is: Any, finished_run: Any) -> Callable[[Callable[..., Path]], None]:
    """Puts something in the place of the report of a run that goes well."""

    def replace(build: Callable[..., Path]) -> None:
        run_is(finished_run)
        monkeypatch.setitem(sys.modules, "nicbench.report", SimpleNamespace(build=build))
        monkeypatch.setattr("nicbench.cli.running._draws_here", lambda: False)

    return replace


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (full, "the disk is full"),
        (no_memory, "more memory than it may have"),
        (fault, "ValueError: a fault of a chart"),
        (killed, "killed by SIGKILL"),
    ],
)
def test_a_report_that_cannot_be_made_is_one_line_and_a_status_of_its_own(
    build: Callable[..., Path], why: str, nicbench: Any, report_is: Any
) -> None:
    report_is(build)
    ended = nicbench("run", "bench.yaml", "--json")
    assert ended.status == 7
    document = json.loads(ended.stdout)
    assert (document["verdict"], len(document["results"])) == ("valid", 1)
    [line] = [line for line in ended.stderr.splitlines() if "error" in line]
    assert "the report could not be made, the results are kept" in line
    assert why in line
    [run] = Path("runs").iterdir()
    assert f"nicbench report {run.resolve()} makes it" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_the_report_is_made_leaves_the_results(
    number: signal.Signals, nicbench: Any, report_is: Any
) -> None:
    def build(folder: Path, *_: object) -> Path:
        write_atomically(folder / "report.html", b"half of it")
        time.sleep(60)
        return folder

    report_is(build)
    parent = os.getpid()
    if os.fork() == 0:  # the process of the report may signal nobody
        while not list(Path("runs").glob("*/report.html")):
            time.sleep(0.01)
        os.kill(parent, number)
        os._exit(0)
    ended = nicbench("run", "bench.yaml", "--json")
    assert ended.status == 130
    assert len(json.loads(ended.stdout)["results"]) == 1
    assert f"stopped by {number.name} while the report was made; the results are kept" in ended.stderr


def test_a_summary_that_cannot_be_written_leaves_the_results_and_resume_writes_it(
    nicbench: Any, run_is: Any, one_result: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(bench: Any, folder: Any, bus: Any) -> Any:
        one_result(bench, folder, bus)
        return finish_measured(bench, folder, bus)

    def finish(*_: object) -> None:
        raise OSError(28, "No space left on device", "summary.json")

    run_is(run)
    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "finish", finish)
        ended = nicbench("run", "bench.yaml", "--json", "--no-report")
    document = json.loads(ended.stdout)
    assert (ended.status, document["verdict"], len(document["results"])) == (7, "valid", 1)
    assert "No space left on device" in document["error"]["message"]


def test_resume_of_a_finished_run_gives_its_results(nicbench: Any, run_is: Any, finished_run: Any) -> None:
    run_is(finished_run)
    first = nicbench("run", "bench.yaml", "--json")
    again = nicbench("resume", "latest", "--json")
    assert (again.status, json.loads(again.stdout)) == (0, json.loads(first.stdout))
    assert "400" in nicbench("resume", "latest").stdout


def test_a_reader_that_is_gone_costs_no_report(nicbench: Any, run_is: Any, finished_run: Any) -> None:
    run_is(finished_run)

    def gone(*_: object, **__: object) -> None:
        raise ReaderGoneError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("nicbench.cli.running.print_json", gone)
        ended = nicbench("run", "bench.yaml", "--json")
    [run] = Path("runs").iterdir()
    assert ended.status == 0
    assert (run / "report.html").is_file()


def test_a_signal_while_results_are_printed_leaves_them_all(
    nicbench: Any, run_is: Any, finished_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_is(finished_run)
    monkeypatch.setattr("nicbench.cli.running.print_json", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    ended = nicbench("run", "bench.yaml", "--json")
    document = json.loads(ended.stdout)
    assert (ended.status, len(document["results"]), document["error"]["kind"]) == (130, 1, "InterruptedRunError")
