"""The Debian packages that nicbench needs, from ``packages.debian``, which the set-up reads as well."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_ROW = re.compile(r"^([a-z0-9][a-z0-9+.-]+)\s+#\s*(runtime|build|tools|test|bench):\s*(.+)$")


@dataclass(frozen=True, slots=True)
class Package:
    """One row: what needs it (``runtime``, ``build``, ``tools``, ``test`` or ``bench``), and why."""

    name: str
    needed_for: str
    why: str


def packages_file() -> Path:
    """In the clone; an installed package carries a copy beside its modules."""
    package = Path(__file__).resolve().parents[1]
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
            raise ValueError(f"line {number} is not `name  # runtime|build|tools|test|bench: why`: {line!r}")
        packages.append(Package(*row.groups()))
    return tuple(packages)


def installed_packages(text: str) -> frozenset[str]:
    """Names from rows of name and status, as ``dpkg-query`` was asked for them."""
    rows = (row.split() for row in text.splitlines())
    return frozenset(row[0] for row in rows if row[1:] == ["installed"])
