"""No failing system call loses a finished result, or ends a run without a reason (``syscalls.py`` tries them all)."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from tests.commands import run_tried

from . import syscalls

HIGHEST = {"write": 60, "fsync": 31, "rename": 15, "openat": 200, "clone": 3, "mmap": 60, "mkdir": 3}
"""About as many calls of each kind a thread of a run makes."""


@pytest.mark.skipif(not syscalls.has_strace(), reason="needs root, and strace")
def test_whichever_call_fails_what_was_measured_is_given_and_can_be_gone_on_from(draw: random.Random) -> None:
    calls = [f"{kind}:{draw.randint(1, most)}" for kind, most in HIGHEST.items()]
    command = [sys.executable, "-m", "tests.faults.syscalls", *calls]
    tried = run_tried(command, cwd=Path(__file__).parents[2])
    assert tried.returncode == 0, (calls, tried.stdout, tried.stderr)
