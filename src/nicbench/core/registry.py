"""Finds the plug-ins of a package: every class with a ``kind``. A plug-in is added by adding a file, or a class to one.

Every module of the package and of its subpackages is one, except ``base`` and those whose names begin with an
underscore (code that the kinds share). A kind that is looked up loads the file that has it, and no other; all files
are loaded where all kinds are asked for. A malformed file is named when it is loaded, before anything is measured. A
class may have a class method ``check``, which raises ValueError where the class contradicts itself.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from pydantic import BaseModel

from nicbench.core.errors import NicbenchError

Base = TypeVar("Base")
_KIND = re.compile(r'^    kind(?:: (?:ClassVar|Literal)\[[^=\n]+\])? = "([^"]+)"', re.MULTILINE)


class Kinds(Mapping[str, type[Base]]):
    """The concrete subclasses of ``base`` in the modules of ``package`` by ``kind``, sorted by it."""

    def __init__(self, package: str, base: type[Base], folders: tuple[str, ...]) -> None:
        self._package = package
        self._base = base
        self._folders = folders
        self._known: dict[str, type[Base]] = {}

    def __getitem__(self, kind: str) -> type[Base]:
        if kind not in self._known:
            place = _places_of_kinds(self._package, self._folders).get(kind)
            offered = {} if place is None else _load(place, self._base)
            self._known[kind] = offered[kind] if kind in offered else self._all()[kind]
        return self._known[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, type[Base]]:
        return _find_all(self._package, self._base, self._folders)  # type: ignore[arg-type]  # can be hashed


def _load(place: str, base: type[Base]) -> dict[str, type[Base]]:
    return _all_of(importlib.import_module(place), base)  # type: ignore[arg-type]  # a class can be hashed


def find(package: str, base: type[Base]) -> Kinds[Base]:
    """Returns the plug-ins of a package by their kinds."""
    module = sys.modules.get(package) or importlib.import_module(package)
    return _kinds(package, base, tuple(module.__path__))  # type: ignore[arg-type]  # a class can be hashed


@functools.cache
def _kinds(package: str, base: type[Base], folders: tuple[str, ...]) -> Kinds[Base]:
    return Kinds(package, base, folders)


def list_kinds(package: str) -> list[str]:
    """Returns the kinds of a package's plug-ins, sorted, as their files have them: none is loaded."""
    return sorted(_places_of_kinds(package, tuple(importlib.import_module(package).__path__)))


@functools.cache
def _places_of_kinds(package: str, folders: tuple[str, ...]) -> dict[str, str]:
    """Returns the module of each kind, as the text of its file has it; of a kind that two files have, the first."""
    found: dict[str, str] = {}
    for place in _places(package, folders).values():
        spec = importlib.util.find_spec(place)
        text = "" if spec is None or spec.origin is None else Path(spec.origin).read_text(encoding="utf-8")
        for kind in _KIND.findall(text):
            found.setdefault(kind, place)
    return found


@functools.cache
def _find_all(package: str, base: type[Base], folders: tuple[str, ...]) -> dict[str, type[Base]]:
    """Returns what ``find`` does. The result is cached by folders, as files do not change while the program runs."""
    found: dict[str, type[Base]] = {}
    for _, place in sorted(_places(package, folders).items()):
        for kind, offered in _load(place, base).items():
            if kind in found:
                other = found[kind].__module__
                raise _malformed_error(
                    sys.modules[place], f"its kind {kind!r} is already taken by {other}", "give it a kind of its own"
                )
            found[kind] = offered
    return dict(sorted(found.items(), key=lambda pair: pair[0].replace("-", "_")))


@functools.cache
def _places(package: str, folders: tuple[str, ...]) -> dict[str, str]:
    """Returns the file of each plug-in by module name, in the package or in a subpackage of it (a theme)."""
    places: dict[str, str] = {}
    for info in pkgutil.iter_modules(folders):
        place = f"{package}.{info.name}"
        if info.name == "base" or info.name.startswith("_"):
            continue
        if not info.ispkg:
            within = {info.name: place}
        else:
            within = _places(place, tuple(os.path.join(folder, info.name) for folder in folders))
        for name, each in within.items():
            if name in places:
                raise NicbenchError(
                    f"two files are called {name}.py",
                    place=f"{places[name]} and {each}",
                    next_step="rename one of them",
                )
            places[name] = each
    return places


@functools.cache
def _all_of(module: ModuleType, base: type[Base]) -> dict[str, type[Base]]:
    """Returns the plug-ins of a module by kind, in the order of its lines; raises NicbenchError for a malformed one."""
    if not (module.__doc__ or "").strip():
        raise _malformed_error(module, "it has no docstring", "say in its first line what it is for")
    offered = {}
    for value in vars(module).values():
        if (
            not inspect.isclass(value)
            or not issubclass(value, base)
            or value.__module__ != module.__name__
            or inspect.isabstract(value)
            or value.__name__.startswith("_")
        ):
            continue
        kind = _kind_of(value)
        if not isinstance(kind, str) or not kind:
            raise _malformed_error(
                module,
                f"{value.__name__} has no kind",
                'add: kind = "its-name-in-the-bench-file"; or begin its name with _',
            )
        if kind in offered:
            raise _malformed_error(module, f"two classes have the kind {kind!r}", "give each a kind of its own")
        check = getattr(value, "check", None)
        if check is not None:
            try:
                check()
            except ValueError as error:
                raise _malformed_error(module, str(error), "correct what it says of itself") from error
        offered[kind] = value
    if not offered:
        raise _malformed_error(
            module, f"it defines no {base.__name__}", "begin the name of a helper module with an underscore"
        )
    return offered


def _kind_of(offered: type) -> object:
    """Returns the ``kind`` of a class; for a model, the default of the field ``kind``."""
    own = vars(offered)
    if "kind" in own or "kind" not in own.get("__annotations__", {}) or not issubclass(offered, BaseModel):
        return own.get("kind")
    return offered.model_fields["kind"].default


def _malformed_error(module: ModuleType, what: str, next_step: str) -> NicbenchError:
    return NicbenchError(what, place=module.__file__, next_step=next_step)
