"""Debian packages: which of ``packages.debian`` are not installed, and the one command that installs them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.doctor.base import Check, Examination, missing, ok, warning
from nicbench.engine.binaries import find_binary
from nicbench.hosts.base import Host

_ROW = re.compile(r"^([a-z0-9][a-z0-9+.-]+)\s+#\s*(runtime|build|tools|facts|test|bench):\s*(.+)$")


@dataclass(frozen=True, slots=True)
class Package:
    """One row: what needs it (``runtime``, ``build``, ``tools``, ``facts``, ``test`` or ``bench``), and why."""

    name: str
    needed_for: str
    why: str


def packages_file() -> Path:
    """In the clone; an installed package carries a copy beside its modules."""
    package = Path(__file__).resolve().parents[2]
    in_clone = package.parents[1] / "packages.debian"
    return in_clone if in_clone.exists() else package / "packages.debian"


def parse_packages(text: str) -> tuple[Package, ...]:
    """Rows of ``name  # kind: why``; ValueError with the line where one is anything else."""
    packages: list[Package] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        row = _ROW.match(line.rstrip())
        if row is None:
            raise ValueError(f"line {number} is not `name  # runtime|build|tools|facts|test|bench: why`: {line!r}")
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
        path = packages_file()
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
        return judge(packages, installed, engine_is_built=_engine_is_built())


def judge(packages: Iterable[Package], installed: frozenset[str], *, engine_is_built: bool) -> tuple[Check, ...]:
    """Packages for building are needed until the engine is built, tools by the tests that name them.

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
        if not wanted:
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
