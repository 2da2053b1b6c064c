"""What a bench file may ask of the monitor."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.bench_file.load import parse
from nicbench.core.errors import BenchFileError
from nicbench.core.machine import MonitorSettings

BENCH = """
nicbench: 1
title: Watched
lab: {{kind: simulated}}
dut: simulated
{monitor}
tests: [{{name: throughput, method: throughput, frame_bytes: [64]}}]
"""


def settings(monitor: str) -> MonitorSettings:
    return parse(BENCH.format(monitor=monitor).encode(), Path("bench.yaml")).monitor


def test_it_watches_once_a_second_unless_told_otherwise() -> None:
    assert settings("") == MonitorSettings(interval=1.0, enabled=True)
    assert settings("monitor: {interval: 100 ms}").interval == 0.1


def test_off_is_a_word() -> None:
    assert not settings("monitor: off").enabled
    assert settings("monitor: on").enabled


@pytest.mark.parametrize("wrong", ["{interval: 50 ms}", "{interval: 1}", "never", "{every: 1 s}", "[]"])
def test_anything_else_is_refused(wrong: str) -> None:
    with pytest.raises(BenchFileError):
        settings(f"monitor: {wrong}")
