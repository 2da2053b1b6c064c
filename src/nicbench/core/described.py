"""Descriptions of values, declared where the values are: their names and units, for facts and options alike.

A fact declares the shape of its plain data as a type (a ``TypedDict``, ``dict`` or ``list`` of others, or a scalar); an
option is a field of its model; ``Annotated`` adds what the type does not say. inventory.json and plan.json hold plain
data without any of this: a report looks it up here, by the kind of the fact or option and the key.
"""

from __future__ import annotations

import functools
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Union

from pydantic import BaseModel

from nicbench.core.frozen import frozen


class Unit(StrEnum):
    """The unit of a number. A name that ends with a unit (``size_bytes``) declares it, too."""

    FRAMES_PER_S = "frames_per_s"
    BITS_PER_S = "bits_per_s"
    RATIO = "ratio"
    PERCENT = "percent"
    FRAMES = "frames"
    BYTES = "bytes"
    MEGATRANSFERS_PER_S = "mt_per_s"
    MICROSECONDS = "us"
    MEBIBYTES = "mib"
    HERTZ = "hz"
    NANOSECONDS = "ns"
    SHARE = "share"
    MILLISECONDS = "ms"
    SECONDS = "s"
    CPU_MASK = "cpu_mask"

    @classmethod
    def of_name(cls, name: str) -> Unit | None:
        """Returns the unit that a name ends with: the longest match, since ``_frames_per_s`` also ends with ``_s``."""
        return next((unit for unit in cls if f"_{name}".endswith(f"_{unit.value}")), None)


@frozen
class Label:
    """A label that replaces a value's name in words; ``alone``: it is shown without the name of the enclosing value."""

    text: str
    alone: bool = False


@frozen
class OneLine:
    """A mapping that reads best on one line: the format of each entry, and the separator."""

    entry: str = "{name} {value}"
    between: str = ", "


@frozen
class Words:
    """What a reader reads in place of identifiers of a bench file, in pairs: "the line rate" for ``line_rate``."""

    pairs: tuple[tuple[str, str], ...]


class NotEverywhere:
    """Annotates values that only some machines or devices have: a missing one is not reported as unknown."""


