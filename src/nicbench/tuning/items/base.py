"""A tuning item: reads a setting, says what it is to become, and writes it. The rest is done for it.

The driver (``tuning/tune.py``) records the old value before the change, verifies by reading back, and refuses or
reports what could not be set; ``tuning/undo/files.py`` undoes it by the same ``read`` and ``write``, also
from another process after a crash. So an item holds nothing but what it was given.

To add one:

An item reads one setting, says what it is to become, and writes it. Recording the old value, verifying, refusing,
undoing (also after kill -9), dry run and ``tuning.json`` are done for it.

1. Add a subclass of ``nicbench.tuning.items.base.Item`` to the file of its theme in ``src/nicbench/tuning/items``. Its
   docstring says what is set, and after which source (a page of the kernel's documentation, of a tool). ``kind`` is
   its key in the bench file, ``Options`` is frozen; ``alone`` names the option that a value alone stands for (``mtu:
   9000``).
2. ``scope`` is ``machine`` (once, outside of namespaces), ``namespace``, or ``device``: once for each interface of
   the test on that host, and then ``Options`` derives from ``DeviceOptions``, whose ``devices`` names others.
   ``phase`` is when it is applied; ``Phase`` says which order is needed and why.
3. ``async read(place)`` gives the setting as a flat dict of plain data: ``{"rx": 512, "tx": 512}``. It changes
   nothing; parsing is a pure function with golden outputs. ``CannotSetError``, with the reason, where this place has
   no such setting.
4. ``target_values(now)`` gives of these keys those that are asked for, with the value that each will *read as* once
   it is set. ``CannotSetError`` where it cannot be (above the maximum), with what could.
5. ``async write(place, values)`` sets these keys and no other; the undo calls it with the old ones. Wait in it until
   they hold (a link that comes up again), within a bound. ``is_same(key, one, other)`` where one value is written in
   several ways.
6. The undo makes the item again from its options in another process, so an item keeps nothing else. ``apply`` is
   overridden only where the undo is another one: a process that is held. ``only_checks = True`` for what is never
   changed: no ``write``; the report says whether it is as asked.
7. Write ``tests/tuning/items/test_NAME.py`` with ``FakeHost``: applied, verified, undone; what the kernel rounds; a
   value somebody changed since; what cannot be. ``docs/tuning.md`` shows both docstrings and the options. An item of a
   profile is named in ``tuning/tune.py``, with the reason.
"""

from __future__ import annotations

from abc import abstractmethod
from enum import IntEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from nicbench.core.base import Frozen
from nicbench.core.errors import UnknownFactError
from nicbench.core.plan import Values
from nicbench.hosts.asking import values_of
from nicbench.tuning.changes import Changes
from nicbench.tuning.setting import CannotSetError, Place, Setting, plain_value, same_value
from nicbench.tuning.undo.files import RestoreSetting

Scope = Literal["machine", "namespace", "device"]


class Phase(IntEnum):
    """In which order items are applied: what another one would undo, or needs, comes first. Undone in reverse."""

    SERVICE = 1
    """Programs that would set again what others have set (tuned, irqbalance)."""
    MACHINE = 2
    """CPU, memory, kernel."""
    FUNCTION = 3
    """What makes interfaces, or resets an adapter: virtual functions, private flags, PCI."""
    LINK = 4
    """What takes the link down for a while: speed, FEC, MTU, flow control."""
    QUEUES = 5
    """Channels: how many queues there are."""
    RINGS = 6
    """What each queue has, once they are there: rings, coalescing, offloads."""
    STEERING = 7
    """Who works on each queue: IRQ affinity, RSS, RPS, XPS."""
    TRAFFIC = 8
    """What frames meet on their way: sysctls, qdiscs, packet filters."""


Device = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,62}$")]
"""An interface, or the PCI address of an adapter; it becomes part of paths and of commands."""


class DeviceOptions(Frozen):
    """Of an item with the scope ``device``: the interfaces of the test on that host, or those named here."""

    devices: tuple[Device, ...] = Field(default=(), max_length=64)


class NoOptions(Frozen):
    """Nothing to choose."""


class ExpectedOptions(Frozen):
    """Of an item that is only checked: a machine that is otherwise is not measured where it is ``required``."""

    required: bool = False


class Item(Setting):
    """A setting of the section ``tuning``: ``kind`` is its key in the bench file, ``Options`` what is written there."""

    scope: ClassVar[Scope]
    """``machine``: once for the whole machine, outside of namespaces; ``namespace``: of the host's network namespace;
    ``device``: of each interface of the test there. The options of these derive from ``DeviceOptions``."""
    phase: ClassVar[Phase]
    alone: ClassVar[str | None] = None
    """The option that a value alone stands for: ``mtu: 9000`` for ``mtu: {bytes: 9000}``. Where it is the only one,
    keys and values are its value too: ``sysctls: {net.core.busy_poll: 50}``."""
    only_checks: ClassVar[bool] = False
    """Whether the item changes nothing: the report then states whether the machine meets what the bench file asks."""

    @abstractmethod
    def target_values(self, now: Values) -> Values:
        """Of the keys of ``now`` those that are asked for, with the value that each will read as once it is set.

        CannotSetError where the place cannot take it (more than its maximum), with what it could.
        """

    def entailed_keys(self, now: Values, asked: Values) -> tuple[str, ...]:
        """Keys of ``now`` that change along with those that are asked for, and are put back with them."""
        return ()

    def commands(self) -> tuple[str, ...]:
        """What is run on the host, where somebody who repeats the test without nicbench needs the commands."""
        return ()

    async def apply(self, changes: Changes, place: Place, before: Values, asked: Values) -> None:
        """Writes, undo first. Only an item whose undo is another one (a process that is held) does this differently."""
        undo = RestoreSetting.of(self, place.device, before, asked)
        await changes.make(place.host, undo, lambda: self.write(place, asked))


# Settings that are files under /sys or /proc, one value each: read with patterns, written one by one.


class DeviceItem(Item):
    """An item of each interface of the test on that host; its options derive from ``DeviceOptions``."""

    scope = "device"


class FilesItem(Item):
    """Keys are paths below ``folder``; the values are text, of ``always [madvise] never`` the selected word."""

    scope = "machine"
    phase = Phase.MACHINE
    folder: ClassVar[str]
    patterns: ClassVar[tuple[str, ...]]
    missing: ClassVar[str]
    """The message for a machine that has none of the files."""

    async def read(self, place: Place) -> Values:
        try:
            found = await values_of(place.host, tuple(self.folder + pattern for pattern in self.patterns))
        except UnknownFactError as error:
            raise CannotSetError(self.missing) from error
        return {path.removeprefix(self.folder): plain_value(text) for path, text in found.items()}

    async def write(self, place: Place, values: Values) -> None:
        for key, value in values.items():
            await place.host.write_file(self.folder + key, str(value))

    def is_same(self, key: str, one: object, other: object) -> bool:
        return same_value(self.folder + key, str(one), str(other))


class SwitchOptions(Frozen):
    """``ITEM: false`` or ``ITEM: true``."""

    on: bool


class SwitchItem(FilesItem):
    """A few files that are all set to one value where a thing is on, and to another where it is off."""

    Options = SwitchOptions
    alone = "on"
    on: ClassVar[str] = "1"
    off: ClassVar[str] = "0"

    def target_values(self, now: Values) -> Values:
        value = self.on if getattr(self.options, "on", False) else self.off
        return dict.fromkeys(now, value)
