"""Failures of tests of labs and virtual machines are handed on, to be repeated alone; all others count at once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.commands import run_tried

pytestmark = pytest.mark.sampled(2, of="repeated sessions")

TESTS = Path(__file__).resolve().parent
SETTINGS = """[pytest]
addopts = --strict-markers -p repeats
markers =
    lab: a lab
    vm: a machine
    alone: another marker
"""
SESSION = """
import pytest

@pytest.mark.lab
def test_of_a_lab():
    assert False, "noise"

@pytest.mark.vm
@pytest.mark.parametrize("times", [1, 9])
def test_of_a_machine(times):
    assert times == 9, "too few"

@pytest.fixture
def lab():
    assert False, "not made"

@pytest.mark.lab
def test_whose_fixture_fails(lab):
    pass
"""
OF_NEITHER = """
import pytest

@pytest.mark.alone
def test_of_neither():
    assert False
"""
MANY = """
import pytest

@pytest.mark.lab
@pytest.mark.parametrize("number", range(11))
def test_of_a_lab(number):
    assert False
"""


def session(folder: Path, processes: int, *, listed: bool = True, **files: str) -> tuple[int, list[str], str]:
    """The exit status of a session of these files, the tests that it wants to be repeated, and its words."""
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "vm").mkdir()  # a folder is not a marker
    for name, text in files.items():
        (folder / "vm" / f"test_{name}.py").write_text(text)
    listing = folder / "listing"
    listing.touch()
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "NICBENCH_REPEATED_TESTS": str(listing) if listed else ""}
    command = [sys.executable, "-m", "pytest", "--numprocesses", str(processes)]
    done = run_tried(command, cwd=folder, env=environment)
    return done.returncode, listing.read_text().splitlines(), done.stdout


@pytest.mark.parametrize("processes", [0, 2])
def test_failures_of_labs_and_machines_are_listed_to_be_repeated_and_shown_in_full(
    tmp_path: Path, processes: int
) -> None:
    status, lines, said = session(tmp_path, processes, session=SESSION)
    assert status == 0
    assert [line.partition(": ")[0] for line in lines] == [
        "vm/test_session.py::test_of_a_lab",
        "vm/test_session.py::test_of_a_machine[1]",
        "vm/test_session.py::test_whose_fixture_fails",
    ]
    assert "AssertionError: noise" in lines[0]
    assert "2 failed, 1 passed, 1 error" in said


@pytest.mark.parametrize("processes", [0, 2])
@pytest.mark.parametrize("files", [{"session": SESSION, "neither": OF_NEITHER}, {"many": MANY}, {"broken": "1 / 0"}])
def test_where_another_test_or_many_failed_the_session_has_failed(
    tmp_path: Path, processes: int, files: dict[str, str]
) -> None:
    status, lines, _ = session(tmp_path, processes, **files)
    assert status != 0
    assert lines == []


def test_where_nobody_repeats_them_they_have_failed(tmp_path: Path) -> None:
    status, lines, _ = session(tmp_path, 0, listed=False, session=SESSION)
    assert (status, lines) == (1, [])
