"""Packages on systems that have nothing else: once installed, they measure both demos and do all that a user does."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run_tried

from .roots import ROOT, Bare, bare
from .used import use_all_of

pytestmark = [pytest.mark.acceptance, pytest.mark.lab, pytest.mark.timeout(3000)]
ROOTS = ("bookworm", "trixie", "noble")
# What a bare system lacks for a lab, as docs/install.md has it; a wheel cannot bring it along.
FOR_A_WHEEL = {
    "bookworm": "iproute2 ethtool pciutils nftables procps bpftool",
    "trixie": "iproute2 ethtool pciutils nftables procps bpftool",
    "noble": "iproute2 ethtool pciutils nftables procps linux-tools-common linux-tools-generic",
}
# What an .rpm asks for by Fedora's names, by Debian's.
FOR_AN_RPM = "libstdc++6 iproute2 ethtool pciutils nftables procps"
# Ubuntu's bpftool starts that of the running kernel's own package, and the kernel here is not Ubuntu's.
TOOL_OF_ANY_KERNEL = "for tool in /usr/lib/linux-tools/*/bpftool; do ln -sf $tool /usr/local/sbin/bpftool; done"
QUIET = "apt-get -qq update && apt-get install -qq -y --no-install-recommends"
PYTHON = "/usr/lib/nicbench/python/bin/python3.11 -I"
COMPLETE = """
. /usr/share/bash-completion/bash_completion
_completion_loader nicbench || [ $? = 124 ]
COMP_WORDS=(nicbench r) COMP_CWORD=1 COMP_LINE="nicbench r" COMP_POINT=10
$(complete -p nicbench | sed "s/.*-F \\([^ ]*\\).*/\\1/") nicbench r nicbench
echo "completed: ${COMPREPLY[*]}"
"""


def _build(kind: str, pattern: str) -> Path:
    done = run_tried(["env", "NICBENCH_ARCHITECTURES=amd64", "scripts/package", kind], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (package,) = (ROOT / "build/dist").glob(pattern)
    return package


@pytest.fixture(scope="session")
def wheel() -> Path:
    """The wheel of this commit."""
    return _build("wheel", "*x86_64.whl")


@pytest.fixture(scope="session")
def deb(wheel: Path) -> Path:
    """The .deb of the same engine."""
    return _build("deb", "*amd64.deb")


@pytest.fixture(scope="session")
def rpm(wheel: Path) -> Path:
    """The .rpm of the same engine."""
    return _build("rpm", "*x86_64.rpm")


@pytest.fixture(params=ROOTS)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bare]:
    """Each bare system in turn."""
    with bare(request.param, tmp_path) as made:
        yield made


def _measure(root: Bare, program: str) -> None:
    for name in ("simulated", "kernel-forward"):
        began = time.monotonic()
        said = root.run(f"{program} demo {name} --runs /runs/{name} --no-progress")
        assert "report: /runs" in said
        (report,) = (root.folder / "runs" / name).glob("*/report.html")
        assert report.stat().st_size > 100_000
        print(f"{root.folder.name}: {name} measured in {time.monotonic() - began:.0f} s")


def _use_all(root: Bare) -> None:
    """All that a user does, with the Python of the package alone."""
    use_all_of(
        lambda arguments: root.run(f"nicbench {arguments}"),
        lambda arguments: root.run(f"{PYTHON} {arguments}"),
        "/runs/used",
        root.folder / "runs/used",
    )


def _has_what_comes_along(root: Bare) -> None:
    """Manual pages and completions."""
    for place in (
        "man/man1/nicbench-run.1.gz",
        "bash-completion/completions/nicbench",
        "zsh/vendor-completions/_nicbench",
        "zsh/site-functions/_nicbench",
        "fish/vendor_completions.d/nicbench.fish",
        "doc/nicbench/THIRD-PARTY-LICENSES.txt",
    ):
        assert (root.folder / "usr/share" / place).stat().st_size > 100, place


def _is_gone(root: Bare) -> None:
    left = root.run("find / -xdev -name '*nicbench*' -not -path '/runs/*' -not -path '/nicbench*' -not -path '/proc/*'")
    assert not [line for line in left.splitlines() if not line.startswith(("/run/nicbench", "/root/", "/var/lib/"))]


@pytest.mark.parametrize("checker", ["lintian", "rpmlint"])
def test_what_distributions_check_is_in_order(checker: str, request: pytest.FixtureRequest) -> None:
    """But for what packaging/lintian-overrides and packaging/rpmlintrc explain."""
    kind, options = (
        ("deb", ["--fail-on", "error,warning"])
        if checker == "lintian"
        else ("rpm", ["--ignore-unused-rpmlintrc", "-r", "packaging/rpmlintrc"])
    )
    command = [checker, *options, str(request.getfixturevalue(kind))]
    done = run_tried(command, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_the_deb_measures_in_a_bare_system(root: Bare, deb: Path) -> None:
    shutil.copy(deb, root.folder / "nicbench.deb")
    began = time.monotonic()
    root.run(f"{QUIET} /nicbench.deb bash-completion")
    print(f"{root.folder.name}: .deb installed in {time.monotonic() - began:.0f} s")
    assert root.has_no_compiler()
    doctor = root.run("nicbench doctor || true")
    assert "missing" not in doctor.split("Debian packages (runtime)")[1].split("\n")[0]
    _has_what_comes_along(root)
    completed = root.run(f"bash -c '{COMPLETE}'").split("completed: ")[1]
    assert {"run", "report", "resume", "restore"} <= set(completed.split())
    _measure(root, "nicbench")
    _use_all(root)
    root.run("dpkg --purge nicbench")
    _is_gone(root)


def test_the_wheel_measures_in_a_bare_system(root: Bare, wheel: Path) -> None:
    shutil.copy(wheel, root.folder / wheel.name)
    root.run(f"{QUIET} python3-venv {FOR_A_WHEEL[root.folder.name]}")
    if "linux-tools-common" in FOR_A_WHEEL[root.folder.name]:
        root.run(TOOL_OF_ANY_KERNEL)
    began = time.monotonic()
    root.run(f"python3 -m venv /nicbench && /nicbench/bin/pip install --quiet /{wheel.name}")
    print(f"{root.folder.name}: wheel installed in {time.monotonic() - began:.0f} s")
    assert root.has_no_compiler()
    _measure(root, "/nicbench/bin/nicbench")


def test_the_rpm_measures_where_rpm_installs_it(rpm: Path, tmp_path: Path) -> None:
    """In Debian, by its rpm: what the package needs has other names there than in Fedora."""
    with bare("trixie", tmp_path) as root:
        shutil.copy(rpm, root.folder / "nicbench.rpm")
        root.run(f"{QUIET} rpm {FOR_AN_RPM}")
        needs = root.run("rpm --query --package --requires /nicbench.rpm").splitlines()
        assert {"glibc >= 2.36", "iproute", "procps-ng", "nftables"} <= set(needs)
        root.run("rpm --upgrade --verbose --hash --nodeps /nicbench.rpm")
        assert root.run("nicbench --version").startswith("nicbench ")
        assert not root.run("rpm --verify --nodeps nicbench")
        _has_what_comes_along(root)
        _measure(root, "nicbench")
        _use_all(root)
        root.run("rpm --erase nicbench")
        _is_gone(root)
