"""The wheel holds all that a run needs: in an environment of its own, where no compiler can be called, it measures."""

from __future__ import annotations

import json
import os
import re
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from tests.commands import run_captured, run_checked, run_tried

ROOT = Path(__file__).resolve().parents[2]
COMPILERS = ("clang", "gcc", "cc", "cargo", "rustc", "make")


@pytest.fixture(scope="module")
def wheel() -> Path:
    """Of the engine that is built already."""
    done = run_tried(["scripts/package", "wheel", "--as-built"], cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    return ROOT / done.stdout.strip()


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it depends on, and nothing else; gives its folder."""
    folder = tmp_path_factory.mktemp("installed")
    run_checked([sys.executable, "-m", "venv", "--without-pip", folder])
    (packages,) = folder.glob("lib/python3*/site-packages")
    listed = run_captured([sys.executable, "packaging/closure.py"], cwd=ROOT)
    for name in {line.split("==")[0] for line in listed.stdout.splitlines() if "==" in line}:
        _link_distribution(name, packages)
    target = ["--target", str(packages), "--no-deps", "--no-index", "--no-compile", "--quiet"]
    run_checked([sys.executable, "-m", "pip", "install", *target, str(wheel)])
    return folder


def _link_distribution(name: str, packages: Path) -> None:
    """Links the folders and files of one installed package."""
    found = distribution(name)
    for top in {path.parts[0] for path in found.files or () if path.parts[0] not in ("..", "__pycache__")}:
        if not (packages / top).exists():
            (packages / top).symlink_to(Path(str(found.locate_file(top))).resolve())


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> tuple[list[str], dict[str, str], Path]:
    """The command, an environment in which compilers leave a note that they were called, and the place of that note."""
    stand_ins, note = tmp_path / "stand-ins", tmp_path / "called"
    stand_ins.mkdir()
    for name in COMPILERS:
        (stand_ins / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{note}\nexit 97\n')
        (stand_ins / name).chmod(0o755)
    kept = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "LANG": "C.UTF-8"}
    environment = {**kept, "PATH": f"{stand_ins}:{os.environ['PATH']}"}
    return [str(installed / "bin/python"), "-P", "-m", "nicbench"], environment, note


def _measure(run: tuple[list[str], dict[str, str], Path], bench: Path, runs: Path) -> dict[str, object]:
    command, environment, note = run
    done = run_tried(
        [*command, "run", str(bench), "--runs", str(runs), "--json"], env=environment, cwd=runs.parent, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert not note.exists() or "--version" in note.read_text(), note.read_text()
    (folder,) = runs.iterdir()
    assert (folder / "report.html").stat().st_size > 50_000
    return json.loads(done.stdout)


def _example(installed: Path, name: str) -> Path:
    (examples,) = installed.glob("lib/python3*/site-packages/nicbench/examples")
    return examples / name


def test_the_wheel_says_which_c_library_it_needs_and_what_is_inside(wheel: Path) -> None:
    assert "manylinux_2_" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    (built,) = re.findall(r"build_static (nicbench-.+)", (ROOT / "scripts/setup-steps.sh").read_text())
    assert "nicbench-connections" in built
    assert {f"nicbench/bin/{program}" for program in built.split()} <= set(names)
    assert {"nicbench/bin/nicbench-packets", "nicbench/bin/policer.bpf.o", "nicbench/packages.debian"} <= set(names)
    assert "nicbench/examples/kernel-forward.yaml" in names
    assert not [name for name in names if name.endswith((".bpf.c", ".rs"))]


def test_an_installed_program_measures_a_simulated_dut(
    installed: Path, run: tuple[list[str], dict[str, str], Path], tmp_path: Path
) -> None:
    assert _measure(run, _example(installed, "simulated.yaml"), tmp_path / "runs")


@pytest.mark.acceptance
@pytest.mark.lab
def test_an_installed_program_measures_xdp_programs_in_a_lab(
    installed: Path, run: tuple[list[str], dict[str, str], Path], tmp_path: Path
) -> None:
    bench = tmp_path / "bench.yaml"
    bench.write_text(
        "nicbench: 1\ntitle: Installed\nlab: {kind: veth}\ndut: {kind: xdp-forward}\n"
        "thresholds: {unsent_share: 0.5}\n"
        "tests:\n  - name: loss\n    method: frame-loss\n    frame_bytes: [64]\n    of: 10 kpps\n"
        "    load_step: 10 %\n    trial: {duration: 200 ms, drain: 50 ms, settle: 50 ms}\n"
    )
    assert _measure(run, bench, tmp_path / "runs")
