"""The tester sends frames and counts those that come back. Searches, journal and reports know only this interface.

A kind of tester is one file with one subclass of ``TesterKind``: it reads the options of the bench file, says what it
cannot do, and makes the ``Tester`` that sends the trials.

To add one:

Searches, verdicts, journal and report know a tester only by ``testers/base.py``, so another traffic generator is one
file. ``trex.py`` is an example on another's API, ``tests/testbed/testers/test_kinds.py`` one of forty lines.

1. Write ``src/nicbench/testbed/testers/NAME.py`` with one subclass of ``nicbench.testbed.testers.base.TesterKind``:
   its ``kind``, its frozen ``Options``, and ``make(setting)``, which gives a ``Tester`` and touches nothing yet. What
   else it needs goes into ``_NAME_*.py``.
2. In ``cannot`` name each ``Ability`` (``core/traffic.py``) that no trial of it can have, with the reason in words:
   tests and traffic that need it are then refused with line and column. A method that needs something new of a tester
   adds an ``Ability``, and names it in ``abilities()``.
3. A generator with ports of its own gives them in ``own_ports()``, with the MAC addresses that its frames bear; it
   then stands before a DUT that is not set up by nicbench. Otherwise it works on ``setting.testbed.tester_ports``.
4. ``Tester.start()`` takes the ports, and says in ``TesterFacts`` what they hold and what the report discloses.
   NotReadyError (exit status 3) where something is missing, with the next step; never take ports from somebody else
   unless an option says so.
5. ``Tester.trial()`` is one trial in the order of RFC 2544 section 23: learning frames on every way and back, settle,
   transmit, drain, read the counters, settle. It gives a ``Reading`` and judges nothing. ``intended = sent + unsent``
   and ``sent = received + lost`` always hold; what it did not send is ``unsent_tester``. A count that it does not
   know is ``None``. EngineError (4) where the generator died or refused.
6. Latency says its ``source``, ``received_by``, ``resolution_ns``, and ``sample_of`` where not every frame is timed.
   What the generator says of its own overload goes into ``Health`` (``cpu_share``, ``queue_full``, ``overtime_ns``),
   each with a threshold in ``core/judging.py``.
7. ``statements()`` are sentences for the report's first page: what this tester does not measure, and of what it sees
   a sample.
8. ``Tester.close()`` restores everything, also after an error or Ctrl-C, and never raises. Blocking calls
   of a foreign API belong into a thread.
9. Write ``tests/testbed/testers/test_NAME.py`` against a stand-in for the generator with a DUT whose rate is known:
   whole runs by every search; each way in which it can be missing, taken or dying, with the exit status and the ports
   given back; and the translation of its counters as a pure function.
10. Write a docstring below each option, add a section to ``docs/bench-file/testers.md``, and a bench file to
   ``examples/``; tests validate both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from nicbench.core.base import Frozen
from nicbench.core.described import DescribedPlugin
from nicbench.core.errors import EngineError
from nicbench.core.frozen import frozen
from nicbench.core.pattern import Way
from nicbench.core.reading import LearntFlows
from nicbench.core.traffic import Ability, Traffic
from nicbench.core.trial import Reading, TrialRequest
from nicbench.engine.client import Conversation
from nicbench.testbed.duts.base import Addressing, Refusal
from nicbench.testbed.labs.base import Testbed, TesterPort
from nicbench.tuning.undo.base import Undo

During = Callable[[], Coroutine[Any, Any, None]]
"""A coroutine function that changes something at the DUT while a trial's frames are sent."""


@frozen
class TesterFacts:
    """Facts about a tester for the report, and the bounds of its trials."""

    description: dict[str, Any]
    minimum_frame_bytes: int
    maximum_frame_bytes: int
    link_bits_per_s: float | None
    tag_bytes: int = 0
    """How much longer than that a frame with a VLAN tag may be: an interface's MTU does not count one tag."""

    def longest_frame_bytes(self, *, is_tagged: bool) -> int:
        """The longest frame, with or without a tag behind its addresses."""
        return self.maximum_frame_bytes + (self.tag_bytes if is_tagged else 0)


