"""``scripts/check``: whatever fails, the others run, the last lines name it, and the exit status says so."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "check"
STUB = """#!/bin/sh
echo "$(basename "$0") $*" >>{log}
case "$(basename "$0") $*" in {repeating}) echo "test_a: why" >>"${{NICBENCH_REPEATED_TESTS:-/dev/null}}" ;; esac
case "$(basename "$0") $*" in {failing}) exit {status} ;; esac
"""


@pytest.fixture(autouse=True)
def _list_of_the_session_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Has a list in the environment, as within a session that such a script runs; it stays empty."""
    listing = tmp_path / "list of the session around"
    monkeypatch.setenv("NICBENCH_REPEATED_TESTS", str(listing))
    yield
    assert not listing.exists()


def check(
    folder: Path, *parts: str, failing: str = "nothing", status: int = 1, repeating: str = "nothing"
) -> tuple[int, list[str], str]:
    """The exit status of the script among stand-ins for all that it starts, what it started, and its last words."""
    log, programs = folder / "log", folder / ".venv" / "bin"
    for made in (programs, folder / "scripts", folder / "engine", folder / "cargo" / "bin", folder / "tests"):
        made.mkdir(parents=True)
    shutil.copy(SCRIPT, folder / "scripts" / "check")
    for marker in ("alone", "vm"):
        (folder / "tests" / f"test_{marker}.py").write_text(f"pytestmark = pytest.mark.{marker}\n")
    for path in (
        *(programs / name for name in ("ruff", "mypy", "lint-imports", "pytest", "python")),
        folder / "cargo/bin/cargo",
    ):
        path.write_text(STUB.format(log=log, failing=failing, status=status, repeating=repeating))
        path.chmod(0o755)
    log.touch()
    environment = {**os.environ, "CARGO_HOME": str(folder / "cargo")}
    command = (str(folder / "scripts" / "check"), *parts)
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return done.returncode, log.read_text().splitlines(), done.stderr


def test_everything_runs_and_nothing_is_said_to_have_failed(tmp_path: Path) -> None:
    status, started, said = check(tmp_path, "lint", "rust", "python")
    assert (status, said) == (0, "")
    assert {"mypy ", "ruff check .", "cargo test --workspace --locked --quiet"} <= set(started)
    sessions = [line for line in started if line.startswith("pytest")]
    assert len(sessions) == 3
    assert all("--durations=20" in session for session in sessions)
    assert [session for session in sessions if session.endswith(" tests/test_alone.py")]
    assert sessions[-1].endswith(" tests/test_vm.py")


@pytest.mark.parametrize(
    ("failing", "named"),
    [
        ("'ruff check .'", "ruff check ."),
        ("mypy*", "mypy"),
        ("cargo*default-features*", "in_engine cargo clippy"),
        ("'pytest'*'not vm and not alone'*", "pytest"),
    ],
)
def test_one_that_fails_lets_the_others_run_and_is_named(tmp_path: Path, failing: str, named: str) -> None:
    status, started, said = check(tmp_path, "lint", "rust", "python", failing=failing, status=7)
    assert status == 7
    assert "check: 1 failed:" in said
    assert f"\n  {named}" in said
    assert "cargo test --workspace --locked --quiet" in started
    assert len([line for line in started if line.startswith("pytest")]) == 3


def test_tests_that_were_repeated_are_listed_and_fail_nothing(tmp_path: Path) -> None:
    status, started, said = check(tmp_path, "python", repeating="'pytest'*'alone'*")
    assert status == 0
    assert "check: 2 of the tests of labs and virtual machines failed at first and were repeated alone:" in said
    assert said.count("\n  test_a: why") == 2
    again = [line for line in started if "--last-failed" in line]
    assert len(again) == 2
    for line in again:
        session, _, added = line.partition(" --numprocesses 1 --last-failed")
        assert session in started  # with the seed of the first time
        assert added == " --last-failed-no-failures none"


def test_one_that_fails_again_when_it_is_repeated_has_failed(tmp_path: Path) -> None:
    status, _, said = check(tmp_path, "python", repeating="'pytest'*' tests/test_alone.py'", failing="*--last-failed*")
    assert status == 1
    assert "were repeated alone:\n  test_a: why\n\ncheck: 1 failed:\n  pytest" in said


def test_a_check_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    status, started, said = check(tmp_path, "lnit")
    assert (status, started) == (2, [])
    assert "no check called lnit" in said
