"""Files that come with the program in addition to its modules: the examples and the list of Debian packages.

In a clone they stand at its root; a wheel has them inside the package (``force-include`` in pyproject.toml).
"""

from __future__ import annotations

from pathlib import Path

from nicbench.core.errors import NotReadyError, UsageError, suggest

_PACKAGE = Path(__file__).resolve().parents[1]


def clone() -> Path | None:
    """The clone of the repository that this program runs from; None where it is installed from a package."""
    root = _PACKAGE.parents[1]
    return root if (root / "pyproject.toml").is_file() and (root / "engine").is_dir() else None


def shipped(name: str) -> Path:
    """Where the file or folder ``name`` is, as ``examples/simulated.yaml``; nothing looks whether it is there."""
    return (clone() or _PACKAGE) / name


def build_command() -> str | None:
    """The command that builds what belongs to the program in a clone; None where it is installed from a package."""
    return "make install" if clone() else None


def how_to_mend() -> str:
    """The next step where what belongs to the program is not there: it was not built, or got lost."""
    command = build_command()
    return f"run `{command}`" if command else "install the nicbench package again"


# The bench files that come with nicbench, by their names.


def example_names() -> tuple[str, ...]:
    """The names of all examples, in order; none where the installation has none."""
    return tuple(sorted(path.stem for path in shipped("examples").glob("*.yaml")))


def example(name: str) -> Path:
    """The bench file of this name (`kernel-forward`, with or without `.yaml`).

    UsageError for an unknown name, NotReadyError where the installation has no examples at all.
    """
    names = example_names()
    stem = name.removesuffix(".yaml")
    if stem in names:
        return shipped(f"examples/{stem}.yaml")
    if not names:
        place = str(shipped("examples"))
        raise NotReadyError("this installation has no examples", place=place, next_step=how_to_mend())
    raise UsageError(f"there is no example `{name}`", next_step=suggest(name, names, "example"))
