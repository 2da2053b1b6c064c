"""Debian packages: which of ``packages.debian`` are not installed, and the one command that installs them."""

from __future__ import annotations

from collections.abc import Iterable

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.doctor.base import Check, Examination, missing, ok, warning
from nicbench.doctor.package_list import Package, installed_packages, packages_file, parse_packages
from nicbench.engine.binaries import find_binary
from nicbench.hosts.base import Host


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
            installed = installed_packages((await host.run(query, check=False)).stdout)
        except NicbenchError:
            return (
                warning("Debian packages", f"this is no Debian; what is needed is called there: {', '.join(names)}"),
            )
        return judge(packages, installed, engine_is_built=_engine_is_built())


def judge(packages: Iterable[Package], installed: frozenset[str], *, engine_is_built: bool) -> tuple[Check, ...]:
    """Packages for building are needed until the engine is built, tools by the tests that name them.

    Those for checks and benchmarks are never missed.
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
