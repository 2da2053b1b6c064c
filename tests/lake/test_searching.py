"""The search in a lake means what the search in a folder means; what is in both counts once."""

from __future__ import annotations

import random

import pytest
from tests.web._history import make_history

from nicbench.lake import tables
from nicbench.lake.gathering import gather
from nicbench.lake.place import Lake
from nicbench.lake.searching import find_in_lake, find_together
from nicbench.store.index import Search, find_runs, list_indexed_runs
from nicbench.store.listing import RunHeadline
from nicbench.store.marks import add_tag


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[RunHeadline, ...], Lake]:
    folder = tmp_path_factory.mktemp("lab")
    make_history(folder / "runs", 30)
    for path in sorted((folder / "runs").iterdir())[::7]:
        add_tag(path, "Nightly")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_ROWS", dict.fromkeys(("headline", "figures", "settings"), 4))
        gather([folder / "runs"], folder / "lake")
    return list_indexed_runs(folder / "runs", lambda _: None).runs, Lake.open(folder / "lake")


def one_of(draw: random.Random, *choices: str) -> tuple[str, ...]:
    return tuple(draw.sample(choices, draw.choice((0, 0, 0, 1, 2))))


@pytest.mark.parametrize("case", range(5))
def test_any_search_finds_the_same_runs_as_in_the_folder(
    lab: tuple[tuple[RunHeadline, ...], Lake], draw: random.Random, case: int
) -> None:
    runs, lake = lab
    for _ in range(12):
        times = (None, None, "2024", "2024-12", "2025-01-06", "2025-01-06T02:30", "2025-02-28T23", "2026")
        search = Search(
            words=one_of(draw, "nightly", "25G", "exb", "6.1", "2024-12-0", "nothing", "THROUGH", "default"),
            cards=one_of(draw, "nic 100g", "1af4:0025", "Example", "other"),
            kernels=one_of(draw, "6.1", "6.1.9", "6.1.90", "6.12", "6"),
            drivers=one_of(draw, "exa", "EX", "mlx"),
            tags=one_of(draw, "nightly", "RELEASE", "none"),
            methods=one_of(draw, "throughput", "latency", "soak"),
            since=draw.choice(times),
            until=draw.choice(times),
        )
        most = draw.choice((1, 7, 1000))
        expected = find_runs(runs, search)
        found = find_in_lake(lake, search, most)
        assert (found.runs, found.matching, found.every) == (expected[-most:], len(expected), len(runs)), search


def test_a_run_of_both_counts_once_and_as_its_folder_is_now(lab: tuple[tuple[RunHeadline, ...], Lake]) -> None:
    runs, lake = lab
    own = [run._replace(tags=("changed",)) for run in runs[-10:]] + [RunHeadline("2026-01-01T000000Z-new", "/new")]
    found = find_together(own, lake, Search(), 1000)
    assert (found.matching, found.every) == (len(runs) + 1, len(runs) + 1)
    assert [run.run_id for run in found.runs] == [*(run.run_id for run in runs), "2026-01-01T000000Z-new"]
    assert [run.run_id for run in find_together(own, lake, Search(tags=("changed",)), 3).runs] == [
        run.run_id for run in runs[-3:]
    ]
