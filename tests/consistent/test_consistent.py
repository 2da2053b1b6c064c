"""Whole reports of random runs of every method: no two statements about one thing differ in any of what is written.

A run is drawn by its number: its bench file, what the DUT and its machines are like, and what is disturbed. It goes
through the code of every run, with a tester (or tools) that draw what they read; then all that is written of it is read
as a reader would.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from . import _frame_benches, _rounds
from ._checks import contradictions
from ._running import draw_frames, run_drawn
from ._whole import Whole

METHODS = (*_frame_benches.METHODS, *_rounds.METHODS)
RUNS = 200
LONG = 0
"""This run takes half a minute."""


def written(folder: Path, number: int) -> Whole:
    """All that is written of the run with this number."""
    draw = random.Random(number)
    method = METHODS[number % len(METHODS)]
    with pytest.MonkeyPatch.context() as patch:
        if method in _rounds.METHODS:
            bench, text = _rounds.round_bench(draw, method)
            _rounds.draw_rounds(patch, draw)
        else:
            bench, text = _frame_benches.frame_bench(draw, method)
            draw_frames(patch, draw)
        return Whole(asyncio.run(run_drawn(folder, text, str(bench["title"]))))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", [number for number in range(len(METHODS)) if number != LONG])
def test_no_two_statements_about_one_thing_differ(tmp_path: Path, number: int) -> None:
    assert_consistent(tmp_path, number)


@pytest.mark.acceptance
@pytest.mark.parametrize("number", [LONG, *range(len(METHODS), RUNS)])
def test_no_two_statements_of_many_runs_differ(tmp_path: Path, number: int) -> None:
    assert_consistent(tmp_path, number)


def assert_consistent(folder: Path, number: int) -> None:
    found = contradictions(written(folder, number))
    assert not found, "\n".join(found[:20])
