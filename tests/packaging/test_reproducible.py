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
def test_two_clones_build_the_same_packages(tmp_path: Path) -> None:
    sums = []
    # One commit, whatever is committed here while this runs for minutes: its date is in the wheel.
    commit = run_captured(["git", "rev-parse", "HEAD"], cwd=ROOT).stdout
    for name in ("one", "the-other"):
        clone = tmp_path / name
        run_checked(["git", "clone", "--quiet", "--shared", str(ROOT), str(clone)])
        run_checked(["git", "checkout", "--quiet", commit.strip()], cwd=clone)
        (clone / ".venv").symlink_to(ROOT / ".venv")
        done = run_tried(
            ["scripts/package", "wheel", "deb", "rpm"],
            cwd=clone,
            env={**os.environ, "NICBENCH_ARCHITECTURES": "amd64", "PYTHONPATH": str(clone / "src")},
        )
        assert done.returncode == 0, done.stderr
        made = sorted((clone / "build/dist").iterdir())
        sums.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made})
    assert len(sums[0]) == 3
    assert sums[0] == sums[1]
