"""Ten thousand runs in a folder, and how long list, search, tag, check and a new index take. Seconds are printed.

One small simulated run is made; the others are copies of its files with names, times, cards, kernels and tags of their
own. The commands are processes of their own, as a user starts them: what they take includes their start.

    .venv/bin/python benchmarks/runs_folder.py [--runs 10000] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nicbench.store.files import json_text
from nicbench.store.listing import list_runs

BENCH = """\
nicbench: 1
title: Index
lab: {kind: simulated, capacity: 400 kpps}
dut: {kind: simulated}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64, 1518]
    search: {maximum_trials: 8}
    trial: {duration: 10 ms, drain: 1 ms, settle: 0 s}
"""
CARDS = (
    "Mellanox ConnectX-5 15b3:1017",
    "Mellanox ConnectX-6 Dx 15b3:101d",
    "Intel E810-C 8086:1592",
    "Broadcom P2100G",
)
KERNELS = ("6.1.90-amd64", "6.6.31", "6.12.0-rc3", "6.18.4")
FIRST = datetime(2020, 1, 1, tzinfo=UTC)
TIMES = 5
LIMIT_S = 1.0


def main() -> int:
    """Status 1 where something that is asked for takes longer than a second."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=10_000)
    options.add_argument("--keep", type=Path, help="make the runs here and leave them")
    given = options.parse_args()
    return 0 if of_many_runs(given.runs, given.keep) else 1


def of_many_runs(count: int = 10_000, keep: Path | None = None, times: int = TIMES) -> bool:
    """Makes so many runs, prints what each command takes, and says whether all are below the limit."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary) / "runs"
        began = time.monotonic()
        make_runs(folder, count)
        print(f"{count} runs made in {time.monotonic() - began:.1f} s")
        damaged = [run.run_id for run in list_runs(folder) if run.trouble is not None]
        if damaged:
            sys.exit(f"{len(damaged)} of the runs are damaged, {damaged[0]} among them: no figure would mean anything")
        return measure(folder, times)


def make_runs(folder: Path, count: int) -> None:
    """So many copies of one run under ``folder``, an hour apart."""
    first = measured_run(folder)
    small = ("bench.yaml", "plan.json", "inventory.json", "summary.json", "journal.ndjson", "MANIFEST.json")
    texts = {name: (first / name).read_text() for name in small}
    others = [path for path in first.iterdir() if path.name not in small]
    for number in range(count - 1):
        started = FIRST + timedelta(hours=number)
        path = folder / f"{started:%Y-%m-%dT%H%M%SZ}-index-{number}"
        path.mkdir()
        own = {name: _of_run(name, text, first.name, path.name, number, started) for name, text in texts.items()}
        own["MANIFEST.json"] = _manifest(own)
        for name, text in own.items():
            (path / name).write_text(text)
        for other in others:  # never read for a list: the same file serves all
            os.link(other, path / other.name)
        if number % 100 == 0:
            (path / "tags.json").write_text(json.dumps({"format": "1.0", "tags": [f"release-{number}", "nightly"]}))


def _manifest(texts: dict[str, str]) -> str:
    """With the checksums of what was changed: a run that differs from them would be listed as damaged."""
    document = json.loads(texts["MANIFEST.json"])
    changed = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    document["sha256"] |= {name: changed[name] for name in texts if name in document["sha256"]}
    return json_text(document) + "\n"


def measured_run(folder: Path) -> Path:
    """One run that was really made, by the simulated lab."""
    bench = folder.parent / "index-bench.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    bench.write_text(BENCH)
    command = [sys.executable, "-m", "nicbench", "run", str(bench), "--runs", str(folder), "--no-progress", "--json"]
    subprocess.run(command, check=True, capture_output=True)
    [path] = folder.iterdir()
    return path


def _of_run(name: str, text: str, old: str, new: str, number: int, started: datetime) -> str:
    text = text.replace(old, new)
    if name == "inventory.json":
        inventory = json.loads(text)
        vendor, _, model = CARDS[number % len(CARDS)].partition(" ")
        for facts in inventory.values():
            facts["kernel"] = {**(facts.get("kernel") or {}), "release": KERNELS[number % len(KERNELS)]}
            facts["pci_adapters"] = {"0000:01:00.0": {"vendor": vendor, "model": model, "driver": "mlx5_core"}}
        return json.dumps(inventory, indent=1)
    if name == "journal.ndjson":
        line, _, rest = text.partition("\n")
        return f"{json.dumps({**json.loads(line), 'wall_time': started.isoformat()}, separators=(',', ':'))}\n{rest}"
    return text


def measure(folder: Path, times: int) -> bool:
    """Whether list, search and check stay below the limit."""
    name = "2020-01-01T040000Z-index-4"
    (folder / ".index.sqlite").unlink(missing_ok=True)
    rows: list[tuple[str, Sequence[str], bool]] = [
        ("first list, which makes the index", ("list",), False),
        ("list", ("list",), True),
        ("list --json", ("list", "--json"), True),
        (
            "search by card, kernel, date",
            ("list", "--card", "connectx-5", "--kernel", "6.1", "--since", "2020-06"),
            True,
        ),
        ("search by tag and method", ("list", "--tag", "nightly", "--method", "throughput"), True),
        ("search by driver", ("list", "--driver", "mlx5"), True),
        ("search by words", ("list", "e810"), True),
        ("check against a run", ("check", name, "--against", "2020-01-01T000000Z-index-0"), True),
        ("check against a tag of one run", ("check", name, "--against", "release-500"), True),
        ("tag", ("tag", name, "measured"), True),
        ("list after it (one folder changed)", ("list",), True),
        ("index made anew", ("list", "--rebuild"), False),
        ("--version (what any start takes)", ("--version",), False),
    ]
    well = True
    for words, arguments, limited in rows:
        used = os.times().children_user + os.times().children_system
        taken_s = [run_once(arguments, folder) for _ in range(times if limited else 1)]
        used = (os.times().children_user + os.times().children_system - used) / len(taken_s)
        median = statistics.median(taken_s)
        well = well and not (limited and median >= LIMIT_S)
        spread = f", of {times}: {min(taken_s):.2f} to {max(taken_s):.2f}" if limited else ""
        print(f"{words:40} {median:7.2f} s   ({used:.2f} s of a processor{spread})", flush=True)
    size = (folder / ".index.sqlite").stat().st_size
    print(f"{'size of the index':40} {size / 1e6:7.2f} MB")
    return well


def run_once(arguments: Sequence[str], folder: Path) -> float:
    """Seconds of a whole process."""
    place = () if arguments[0].startswith("--") else ("--runs", str(folder))
    began = time.monotonic()
    command = [sys.executable, "-m", "nicbench", *arguments, *place]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    took = time.monotonic() - began
    if ended.returncode not in (0, 5, 6):
        sys.exit(f"{' '.join(arguments)}: status {ended.returncode}\n{ended.stderr}")
    return took


if __name__ == "__main__":
    sys.exit(main())
