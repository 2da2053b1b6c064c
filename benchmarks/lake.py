"""A lake of a million runs, and what list, check and gather take of it: seconds, and memory at its most.

The rows of a hundred real runs of the simulated lab are repeated with ids, times, cards, kernels and tags of their own,
and written as `nicbench gather` writes them. The commands are processes of their own, as a user starts them.

    .venv/bin/python benchmarks/lake.py [--runs 1000000] [--keep FOLDER] [--small-files 10000]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent))
import runs_folder
from nicbench.lake.gathering import gather
from nicbench.lake.place import FIGURES, HEADLINE, SETTINGS, TABLES, TRIALS, Lake, Month
from nicbench.lake.tables import ORDERS, SCHEMAS, write_table
from nicbench.store.marks import add_tag

MONTHS = 24
FIRST = datetime(2024, 12, 1, tzinfo=UTC)
LAST = datetime(2026, 12, 1, tzinfo=UTC)
TAGGED = 50
MACHINES = 200
FIGURES_OF_RUN = 6
TRIALS_OF_RUN = 10
TIMES = 5
LIMIT_S, LIMIT_MB = 1.0, 200.0


def main() -> int:
    """Status 1 where list or check takes more than a second of CPU time, or more than 200 MB."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=1_000_000)
    options.add_argument("--keep", type=Path, help="make the lake here and leave it")
    options.add_argument("--small-files", type=int, default=10_000)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        if not (folder / "runs").is_dir():
            began = time.monotonic()
            # In a process of its own: what a command takes at most is not less than what its parent had at its start.
            maker = multiprocessing.get_context("spawn").Process(target=make, args=(folder, given.runs))
            maker.start()
            maker.join()
            print(f"lake of {given.runs} runs made in {time.monotonic() - began:.0f} s")
        well = measure(folder)
        compare_small_files(folder, given.small_files)
    return 0 if well else 1


def make(folder: Path, count: int) -> None:
    """A folder of a hundred runs, of which half are in the lake inside it, among so many others."""
    runs = folder / "runs"
    runs_folder.FIRST = LAST
    runs_folder.make_runs(runs, 100)
    for path in sorted(runs.iterdir())[-TAGGED - 1 : -1]:
        add_tag(path, "baseline")
    own = folder / "own"
    gather([runs], own)
    lake = Lake.open(runs / "lake", create=True)
    rows = {table: _all_rows(Lake.open(own), table) for table in (HEADLINE, SETTINGS, FIGURES, TRIALS)}
    chance = np.random.default_rng(1)
    for number in range(MONTHS):
        began = _month(number)
        month = Month(began.year, began.month)
        many = count // MONTHS
        seconds = np.sort(chance.integers(0, int((_month(number + 1) - began).total_seconds()), many))
        ids = _ids(began, seconds, chance)
        settings = rows[SETTINGS].take(pa.array(chance.integers(0, rows[SETTINGS].num_rows, many)))
        for table, made in (
            (SETTINGS, settings.set_column(0, SCHEMAS[SETTINGS].field(0), pa.array(ids, pa.string()))),
            (HEADLINE, _headlines(rows[HEADLINE], ids, began, seconds, chance)),
            (FIGURES, _repeated(rows[FIGURES], ids, FIGURES_OF_RUN, "value", chance)),
            (TRIALS, _repeated(rows[TRIALS], ids, TRIALS_OF_RUN, "latency_p99_ns", chance)),
        ):
            in_order = made.sort_by([(name, "ascending") for name in ORDERS[table]])
            with lake.writing(month, table) as stream:
                write_table(table, [in_order], stream)


