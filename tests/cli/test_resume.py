"""What may be resumed, and what may not: a finished run, a changed bench file, a changed folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.bench_file import parse
from nicbench.cli.commands.resume import refuse_tampering
from nicbench.cli.main import main
from nicbench.core.errors import UsageError
from nicbench.core.events import RunFinished
from nicbench.core.result import ResultVerdict, Summary
from nicbench.stages.turns import make_run_started, refuse_changed_bench
from nicbench.store.folder import RunFolder

BENCH = """
nicbench: 1
title: Resumed
lab: {kind: simulated}
dut: {kind: simulated}
tests: [{name: throughput, method: throughput, frame_bytes: [64]}]
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
