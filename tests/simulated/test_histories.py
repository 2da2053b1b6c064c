"""Whole runs under seeded worlds: none says more than it saw, loses a result, or trusts a trial that was broken.

`python -m tests.simulated.test_histories FIRST LAST` plays the histories of these seeds and prints faults, how the runs
ended, and how often an interval held the true rate.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.simulated.histories import draw_history, draw_together, play, play_together
from tests.simulated.judged import find_faults, find_faults_together, find_held

from nicbench.core.trial import Trial

HISTORIES, AT_ONCE = 1000, 50
HELD = 0.9
TOGETHER = 20
"""Every so many histories one is also played with others that ask for the same machine."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("first", range(0, HISTORIES, AT_ONCE))
def test_histories_are_told_as_they_were(first: int, tmp_path: Path) -> None:
    held = Counter[bool]()
    for seed in range(first, first + AT_ONCE):
        ran = play(draw_history(seed), tmp_path)
        assert not list(find_faults(ran)), f"seed {seed}"
        held.update(find_held(ran))
    assert held[True] >= HELD * held.total()


@pytest.mark.parametrize("seed", range(0, 100, TOGETHER))
def test_runs_that_ask_for_one_machine_take_turns_and_are_told_as_they_were(seed: int, tmp_path: Path) -> None:
    assert not list(find_faults_together(play_together(draw_together(seed), tmp_path)))


@pytest.mark.parametrize("seed", [5005301, 5005451, 5008677, 6000995, 6026857, 6039557, 7000123, 7045059, 7047219])
def test_a_history_in_which_a_fault_was_found_is_told_as_it_was(seed: int, tmp_path: Path) -> None:
    assert not list(find_faults(play(draw_history(seed), tmp_path)))


def test_one_seed_is_one_history(tmp_path: Path) -> None:
    for seed in (1, 2, 7, 43):
        told = [play(draw_history(seed), tmp_path / name) for name in ("once", "again")]
        assert told[0].summary == told[1].summary
        assert [_untimed(trial) for trial in told[0].trials] == [_untimed(trial) for trial in told[1].trials]


def _untimed(trial: Trial) -> Trial:
    """Without the time that reading the hardware took, which is real."""
    return trial.replace(reading=trial.reading.replace(machine=None))


@dataclass
class Played:
    """What became of several histories."""

    faults: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    held: dict[str, Counter[bool]] = field(default_factory=dict)

    def add(self, other: Played) -> None:
        """Adds what became of others."""
        self.faults += other.faults
        self.ends += other.ends
        for name, counted in other.held.items():
            self.held.setdefault(name, Counter()).update(counted)


def play_all(seeds: range) -> Played:
    """Plays the histories of these seeds."""
    played = Played()
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            history = draw_history(seed)
            about = f"{seed} ({', '.join([history.name, *history.features])})"
            try:
                ran = play(history, Path(folder))
            except Exception as error:  # a crash is a fault of the run, and the others are played all the same
                played.faults.append(f"{about}: {error!r}")
                continue
            end = "a summary" if ran.error is None else f"{type(ran.error).__name__}: {str(ran.error)[-60:]}"
            played.ends[end] += 1
            played.faults += [f"{about}: {fault}" for fault in find_faults(ran)]
            played.held.setdefault(history.name, Counter()).update(find_held(ran))
            shutil.rmtree(ran.folder.path)
            if seed % TOGETHER == 0:
                together = Path(folder, "together")
                try:
                    faults = list(find_faults_together(play_together(draw_together(seed), together)))
                except Exception as error:
                    faults = [repr(error)]
                played.faults += [f"{seed} and others: {fault}" for fault in faults]
                shutil.rmtree(together)
    return played


def main() -> None:
    """Plays histories on every CPU and prints what became of them; exits with 1 where one has a fault."""
    first, last = map(int, sys.argv[1:])
    total = Played()
    with ProcessPoolExecutor() as pool:
        for played in pool.map(play_all, (range(at, min(last, at + AT_ONCE)) for at in range(first, last, AT_ONCE))):
            total.add(played)
            for fault in played.faults:
                print(fault, flush=True)
    for name, counted in sorted(total.held.items()):
        if counted:
            print(f"{name}: {counted[True]} of {counted.total()} intervals hold, {counted[True] / counted.total():.1%}")
    for end, times in total.ends.most_common(10):
        print(f"{times} times {end}")
    print(f"{len(total.faults)} faults in {last - first} histories")
    sys.exit(1 if total.faults else 0)


if __name__ == "__main__":
    main()
