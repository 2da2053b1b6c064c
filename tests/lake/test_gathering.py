"""A lake says what the run folders say, in the same bytes however often gathering was killed."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.commands import run_tried
from tests.lake.conftest import TRIALS_OF_RUN, add_trials, bytes_of
from tests.web._history import make_collapse, make_history

from nicbench.cli.options import describe_results
from nicbench.compare.history.figure_index import FigureIndex
from nicbench.core.errors import BusyError, HostError, UsageError
from nicbench.lake import place, tables
from nicbench.lake.gathering import gather
from nicbench.lake.place import FIGURES, FILE, HEADLINE, TRIALS, Lake, Month, find_lake, find_together
from nicbench.lake.searching import LakeFigures, find_in_lake, find_run
from nicbench.store import manifest
from nicbench.store.index import Search, find_runs, list_indexed_runs
from nicbench.store.listing import RunHeadline
from nicbench.store.marks import add_tag

# Kills itself at a moment of a file's writing: the third word is its number, the fourth the moment.
KILLED = """
import os, signal, sys
from pathlib import Path
from nicbench.lake import gathering, place
number, moment, writing, seen = int(sys.argv[3]), sys.argv[4], place.writing_atomically, [0]

class AtMoment:
    def __init__(self, path):
        self.writer = writing(path)
    def __enter__(self):
        seen[0] += 1
        self.mine = seen[0] == number
        if self.mine and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        stream = self.writer.__enter__()
        if self.mine and moment == "torn":
            stream.write(b"half a file"), stream.flush(), os.kill(os.getpid(), signal.SIGKILL)
        return stream
    def __exit__(self, *error):
        self.writer.__exit__(*error)
        if self.mine and moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)

