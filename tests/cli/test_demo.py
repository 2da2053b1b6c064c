"""``demo`` runs what comes with nicbench: with root in a lab of namespaces, without it a simulated device."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from nicbench.bench_file import examples
from nicbench.core.errors import NotReadyError, UsageError


def test_without_root_it_names_the_demo_that_needs_none(nicbench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    ended = nicbench("demo")
    assert ended.status == 3
    assert "next: sudo nicbench demo, or without root: nicbench demo --simulated" in ended.stderr


@pytest.mark.parametrize(("arguments", "name"), [((), "kernel-forward"), (("--simulated",), "simulated")])
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
    assert "`nicbench init` writes a bench file" in ended.stderr
    (folder,) = Path("mine").iterdir()
    assert (folder / "bench.yaml").read_text() == examples.example(name).read_text()


def test_an_installed_package_has_examples_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "examples"
    own.mkdir()
    (own / "simulated.yaml").write_text("mine\n")
    monkeypatch.setattr(examples, "_PLACES", (own, *examples._PLACES))
    assert examples.example("simulated.yaml") == own / "simulated.yaml"
    assert examples.example_names() == ("simulated",)
    with pytest.raises(UsageError, match="no example `simulate`"):
        examples.example("simulate")
    monkeypatch.setattr(examples, "_PLACES", (tmp_path / "none",))
    with pytest.raises(NotReadyError, match="has no examples"):
        examples.example("simulated")
