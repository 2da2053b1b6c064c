"""Packages on systems that have nothing else: once installed, they measure both demos."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from .roots import ROOT, Bare, bare

pytestmark = [pytest.mark.acceptance, pytest.mark.lab, pytest.mark.timeout(3000)]
ROOTS = ("bookworm", "trixie", "noble")
# What a bare system lacks for a lab, as docs/install.md has it; a wheel cannot bring it along.
FOR_A_WHEEL = {
    "bookworm": "iproute2 ethtool pciutils nftables bpftool",
    "trixie": "iproute2 ethtool pciutils nftables bpftool",
    "noble": "iproute2 ethtool pciutils nftables linux-tools-common linux-tools-generic",
}
QUIET = "apt-get -qq update && apt-get install -qq -y --no-install-recommends"


@pytest.fixture(scope="session")
def packages() -> dict[str, Path]:
    """The wheel and the .deb of this commit, by their kind."""
    command = ["scripts/package", "wheel", "deb"]
    environment = {"NICBENCH_ARCHITECTURES": "amd64"}
    done = subprocess.run(
        ["env", *(f"{key}={value}" for key, value in environment.items()), *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    dist = ROOT / "build/dist"
    (wheel,), (deb,) = dist.glob("*x86_64.whl"), dist.glob("*amd64.deb")
    return {"wheel": wheel, "deb": deb}


def _measure(root: Bare, program: str, examples: str) -> None:
    for name in ("simulated", "kernel-forward"):
        began = time.monotonic()
        said = root.measure(f"{program} run {examples}/{name}.yaml --output /runs/{name} --no-progress")
        assert "report: /runs" in said
        (report,) = (root.folder / "runs" / name).glob("*/report.html")
        assert report.stat().st_size > 100_000
        print(f"{root.folder.name}: {name} measured in {time.monotonic() - began:.0f} s")


@pytest.mark.parametrize("name", ROOTS)
def test_the_deb_measures_in_a_bare_system(name: str, packages: dict[str, Path], tmp_path: Path) -> None:
    with bare(name, tmp_path) as root:
        shutil.copy(packages["deb"], root.folder / "nicbench.deb")
        began = time.monotonic()
        root.install(f"{QUIET} /nicbench.deb")
        print(f"{name}: .deb installed in {time.monotonic() - began:.0f} s")
        assert root.has_no_compiler()
        doctor = root.measure("nicbench doctor || true")
        assert "missing" not in doctor.split("Debian packages (runtime)")[1].split("\n")[0]
        _measure(root, "nicbench", "/usr/lib/nicbench/python/lib/python3.11/dist-packages/nicbench/examples")
        root.install("dpkg --purge nicbench")
        assert not (root.folder / "usr/lib/nicbench/python").exists()


@pytest.mark.parametrize("name", ROOTS)
def test_the_wheel_measures_in_a_bare_system(name: str, packages: dict[str, Path], tmp_path: Path) -> None:
    with bare(name, tmp_path) as root:
        shutil.copy(packages["wheel"], root.folder / packages["wheel"].name)
        root.install(f"{QUIET} python3-venv {FOR_A_WHEEL[name]}")
        began = time.monotonic()
        root.install(f"python3 -m venv /nicbench && /nicbench/bin/pip install --quiet /{packages['wheel'].name}")
        print(f"{name}: wheel installed in {time.monotonic() - began:.0f} s")
        assert root.has_no_compiler()
        (examples,) = root.folder.glob("nicbench/lib/python3*/site-packages/nicbench/examples")
        _measure(root, "/nicbench/bin/nicbench", f"/{examples.relative_to(root.folder)}")
