"""The bench files that come with nicbench, by their names."""

from __future__ import annotations

from pathlib import Path

from nicbench.core.errors import NotReadyError, UsageError, suggest
from nicbench.core.shipped import how_to_mend, shipped


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
