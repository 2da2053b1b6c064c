"""Tests of labs and virtual machines are repeated once when they fail, no others are, and each repeat is listed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
SETTINGS = """[pytest]
addopts = --strict-markers -p repeats -p no:cacheprovider
markers =
    lab: a lab
    vm: a machine
    alone: another marker
"""
SESSION = """
import pytest
from pathlib import Path

def fail_at_first(name, times=1):
    made = Path(__file__).with_name(name)
    count = int(made.read_text()) if made.exists() else 0
    made.write_text(str(count + 1))
    assert count >= times, f"noise at attempt {count + 1}"

@pytest.mark.lab
def test_of_a_lab():
    fail_at_first("lab")

@pytest.mark.vm
@pytest.mark.parametrize("times", [1, 9])
def test_of_a_machine(times):
    fail_at_first(f"machine-{times}", times)

@pytest.mark.alone
def test_of_neither():
    fail_at_first("neither")

@pytest.fixture
def lab():
    fail_at_first("fixture")

@pytest.mark.lab
def test_whose_fixture_fails(lab):
    pass
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_each_repeat_is_listed_with_its_first_failure_and_other_tests_are_not_repeated(
    tmp_path: Path, processes: str
) -> None:
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "test_session.py").write_text(SESSION)
    listing = tmp_path / "listing"
    command = [sys.executable, "-m", "pytest", "--numprocesses", processes, "test_session.py"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "NICBENCH_REPEATED_TESTS": str(listing)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "2 failed, 3 passed, 4 rerun" in done.stdout, done.stdout
    attempts = {name: int((tmp_path / name).read_text()) for name in ("lab", "machine-1", "machine-9", "neither")}
    assert attempts == {"lab": 2, "machine-1": 2, "machine-9": 2, "neither": 1}
    lines = sorted(listing.read_text().splitlines())
    assert [line.partition(";")[0] for line in lines] == [
        "test_session.py::test_of_a_lab passed the second time",
        "test_session.py::test_of_a_machine[1] passed the second time",
        "test_session.py::test_of_a_machine[9] failed again",
        "test_session.py::test_whose_fixture_fails passed the second time",
    ]
    assert all("noise at attempt 1" in line and line in done.stdout for line in lines)
