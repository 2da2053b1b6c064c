"""What a page that watches does to what it watches: equal trials on a veth pair, with a page open and without, in turn.

    .venv/bin/python benchmarks/live_page.py [--pairs 30] [--seconds 2]

One run (`nicbench run --live`) overloads the kernel's forwarding again and again. Between two trials it is drawn what
goes on during the next: nothing (the page's server and the browser stand still), the server alone (whose page is looked
at on another machine), or both, here. Of each round of three the forwarded rates are compared, and the tester's gaps.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from playwright.async_api import async_playwright

from nicbench.web.watched_run import Tail
from pairs import median_with_interval

ARMS = ("nothing", "server", "page")
WANTED_RATIO = 0.98
LOOK_S = 0.02
BENCH = """\
nicbench: 1
title: Beside a page
lab: {{kind: veth}}
dut: {{kind: kernel-forward}}
# No trial is repeated: what is of interest is every one of them.
thresholds: {{longest_gap_ms: 500, total_gap_share: 0.9, unsent_share: 0.99, dut_foreign_cpu_share: 1.0,
  dut_contended_share: 1.0, dut_pause_ms: 500}}
tests:
  - name: overload
    method: soak
    rate: highest
    trial: {{duration: 24 h, interval: {seconds:g} s, drain: 200 ms, settle: 200 ms}}
"""


@dataclass(frozen=True)
class Sample:
    """One trial: what was forwarded and sent in a second, and where the tester's own loop paused."""

    arm: str
    forwarded_per_s: float
    sent_per_s: float
    longest_gap_ms: float
    gaps: int
    total_gap_share: float

    @classmethod
    def of(cls, arm: str, trial: dict[str, Any]) -> Sample:
        """Takes it from a trial of a journal."""
        reading, health = trial["reading"], trial["reading"]["health"]
        seconds = reading["transmit_ns"] / 1e9
        return cls(
            arm=arm,
            forwarded_per_s=reading["counts"]["received"] / seconds,
            sent_per_s=reading["counts"]["sent"] / seconds,
            longest_gap_ms=health["longest_gap_ns"] / 1e6,
            gaps=health["gaps"],
            total_gap_share=health["total_gap_ns"] / reading["transmit_ns"],
        )


@contextmanager
def running(folder: Path, seconds: float) -> Iterator[tuple[Path, str, int]]:
    """A run with its live page, which ends with the block; gives its folder, the page's address, and the server."""
    (folder / "bench.yaml").write_text(BENCH.format(seconds=seconds))
    command = ["run", str(folder / "bench.yaml"), "--runs", str(folder / "runs"), "--live", "--no-report"]
    process = subprocess.Popen(
        [sys.executable, "-m", "nicbench", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(2)]
        found = [re.fullmatch(r"(?:run folder|live page): (\S+)\n", line) for line in lines]
        if not all(found):
            raise SystemExit(f"live_page: {''.join(lines)}{process.stderr.read()}")
        run, address = (match[1] for match in found if match)
        subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)  # so that it never waits for us
        yield Path(run), address, child_of(process.pid, "--beside")
    finally:
        process.terminate()
        process.wait()


def child_of(parent: int, word: str) -> int:
    """Returns the child of a process whose command line has a word."""
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            stat, command = (Path(f"/proc/{pid}/{name}").read_text() for name in ("stat", "cmdline"))
        except OSError:
            continue
        if int(stat.rpartition(")")[2].split()[1]) == parent and word in command.split("\0"):
            return int(pid)
    raise SystemExit("live_page: the server beside the run is not there")


class Switch:
    """Lets the server and the browser go on, or stand still."""

    def __init__(self, server: int, browser: list[int]) -> None:
        self._groups = {"server": [server], "page": browser}

    def set(self, arm: str) -> None:
        """``nothing``: both stand still; ``server``: it goes on; ``page``: both do."""
        goes_on = ARMS.index(arm)
        for name, pids in self._groups.items():
            for pid in pids:
                os.kill(pid, signal.SIGCONT if ARMS.index(name) <= goes_on else signal.SIGSTOP)


