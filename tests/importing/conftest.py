"""A CSV's text through everything up to its results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.registry import find
from nicbench.importing.cells import Dialect
from nicbench.importing.columns import ImportOptions, choose_rows
from nicbench.importing.formats.base import Format
from nicbench.importing.results import ImportedResults, import_results, method_of

REFERENCE = Path(__file__).parents[2] / "src/nicbench/importing/reference/data"
GOLDEN = Path(__file__).parent / "golden"


def _imported(text: str, method: str, form: str = "plain", **options: Any) -> ImportedResults:
    said = ImportOptions(**options)
    known = find("nicbench.importing.formats", Format)[form]
    sheet = choose_rows(known.cells(text.encode(), "x.csv", Dialect()), said)
    formatted = known.sheet(sheet, "x.csv", method, said)
    return import_results(formatted, "x.csv", method_of(method), said)


@pytest.fixture
def imported() -> Callable[..., ImportedResults]:
    """``imported(text, method, form="plain", **options)``."""
    return _imported


@pytest.fixture
def reference() -> Path:
    """Where the published tables are."""
    return REFERENCE


@pytest.fixture
def golden() -> Path:
    """Where exports of testers are."""
    return GOLDEN