def _month(number: int) -> datetime:
    return FIRST.replace(year=FIRST.year + (FIRST.month - 1 + number) // 12, month=(FIRST.month - 1 + number) % 12 + 1)


def _ids(began: datetime, seconds: np.ndarray, chance: np.random.Generator) -> list[str]:
    letters = np.array(list("0123456789abcdefghjkmnpqrstvwxyz"))
    ends = letters[chance.integers(0, 32, (len(seconds), 10))]
    times = ((began + timedelta(seconds=int(each))).strftime("%Y-%m-%dT%H%M%SZ") for each in seconds)
    return [f"{at}-nightly-{''.join(end)}" for at, end in zip(times, ends, strict=True)]


def _all_rows(lake: Lake, table: str) -> pa.Table:
    folder = lake.local
    assert folder is not None
    return pa.concat_tables(
        [pq.read_table(folder / month.path(table), partitioning=None) for month in lake.months(table)]
    )


def _headlines(
    rows: pa.Table, ids: list[str], began: datetime, seconds: np.ndarray, chance: np.random.Generator
) -> pa.Table:
    many = len(ids)
    made = rows.take(pa.array(chance.integers(0, rows.num_rows, many)))
    started = (np.datetime64(began.replace(tzinfo=None), "s") + seconds.astype("timedelta64[s]")).astype(
        "datetime64[s]"
    )
    release = chance.integers(0, 1000, many)
    columns = {
        "run_id": pa.array(ids, pa.string()),
        "path": pa.array([f"/gone/{name}" for name in ids], pa.string()),
        "started": pa.array(started).cast(pa.timestamp("ms", "UTC")),
        "tags": pa.array([["nightly"] if each else ["nightly", "release"] for each in release], pa.list_(pa.string())),
        "machines": pa.array(
            [[f"rack-{each:03}"] for each in chance.integers(0, MACHINES, many)], pa.list_(pa.string())
        ),
        "headline": pa.array(
            [f"throughput: NDR {each:.3f} Mpps" for each in chance.normal(14.2, 0.05, many)], pa.string()
        ),
        "digest": pa.array([random.Random(name).randbytes(8).hex() for name in ids], pa.string()),
    }
    return pa.Table.from_arrays(
        [columns.get(each.name, made.column(each.name)) for each in SCHEMAS[HEADLINE]], schema=SCHEMAS[HEADLINE]
    )


def _repeated(rows: pa.Table, ids: list[str], each: int, varied: str, chance: np.random.Generator) -> pa.Table:
    first = rows.filter(pa.compute.equal(rows.column("run_id"), rows.column("run_id")[0]))
    first = first.take(pa.array(np.arange(each) % first.num_rows))
    made = first.take(pa.array(np.tile(np.arange(each), len(ids))))
    numbers = chance.normal(1e6, 1e3, len(ids) * each)
    columns = {
        "run_id": pa.array(ids, pa.string()).take(pa.array(np.repeat(np.arange(len(ids)), each))),
        "place": pa.array(np.tile(np.arange(each), len(ids)), pa.int32()),
        varied: pa.array(numbers).cast(first.schema.field(varied).type, safe=False),
    }
    return pa.Table.from_arrays(
        [columns.get(one.name, made.column(one.name)) for one in first.schema], schema=first.schema
    )


def measure(folder: Path) -> bool:
    """Whether list and check stay below the limits."""
    runs = folder / "runs"
    for table in TABLES:
        files = list((runs / "lake" / table).rglob("*.parquet"))
        if files:
            rows = sum(pq.ParquetFile(path).metadata.num_rows for path in files)
            print(
                f"{table}: {len(files)} files, {rows} rows, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB"
            )
    first, *_, newest = sorted(path.name for path in runs.iterdir() if path.name.startswith(str(LAST.year)))
    commands: list[tuple[str, Sequence[str]]] = [
        ("list, the newest 1,000", ("list",)),
        ("list --json", ("list", "--json")),
        ("list by card, kernel and date", ("list", "--card", "connectx-5", "--kernel", "6.1", "--since", "2025-06")),
        ("list by tag and method", ("list", "--tag", "release", "--method", "throughput")),
        ("list by words", ("list", "e810", "6.12")),
        ("check against a tag of 50 runs", ("check", newest, "--against", "baseline", "--force")),
        ("check against a run", ("check", newest, "--against", first, "--force")),
    ]
    well = True
    for words, arguments in commands:
        took = [run_once((*arguments, "--runs", str(runs))) for _ in range(TIMES)]
        good = (
            statistics.median(each.cpu_s for each in took) < LIMIT_S and max(each.memory_mb for each in took) < LIMIT_MB
        )
        well = well and good
        print(_words(words, took) + ("" if good else "  TOO MUCH"))
    print(_words("--version (what any start takes)", [run_once(("--version",)) for _ in range(TIMES)]))
    into = folder / "copy"
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(runs / "lake", into)
    for words in ("gather of a hundred runs", "the same again"):
        print(_words(words, [run_once(("gather", str(runs), "--into", str(into)))]))
    shutil.rmtree(into)
    return well


@dataclass(frozen=True, slots=True)
class Took:
    """What a process took: wall time, CPU time, and memory at its most."""

    wall_s: float
    cpu_s: float
    memory_mb: float


def _words(what: str, took: Sequence[Took]) -> str:
    wall, cpu = (
        statistics.median(values) for values in zip(*((each.wall_s, each.cpu_s) for each in took), strict=True)
    )
    return f"{what:34} {wall:6.2f} s wall {cpu:6.2f} s CPU {max(each.memory_mb for each in took):6.0f} MB"


def run_once(arguments: Sequence[str]) -> Took:
    """Runs a command; that a check ends with a status of its own (5, 6) is no failure here."""
    began = time.monotonic()
    command = [sys.executable, "-m", "nicbench", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read() if process.stderr else ""
    _, status, usage = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 5, 6):
        raise SystemExit(f"{' '.join(command)} ended with {code}: {said}")
    return Took(time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6)


def compare_small_files(folder: Path, count: int) -> None:
    """How long a scan of one column takes, of a month a file and of so many small files."""
    lake = folder / "runs" / "lake" / HEADLINE
    whole = pa.concat_tables(pq.read_table(path, partitioning=None) for path in sorted(lake.rglob("*.parquet")))
    small = folder / "small"
    shutil.rmtree(small, ignore_errors=True)
    small.mkdir()
    for number, part in enumerate(_parts(whole, count)):
        pq.write_table(part, small / f"{number}.parquet", compression="zstd")
    for words, paths in (
        ("small files", list(small.iterdir())),
        ("a file for each month", list(lake.rglob("*.parquet"))),
    ):
        began = time.monotonic()
        rows = sum(pq.ParquetFile(path).read(columns=["verdict"]).num_rows for path in paths)
        print(f"scan of {rows} rows in {len(paths)} {words}: {time.monotonic() - began:.2f} s")
    shutil.rmtree(small)


def _parts(table: pa.Table, count: int) -> Iterator[pa.Table]:
    many = max(1, table.num_rows // count)
    for begin in range(0, table.num_rows, many):
        yield table.slice(begin, many)


if __name__ == "__main__":
    sys.exit(main())
