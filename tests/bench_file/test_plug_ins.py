"""The bench file's core knows no kind: a new file beside a ``base.py`` is a new kind with its own options."""

import importlib
from pathlib import Path

import pytest

from nicbench.bench_file import WrongBenchFileError
from nicbench.bench_file.reader import Node, read
from nicbench.bench_file.sections import Reading

PLUG_IN = '''
"""A kind that exists for one test."""
from nicbench.core.base import Frozen
from nicbench.core.quantity import Seconds
from .base import Kind

class PaperOptions(Frozen):
    folds: int = 1
    patience: Seconds = 1.0

class Paper(Kind):
    kind = "paper"
    Options = PaperOptions
'''


BASE = "class Kind: ..."


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / f"kinds_of_{tmp_path.name}"
    folder.mkdir()
    for name, text in (("__init__.py", ""), ("base.py", BASE), ("paper.py", PLUG_IN)):
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return folder.name


def base_of(package: str) -> type:
    base: type = importlib.import_module(f"{package}.base").Kind
    return base


def tree(text: str) -> Node:
    return read(text.encode(), "b.yaml")


def test_a_new_file_is_a_new_kind(package: str) -> None:
    reading = Reading(tree("lab: {kind: paper, patience: 20 ms}\n"))
    chosen = reading.choose(("lab",), package, base_of(package))
    assert chosen is not None
    plug_in, options = chosen
    assert plug_in.__name__ == "Paper"
    assert options.model_dump() == {"folds": 1, "patience": 0.02}


def test_its_options_are_checked_with_line_and_column(package: str) -> None:
    reading = Reading(tree("lab:\n  kind: paper\n  fold: 2\n"))
    assert reading.choose(("lab",), package, base_of(package)) is None
    error = WrongBenchFileError("b.yaml", reading.problems)
    assert str(error) == "b.yaml:3:3: unknown key `lab.fold`\n  next: did you mean `folds`?"
