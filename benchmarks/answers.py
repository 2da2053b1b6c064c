"""Whether a stranger's first answers are right: `examples/policer.yaml` and the demo, again and again, on this machine.

    sudo .venv/bin/python benchmarks/answers.py --times 10 [--beside] [--only policer]

Every answer is held against the trials in the journal, which are read here without the code of the searches, and the
policer's against the rate that its settings give. `--beside` runs a program that takes a random share of every CPU. The
rows are the seconds, the verdict, whether every known rate is held, and the zones; the zones of one size must overlap.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = str(Path(sys.executable).parent / "nicbench")
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
        [PROGRAM, *COMMANDS[name], "--runs", str(folder)], capture_output=True, text=True, check=False
    )
    took_s = time.monotonic() - began
    if done.returncode:
        raise SystemExit(f"{name} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return took_s, done.stdout, max(folder.iterdir(), key=lambda path: path.stat().st_mtime)


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


def overlap(zones: Sequence[tuple[float, float]]) -> bool:
    """Returns whether all of these ranges have a load in common."""
    return max(low for low, _ in zones) <= min(high for _, high in zones)


def main() -> None:
    """Runs, checks and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--beside", action="store_true", help="beside a program that takes a random share of every CPU")
    parser.add_argument("--only", choices=sorted(COMMANDS))
    arguments = parser.parse_args()
    faults, zones = 0, dict[str, list[tuple[float, float]]]()
    with tempfile.TemporaryDirectory() as folder, busy_machine(random.randrange(10**6) if arguments.beside else None):
        for number in range(arguments.times):
            for name in [arguments.only] if arguments.only else COMMANDS:
                took_s, printed, run = run_once(name, Path(folder))
                summary, trials = json.loads((run / "summary.json").read_text(encoding="utf-8")), trials_of(run)
                found = [fault for result in summary["results"] if "ndr_frames_per_s" in result["values"]
                         for fault in find_faults(result, trials)]  # fmt: skip
                found += find_unprinted(summary, printed)
                spans = []
                for result in summary["results"]:
                    rate = result["values"].get("ndr_frames_per_s")
                    if rate:
                        spans.append(f"{(rate['lower'] or 0) / 1e3:.4g}..{(rate['upper'] or 0) / 1e3:.4g}")
                        if "known_rate_frames_per_s" not in result["values"] and rate["lower"] and rate["upper"]:
                            zones.setdefault(result["id"], []).append((rate["lower"], rate["upper"]))
                print(f"{name} {number + 1}: {took_s:.0f} s, {summary['verdict']}, kpps {' '.join(spans)}", flush=True)
                for fault in found:
                    print(f"  {fault}")
                if found:
                    print(printed)
                faults += len(found)
    for name, every in zones.items():
        together = overlap(every)
        faults += not together
        print(f"{name}: the zones of {len(every)} runs {'overlap' if together else 'do not overlap'}")
    print(f"{faults} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
