"""No failing system call loses a finished result, or ends a run without a reason (``syscalls.py`` tries them all)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from . import syscalls

pytestmark = pytest.mark.skipif(not syscalls.has_strace(), reason="needs root, and strace")

HIGHEST = {"write": 60, "fsync": 31, "rename": 15, "openat": 200, "clone": 3, "mmap": 60, "mkdir": 3}
"""About as many calls of each kind a thread of a run makes."""


@pytest.fixture(scope="module", autouse=True)
def _loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    syscalls.warm_up(tmp_path_factory.mktemp("before"))


@pytest.mark.parametrize("kind", HIGHEST)
def test_whichever_call_fails_what_was_measured_is_given_and_can_be_gone_on_from(
    kind: str, draw: random.Random, tmp_path: Path
) -> None:
    number = draw.randint(1, HIGHEST[kind])
    ended = syscalls.run_with(kind, number, tmp_path)
    assert [*syscalls.faults_of(ended), *syscalls.resumed(ended, tmp_path)] == [], (kind, number, ended.stderr)
