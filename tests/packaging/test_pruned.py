"""What packaging/unused leaves out is not missed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import pytest
from tests.commands import run_captured, run_tried

from .roots import ROOT
from .used import use_all_of


def _prune_module() -> object:
    spec = importlib.util.spec_from_file_location("prune", ROOT / "packaging/prune.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages that nicbench needs, linked from this environment, without what packages leave out."""
    root = tmp_path_factory.mktemp("pruned")
    packages = root / "dist-packages"
    (packages / "bin").mkdir(parents=True)
    listed = run_captured([sys.executable, "packaging/closure.py"], cwd=ROOT)
    for name in {line.split("==")[0] for line in listed.stdout.splitlines() if "==" in line}:
        found = distribution(name)
        for top in {path.parts[0] for path in found.files or () if path.parts[0] not in ("..", "__pycache__")}:
            _link(Path(str(found.locate_file(top))).resolve(), packages / top)
    _prune_module().prune(root, "dist-packages/")  # type: ignore[attr-defined]
    return packages


def _link(source: Path, target: Path) -> None:
    """A folder anew, with the same files in it: pruning must not touch the environment."""
    if source.is_dir():
        shutil.copytree(source, target, copy_function=_same_file, dirs_exist_ok=True)
    elif not target.exists():
        _same_file(str(source), str(target))


def _same_file(source: str, target: str) -> None:
    if not Path(target).exists():
        Path(target).symlink_to(source)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="packages bring Python 3.11, of whose packages the list is")
@pytest.mark.acceptance
def test_a_pruned_program_measures_reports_exports_and_compares(pruned: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{pruned}:{ROOT / 'src'}", "PYTHONDONTWRITEBYTECODE": "1"}

    def of(program: str) -> Callable[[str], str]:
        def run(arguments: str) -> str:
            done = run_tried(["sh", "-c", f"{program} {arguments}"], env=environment, cwd=tmp_path)
            assert done.returncode == 0, f"{arguments}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
            return done.stdout + done.stderr

        return run

    # -S: without the environment of this test, which has everything.
    python = f"{sys.executable} -S"
    where = of(python)("-c 'import numpy, pyarrow; print(numpy.__file__, pyarrow.__file__)'")
    assert where.count(str(pruned)) == 2
    use_all_of(of(f"{python} -m nicbench"), of(python), str(tmp_path / "runs"), tmp_path / "runs")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("# a comment\n\ntest  # tests of Python\n", [("test", "tests of Python")], id="comments-are-none"),
        pytest.param("a/**/*.h # headers # twice\n", [("a/**/*.h", "headers # twice")], id="the-first-sign-ends-it"),
    ],
)
def test_each_line_is_a_pattern_and_why(text: str, found: list[tuple[str, str]]) -> None:
    assert list(_prune_module().patterns(text)) == found  # type: ignore[attr-defined]


def test_a_pattern_without_a_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="line 1: add the reason"):
        list(_prune_module().patterns("test\n"))  # type: ignore[attr-defined]
