"""Axes of a study: every combination is a configuration, and what cannot be combined is named at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.bench_file import WrongBenchFileError, parse

BENCH = """
nicbench: 1
title: A study
lab: {kind: veth}
dut: {kind: policer, burst: 100}
AXES
tests: [{name: spread, method: receive-spread, rate: 1 kpps}]
"""
TWO = """
axes:
  queues: {1: {lab: {queues: 1}}, 4: {lab: {queues: 4}, dut: {per_queue: true}}}
  core: {slow: {dut: {rate: 1 kpps}}, fast: {dut: {rate: 2 kpps}}}
"""


def read(axes: str) -> list[tuple[str, int, float]]:
    bench = parse(BENCH.replace("AXES", axes).encode(), Path("study.yaml"))
    return [
        (each.configuration, each.lab.options.model_dump()["queues"], each.dut.options.model_dump()["rate"])
        for each in bench.configurations
        if each.lab is not None
    ]


def test_every_combination_is_a_configuration_with_both_overlays() -> None:
    assert read(TWO) == [
        ("queues-1_core-slow", 1, 1000.0),
        ("queues-1_core-fast", 1, 2000.0),
        ("queues-4_core-slow", 4, 1000.0),
        ("queues-4_core-fast", 4, 2000.0),
    ]
    bench = parse(BENCH.replace("AXES", TWO).encode(), Path("study.yaml"))
    assert bench.axes == {"queues": ("1", "4"), "core": ("slow", "fast")}


@pytest.mark.parametrize(
    ("axes", "why"),
    [
        ("axes: {queues: {1: {lab: {queues: 1}}}}", "an axis needs two or more values"),
        (f"{TWO}\nconfigurations: {{a: , b: }}", "either `axes` or `configurations`"),
        ("axes: {queues: {1: {seed: 4}, 2: {}}}", "cannot differ between configurations"),
        (f"axes: {{n: {{{', '.join(f'v{value}: ' for value in range(65))}}}}}", "65 combinations"),
        ("axes: {a_b: {1: , 2: }}", "a_b"),
    ],
    ids=["one value", "beside configurations", "a key that is shared", "too many", "a name"],
)
def test_what_cannot_be_combined_is_said(axes: str, why: str) -> None:
    with pytest.raises(WrongBenchFileError) as wrong:
        read(axes)
    assert any(why in problem.message or why in str(problem) for problem in wrong.value.problems)
