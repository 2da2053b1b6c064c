"""Runs a drawn bench file from its testbed to its summary, by the code that runs every other."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nicbench.bench_file.load import load
from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import NothingMeasuredError
from nicbench.core.events import Bus
from nicbench.core.units import line_rate_frames_per_s
from nicbench.run import run
from nicbench.stages import plan, rigs
from nicbench.store.folder import RunFolder
from nicbench.testbed.cores import CoreMap
from nicbench.testbed.labs.base import FrameLab, Testbed
from nicbench.tuning.changes import Changes

from ._tester import DUT_CPU, DrawnDut, DrawnLab, DrawnTester, Nature


async def _inventory(*_: object) -> dict[str, dict[str, object]]:
    return {"tester": {}, "dut": {}}


def draw_frames(monkeypatch: pytest.MonkeyPatch, draw: random.Random, given: Nature | None = None) -> None:
    """From now on simulated labs are of the nature that is given, or drawn for each configuration."""
    seed = draw.randrange(10**9)
    nominal = draw.random() < 0.4

    def nature_of(bench: BenchFile, testbed: Testbed) -> Nature:
        if given is not None:
            return given
        of_configuration = random.Random(f"{seed} {bench.configuration}")
        nature = Nature.drawn(of_configuration, line_rate_frames_per_s(testbed.link_bits_per_s, 512))
        if '"critical_load"' in bench.source:  # of a DUT that passes nothing there is none
            nature.is_dead = False
        return nature

    async def make_testbed(bench: BenchFile, changes: Changes, *_: Any) -> tuple[FrameLab | None, Testbed]:
        lab = DrawnLab(bench.lab.options)
        testbed = await lab.up(changes, rigs.LocalHost("local"))
        cores = CoreMap(worker=0, dut=(DUT_CPU,), housekeeping=(), shared=False)
        testbed = replace(testbed, cores=cores, link_is_nominal=nominal)
        lab.nature = nature_of(bench, testbed)
        return lab, testbed

    async def make_dut(bench: BenchFile, testbed: Testbed, changes: Changes) -> DrawnDut:
        dut = DrawnDut(bench.dut.options)
        dut.nature = nature_of(bench, testbed)
        return dut

    turns = iter(range(10**6))

    def make_tester(bench: BenchFile, testbed: Testbed, *_: Any, **__: Any) -> DrawnTester:
        return DrawnTester(
            nature_of(bench, testbed), seed + next(turns), testbed.link_bits_per_s, len(testbed.tester_ports)
        )

    monkeypatch.setattr(plan, "collect", _inventory)
    monkeypatch.setattr(rigs, "make_testbed", make_testbed)
    monkeypatch.setattr(rigs, "make_dut", make_dut)
    monkeypatch.setattr(rigs, "make_tester", make_tester)


async def run_drawn(parent: Path, text: str, title: str) -> RunFolder:
    """A finished run in a folder of its own; where nothing could be measured its report says why."""
    folder = RunFolder.create(parent, text, title)
    bus = Bus()
    bus.subscribe(folder.journal.append)
    try:
        with contextlib.suppress(NothingMeasuredError):
            await run(load(folder.path / "bench.yaml"), folder, bus)
    finally:
        folder.journal.close()
    return folder
