"""Debian packages: which of ``packages.debian`` are not installed, and the one command that installs them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.core.shipped import clone, shipped
from nicbench.doctor.base import Check, Examination, missing, ok, warning
from nicbench.engine.binaries import find_binary
from nicbench.hosts.base import Host

_NEEDS = "runtime|build|tools|facts|test|bench|package"
_ROW = re.compile(rf"^([a-z0-9][a-z0-9+.-]+)\s+#\s*({_NEEDS}):\s*(.+)$")
# Those of the arguments that are commands.
_PROGRAMS = 'for name; do if command -v "$name" >/dev/null; then echo "$name"; fi; done'


@dataclass(frozen=True, slots=True)
class Package:
    """One row: what needs it (one of the words in ``_ROW``), and why."""

    name: str
    needed_for: str
    why: str


def parse_packages(text: str) -> tuple[Package, ...]:
    """Rows of ``name  # kind: why``; ValueError with the line where one is anything else."""
    packages: list[Package] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        row = _ROW.match(line.rstrip())
        if row is None:
            raise ValueError(f"line {number} is not `name  # {_NEEDS}: why`: {line!r}")
        packages.append(Package(*row.groups()))
    return tuple(packages)


def parse_installed_packages(text: str) -> frozenset[str]:
    """Names from rows of name and status, as ``dpkg-query`` was asked for them."""
    rows = (row.split() for row in text.splitlines())
    return frozenset(row[0] for row in rows if row[1:] == ["installed"])


class Packages(Examination):
    """Those that a run needs, those that building the engine needs, and the tools of workloads."""

    kind = "packages"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        path = shipped("packages.debian")
        if not path.exists():
            return (warning("Debian packages", f"the list of them is not there: {path}"),)
        packages = parse_packages(path.read_text(encoding="utf-8"))
        names = [package.name for package in packages]
        query = ("dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\\n", *names)
        try:
            # It fails where it does not know one of them, and lists the others all the same.
            installed = parse_installed_packages((await host.run(query, check=False)).stdout)
        except NicbenchError:
            return (
                warning(
                    "Debian packages", f"this is not Debian, where the packages needed are called: {', '.join(names)}"
                ),
            )
        # Ubuntu has bpftool in other packages, and an installed nicbench may bring its own along.
        installed |= set((await host.run(("sh", "-c", _PROGRAMS, "sh", *names), check=False)).stdout.split())
        return judge(packages, installed, engine_is_built=_engine_is_built(), can_build=clone() is not None)


def judge(
    packages: Iterable[Package], installed: frozenset[str], *, engine_is_built: bool, can_build: bool = True
) -> tuple[Check, ...]:
    """Packages for building are needed in a clone until the engine is built, tools by the tests that name them.

    Those for checks and benchmarks are never missed here, nor those for facts (``report_facts``).
    """
    checks: list[Check] = []
    listed = tuple(packages)
    for purpose, lacking_is in (
        ("runtime", missing),
        ("build", warning if engine_is_built else missing),
        ("tools", warning),
    ):
        wanted = [package for package in listed if package.needed_for == purpose]
        if not wanted or (purpose == "build" and not can_build):
            continue
        absent = [package for package in wanted if package.name not in installed]
        name = f"Debian packages ({purpose})"
        if absent:
            why = "; ".join(f"{package.name} ({package.why})" for package in absent)
            command = f"apt-get install --no-install-recommends {' '.join(package.name for package in absent)}"
            checks.append(lacking_is(name, f"not installed: {why}", command))
        else:
            checks.append(ok(name, f"all {len(wanted)} are installed"))
    return tuple(checks)


def _engine_is_built() -> bool:
    try:
        find_binary("nicbench-packets")
    except NotReadyError:
        return False
    return True
