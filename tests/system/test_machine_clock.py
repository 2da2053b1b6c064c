"""The highest clock of a machine is kept from run to run, and whatever is wrong with it is as if nothing were kept."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from nicbench.system.machine_clock import Machine, keep_highest, read_reference

MACHINE = Machine("0123456789abcdef0123456789abcdef", "Example CPU 1")


def kept_file(cache: Path) -> Path:
    [path] = (cache / "clocks").iterdir()
    return path


def test_the_highest_clock_is_kept_with_its_day(tmp_path: Path) -> None:
    for clock_hz in (4.1e9, 4.2e9, 3.9e9):
        keep_highest(MACHINE, clock_hz, tmp_path)
    reference = read_reference(MACHINE, tmp_path)
    assert reference is not None
    assert (reference.clock_hz, reference.seen_on) == (4.2e9, date.today())
    assert MACHINE.id not in kept_file(tmp_path).name + kept_file(tmp_path).read_text()


def test_another_machine_or_another_cpu_has_none(tmp_path: Path) -> None:
    keep_highest(MACHINE, 4.1e9, tmp_path)
    assert read_reference(MACHINE._replace(id="f" * 32), tmp_path) is None
    replaced = MACHINE._replace(cpu_model="Example CPU 2")
    assert read_reference(replaced, tmp_path) is None
    keep_highest(replaced, 3.0e9, tmp_path)
    reference = read_reference(replaced, tmp_path)
    assert reference is not None
    assert reference.clock_hz == 3.0e9


@pytest.mark.parametrize("clock_hz", [0.0, -1.0, 50e9, float("nan"), float("inf")])
def test_an_absurd_clock_is_not_kept(tmp_path: Path, clock_hz: float) -> None:
    keep_highest(MACHINE, clock_hz, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not JSON",
        "[]",
        '{"cpu_model": "Example CPU 1", "clock_hz": 4.1e12, "seen_on": "2026-01-01"}',
        '{"cpu_model": "Example CPU 1", "clock_hz": null, "seen_on": "2026-01-01"}',
        f'{{"cpu_model": "Example CPU 1", "clock_hz": 4.1e9, "seen_on": "{date.today() + timedelta(days=2)}"}}',
    ],
)
def test_a_damaged_file_is_as_none_and_is_replaced(tmp_path: Path, content: str) -> None:
    keep_highest(MACHINE, 4.1e9, tmp_path)
    kept_file(tmp_path).write_text(content)
    assert read_reference(MACHINE, tmp_path) is None
    keep_highest(MACHINE, 3.8e9, tmp_path)
    reference = read_reference(MACHINE, tmp_path)
    assert reference is not None
    assert reference.clock_hz == 3.8e9


def test_a_cache_that_cannot_be_written_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "clocks").write_text("a file where the folder would be")
    keep_highest(MACHINE, 4.1e9, tmp_path)
    assert read_reference(MACHINE, tmp_path) is None


@pytest.mark.parametrize(
    ("highest_hz", "applies"), [(None, False), (3.5e9, False), (3.7e9, True), (4.0e9, False), (4.1e9, False)]
)
def test_a_reference_applies_to_runs_that_are_a_little_slower(
    tmp_path: Path, highest_hz: float | None, applies: bool
) -> None:
    keep_highest(MACHINE, 4.0e9, tmp_path)
    reference = read_reference(MACHINE, tmp_path)
    assert reference is not None
    assert reference.applies_to(highest_hz) is applies
