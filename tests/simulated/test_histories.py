"""Whole runs under seeded worlds: none says more than it saw, loses a result, or trusts a trial that was broken.

`python -m tests.simulated.test_histories FIRST LAST` plays the histories of these seeds and prints faults, how the runs
ended, and how often an interval held the true rate.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from tests.simulated.histories import draw_history, find_faults, find_held, play

HISTORIES, AT_ONCE = 1000, 50
HELD = 0.9


@pytest.mark.parametrize("first", range(0, HISTORIES, AT_ONCE))
def test_histories_are_told_as_they_were(first: int, tmp_path: Path) -> None:
    held = Counter[bool]()
    for seed in range(first, first + AT_ONCE):
        ran = play(draw_history(seed), tmp_path)
        assert not list(find_faults(ran)), f"seed {seed}"
        held.update(find_held(ran))
    assert held[True] >= HELD * held.total()


def test_one_seed_is_one_history(tmp_path: Path) -> None:
    for seed in (1, 2, 43):
        told = [play(draw_history(seed), tmp_path / name) for name in ("once", "again")]
        assert told[0].summary == told[1].summary
        assert told[0].trials == told[1].trials


def main() -> None:
    """Plays histories and prints what became of them; exits with 1 where one has a fault."""
    first, last = map(int, sys.argv[1:])
    faults, ends = 0, Counter[str]()
    held: dict[str, Counter[bool]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            history = draw_history(seed)
            ran = play(history, Path(folder))
            ends["a summary" if ran.error is None else f"{type(ran.error).__name__}: {str(ran.error)[-60:]}"] += 1
            for fault in find_faults(ran):
                faults += 1
                print(f"{seed} ({history.name}, {', '.join(history.features)}): {fault}", flush=True)
            held.setdefault(history.name, Counter()).update(find_held(ran))
            shutil.rmtree(ran.folder.path)
    for name, counted in sorted(held.items()):
        if counted:
            print(f"{name}: {counted[True]} of {counted.total()} intervals hold, {counted[True] / counted.total():.1%}")
    for end, times in ends.most_common(10):
        print(f"{times} times {end}")
    print(f"{faults} faults in {last - first} histories")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
