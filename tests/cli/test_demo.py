"""``demo`` runs what comes with nicbench: with root in a lab of namespaces, without it a simulated device."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from nicbench.bench_file import examples
from nicbench.core.errors import NotReadyError, UsageError
from nicbench.stages import tester


def test_without_root_it_names_the_demo_that_needs_none(nicbench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    ended = nicbench("demo")
    assert ended.status == 3
    assert "next: sudo nicbench demo, or without root: nicbench demo --simulated" in ended.stderr


@pytest.mark.parametrize("example", ["kernel-forward", "vpp"])
def test_a_simulated_device_is_measured_in_the_place_of_no_other_example(example: str, nicbench: Any) -> None:
    ended = nicbench("demo", "--simulated", example)
    assert ended.status == 2
    assert f"{example}: --simulated measures no other example" in ended.stderr


@pytest.mark.parametrize(("arguments", "name"), [(("policer",), "policer"), (("--simulated",), "simulated")])
def test_it_runs_an_example_into_the_folder_of_runs(
    arguments: tuple[str, ...],
    name: str,
    nicbench: Any,
    run_is: Any,
    finished_run: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_is(finished_run)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    ended = nicbench("demo", *arguments, "--runs", "mine")
    assert ended.status == 0
    assert f"examples/{name}.yaml" in ended.stderr
    assert "copy the bench file named above" in ended.stderr
    assert "`nicbench init` writes a bench file" in ended.stderr
    (folder,) = Path("mine").iterdir()
    assert (folder / "bench.yaml").read_text() == examples.example(name).read_text()


def test_without_a_name_the_known_device_gets_a_tenth_of_what_a_flood_showed(
    nicbench: Any, run_is: Any, finished_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def come_back(*_: object) -> float:
        return 61_234.5

    run_is(finished_run)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(tester, "flood", come_back)
    ended = nicbench("demo", "--runs", "mine")
    assert ended.status == 0
    assert "a flood came back at 61.23 kpps: the known device passes 6.100 kpps" in ended.stderr
    (folder,) = Path("mine").iterdir()
    assert "rate: 6100 pps" in (folder / "bench.yaml").read_text()


def test_examples_are_those_that_the_installation_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "examples"
    own.mkdir()
    (own / "simulated.yaml").write_text("mine\n")
    monkeypatch.setattr(examples, "shipped", lambda name: tmp_path / name)
    assert examples.example("simulated.yaml") == own / "simulated.yaml"
    assert examples.example_names() == ("simulated",)
    for name in ("simulate", "../examples/simulated", ""):
        with pytest.raises(UsageError, match="no example"):
            examples.example(name)
    monkeypatch.setattr(examples, "shipped", lambda name: tmp_path / "none" / name)
    with pytest.raises(NotReadyError, match="has no examples"):
        examples.example("simulated")
