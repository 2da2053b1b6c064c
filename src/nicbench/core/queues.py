"""What receive queues and cores of a machine got in a trial, and what was known of the hash that chose the queue."""

from __future__ import annotations

from typing import Literal

from nicbench.core.base import Frozen
from nicbench.core.headers.flow_rules import FlowRule

QueueSide = Literal["dut", "tester"]


class ReceiveHash(Frozen):
    """How an adapter chooses the queue of a frame, as it says itself; None and empty: it does not say.

    ``fields`` are ethtool's letters for what goes into the hash of the trial's frames. ``key_from`` is where the key
    was read. ``rules`` for single flows come before the hash; ``other_rules`` are those that say more than is
    understood here.
    """

    function: str | None = None
    key: str | None = None
    key_from: str | None = None
    table: tuple[int, ...] = ()
    fields: str | None = None
    rules: tuple[FlowRule, ...] = ()
    other_rules: int = 0


class PortQueues(Frozen):
    """Frames that each receive queue of one port got in a trial.

    ``port`` is the number of the tester's port at the other end, or the port itself on the tester's ``side``.
    ``expected`` are the frames of the trial that the hash sends to each queue, computed for every flow; None where that
    cannot be computed, and ``why_not``. ``source`` names the counters.
    """

    side: QueueSide
    port: int
    device: str
    driver: str
    source: str
    frames: tuple[int, ...]
    hash: ReceiveHash | None = None
    expected: tuple[int, ...] | None = None
    why_not: str | None = None


class CoreFrames(Frozen):
    """Frames that the kernel's stack handled on one CPU of a machine, whoever sent them, and network softirqs there."""

    side: QueueSide
    cpu: int
    frames: int
    softirqs: int


class QueueReading(Frozen):
    """What was read of queues and cores around a trial; ``unread`` says why ports are missing."""

    ports: tuple[PortQueues, ...] = ()
    cores: tuple[CoreFrames, ...] = ()
    unread: tuple[str, ...] = ()
