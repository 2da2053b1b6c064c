"""What comes with the program besides its modules: the examples and the list of Debian packages.

In a clone they stand at its root; a wheel has them inside the package (``force-include`` in pyproject.toml).
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def clone() -> Path | None:
    """The clone of the repository that this program runs from; None where it is installed from a package."""
    root = _PACKAGE.parents[1]
    return root if (root / "pyproject.toml").is_file() and (root / "engine").is_dir() else None


def shipped(name: str) -> Path:
    """Where the file or folder ``name`` is, as ``examples/simulated.yaml``; nothing looks whether it is there."""
    return (clone() or _PACKAGE) / name


def how_to_mend() -> str:
    """The command that brings back what belongs to the program and is not there: it was not built, or got lost."""
    return "make install" if clone() else "pip install --force-reinstall nicbench"
