"""Makes the pages and PDFs that scripts/check-pages looks at: simulated, invented and imported runs, in both layouts.

Usage: python tests/pages/make.py FOLDER
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))  # the invented runs of tests/report

from tests.report import _editors, _synthetic, test_rounds  # noqa: E402

from nicbench import report as reports  # noqa: E402
from nicbench.cli.main import main  # noqa: E402
from nicbench.core.result import ResultVerdict  # noqa: E402
from nicbench.report import Format  # noqa: E402

IMPORTED = ("connectx5-zero-loss", "netxtreme25-long-tail", "nsfnic4-load-sweep", "nsfnic4-eight-ports")
STUDY = "frametest-read-instances"


def make(folder: Path) -> None:
    """Every page as FOLDER/NAME.html."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = folder / "runs"
    for name, bench in (
        ("simulated", ROOT / "examples/simulated.yaml"),
        ("configurations", HERE / "configurations.yaml"),
    ):
        _nicbench("run", str(bench), "--runs", str(runs / name))
        _keep(folder, name, _only(runs / name))
    for name in (*IMPORTED, STUDY):
        _nicbench("reference", "import", name, "--runs", str(runs / name))
        _keep(folder, name, _only(runs / name))
    for name in ("simulated", STUDY):
        _nicbench("report", str(_only(runs / name)), "--layout", "datasheet")
        shutil.copy(_only(runs / name) / "report-datasheet.html", folder / f"{name}-datasheet.html")
    disturbed = _synthetic.SyntheticRun(runs / "disturbed").start()
    disturbed.measure(disturbed_size=128)
    _keep(folder, "disturbed", disturbed.finish(ResultVerdict.DISTURBED))
    _keep(folder, "editors", _editors.write(runs / "editors", _editors.results(runs=3), ("1x100", "4x25")))
    _keep(folder, "rounds", test_rounds.finished(runs / "rounds", test_rounds.missing))
    sides = (str(_only(runs / "connectx5-zero-loss")), str(_only(runs / "simulated")))
    _nicbench("compare", *sides, "--force", "--format", "html,pdf", "--out", str(folder / "compared.html"))


def _nicbench(*arguments: str) -> None:
    status = main(list(arguments))
    if status:
        raise SystemExit(f"check-pages: nicbench {' '.join(arguments)} ended with status {status}")


def _only(folder: Path) -> Path:
    return next(path for path in folder.iterdir() if (path / "summary.json").exists())


def _keep(folder: Path, name: str, run: Path) -> None:
    paths = reports.build_formats(run, (Format.HTML, Format.PDF))
    for kind, path in paths.items():
        shutil.copy(path, folder / f"{name}.{kind.value}")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
