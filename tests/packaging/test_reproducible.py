"""Two builds of one commit, in two folders, give the same bytes."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from .roots import ROOT


@pytest.mark.acceptance
@pytest.mark.timeout(3000)
def test_two_clones_build_the_same_wheel(tmp_path: Path) -> None:
    sums = set()
    # One commit, whatever is committed here while this runs for minutes: its date is in the wheel.
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in ("one", "the-other"):
        clone = tmp_path / name
        subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(clone)], check=True)
        subprocess.run(["git", "checkout", "--quiet", commit.strip()], cwd=clone, check=True)
        (clone / ".venv").symlink_to(ROOT / ".venv")
        done = subprocess.run(
            ["scripts/package", "wheel"],
            cwd=clone,
            env={**os.environ, "NICBENCH_ARCHITECTURES": "amd64", "PYTHONPATH": str(clone / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        (wheel,) = (clone / "build/dist").glob("*.whl")
        sums.add(hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert len(sums) == 1
