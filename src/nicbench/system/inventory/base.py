"""A fact: a command or files that are read, and a pure parser. Facts of a theme share a file in ``facts/``.

To add one:

1. Add a subclass of ``nicbench.system.inventory.base.Fact`` to the file of its theme in
   ``src/nicbench/system/inventory/facts``, or to a new file: its ``kind`` in inventory.json, a pure parser, and
   ``async read(host, devices)``. Where the host does not say, UnknownFactError with the reason.
2. ``shape`` says what the plain data is (``core/described.py``): a ``TypedDict`` for named parts, ``dict[str, T]``
   where the names are not ours (interfaces, sysctls), ``list[T]``. A name ends with its unit; what is to be called
   otherwise has a ``Label``, what is read best in one line ``OneLine``, what only some machines have
   ``NotEverywhere``. The report needs no more. ``subjects`` are the lines that it brings to the table of machines,
   each with its label, its place among the others and a function that tells it from the facts
   (``system/inventory/base.py`` has what these share).
3. Put recorded outputs into ``tests/system/inventory/golden``, and a line for the parser into
   ``test_hostile_text.py``.

Options are declared in the same way: a quantity of ``core/quantity.py`` knows its unit, another number is
``Annotated[int, Unit.FRAMES]``, and ``Field(title=...)`` is its label where its name in words does not serve as one.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, ClassVar, Protocol, TypeAlias

from nicbench.core.described import DescribedPlugin, Facts
from nicbench.core.errors import NicbenchError, UnknownFactError
from nicbench.core.machine import Controller
from nicbench.core.registry import find
from nicbench.hosts.asking import output_of, values_of
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost

UNKNOWN = (UnknownFactError, NicbenchError)
"""What says itself why a fact is unknown."""

NOT_UNDERSTOOD = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What a parser may raise on text it was not written for: the fact is null then, with this as the reason."""


Parser: TypeAlias = "staticmethod[[str], Any]"
"""A pure function from the output of a tool to plain data, as an attribute of a class."""


class Fact(DescribedPlugin, ABC):
    """``kind`` is its name in inventory.json, ``shape`` what its plain data is: labels, units, free names."""

    kind: ClassVar[str]
    of_machine: ClassVar[bool] = False
    """Whether it is the same in every namespace: it is then read once, outside of them, where nothing is hidden."""

    inside: ClassVar[bool] = False
    """Whether it is of a container itself, and not of its network, which is seen from outside."""

    def __init__(self, controller: Controller | None = None) -> None:
        """``controller`` is the machine's management controller, where the bench file names one."""
        self.controller = controller

    @abstractmethod
    async def read(self, host: Host, devices: tuple[str, ...]) -> Any:
        """The fact as plain data, names with units. UnknownFactError, with the reason, where the host does not say.

        ``devices`` are the kernel interfaces of the test on this host.
        """


class CommandFact(Fact):
    """A fact that ``parse`` reads from the output of ``command``."""

    command: ClassVar[tuple[str, ...]]
    parse: ClassVar[Parser]

    async def read(self, host: Host, devices: tuple[str, ...]) -> Any:
        return self.parse(await output_of(host, *self.command))


class FilesFact(Fact):
    """A fact that ``parse`` reads from files: it gets the content of each file that matches ``paths``, by path."""

    paths: ClassVar[tuple[str, ...]]
    parse: ClassVar[staticmethod[[dict[str, str]], Any]]

    async def read(self, host: Host, devices: tuple[str, ...]) -> Any:
        return self.parse(await values_of(host, self.paths))


# What the subjects of facts share: parts of facts, and texts joined; what is not known is left out. Pure.


def part_of(facts: Facts, name: str) -> Mapping[str, Any]:
    """A part that has parts itself, or nothing where it is of another form."""
    found = facts.get(name)
    return found if isinstance(found, Mapping) else {}


def join_texts(*parts: object, by: str = ", ") -> str | None:
    """The known parts as one text; None where none is known."""
    return by.join(str(part) for part in parts if part not in (None, "", [])) or None


def join_list(values: Any) -> str | None:
    """Joins the items of a list; None if it is empty or not a list."""
    return ", ".join(map(str, values)) if isinstance(values, list) and values else None


def count_words(part: Mapping[str, Any]) -> str:
    """How many there are, before their name; nothing of one."""
    return f"{part['count']} \u00d7 " if part.get("count", 1) > 1 else ""


# ``/proc/meminfo`` (proc_meminfo(5)), which several facts read.  Pure: text in, numbers out.


def parse_meminfo(text: str) -> dict[str, int]:
    """Names and values: bytes where the kernel prints kB, plain counts elsewhere."""
    found = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and words and words[0].isdigit():
            found[name] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return found


# Facts that each test interface has: asked for side by side, and null, with its reason, for one that does not say.

REASONS = "reasons_null"


async def ask_interfaces(devices: tuple[str, ...], ask: Callable[[str], Awaitable[Any]]) -> dict[str, Any]:
    """The answer of each interface, and under ``reasons_null`` why some have none.

    UnknownFactError, with the reason, if the test has no interface there, or all fail to answer.
    """
    if not devices:
        raise UnknownFactError("this host has no kernel interface in the test")
    found = {}
    reasons = {}

    async def one(device: str) -> tuple[Any, str | None]:
        try:
            return await ask(device), None
        except UNKNOWN as error:
            return None, (str(error).splitlines() or ["no reason given"])[0]
        except NOT_UNDERSTOOD as error:
            return None, f"not understood: {type(error).__name__}: {error}"

    for device, (answer, reason) in zip(devices, await asyncio.gather(*map(one, devices)), strict=True):
        found[device] = answer
        if reason is not None:
            reasons[device] = reason
    if len(reasons) == len(devices):
        raise UnknownFactError("; ".join(dict.fromkeys(reasons.values())))
    return {**found, REASONS: reasons} if reasons else found


