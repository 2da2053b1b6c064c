"""Reads a model: of each key its meaning, what it accepts, its unit and its default. Pure; it knows no page.

The meaning of a key is the docstring below it in the source, or its ``Field(description=...)``.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import re
import textwrap
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import BaseModel, BeforeValidator
from pydantic_core import PydanticUndefined

from nicbench.core import units
from nicbench.core.described import Unit
from nicbench.core.registry import find

FAMILIES = {
    "methods": "nicbench.methods.base:Method",
    "search": "nicbench.search.base:Search",
    "testbed.duts": "nicbench.testbed.duts.base:Dut",
    "testbed.labs": "nicbench.testbed.labs.base:Lab",
    "testbed.shares": "nicbench.testbed.shares.base:ShareKind",
    "testbed.testers": "nicbench.testbed.testers.base:TesterKind",
    "hosts.kinds": "nicbench.hosts.base:Host",
    "workloads.tools": "nicbench.workloads.base:Workload",
}
"""Packages of plug-ins whose kinds a bench file names, and what these derive from."""

_QUANTITIES = {
    Unit.SECONDS: ("duration", lambda value: units.format_duration_s(float(value))),
    Unit.RATIO: ("share", lambda value: f"{100 * float(value):.10g} %"),
    Unit.PERCENT: ("percentage", lambda value: f"{float(value):g} %"),
    Unit.FRAMES_PER_S: ("frame rate", lambda value: _trimmed(units.format_rate(float(value)))),
    Unit.BITS_PER_S: ("bit rate", lambda value: _trimmed(units.format_bits_per_s(float(value)))),
    Unit.BYTES: ("size in bytes", lambda value: units.format_bytes(int(value))),
    Unit.FRAMES: ("number of frames", lambda value: f"{value:,}"),
}
_PLURALS = {
    "text": "texts",
    "whole number": "whole numbers",
    "duration": "durations",
    "percentage": "percentages",
    "share": "shares",
    "size in bytes": "sizes in bytes",
    "section": "sections",
    "a kind, or a section": "kinds or sections",
}
_REWRITTEN = {
    "any": "section",
    "any, by name or text": "a kind, or a section with a `kind`",
    "any, by name or text, by name": "sections with a `kind`, by name",
    "list of any, by name": "list of sections",
    "list of lists of texts": "list of texts",
    "any, by name": "facts, by name",
    "section, by name": "sections, by name",
    "text, by name": "texts, by name",
}
"""What reads better in other words: sections that a plug-in reads, and links."""

_SCALARS = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`"}


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a section of a bench file, in words."""

    name: str
    meaning: str
    accepts: str
    default: str
    is_inherited: bool


def model_of(name: str) -> type[BaseModel]:
    """Returns the options of ``package/kind`` (``testbed.duts/netem``), or ``module:Class`` below ``nicbench``."""
    package, _, kind = name.partition("/")
    if kind:
        module, _, base = FAMILIES[package].partition(":")
        options: type[BaseModel] = find(f"nicbench.{package}", getattr(importlib.import_module(module), base))[
            kind
        ].Options
        return options
    module, _, path = name.partition(":")
    return functools.reduce(getattr, path.split("."), importlib.import_module(f"nicbench.{module}"))  # type: ignore[return-value]


def keys_of(model: type[BaseModel]) -> tuple[Key, ...]:
    """Returns the keys of a model in the order of its source, those that it inherits after its own."""
    own = vars(model).get("__annotations__", {})
    meanings = _meanings_of(model)
    keys = [
        Key(
            name=name,
            meaning=field.description or meanings.get(name, ""),
            accepts=_reads(_accepts(field.annotation, list(field.metadata))),
            default=_default(field, list(field.metadata)),
            is_inherited=name not in own,
        )
        for name, field in model.model_fields.items()
    ]
    return tuple(sorted(keys, key=lambda key: key.is_inherited))


