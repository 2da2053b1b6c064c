"""A deterministic tester without frames, for tests: a DUT of known capacity, and a ceiling of the tester."""

from __future__ import annotations

from dataclasses import dataclass, field

from nicbench.core.reading import Counts
from nicbench.core.trial import Health, Latency, PortReading, Reading, StreamReading, TrialRequest
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.testers.base import During, Tester, TesterFacts


@dataclass
class FakeTester(Tester):
    """Loses what exceeds the capacity. ``gaps_ms`` has the longest gap of each trial, then 0; ``requests`` records.

    ``sent_share`` of any load is sent.
    """

    capacity_frames_per_s: float
    ceiling_frames_per_s: float = 1e9
    sent_share: float = 1.0
    gaps_ms: list[float] = field(default_factory=list)
    requests: list[TrialRequest] = field(default_factory=list)
    closed: bool = False

    async def start(self) -> TesterFacts:
        return TesterFacts(
            description={"engine": {"engine": "fake", "version": "0"}, "ports": []},
            minimum_frame_bytes=64,
            maximum_frame_bytes=1518,
            link_bits_per_s=10e9,
        )

    async def trial(
        self,
        number: int,
        request: TrialRequest,
        addressing: tuple[Addressing, ...],
        during: During | None = None,
    ) -> Reading:
        self.requests.append(request)
        if during is not None:
            await during()
        gap_ns = int(1e6 * (self.gaps_ms.pop(0) if self.gaps_ms else 0.0))
        load = request.load_frames_per_s if request.load_frames_per_s is not None else self.ceiling_frames_per_s
        intended = int(load * request.duration_s)
        sent = min(int(self.sent_share * intended), int(self.ceiling_frames_per_s * request.duration_s))
        received = min(sent, int(self.capacity_frames_per_s * request.duration_s))
        counts = Counts(
            intended=intended, sent=sent, unsent_tester=intended - sent, received=received, lost=sent - received
        )
        latency = Latency(source="software", count=received, minimum_ns=1000, mean_ns=1500.0, maximum_ns=9000)
        return Reading(
            transmit_ns=int(request.duration_s * 1e9),
            counts=counts,
            streams=(StreamReading(name="0->1", counts=counts, latency=latency),),
            ports=(PortReading(name="t0", foreign=0, corrupted_unattributed=0, receive_overrun=0),),
            latency=latency if received else None,
            health=Health(
                longest_gap_ns=gap_ns,
                total_gap_ns=gap_ns,
                gap_floor_ns=100_000,
                gaps=int(gap_ns > 0),
                iterations=1,
                idle_iterations=0,
            ),
        )

    async def close(self) -> None:
        self.closed = True
