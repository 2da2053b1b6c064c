"""What the ledger is made of: stages of the path, counters at them, and sources that read counters on a host.

To add one:

1. Add a subclass of ``nicbench.measure.ledger.base.Source`` to the file of its theme in
   ``src/nicbench/measure/ledger/sources``: its ``kind``, a line of shell that prints the counters (all sources of a
   host are one command), and ``read()``, pure, that gives a ``Count`` for each.
2. A ``Count`` has its ``stage`` on the path and its place in words. Where another counter counts the same frames
   again, say so: ``also_in`` (strictly a part of it), ``within`` (of one of these, by the version of a driver),
   ``echo``, ``machine_wide``. A counter that may count frames that were not lost has ``why_not_lost``.
   ``measure/ledger/losses.py`` takes overlaps off; a contradiction is a fault that the report prints.
3. A card's counters are lines of ``measure/ledger/sources/drivers.py``: the driver's name for each, its place, and
   which of the interface's own statistics hold it.
4. Put a recorded output into ``tests/measure/ledger/golden``. Where frames can be lost there in a lab, lose some:
   ``tests/measure/ledger/test_places_lab.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum, StrEnum
from typing import ClassVar

from nicbench.core.frozen import frozen


class Side(StrEnum):
    """Whose host a counter is on."""

    TESTER = "tester"
    PEER = "peer"
    """The tester's second machine."""
    DUT = "DUT"


class Stage(IntEnum):
    """Where on a frame's way from sender to receiver, in this order."""

    TRANSMIT_RING = 1
    TESTER_QDISC = 2
    TESTER_TRANSMIT = 3
    DUT_RECEIVE = 4
    DUT_BACKLOG = 5
    DUT_INGRESS = 6
    DUT = 7
    DUT_FIREWALL = 8
    DUT_IP = 9
    DUT_QDISC = 10
    DUT_TRANSMIT = 11
    TESTER_RECEIVE = 12
    TESTER_BACKLOG = 13
    TESTER_INGRESS = 14
    RECEIVE_RING = 15


@frozen
class Echo:
    """A counter that counts the frames of counter ``of`` again, unless counter ``unless`` rose over the trial."""

    of: str
    unless: str


@frozen
class Count:
    """A cumulative counter of frames, by a ``key`` of its own on the whole path (``key_of``).

    ``also_in`` are keys of wider counters that count each of these frames again: there they are taken off, so that no
    frame is in two rows. Where one of them is not read, nothing is taken off. ``within`` are such of which one holds
    them, which depends on the version of a driver: what is found there is taken off, in turn. ``machine_wide`` counts
    for every device of its machine, and so accounts for no more than devices with ``has_machine_wide`` dropped.
    ``why_not_lost`` is the reason why it is listed apart and does not explain a loss. A counter without a ``place``
    does not count losses at all. ``by_tester``: it counts frames that the tester itself had no room for or did not get
    out, and not frames that others spoilt or that were for somebody else; the DUT did not lose them then.
    """

    key: str
    name: str
    frames: int
    stage: Stage | None = None
    place: str | None = None
    also_in: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    machine_wide: bool = False
    has_machine_wide: bool = False
    echo: Echo | None = None
    why_not_lost: str | None = None
    unsent: bool = False
    by_tester: bool = False


def key_of(side: Side, device: str, name: str) -> str:
    """The key of a counter of a device."""
    return f"{side}: {device} {name}"


@frozen
class View:
    """A host as a source sees it: its side, its kernel interfaces on the path, and who is at their other ends.

    ``kinds`` has ``ip``'s name of each device's kind (``veth``, ``bridge``; "" for a card), ``drivers`` its driver,
    ``ports`` the device of each port by the port's name in the bench file.
    """

    side: Side
    devices: tuple[str, ...]
    peers: Mapping[str, tuple[Side, str]] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    drivers: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, str] = field(default_factory=dict)

    def key(self, device: str, name: str) -> str:
        """The key of a counter of one of its devices."""
        return key_of(self.side, device, name)

    def stage(self, tester: Stage, dut: Stage) -> Stage:
        """The stage on the path that a counter of this side belongs to."""
        return dut if self.side is Side.DUT else tester


class Source(ABC):
    """One kind of counters. ``kind`` is its name; a file in ``sources`` is one source.

    ``script`` is a line of shell that prints them, with what is missing on a host left out (it must end by itself, and
    quickly: it runs before and after every trial). ``read`` is pure; text that it does not understand is a ValueError.
    """

    kind: ClassVar[str]
    sides: ClassVar[frozenset[Side]] = frozenset(Side)
    """On whose hosts it is read. A place that frames pass only on the DUT must not be read where the tester's sockets
    are.
    """
    once_per_machine: ClassVar[bool] = False
    """Not of a namespace: read on the DUT's side alone where both sides are one machine."""

    @abstractmethod
    def script(self, view: View) -> str:
        """The shell's line; "" where this host has nothing of the kind."""

    @abstractmethod
    def read(self, text: str, view: View) -> tuple[Count, ...]:
        """The counters in its output; none where it printed nothing."""
