"""Finds what a package offers: one class in each file, by its ``kind``. Adding a thing is adding a file.

Every module of the package is imported, except ``base`` and those whose names begin with an underscore (what the kinds
share). A malformed file stops start-up and is named, so that it is mended before anything is measured.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import TypeVar

from nicbench.errors import NicbenchError

Base = TypeVar("Base")


def find(package: str, base: type[Base]) -> dict[str, type[Base]]:
    """The concrete subclasses of ``base`` in the modules of ``package``, by ``kind``, in the order of file names."""
    folders = tuple(importlib.import_module(package).__path__)
    return dict(_found(package, base, folders))  # type: ignore[arg-type]  # a class can be hashed


def find_one(package: str, base: type[Base], kind: str) -> type[Base] | None:
    """What ``find`` has of this kind, None where it has none; without the others where its file is called like it."""
    name = kind.replace("-", "_")
    try:
        module = importlib.import_module(f"{package}.{name}") if name.isidentifier() and name != "base" else None
    except ModuleNotFoundError as error:
        if error.name != f"{package}.{name}":
            raise
        module = None
    if module is not None and not name.startswith("_"):
        found, offered = _the_one_of(module, base)  # type: ignore[arg-type]  # a class can be hashed
        if found == kind:
            return offered
    return find(package, base).get(kind)


@functools.cache
def _found(package: str, base: type[Base], folders: tuple[str, ...]) -> dict[str, type[Base]]:
    """Looked for once in these folders: a list of ten thousand runs asks as often, and files do not come meanwhile."""
    found: dict[str, type[Base]] = {}
    for info in sorted(pkgutil.iter_modules(folders), key=lambda info: info.name):
        if info.name == "base" or info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package}.{info.name}")
        kind, offered = _the_one_of(module, base)  # type: ignore[arg-type]
        if kind in found:
            other = found[kind].__module__
            raise _malformed(module, f"its kind {kind!r} is already taken by {other}", "give it a kind of its own")
        found[kind] = offered
    return found


@functools.cache
def _the_one_of(module: ModuleType, base: type[Base]) -> tuple[str, type[Base]]:
    offered = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == module.__name__
        and not inspect.isabstract(value)
        and not value.__name__.startswith("_")
    ]
    if len(offered) != 1:
        names = ", ".join(one.__name__ for one in offered) or "none"
        raise _malformed(
            module,
            f"it must define exactly one {base.__name__}; it defines {len(offered)} ({names})",
            "keep one in this file; begin the name of a helper class or a helper module with an underscore",
        )
    kind = vars(offered[0]).get("kind")
    if not isinstance(kind, str) or not kind:
        raise _malformed(module, f"{offered[0].__name__} has no kind", 'add: kind = "its-name-in-the-bench-file"')
    if not (module.__doc__ or "").strip():
        raise _malformed(module, "it has no docstring", "say in its first line what it is for")
    return kind, offered[0]


def _malformed(module: ModuleType, what: str, next_step: str) -> NicbenchError:
    return NicbenchError(what, place=module.__file__, next_step=next_step)