@functools.cache
def _meanings_of(model: type[BaseModel]) -> dict[str, str]:
    """The docstrings of fields, of the model and of those that it derives from."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if each in (object, BaseModel) or not issubclass(each, BaseModel) or not each.__module__.startswith("nicbench"):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0].body  # type: ignore[attr-defined]
        for field, text in itertools.pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                found[field.target.id] = " ".join(str(text.value.value).replace("``", "`").split())  # type: ignore[union-attr]
    return found


def _reads(accepts: str) -> str:
    return _REWRITTEN.get(accepts, accepts)


def _several(accepts: str) -> str:
    """Writes what the items of a list may be in the plural."""
    word, mark, rest = accepts.partition(", ")
    if word.startswith("list of "):
        return f"lists of {accepts.removeprefix('list of ')}"
    return f"{_PLURALS.get(word, word)}{mark}{rest}"


def _accepts(declared: Any, notes: list[Any]) -> str:
    """What a value may be, with its bounds, in words."""
    origin = typing.get_origin(declared)
    if origin is Annotated:
        inner, *more = typing.get_args(declared)
        return _accepts(inner, [*more, *notes])
    if origin is Literal:
        return ", ".join(f"`{_plain(value)}`" for value in typing.get_args(declared))
    if origin in (Union, types.UnionType):
        parts = [_accepts(each, notes) for each in typing.get_args(declared) if each is not type(None)]
        return " or ".join(dict.fromkeys(parts))
    if origin in (tuple, list, frozenset):
        inner = next((each for each in typing.get_args(declared) if each is not ...), Any)
        return f"list of {_several(_accepts(inner, []))}{_length(notes)}"
    if origin is dict:
        return f"{_accepts(typing.get_args(declared)[1], [])}, by name"
    if isinstance(declared, type) and issubclass(declared, BaseModel):
        return "a kind, or a section" if "plugins" in vars(declared) and "kind" in declared.model_fields else "section"
    if isinstance(declared, type) and issubclass(declared, Enum):
        return ", ".join(f"`{each.value}`" for each in declared)
    word, write = next((_QUANTITIES[note] for note in notes if note in _QUANTITIES), (None, None))
    if Unit.BYTES in notes and not any(isinstance(note, BeforeValidator) for note in notes):
        word, write = "whole number", _number  # of bytes, written without a unit
    bounds = _bounds(notes, write or _number)
    word = word or _SCALARS.get(declared) or getattr(declared, "__name__", "any").lower()
    return f"{word}, {bounds}" if bounds else word


def _bounds(notes: list[Any], write: Any) -> str:
    low = [note for note in _flat(notes) if isinstance(note, Ge | Gt)]
    high = [note for note in _flat(notes) if isinstance(note, Le | Lt)]
    least = max((note.ge if isinstance(note, Ge) else note.gt for note in low), default=None)
    most = min((note.le if isinstance(note, Le) else note.lt for note in high), default=None)
    if most is not None and most >= 2**62:
        most = None
    if least is not None and most is not None:
        return f"{write(least)} to {write(most)}"
    if least is not None:
        return f"more than {write(least)}" if isinstance(low[0], Gt) else f"{write(least)} or more"
    return "" if most is None else f"at most {write(most)}"


def _flat(notes: list[Any]) -> Iterator[Any]:
    """Constraints that stand in a ``Field`` within ``Annotated`` are its metadata."""
    for note in notes:
        yield note
        yield from getattr(note, "metadata", ())


def _length(notes: list[Any]) -> str:
    most = next((note.max_length for note in notes if isinstance(note, MaxLen)), None)
    least = next((note.min_length for note in notes if isinstance(note, MinLen)), None)
    if most is None:
        return "" if least in (None, 0, 1) else f", {least} or more"
    return f", at most {most}" if least is None else f", {least} to {most}"


def _default(field: Any, notes: list[Any]) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is PydanticUndefined:
        if field.default_factory_takes_validated_data:
            return "see meaning"
        value = field.default_factory()
    return _written(value, [*notes, *_notes_of(field.annotation)])


def _notes_of(declared: Any) -> Iterator[Any]:
    """The units that stand within a type: of the items of a list, of one side of a union."""
    if typing.get_origin(declared) is Annotated:
        yield from typing.get_args(declared)[1:]
    for each in typing.get_args(declared):
        yield from _notes_of(each) if not isinstance(each, str) else ()


def _written(value: Any, notes: list[Any]) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, BaseModel):
        kind = getattr(value, "kind", None)
        return f"`{kind}`" if kind and not value.model_fields_set - {"kind"} else "as below"
    if isinstance(value, tuple | list | dict) and not value:
        return "–"
    return f"`{_text(value, notes)}`"


def _text(value: Any, notes: list[Any]) -> str:
    if isinstance(value, BaseModel):
        return str(getattr(value, "kind", "as below"))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_text(each, notes)}" for name, each in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_text(each, notes) for each in value) + "]"
    write = next((_QUANTITIES[note][1] for note in notes if note in _QUANTITIES and note is not Unit.FRAMES), None)
    if Unit.BYTES in notes and not any(isinstance(note, BeforeValidator) for note in notes):
        write = None
    if write is not None and isinstance(value, int | float) and not isinstance(value, bool):
        return str(write(value))
    return _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)


def _trimmed(quantity: str) -> str:
    """``200.0 kpps`` as an author writes it."""
    return re.sub(r"\.0+(?= )", "", quantity)
