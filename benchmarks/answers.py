"""Whether a stranger's first answers are right: `examples/policer.yaml` and the demo on this machine, once each.

    sudo .venv/bin/python benchmarks/answers.py answers.ndjson [--beside] [--only policer]
    .venv/bin/python benchmarks/answers.py answers.ndjson --summary

Each run is a line of the file, so that runs of different hours come together. Every answer is held against the trials
in the journal, which are read here without the code of the searches, and the known device's against the rate that its
settings give. `--beside` runs a program that takes a random share of every CPU. The summary counts, quiet and beside
that program, runs that were valid and had every known rate within 0.5 %, and says which zones overlap in all runs.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = (sys.executable, "-m", "nicbench")
ROOT = Path(__file__).parents[1]
COMMANDS = {"policer": ["run", str(ROOT / "examples/policer.yaml")], "demo": ["demo"]}
HELD = 0.005
"""An interval that is right ends within this part of the known rate."""
ROUNDED = 0.006
"""What printing may round."""
BUSY = """
import random, sys, time
draw = random.Random(int(sys.argv[1]))
while True:
    share, until = draw.random(), time.monotonic() + draw.uniform(0.05, 0.5)
    while time.monotonic() < until:
        busy = time.perf_counter() + share * 0.01
        while time.perf_counter() < busy:
            pass
        time.sleep((1.0 - share) * 0.01)
"""


@contextmanager
def busy_machine(seed: int | None) -> Iterator[None]:
    """Takes a random share of each CPU meanwhile; nothing without a seed."""
    cpus = len(__import__("os").sched_getaffinity(0)) if seed is not None else 0
    others = [subprocess.Popen([sys.executable, "-c", BUSY, str((seed or 0) + cpu)]) for cpu in range(cpus)]
    try:
        yield
    finally:
        for one in others:
            one.kill()


def run_once(name: str, folder: Path) -> tuple[float, str, Path]:
    """Runs a command in a folder of its own; returns seconds, what it printed, and the run folder."""
    began = time.monotonic()
    done = subprocess.run(
        [*PROGRAM, *COMMANDS[name], "--runs", str(folder)], capture_output=True, text=True, check=False
    )
    took_s = time.monotonic() - began
    run = max((path for path in folder.glob("*/summary.json")), key=lambda path: path.stat().st_mtime, default=None)
    if run is None:
        raise SystemExit(f"{name} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return took_s, done.stdout, run.parent


def trials_of(run: Path) -> dict[str, dict[str, Any]]:
    """Returns the trials of the journal by their ids."""
    events = map(json.loads, (run / "journal.ndjson").read_text(encoding="utf-8").splitlines())
    return {event["trial"]["id"]: event["trial"] for event in events if event["event"] == "trial_finished"}


def carried(trial: dict[str, Any]) -> tuple[float, float, bool] | None:
    """Returns the load that a trial sent, the rate that came back, and whether nothing was lost; None where so little
    was lost that it may have left in a burst behind a pause of the tester.
    """
    counts, duration_s = trial["reading"]["counts"], trial["request"]["duration_s"]
    offered = counts["sent"] + counts["unsent_backpressure"]
    lost = counts["lost"] + (counts["corrupted"] or 0) + (counts["unattributed"] or 0) + counts["unsent_backpressure"]
    health = trial["reading"]["health"]
    paused_share = (health["total_gap_ns"] or health["longest_gap_ns"] or 0) / trial["reading"]["transmit_ns"]
    if 0 < lost <= paused_share * counts["intended"]:
        return None
    return offered / duration_s, (offered - lost) / duration_s, lost == 0


def find_faults(result: dict[str, Any], trials: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yields where a result says more than its trials showed."""
    rate = result["values"]["ndr_frames_per_s"]
    full = [trials[name] for name in result["trials"] if name in trials]
    longest = max((trial["request"]["duration_s"] for trial in full), default=0.0)
    frame = 2.0 / longest if longest else 0.0  # the load of a trial is known to a frame at either end
    told = (carried(trial) for trial in full if trial["request"]["duration_s"] >= longest * 0.999)
    seen = [one for one in told if one is not None]
    where = f"{result['id']}"
    if rate["lower"] is not None and rate.get("loss_floor") is None:
        if not any(passed and sent >= rate["lower"] - frame for sent, _, passed in seen):
            yield f"{where}: no trial passed {rate['lower']:.0f}"
        less = [back for sent, back, passed in seen if not passed and sent < rate["lower"] - frame and back < sent]
        if less:
            yield f"{where}: below {rate['lower']:.0f} a trial lost frames and {min(less):.0f} came back"
    if rate["upper"] is not None:
        more = [sent for sent, _, passed in seen if passed and sent > rate["upper"] + frame]
        if more and rate.get("queue") is None:
            yield f"{where}: above {rate['upper']:.0f} a trial passed {max(more):.0f}"
    known = result["values"].get("known_rate_frames_per_s")
    if known and not (rate["lower"] or 0.0) <= known <= (rate["upper"] or 0.0):
        yield f"{where}: {known:.0f} lies outside of {rate['lower']} to {rate['upper']}"
    if known and rate["upper"] and rate["upper"] > (rate["lower"] or 0.0) * (1 + 4 * HELD):
        yield f"{where}: the known rate is held by a wide interval"