place.writing_atomically = AtMoment
gathering.gather([Path(sys.argv[1])], sys.argv[2])
"""


def kill_gathering(runs: Path, lake: Path, number: int, moment: str) -> int:
    words = [sys.executable, "-c", KILLED, str(runs), str(lake), str(number), moment]
    return run_tried(words).returncode


def rows(lake: Path, table: str) -> int:
    return sum(pq.ParquetFile(path).metadata.num_rows for path in (lake / table).rglob(FILE))


def test_a_lake_says_of_each_run_what_its_folder_says(runs: Path, tmp_path: Path) -> None:
    found = gather([runs], tmp_path / "lake", lambda summary: f"{len(summary.results)} results")
    assert (len(found.added), found.known, found.skipped, found.strangers) == (10, 0, (), ())
    in_lake = find_in_lake(Lake.open(tmp_path / "lake"), Search(), 100)
    told = list_indexed_runs(runs, lambda summary: f"{len(summary.results)} results").runs
    assert (in_lake.runs, in_lake.matching, in_lake.every) == (told, 10, 10)
    assert find_run(Lake.open(tmp_path / "lake"), told[3].run_id) == told[3]
    assert find_run(Lake.open(tmp_path / "lake"), "2024-11-04T023000Z-nobody") is None
    assert rows(tmp_path / "lake", TRIALS) == 5 * TRIALS_OF_RUN
    table = pq.ParquetFile(tmp_path / "lake" / Month(2024, 11).path(TRIALS)).read()
    assert table.column("lost").to_pylist()[:3] == [0, 3, 6]
    assert "key" not in table.column_names


@pytest.mark.parametrize("size", [1, 3, 100])
def test_in_however_many_steps_and_in_whatever_order_the_bytes_are_the_same(
    runs: Path, tmp_path: Path, draw: random.Random, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_ROWS", dict.fromkeys((HEADLINE, FIGURES, "settings"), 4))
    monkeypatch.setattr(tables, "_ROWS_OF_SAMPLES", 5)
    gather([runs], tmp_path / "one")
    folders = sorted(path for path in runs.iterdir() if path.is_dir())
    draw.shuffle(folders)
    for begin in range(0, len(folders), size):
        gather(folders[begin : begin + size], tmp_path / "many")
    assert bytes_of(tmp_path / "many") == bytes_of(tmp_path / "one")


def test_gathered_again_it_writes_nothing(runs: Path, tmp_path: Path) -> None:
    gather([runs], tmp_path / "lake")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "lake").rglob(FILE)}
    found = gather([runs], tmp_path / "lake")
    assert (found.added, found.updated, found.known) == ((), (), 10)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "lake").rglob(FILE)} == before


@pytest.mark.sampled(1)
@pytest.mark.parametrize("moment", ["before", "torn", "after"])
@pytest.mark.parametrize("number", range(1, 9))
def test_killed_anywhere_and_repeated_it_gives_the_same_bytes(
    runs: Path, tmp_path: Path, number: int, moment: str
) -> None:
    gather([runs], tmp_path / "whole")
    lake = tmp_path / "lake"
    assert kill_gathering(runs, lake, number, moment) == -signal.SIGKILL
    if (lake / place.MARK).exists():
        find_in_lake(Lake.open(lake), Search(), 10)  # it can be read meanwhile
    assert gather([runs], lake).skipped == ()
    assert bytes_of(lake) == bytes_of(tmp_path / "whole")


@pytest.mark.acceptance
def test_killed_at_random_times_again_and_again_it_gives_the_same_bytes(tmp_path: Path, draw: random.Random) -> None:
    make_history(tmp_path / "runs", 60)
    for path in (tmp_path / "runs").iterdir():
        add_trials(path, 200)
    gather([tmp_path / "runs"], tmp_path / "whole", describe_results)
    words = [sys.executable, "-m", "nicbench", "gather", str(tmp_path / "runs"), "--into", str(tmp_path / "lake")]
    for _ in range(40):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(0.2, 3.0))
        process.kill()
        process.wait()
    assert subprocess.run(words, check=True, capture_output=True).returncode == 0
    assert bytes_of(tmp_path / "lake") == bytes_of(tmp_path / "whole")


def test_new_tags_and_a_new_place_replace_what_the_lake_says(runs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    gather([runs], lake)
    first, second = sorted(path for path in runs.iterdir() if path.is_dir())[:2]
    add_tag(first, "baseline")
    second.rename(tmp_path / second.name)
    found = gather([runs, tmp_path / second.name], lake)
    assert sorted(found.updated) == sorted([first.name, second.name])
    runs_now = {run.run_id: run for run in find_in_lake(Lake.open(lake), Search(), 100).runs}
    assert len(runs_now) == 10
    assert "baseline" in runs_now[first.name].tags
    assert runs_now[second.name].path == tmp_path / second.name
    assert rows(lake, TRIALS) == 5 * TRIALS_OF_RUN


def make_older(lake: Path) -> None:
    """Makes a lake of format 1 of one of today: its figures have a value each, and checksums do not depend on it."""
    (lake / place.MARK).write_text('{"format": "1.0", "what": "a lake of nicbench runs"}\n')
    for file in lake.rglob(FILE):
        table = pq.ParquetFile(file).read().replace_schema_metadata({place.SIGNATURE: b"1.0"})
        for number, name in enumerate(table.column_names):
            if name == "digest":
                table = table.set_column(number, table.schema.field(name), [["0123456789abcdef"] * table.num_rows])
            elif name == "value":
                table = table.filter(table.column(name).is_valid())
                table = table.set_column(number, table.schema.field(name).with_nullable(False), table.column(name))
        pq.write_table(table, file)


def test_an_older_lake_is_read_and_its_runs_are_gathered_again_with_the_figures_that_it_lacks(
    runs: Path, tmp_path: Path
) -> None:
    make_collapse(runs, 2, 2)
    lake = tmp_path / "lake"
    gather([runs], lake)
    whole, figures = bytes_of(lake), rows(lake, FIGURES)
    make_older(lake)
    assert find_in_lake(Lake.open(lake), Search(), 1).every == 14
    assert rows(lake, FIGURES) == figures - 2
    lake_figures = LakeFigures(Lake.open(lake))
    found = list(lake_figures.figures(lake_figures.measures(), [path.name for path in runs.iterdir()]))
    assert len(found) == figures - 2
    one = min(path for path in runs.iterdir() if path.name.endswith("collapse"))
    gather([one], lake)
    assert find_in_lake(Lake.open(lake), Search(), 1).every == 14
    found = gather([runs], lake)
    assert (len(found.updated), found.known) == (13, 1)
    assert bytes_of(lake) == whole


def test_a_copy_of_a_run_that_an_older_nicbench_gathered_is_the_same_run(runs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    gather([runs], lake)
    make_older(lake)
    shutil.copytree(runs, tmp_path / "copy")
    found = gather([tmp_path / "copy"], lake)
    assert (len(found.updated), found.skipped) == (10, ())


def test_another_run_of_a_known_name_is_named_and_left_out(runs: Path, tmp_path: Path) -> None:
    gather([runs], tmp_path / "lake")
    name = sorted(path.name for path in runs.iterdir() if path.is_dir())[1]
    shutil.copytree(runs / name, tmp_path / "elsewhere" / name)
    add_trials(tmp_path / "elsewhere" / name, 3)
    before = bytes_of(tmp_path / "lake")
    (reason,) = gather([tmp_path / "elsewhere"], tmp_path / "lake").skipped
    assert f"has the name of another run, which was gathered from {runs / name}" in reason
    assert bytes_of(tmp_path / "lake") == before


def test_damaged_and_unfinished_runs_are_named_and_cost_the_others_nothing(runs: Path, tmp_path: Path) -> None:
    damaged, torn, unfinished, *_ = sorted(path for path in runs.iterdir() if path.is_dir())
    (damaged / "trials.parquet").write_bytes(b"PAR1")
    (torn / "summary.json").write_text("{")
    (unfinished / manifest.NAME).unlink()
    found = gather([runs], tmp_path / "lake")
    assert len(found.added) == 7
    reasons = {each.partition(": ")[0]: each for each in found.skipped}
    assert "trials.parquet was changed after the run had finished" in reasons[str(damaged)]
    assert "summary.json" in reasons[str(torn)]
    assert "is not finished" in reasons[str(unfinished)]


def test_strangers_in_a_lake_are_named_and_left_alone(runs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    gather([runs], lake)
    stranger = lake / Path(Month(2024, 11).path(HEADLINE)).parent / "copy.parquet"
    stranger.write_bytes(b"whose is this")
    add_tag(next(path for path in runs.iterdir() if path.is_dir()), "again")
    assert gather([runs], lake).strangers == (str(stranger),)
    assert stranger.read_bytes() == b"whose is this"


def test_a_foreign_file_in_the_place_of_ours_is_never_replaced(runs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    gather([runs], lake)
    theirs = lake / Month(2024, 11).path(FIGURES)
    pq.write_table(pq.read_table(theirs, partitioning=None).replace_schema_metadata(None), theirs)
    before = theirs.read_bytes()
    add_tag(next(path for path in sorted(runs.iterdir()) if path.is_dir()), "again")
    with pytest.raises(HostError, match="is no file of nicbench") as refused:
        gather([runs], lake)
    assert refused.value.place == str(theirs)
    assert theirs.read_bytes() == before


@pytest.mark.parametrize("table", [HEADLINE, FIGURES])
def test_a_damaged_file_of_a_lake_is_named_and_not_replaced(runs: Path, tmp_path: Path, table: str) -> None:
    lake = tmp_path / "lake"
    gather([runs], lake)
    file = lake / Month(2024, 11).path(table)
    content = bytearray(file.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    file.write_bytes(content)
    add_tag(next(path for path in sorted(runs.iterdir()) if path.is_dir()), "again")
    with pytest.raises(HostError, match="cannot be read") as refused:
        gather([runs], lake)
    assert refused.value.place == str(file)
    assert file.read_bytes() == content
    shutil.rmtree(file.parent)
    shutil.rmtree(lake / HEADLINE)
    gather([runs], lake)
    gather([runs], tmp_path / "whole")
    assert bytes_of(lake) == bytes_of(tmp_path / "whole")


def test_what_a_stranger_wrote_into_a_lake_steers_no_terminal(runs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    gather([runs], lake, lambda _: "\x1b]0;title\x07 rate")
    runs_found = find_in_lake(Lake.open(lake), Search(), 3).runs
    assert all((run.headline or "").isprintable() for run in runs_found)
    table = pq.ParquetFile(lake / Month(2024, 11).path(HEADLINE)).read()
    place = table.column_names.index("title")
    titles = ["\x1b[2Jcleared"] * table.num_rows
    pq.write_table(
        table.set_column(place, table.schema.field("title"), [titles]), lake / Month(2024, 11).path(HEADLINE)
    )
    assert {run.title for run in find_in_lake(Lake.open(lake), Search(until="2024-11"), 3).runs} == {" [2Jcleared"}


def test_a_folder_of_somebody_else_becomes_no_lake(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="is not empty and no lake"):
        gather([runs], tmp_path / "home")
    with pytest.raises(UsageError, match="is no lake"):
        find_lake(runs, str(tmp_path / "home"))
    assert find_lake(runs) is None
    gather([runs], runs / "lake")
    assert find_lake(runs) is not None


def test_on_a_full_disk_the_lake_stays_as_it_was(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = tmp_path / "lake"
    first, *others = sorted(path for path in runs.iterdir() if path.is_dir())
    gather([first], lake)
    before = bytes_of(lake)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("nicbench.store.files.os.fsync", full)
        with pytest.raises(HostError, match="the disk is full"):
            gather(others, lake)
    assert bytes_of(lake) == before
    gather(others, lake)
    gather([runs], tmp_path / "whole")
    assert bytes_of(lake) == bytes_of(tmp_path / "whole")


def test_one_process_writes_at_a_time(runs: Path, tmp_path: Path) -> None:
    Lake.open(tmp_path / "lake", create=True)
    with Lake.open(tmp_path / "lake").locked(), pytest.raises(BusyError, match="gathering into this lake"):
        gather([runs], tmp_path / "lake")


@pytest.mark.parametrize("address", [str, lambda path: path.as_uri()], ids=["path", "file://"])
def test_a_lake_is_named_by_a_path_or_an_address(runs: Path, tmp_path: Path, address: Callable[[Path], str]) -> None:
    gather([runs], address(tmp_path / "a lake"))
    assert find_in_lake(Lake.open(address(tmp_path / "a lake")), Search(), 1).every == 10


# The figures of a lake are those that the index of the folder has.


def test_measures_figures_and_settings_are_those_of_the_folder(runs: Path, tmp_path: Path) -> None:
    make_collapse(runs, 5, 3)
    index = FigureIndex(runs)
    index.update(list_indexed_runs(runs, lambda _: None).runs, lambda _done, _of: None)
    gather([runs], tmp_path / "lake")
    lake = LakeFigures(Lake.open(tmp_path / "lake"))
    figures = [figure for *_, figure in index.figures(index.measures())]
    assert sum(figure.is_only_below for figure in figures) == 3

    measures = lake.measures()
    assert set(measures.values()) == set(index.measures().values())
    assert all(number < 0 for number in measures)
    assert lake.measures() == measures, "a measure keeps its number"

    names = {path.name for path in runs.iterdir() if path.is_dir()}
    told = {(index.measures()[number], *rest) for number, *rest in index.figures(index.measures())}
    assert {(measures[number], *rest) for number, *rest in lake.figures(measures, names)} == told

    some = {number: each for number, each in measures.items() if each.told.value == "ndr_frames_per_s"}
    one = min(names)
    found = list(lake.figures(some, {one}))
    assert found
    assert {(number in some, run) for number, run, *_ in found} == {(True, one)}

    of_run, settings = lake.settings(names)
    assert {name: settings[number] for name, number in of_run.items()} == {
        name: index.settings({})[number] for name, number in index.settings_of_runs().items()
    }


def test_a_damaged_row_is_left_out_and_hides_no_other(runs: Path, tmp_path: Path) -> None:
    make_collapse(runs, 5, 3)
    gather([runs], tmp_path / "lake")
    for file in (tmp_path / "lake" / "figures").rglob("*.parquet"):
        rows = pq.ParquetFile(file).read()
        place = rows.schema.get_field_index("upper")
        nothing = pa.nulls(rows.num_rows, rows.schema.field(place).type)
        pq.write_table(rows.set_column(place, rows.schema.field(place), nothing), file)
    lake = LakeFigures(Lake.open(tmp_path / "lake"))
    names = {path.name for path in runs.glob("*-collapse")}
    found = [figure for *_, figure in lake.figures(lake.measures(), names)]
    assert len(found) == 5, "three have neither a number nor a bound"
    assert all(figure.number_or_bound > 0 for figure in found)


def test_what_runs_measured_first_comes_first(runs: Path, tmp_path: Path) -> None:
    """Rows of a lake lie in the order of their names; its measures do not."""
    gather([runs], tmp_path / "lake")
    index = FigureIndex(runs)
    index.update(list_indexed_runs(runs, lambda _: None).runs, lambda _done, _of: None)
    tests, others = (
        list(dict.fromkeys(measure.test for measure in known.measures().values()))
        for known in (LakeFigures(Lake.open(tmp_path / "lake")), index)
    )
    assert tests == others
    assert tests != sorted(tests)


# The search in a lake means what the search in a folder means; what is in both counts once.


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
        expected = tuple(find_runs(runs, search))
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