async def measured(pairs: int, seconds: float) -> list[list[Sample]]:
    """Returns rounds of three samples, one for each arm."""
    draw, arms, trials = random.Random(1), list[str](), list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as name, running(Path(name), seconds) as (run, address, server):
        async with async_playwright() as playwright:
            chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            await (await browser.new_page()).goto(address)
            session = await browser.new_browser_cdp_session()
            info = await session.send("SystemInfo.getProcessInfo")
            switch = Switch(server, [int(each["id"]) for each in info["processInfo"]])
            tail = Tail(run / "journal.ndjson")
            try:
                while len(trials) < len(ARMS) * pairs:
                    lines, _ = tail.read()
                    for event in map(json.loads, lines):
                        if event["event"] == "run_finished":
                            raise SystemExit(f"live_page: the run ended after {len(trials)} trials")
                        if event["event"] == "trial_finished" and event["trial"]["request"]["purpose"] == "soak":
                            trials.append(event["trial"])
                        if len(arms) <= len(trials):
                            arms += draw.sample(ARMS, len(ARMS))
                        switch.set(arms[len(trials)])
                    await asyncio.sleep(LOOK_S)
            finally:
                switch.set("page")
                await browser.close()
    samples = [Sample.of(arm, trial) for arm, trial in zip(arms, trials, strict=False)]
    by_arm = [sorted(samples[at : at + len(ARMS)], key=lambda each: ARMS.index(each.arm)) for at in starts(samples)]
    return [one for one in by_arm if len(one) == len(ARMS)]


def starts(samples: list[Sample]) -> range:
    """Where the rounds begin."""
    return range(0, len(samples), len(ARMS))


def line(rounds: list[list[Sample]], arm: int) -> str:
    """A row of the table: rates, and the ratio to those of the trials beside which nothing was watched."""
    own = [one[arm] for one in rounds]
    rates = np.array([each.forwarded_per_s for each in own]) / 1e3
    ratio = ""
    if arm:
        median, lower, upper = median_with_interval(
            [one[arm].forwarded_per_s / one[0].forwarded_per_s for one in rounds], 1
        )
        ratio = f"{median:.3f} [{lower:.3f}, {upper:.3f}]"
    gaps = np.array([each.longest_gap_ms for each in own])
    columns = [
        ARMS[arm],
        f"{np.median(rates):.0f} ({rates.min():.0f} to {rates.max():.0f})",
        ratio,
        f"{np.median([each.sent_per_s for each in own]) / 1e6:.2f}",
        f"{np.median(gaps):.2f} ({gaps.min():.2f} to {gaps.max():.2f})",
        f"{np.median([each.gaps for each in own]):.0f}",
        f"{100 * np.median([each.total_gap_share for each in own]):.2f} %",
    ]
    return f"| {' | '.join(columns)} |"


def main() -> int:
    """Prints the table; status 1 where the lower bound of a ratio misses what is wanted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    before = os.getloadavg()[0]
    rounds = asyncio.run(measured(arguments.pairs, arguments.seconds))
    print(
        f"{len(rounds)} rounds of trials of {arguments.seconds:g} s, load average {before:.1f} before and "
        f"{os.getloadavg()[0]:.1f} after, {os.cpu_count()} CPUs\n\n"
        "| beside the trial | forwarded [kpps]: median (range) | ratio [95 %] | sent [Mpps] "
        "| longest gap of the tester [ms]: median (range) | gaps | share in gaps |\n|---|---|---|---|---|---|---|"
    )
    for arm in range(len(ARMS)):
        print(line(rounds, arm), flush=True)
    lowest = min(
        median_with_interval([one[arm].forwarded_per_s / one[0].forwarded_per_s for one in rounds], 1)[1]
        for arm in range(1, len(ARMS))
    )
    print(f"\nwanted: lower bounds of at least {WANTED_RATIO:g}: {'met' if lowest >= WANTED_RATIO else 'not shown'}")
    return 0 if lowest >= WANTED_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
