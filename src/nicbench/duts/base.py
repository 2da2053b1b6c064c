"""A DUT: what is measured. It is set up on a testbed, says how frames must be addressed to pass, counts its drops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from nicbench.labs.base import Testbed
from nicbench.model.base import Frozen
from nicbench.tuning.changes import Changes


@dataclass(frozen=True, slots=True)
class Addressing:
    """Addresses of frames from tester port ``transmit`` through the DUT to tester port ``receive``.

    The fields are those of a stream in the protocol's ``start``.
    """

    transmit: int
    receive: int
    source_mac: str
    destination_mac: str
    ip: int
    source_address: str
    destination_address: str
    source_address_count: int = 1
    destination_address_count: int = 1


class Dut(ABC):
    """One kind of DUT. ``known_rate_frames_per_s`` is for golden DUTs only."""

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]

    def __init__(self, options: Frozen) -> None:
        self.options = options

    @abstractmethod
    async def up(self, testbed: Testbed, changes: Changes) -> None:
        """Sets the DUT up; every change through ``changes``."""

    @abstractmethod
    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        """One entry per direction: forward first, then reverse.

        UsageError where the DUT cannot carry this IP version.
        """

    def cpus(self, testbed: Testbed) -> tuple[int, ...]:
        """CPUs on which the DUT works apart from the tester, so that any other program there is a disturbance.

        None where they share: the tester itself would be one.
        """
        return () if testbed.cores.shared else testbed.cores.dut

    @abstractmethod
    async def drops(self) -> dict[str, int]:
        """Cumulative counters of frames that disappeared in the DUT, for the loss ledger.

        By place: "softnet_backlog cpu1", ...
        """

    @abstractmethod
    def disclosure(self) -> dict[str, Any]:
        """Settings and command lines for the report."""
