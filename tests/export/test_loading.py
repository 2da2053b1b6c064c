"""``nicbench.load``: what a notebook gets, and that the notebook of the examples runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import nicbench
from nicbench.core.errors import NicbenchError, UsageError
from nicbench.core.result import ResultVerdict

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


def code_cells() -> list[str]:
    content: dict[str, Any] = json.loads(NOTEBOOK.read_text())
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]


def test_importing_nicbench_loads_nothing_heavy() -> None:
    program = (
        "import sys, nicbench; print(*[n for n in ('pydantic', 'pyarrow', 'numpy', 'altair') if n in sys.modules])"
    )

    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout == b"\n"


def test_a_run_has_typed_results_and_tables(measured: Path) -> None:
    run = nicbench.load(measured)
    rate = run.results[0].values["ndr_frames_per_s"]

    assert isinstance(rate, nicbench.Bounded)
    results = run.results_frame()
    assert results.num_rows == len(run.results) == 6
    assert results["ndr_frames_per_s"][0].as_py() == rate.value
    assert results["ndr_frames_per_s_upper"][0].as_py() == rate.upper
    assert run.values_frame().num_rows == sum(len(result.values) for result in run.results)
    assert run.trials_frame().num_rows == 26
    assert run.rounds_frame().num_rows == run.frames_frame().num_rows == run.monitor_frame().num_rows == 0
    assert "value" in run.monitor_frame().column_names
    with pytest.raises(UsageError, match="did not sample nonsense"):
        run.monitor_frame(["nonsense"])


def test_a_run_is_found_by_its_id_and_as_the_latest(measured: Path) -> None:
    assert nicbench.load(measured.name, runs=measured.parent).run_id == measured.name
    assert nicbench.load("latest", runs=str(measured.parent)).run_id == measured.name


def test_a_run_that_is_not_finished_gives_its_results_so_far(synthetic: Any, tmp_path: Path) -> None:
    begun = synthetic.SyntheticRun(tmp_path).start()
    begun.measure((64,), latency=False)
    begun.folder.journal.close()
    run = nicbench.load(begun.folder.path)

    assert run.summary.verdict is ResultVerdict.INCOMPLETE
    assert not run.document.run.finished
    assert (len(run.results), run.trials_frame().num_rows) == (1, 11)


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not the folder of a run"):
        nicbench.load(tmp_path)
    with pytest.raises(UsageError, match="there is no such folder"):
        nicbench.load(tmp_path / "none")


def test_a_damaged_table_is_named(measured: Path, tmp_path: Path) -> None:
    for file in measured.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "trials.parquet").write_bytes(b"PAR1 no more")

    with pytest.raises(NicbenchError) as stopped:
        nicbench.load(tmp_path).trials_frame()
    assert "trials.parquet was changed" in str(stopped.value)


def test_every_cell_of_the_notebook_runs_and_draws_a_chart(
    measured: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NICBENCH_RUN", str(measured))
    names: dict[str, Any] = {}
    for number, cell in enumerate(code_cells(), start=1):
        exec(compile(cell, f"cell {number}", "exec"), names)

    assert measured.name in capsys.readouterr().out
    drawn = names["chart"].to_dict()
    rows = next(iter(drawn["datasets"].values()))
    assert {row["name"] for row in rows} == {"ndr_frames_per_s", "pdr_frames_per_s"}
    assert {row["result"] for row in rows} == {"throughput/64"}, "what was disturbed is left out"


def test_the_notebook_holds_no_output() -> None:
    content: dict[str, Any] = json.loads(NOTEBOOK.read_text())

    assert not [cell for cell in content["cells"] if cell.get("outputs") or cell.get("execution_count")]