class InterfaceFact(Fact):
    """A fact of each interface of the test, which ``ask`` reads from one of them."""

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        return await ask_interfaces(devices, lambda device: self.ask(host, device))

    @abstractmethod
    async def ask(self, host: Host, device: str) -> Any:
        """Reads the fact of one interface. UnknownFactError, with the reason, if the host does not say."""


class EthtoolFact(InterfaceFact):
    """The output of ``ethtool`` with ``options`` for an interface; its JSON, where it has one, if ``as_json``."""

    options: ClassVar[tuple[str, ...]]
    as_json: ClassVar[bool] = False
    parse: ClassVar[Parser]

    async def ask(self, host: Host, device: str) -> Any:
        return self.parse(await self._text(host, device))

    async def _text(self, host: Host, device: str) -> str:
        if self.as_json:
            try:
                return await output_of(host, "ethtool", "--json", *self.options, device)
            except UnknownFactError:
                pass  # an older one prints text only; where the driver does not answer, the text says why
        return await output_of(host, "ethtool", *self.options, device)


# Parts of a machine that are alike, told once.


def group_alike(parts: Iterable[dict[str, Any]], each: Mapping[str, str]) -> list[dict[str, Any]]:
    """Alike parts as one with a ``count``; ``each`` names the fields that tell them apart, and the lists of those."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for part in parts:
        alike = {name: value for name, value in part.items() if name not in each}
        key = tuple(alike.items())
        group = groups.setdefault(key, {"count": 0, **alike, **{plural: [] for plural in each.values()}})
        group["count"] += 1
        for name, plural in each.items():
            if part.get(name) is not None:
                group[plural].append(part[name])
    return list(groups.values())


Known = dict[str, dict[str, tuple[Any, str | None]]]
"""By machine and fact: the value, or None and the reason."""
_LONGEST_REASON = 300
LARGEST_FACT_CHARACTERS = 1 << 20
"""A fact is what a report prints. More of it is a tool that went astray."""


class InventoriedHost(Protocol):
    """A host of a testbed: its role, how the inventory calls it, and the interfaces that the test uses there."""

    @property
    def role(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def host(self) -> Host: ...
    @property
    def devices(self) -> tuple[str, ...]: ...


async def collect(
    hosts: Iterable[InventoriedHost], controller_of: Callable[[str, str], Controller | None] = lambda _role, _host: None
) -> dict[str, dict[str, Any]]:
    """The content of inventory.json: facts of each host of a testbed.

    ``controller_of`` gives a machine's management controller by role and name of the host.
    """
    known: Known = {}
    return {
        each.name: await collect_host(each.host, each.devices, known, controller_of(each.role, each.host.name))
        for each in hosts
    }


async def collect_host(
    host: Host, devices: tuple[str, ...], known: Known | None = None, controller: Controller | None = None
) -> dict[str, Any]:
    """Facts by name; under ``reasons_null`` why some of them are null.

    ``known`` keeps the facts of whole machines, so that two namespaces of one machine ask it once.
    """
    machine = outermost(host)
    of_machine = (known if known is not None else {}).setdefault(json.dumps(machine.spec(), sort_keys=True), {})
    facts = {}
    reasons = {}
    for kind, fact in find("nicbench.system.inventory.facts", Fact).items():
        if not fact.of_machine:
            value, reason = await _read(fact(controller), host if fact.inside else host.network, devices)
        else:
            if kind not in of_machine:
                of_machine[kind] = await _read(fact(controller), machine, devices)
            value, reason = of_machine[kind]
        facts[kind] = value
        if reason is not None:
            reasons[kind] = reason
    return {**facts, REASONS: reasons} if reasons else facts


async def host_name(host: Host) -> str:
    """How the machine calls itself, empty where it does not say: no fact of a measurement, but one to redact."""
    try:
        return (await output_of(outermost(host), "uname", "-n")).strip()
    except UNKNOWN:
        return ""


async def _read(fact: Fact, host: Host, devices: tuple[str, ...]) -> tuple[Any, str | None]:
    """The fact, or None and why."""
    try:
        return plain_data(await fact.read(host, devices)), None
    except UNKNOWN as error:
        return None, (str(error).splitlines() or [type(error).__name__])[0][:_LONGEST_REASON]
    except NOT_UNDERSTOOD as error:
        # A tool of another version writes what the parser does not know: worth a word, never worth the run.
        return None, f"not understood: {type(error).__name__}: {error}"[:_LONGEST_REASON]


def plain_data(value: Any) -> Any:
    """``value`` as it will be read from inventory.json; ValueError or UnknownFactError where it cannot stand there."""
    text = json.dumps(value, allow_nan=False)
    if len(text) > LARGEST_FACT_CHARACTERS:
        raise UnknownFactError(f"it says {len(text)} characters; at most {LARGEST_FACT_CHARACTERS} are kept")
    return json.loads(text)
