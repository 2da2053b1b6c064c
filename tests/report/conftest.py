"""Run folders to report on, drawn once for all tests that only read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nicbench import report
from nicbench.core.result import ResultVerdict
from nicbench.report.document.blocks import Document
from nicbench.report.gather import gather
from nicbench.report.layouts import document
from nicbench.report.model import Report
from nicbench.store import RunFolder

from . import _synthetic


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    return _synthetic


@pytest.fixture
def synthetic_run(synthetic: ModuleType, tmp_path: Path) -> Callable[..., Any]:
    """Begins a run in a fresh folder; arguments are those of SyntheticRun."""
    return lambda **arguments: synthetic.SyntheticRun(tmp_path / "runs", **arguments).start()


@pytest.fixture(scope="session")
def whole_run(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished, valid run of seven frame sizes at two loads."""
    run = synthetic.SyntheticRun(tmp_path_factory.mktemp("runs")).start()
    run.measure()
    return run.finish(ResultVerdict.VALID)


@pytest.fixture(scope="session")
def view(whole_run: Path) -> Report:
    return gather(RunFolder.open(whole_run))


@pytest.fixture(scope="session")
def whole_document(view: Report) -> Document:
    return document(view)


@pytest.fixture(scope="session")
def page(whole_run: Path) -> str:
    return report.build(whole_run).read_text(encoding="utf-8")
