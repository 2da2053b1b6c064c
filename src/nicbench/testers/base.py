"""The tester: whatever sends frames and reads them back. Searches, journal and reports know only this interface.

A kind of tester is one file with one subclass of ``TesterKind``: it reads the options of the bench file, says what it
cannot do, and makes the ``Tester`` that sends the trials.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from nicbench.duts.base import Addressing
from nicbench.labs.base import Testbed, TesterPort
from nicbench.model.ability import Ability
from nicbench.model.base import Frozen
from nicbench.model.traffic import Traffic
from nicbench.model.trial import Reading, TrialRequest

During = Callable[[], Coroutine[Any, Any, None]]
"""What happens to the DUT while a trial's frames are sent."""


@dataclass(frozen=True, slots=True)
class TesterFacts:
    """What the report discloses of a tester, and what bounds its trials."""

    description: dict[str, Any]
    minimum_frame_bytes: int
    maximum_frame_bytes: int
    link_bits_per_s: float | None


class Tester(ABC):
    """Started once per run; trials follow one another."""

    @property
    def folder_elsewhere(self) -> str | None:
        """Where its host is another machine: the folder there that it writes files to before they are fetched.

        It is made before the tester is started, and removed with the testbed. None: it writes none, or here.
        """
        return None

    @abstractmethod
    async def start(self) -> TesterFacts:
        """Takes the ports; EngineError or NotReadyError where it cannot."""

    async def learn(self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...]) -> None:
        """The learning frames of trial ``number`` and the settle time after them, where they are apart from the trial.

        Between this and ``trial`` nothing is on its way, and the counters of the path are read: what became of learning
        frames is then in none. A tester that sends them in ``trial`` leaves this as it is.
        """
        return

    @abstractmethod
    async def trial(
        self,
        number: int,
        request: TrialRequest,
        addressing: tuple[Addressing, ...],
        during: During | None = None,
    ) -> Reading:
        """One trial in the sequence of RFC 2544 section 23; without a word of judgement.

        ``number`` is the trial's place in the run, 1.., also across a resumption: its frames are known by it.
        ``during`` is called when the transmission begins, and runs beside it; what it raises is raised at the end.
        A count that the tester does not know is None, never 0. EngineError where the tester died or refused.
        """

    @abstractmethod
    async def close(self) -> None:
        """Gives the ports back; never raises for a tester that is already gone."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a tester is made for: the testbed and the traffic of one run.

    ``neighbours`` are, for each port, the addresses that it must answer for. Without ``run_folder`` no files are
    written. ``fault`` is for tests of our own engine. ``place`` names the bench file in errors.
    """

    testbed: Testbed
    traffic: Traffic
    seed: int
    run_id: str
    place: str
    in_a_lab: bool = False
    dut_cpus: tuple[int, ...] = ()
    neighbours: tuple[tuple[dict[str, Any], ...], ...] = ()
    engine_folder: str | None = None
    run_folder: Path | None = None
    fault: dict[str, float] | None = None


class TesterKind(ABC):
    """One kind of tester, with the options of a bench file; it touches nothing until the tester it makes is started."""

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]
    cannot: ClassVar[Mapping[Ability, str]] = MappingProxyType({})
    """What no trial of it can have, each with the reason in words: a test that needs it is refused beforehand."""

    driver: str = "net_af_xdp"
    """By which driver of DPDK it opens kernel interfaces that name none; for testers that work on such."""
    timestamps: str = "tsc"
    """What stamps received frames, for testers that work on ports of labs and bench files."""
    huge_pages_bytes: int = 0
    """Huge pages that it will take on this machine."""

    def __init__(self, options: Frozen) -> None:
        self.options = options

    def own_ports(self) -> tuple[TesterPort, ...]:
        """Ports that it brings along, in the order of the bench file; none where it works on the lab's or the hosts'.

        A tester with ports of its own stands beside neither a lab nor `hosts`, `ports` and `links`.
        """
        return ()

    def statements(self) -> tuple[str, ...]:
        """What a reader must know of anything that this tester measures: a sentence each, on the report's first page.

        Above all what it does not measure, and of what it sees a sample only.
        """
        return ()

    @abstractmethod
    def make(self, setting: Setting) -> Tester:
        """The tester, not started yet; UsageError where its options do not suit the setting."""