class Tester(ABC):
    """A tester of one run: it is started once, makes trials one after another, and is closed."""

    @property
    def folder_elsewhere(self) -> str | None:
        """The folder on another machine that it writes files to before they are fetched.

        The folder is made before the tester is started and removed with the testbed. None where it writes no files, or
        writes them on this machine.
        """
        return None

    async def prepare(self) -> Undo | None:
        """Connects to what sends, changes nothing, and gives the undo of what ``start`` will change on other machines.

        It is written down before ``start``, which follows. None where the end of the tester undoes all by itself.
        """
        return None

    @abstractmethod
    async def start(self) -> TesterFacts:
        """Takes the ports and starts; EngineError or NotReadyError where that fails."""

    async def learn(self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...]) -> frozenset[Way]:
        """Sends the learning frames of trial ``number``, waits the settle time, and gives the ways they did not pass.

        Between this and ``trial`` no frames are on their way, and the counters of the path are read, so that learning
        frames are in none of the differences. It is left out where frames have just come back. Of a tester that does
        not override this no dead path is found.
        """
        return frozenset()

    async def teach(
        self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...], frames_per_flow: int
    ) -> tuple[LearntFlows, ...]:
        """Sends learning frames of every flow that trial ``number`` counts, and gives what came back of each stream.

        The other ways carry a few, as in ``learn``. It waits the settle time. A tester that does not tell flows apart
        sends nothing and gives nothing.
        """
        return ()

    @abstractmethod
    async def trial(
        self,
        number: int,
        request: TrialRequest,
        addressing: tuple[Addressing, ...],
        during: During | None = None,
    ) -> Reading:
        """Makes one trial in the sequence of RFC 2544 section 23 and gives its counts, without judging them.

        ``number`` counts the trials of the run from 1, also after a resumption, and marks their frames. ``during`` is
        called when the transmission begins and runs beside it; its errors are raised at the end. A count that the
        tester does not know is ``None``, never 0. EngineError where the tester died or refused.
        """

    async def complete(self, reading: Reading, request: TrialRequest, addressing: tuple[Addressing, ...]) -> Reading:
        """Adds to the reading of the last trial what is measured once the counters of the path were read again.

        Frames that it sends are in none of their differences.
        """
        return reading

    def converse(self, on_event: Callable[[dict[str, Any]], None]) -> Conversation:
        """Begins a conversation in which flows start and end on their own; no trial can be made after it.

        EngineError where the tester sends by the trial only.
        """
        raise EngineError("this tester sends by the trial only", kind="unsupported")

    @abstractmethod
    async def close(self) -> None:
        """Gives the ports back; never raises where the tester has ended already."""


@frozen
class Setting:
    """The testbed and the traffic of one run, for which a tester is made.

    ``neighbours`` has for each port the addresses for which it must answer ARP or neighbour discovery. Without
    ``run_folder`` no files are written. ``fault`` is for tests of our own engine. ``place`` names the bench file in
    errors.
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
    generates: bool = False
    """Whether flows begin and end on their own (`nicbench serve`): time is then the machine's, also if simulated."""


class TesterKind(DescribedPlugin, ABC):
    """A kind of tester with the options of a bench file; nothing is touched before the tester that it makes starts."""

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]
    cannot: Mapping[Ability, str] = MappingProxyType({})
    """Abilities that it lacks, each with the reason in words; tests that need one are refused beforehand."""

    driver: str = "net_af_xdp"
    """The driver for kernel interfaces that name none; for testers that use such interfaces."""
    leaves_driver: bool = False
    """Whether the bench file leaves the choice of ``driver`` to the run (``stages/tester.py``)."""
    timestamps: str = "tsc"
    """The source of receive time stamps, for testers that use the ports of labs and bench files."""
    peer: str | None = None
    """The host of its second machine, by its name in the bench file; None where it is on one."""
    huge_pages_bytes: int = 0
    """The size of the huge pages that it needs on its machine."""

    def __init__(self, options: Frozen) -> None:
        self.options = options

    def own_ports(self) -> tuple[TesterPort, ...]:
        """Its own ports in the order of the bench file; none where it uses the ports of a lab or of `hosts`.

        A tester with ports of its own can have neither a lab nor `hosts`, `ports` and `links` beside it.
        """
        return ()

    def refuse_flows(self, traffic: Traffic, ways: Sequence[Addressing]) -> Refusal | None:
        """Why a tester with ports of its own cannot make these flows on these ways, and what to write instead."""
        return None

    def statements(self) -> tuple[str, ...]:
        """Sentences for the report's first page about everything that this tester measures.

        They say above all what it does not measure, and of what it sees only a sample.
        """
        return ()

    def receivers_at(self, port: str) -> int:
        """How many of its workers receive at the port of this name."""
        return 1

    @abstractmethod
    def make(self, setting: Setting) -> Tester:
        """Makes the tester without starting it; UsageError where its options do not fit the setting."""
