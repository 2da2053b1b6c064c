"""The bench files that come with nicbench: in the package where it was installed, beside `src` in a clone."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nicbench.core.errors import NotReadyError, UsageError, suggest

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_PLACES: Final = (_PACKAGE / "examples", _PACKAGE.parents[1] / "examples")


def example_names() -> tuple[str, ...]:
    """The names of all examples, in order; none where the installation has none."""
    return tuple(sorted(path.stem for path in _folder().glob("*.yaml")))


def example(name: str) -> Path:
    """The bench file of this name (`kernel-forward`, with or without `.yaml`).

    UsageError where there is none of the name, NotReadyError where the installation has no examples at all.
    """
    path = _folder() / f"{name.removesuffix('.yaml')}.yaml"
    if path.is_file() and path.parent == _folder():
        return path
    names = example_names()
    if not names:
        raise NotReadyError("this installation has no examples", place=str(_PLACES[0]), next_step="install it again")
    raise UsageError(f"there is no example `{name}`", next_step=suggest(name, names, "example"))


def _folder() -> Path:
    return next((place for place in _PLACES if place.is_dir()), _PLACES[0])