def find_unprinted(summary: dict[str, Any], printed: str) -> Iterator[str]:
    """Yields ends of zones that the screen does not show."""
    units = {"pps": 1.0, "kpps": 1e3, "Mpps": 1e6}
    shown = [float(number) * scale for number in re.findall(r"\b\d+(?:\.\d+)?\b", printed) for scale in units.values()]
    for result in summary["results"]:
        rate = result["values"].get("ndr_frames_per_s")
        for end in ("lower", "upper"):
            value = rate and rate.get(end)
            if value and not any(abs(one - value) <= max(ROUNDED, 0.05) * value for one in shown):
                yield f"{result['id']}: {end} {value:.0f} is not on the screen"


def measure(name: str, *, beside: bool) -> dict[str, Any]:
    """Runs a command once; returns its line of the file."""
    with tempfile.TemporaryDirectory() as folder, busy_machine(random.randrange(10**6) if beside else None):
        began = time.strftime("%FT%T")
        took_s, printed, run = run_once(name, Path(folder))
        summary, trials = json.loads((run / "summary.json").read_text(encoding="utf-8")), trials_of(run)
    rates = {one["id"]: one for one in summary["results"] if "ndr_frames_per_s" in one["values"]}
    faults = [fault for result in rates.values() for fault in find_faults(result, trials)]
    zones = {
        name: (one["values"]["ndr_frames_per_s"]["lower"], one["values"]["ndr_frames_per_s"]["upper"])
        for name, one in rates.items()
    }
    return {
        "at": began,
        "command": name,
        "beside": beside,
        "took_s": round(took_s, 1),
        "verdict": summary["verdict"],
        "disturbed": [one["id"] for one in summary["results"] if one["verdict"] != "valid"],
        "known": {name: one["values"].get("known_rate_frames_per_s") for name, one in rates.items()},
        "zones": zones,
        "faults": [*faults, *find_unprinted(summary, printed)],
    }


def is_within(line: dict[str, Any]) -> bool:
    """Returns whether every known rate lies in its zone, whose ends are no farther from it than ``HELD``."""
    known = [(rate, *line["zones"][name]) for name, rate in line["known"].items() if rate]
    return bool(known) and all(
        lower and upper and rate * (1 - HELD) - 2 <= lower <= rate + 2 and rate - 2 <= upper <= rate * (1 + HELD) + 2
        for rate, lower, upper in known
    )


def overlap(zones: Sequence[tuple[float | None, float | None]]) -> bool:
    """Returns whether all of these ranges have a load in common."""
    return max(low or 0.0 for low, _ in zones) <= min(high or math.inf for _, high in zones)


def summarise(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yields a paragraph for each command, quiet and beside the busy program."""
    for name, beside in sorted({(one["command"], one["beside"]) for one in lines}):
        these = [one for one in lines if (one["command"], one["beside"]) == (name, beside)]
        took_s = [one["took_s"] for one in these]
        yield (
            f"{name}, {'beside a busy program' if beside else 'quiet'}: {len(these)} runs, "
            f"{sum(one['verdict'] == 'valid' for one in these)} valid, "
            f"{sum(map(is_within, these))} within {100 * HELD:g} %, "
            f"{statistics.median(took_s):.0f} s (at most {max(took_s):.0f}), "
            f"{sum(bool(one['faults']) for one in these)} with faults"
        )
        for each in dict.fromkeys(each for one in these for each, rate in one["known"].items() if not rate):
            zones = [one["zones"][each] for one in these if each in one["zones"]]
            low, high = (f"{ends[0] or 0:.0f} to {ends[-1] or 0:.0f}" for ends in (
                sorted(low or 0.0 for low, _ in zones), sorted(high or 0.0 for _, high in zones)))  # fmt: skip
            yield f"  {each}: from {low}, up to {high}: {'overlap' if overlap(zones) else 'do not overlap'}"


def main() -> None:
    """Runs and appends, or prints the summary."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, help="a line of JSON for each run")
    parser.add_argument("--beside", action="store_true", help="beside a program that takes a random share of every CPU")
    parser.add_argument("--only", choices=sorted(COMMANDS))
    parser.add_argument("--summary", action="store_true", help="run nothing, print what the file has")
    arguments = parser.parse_args()
    if arguments.summary:
        lines = map(json.loads, arguments.file.read_text(encoding="utf-8").splitlines())
        print("\n".join(summarise(list(lines))))
        return
    for name in [arguments.only] if arguments.only else COMMANDS:
        line = measure(name, beside=arguments.beside)
        with arguments.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print("\n".join((*summarise([line]), *line["faults"])), flush=True)


if __name__ == "__main__":
    main()
