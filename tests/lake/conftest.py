"""Run folders of an invented laboratory, as in the tests of the pages; half of them have trials."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.web._history import make_history

from nicbench.store import manifest

TRIALS_OF_RUN = 7


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Ten runs of two cards, in two months."""
    folder = tmp_path / "runs"
    make_history(folder, 5)
    for path in sorted(folder.iterdir())[::2]:
        add_trials(path)
    return folder


def add_trials(path: Path, count: int = TRIALS_OF_RUN) -> None:
    """Gives a run the table of its trials, and a manifest that knows it."""
    table = pa.table(
        {
            "id": [f"t{number:04}" for number in range(count)],
            "key": ["a long text"] * count,
            "test": ["throughput"] * count,
            "lost": [number * 3 for number in range(count)],
            "valid": [True] * count,
        }
    )
    pq.write_table(table, path / "trials.parquet")
    manifest.write(path)


def bytes_of(lake: Path) -> dict[str, bytes]:
    """Every file of a lake by its path in it."""
    return {str(path.relative_to(lake)): path.read_bytes() for path in sorted(lake.rglob("*")) if path.is_file()}