@frozen
class Shape:
    """The declared description of a value.

    ``fields`` are its named parts; ``entries`` is the shape of values under names that nicbench does not define (of
    interfaces, programs, settings); ``plugins`` is the package of the kinds that the value chooses from, whose options
    belong to the value, too. A list has the shape of its items.
    """

    label: str | None = None
    is_alone: bool = False
    unit: Unit | None = None
    one_line: OneLine | None = None
    is_everywhere: bool = True
    fields: Mapping[str, Shape] = field(default_factory=lambda: MappingProxyType({}))
    entries: Shape | None = None
    plugins: str | None = None
    words: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What a reader reads in place of some values."""


NOTHING: Final = Shape()
"""The shape of a value for which nothing is declared."""


Facts = Mapping[str, Any]
"""All that is known about one machine: plain data by kind of fact."""

Write = Callable[[str, object], str]
"""Formats a value for a report, by its name or the unit at its end: ``"_bytes"`` and ``1 << 30`` give "1 GiB"."""


@frozen
class Subject:
    """A row of the table of machines: its label, its place (the lowest comes first), and the text for a machine.

    ``tell`` receives all facts of the machine, since a row may combine several, and returns None where they say
    nothing.
    """

    label: str
    place: int
    tell: Callable[[Facts, Write], str | None]
    is_everywhere: bool = True
    """Whether every machine has it; otherwise a machine that says nothing of it has none, and nothing is unknown."""


class DescribedPlugin:
    """A plug-in that describes its values: a fact by ``shape``, every other plug-in by the model of its ``Options``.

    ``subjects`` are the rows that a fact adds to the table of machines.
    """

    kind: ClassVar[str]
    shape: ClassVar[Any] = None
    subjects: ClassVar[tuple[Subject, ...]] = ()
    Options: ClassVar[type[BaseModel]]


def shape_of(declared: Any) -> Shape:
    """Returns the shape of a model, a ``TypedDict``, ``dict[str, T]``, ``list[T]``, ``T | None`` or a scalar type."""
    origin = typing.get_origin(declared)
    if origin is Annotated:
        inner, *notes = typing.get_args(declared)
        return _apply_notes(shape_of(inner), notes)
    arguments = [each for each in typing.get_args(declared) if each not in (type(None), ...)]
    if origin in (Union, types.UnionType):
        return functools.reduce(_combine, map(shape_of, arguments), NOTHING)
    if origin is dict:
        return Shape(entries=shape_of(arguments[1]))
    if origin in (list, tuple, frozenset, set):
        return replace(shape_of(arguments[0]), label=None) if arguments else NOTHING
    if isinstance(declared, type) and issubclass(declared, BaseModel):
        return _shape_of_model(declared)
    if typing.is_typeddict(declared):
        hints = typing.get_type_hints(declared, include_extras=True)
        return Shape(fields={name: _shape_of_field(name, hint) for name, hint in hints.items()})
    return NOTHING


@functools.cache
def _shape_of_model(model: type[BaseModel]) -> Shape:
    fields = {
        name: _apply_notes(_shape_of_field(name, each.annotation), [*each.metadata, *_title_labels(each.title)])
        for name, each in model.model_fields.items()
    }
    return Shape(fields=fields, plugins=getattr(model, "plugins", None))


def _title_labels(title: str | None) -> list[Label]:
    return [] if title is None else [Label(title)]


def _shape_of_field(name: str, declared: Any) -> Shape:
    found = shape_of(declared)
    return found if found.unit is not None else replace(found, unit=Unit.of_name(name))


def _apply_notes(shape: Shape, notes: list[Any]) -> Shape:
    for note in notes:
        if isinstance(note, Unit):
            entries = None if shape.entries is None else replace(shape.entries, unit=note)
            shape = replace(shape, unit=note, entries=entries)
        elif isinstance(note, Label):
            shape = replace(shape, label=note.text, is_alone=note.alone)
        elif isinstance(note, OneLine):
            shape = replace(shape, one_line=note)
        elif isinstance(note, Words):
            shape = replace(shape, words=MappingProxyType(dict(note.pairs)))
        elif note is NotEverywhere or isinstance(note, NotEverywhere):
            shape = replace(shape, is_everywhere=False)
    return shape


def _combine(one: Shape, other: Shape) -> Shape:
    return Shape(
        label=one.label or other.label,
        is_alone=one.is_alone or other.is_alone,
        unit=one.unit or other.unit,
        one_line=one.one_line or other.one_line,
        is_everywhere=one.is_everywhere and other.is_everywhere,
        fields={**other.fields, **one.fields},
        entries=one.entries or other.entries,
        plugins=one.plugins or other.plugins,
        words={**other.words, **one.words},
    )


_ACRONYMS: Final = frozenset(
    {
        *("bios", "cpu", "dns", "dpdk", "dut", "eal", "fec", "gro", "id", "iommu", "ip", "irq", "lldp", "mac", "mtu"),
        *("nic", "numa", "os", "pci", "ptp", "ram", "rps", "rss", "smt", "tsc", "udp", "uuid", "vm", "xdp", "xps"),
    }
)
_SPELLINGS: Final = MappingProxyType(
    {"ipv4": "IPv4", "ipv6": "IPv6", "pcie": "PCIe", "nvme": "NVMe", "selinux": "SELinux", "apparmor": "AppArmor"}
)


def words_of(name: str) -> str:
    """Writes a name in words, without its unit. Names of the kernel (net.ipv4.ip_forward) and of devices are kept."""
    if any(character in name for character in "./: ") or name.startswith("-"):
        return name
    if name not in _SPELLINGS and (re.fullmatch(r"[a-z]+\d+[a-z]?", name) or "-" in name):
        return name
    unit = None if name in tuple(Unit) else Unit.of_name(name)
    words = [_spell(word) for word in name.removesuffix("" if unit is None else f"_{unit.value}").split("_") if word]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def _spell(word: str) -> str:
    if word in _SPELLINGS:
        return _SPELLINGS[word]
    if word in _ACRONYMS:
        return word.upper()
    return f"{word[:-1].upper()}s" if word.endswith("s") and word[:-1] in _ACRONYMS else word
