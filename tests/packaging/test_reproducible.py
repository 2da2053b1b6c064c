"""Two builds of one commit, in two folders, give the same bytes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from tests.commands import run_captured, run_checked, run_tried

from .roots import ROOT


@pytest.mark.acceptance
@pytest.mark.timeout(3000)
def test_two_clones_build_the_same_wheel(tmp_path: Path) -> None:
    sums = set()
    # One commit, whatever is committed here while this runs for minutes: its date is in the wheel.
    commit = run_captured(["git", "rev-parse", "HEAD"], cwd=ROOT).stdout
    for name in ("one", "the-other"):
        clone = tmp_path / name
        run_checked(["git", "clone", "--quiet", "--shared", str(ROOT), str(clone)])
        run_checked(["git", "checkout", "--quiet", commit.strip()], cwd=clone)
        (clone / ".venv").symlink_to(ROOT / ".venv")
        done = run_tried(
            ["scripts/package", "wheel"],
            cwd=clone,
            env={**os.environ, "NICBENCH_ARCHITECTURES": "amd64", "PYTHONPATH": str(clone / "src")},
        )
        assert done.returncode == 0, done.stderr
        (wheel,) = (clone / "build/dist").glob("*.whl")
        sums.add(hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert len(sums) == 1
