"""What trials of frames are made with: the tester, the DUT, and what is read on their hosts around each trial."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from nicbench.core.pattern import forward_of
from nicbench.core.traffic import Learning
from nicbench.core.trial import TrialRequest
from nicbench.hosts.base import Host
from nicbench.measure.health.reader import HealthReader
from nicbench.measure.ledger.reader import LedgerReader
from nicbench.measure.power.meter import Meter
from nicbench.measure.queues import QueueReader
from nicbench.monitor.base import Monitors
from nicbench.testbed.duts.base import Addressing, FrameDut
from nicbench.testbed.testers.base import Tester


@dataclass(frozen=True, slots=True)
class TrialSetup:
    """What trials are made with: tester and DUT, and what is read on their hosts around each trial."""

    tester: Tester
    dut: FrameDut
    addressing: tuple[Addressing, ...] = ()
    """With what frames are addressed on each way between the tester's ports."""
    dut_cpus: Collection[int] = ()
    """The cores on which the DUT works in the kernel: other programs on them disturb a trial."""
    hosts: Mapping[str, Host] = field(default_factory=dict)
    """Those on which a command may run in the midst of a trial: ``dut``, ``tester``, ``local``."""
    ledger: LedgerReader = field(default_factory=LedgerReader)
    health: HealthReader | None = None
    meter: Meter | None = None
    """What reads the power of the machines; None where no test asks for it."""
    queues: QueueReader | None = None
    """What reads receive queues and cores; None where nobody may ask for them."""
    monitors: Monitors | None = None
    """What watches the path of frames; None where nothing is there to be watched."""
    programmed: Collection[str] = ()
    """The devices of the tester's ports of which it exchanges the XDP programs itself."""
    port_names: tuple[str, ...] = ()
    """The names of the tester's ports, by their numbers in ``addressing``."""
    smallest_frame_bytes: int = 64
    """The smallest frame that tester and traffic allow."""
    learning: Learning = field(default_factory=Learning)
    """How the DUT is taught the flows before a trial."""

    def counted_ways(self, request: TrialRequest) -> tuple[Addressing, ...]:
        """The ways whose frames a trial counts."""
        if request.bidirectional:
            return self.addressing
        forward = set(forward_of([(way.transmit, way.receive) for way in self.addressing]))
        return tuple(way for way in self.addressing if (way.transmit, way.receive) in forward)
