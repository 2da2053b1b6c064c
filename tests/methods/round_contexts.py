"""A context for methods of workloads: what comes of each job is a function, everything around it is the real thing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.fakes import FakeHost, FakeMonitors, FakePlayer

from nicbench.core.events import Bus, Event, ResultReady
from nicbench.core.judging import Thresholds
from nicbench.core.result import Result
from nicbench.core.round import EndpointFacts, Figures, Flow, Job, JobOutcome, MachineCpu, RoundRequest
from nicbench.measure.rounds import LiveRoundContext, RoundMaker
from nicbench.measure.samples import SampleLog, TestSetting
from nicbench.testbed.labs.base import Endpoint, EndpointTestbed

LINK_BITS_PER_S = 100e6


class KnownMonitors(FakeMonitors):
    """Every round has the same shares."""

    cpu: tuple[MachineCpu, ...] = ()

    async def end_round(self) -> tuple[MachineCpu, ...]:
        return self.cpu


class Laboratory:
    """A server with a number of ports, and clients on machines of their own; ``player.heard`` is what was asked."""

    def __init__(
        self,
        outcome: Callable[[int, Job], JobOutcome],
        *,
        ports: int = 1,
        clients_per_port: int = 1,
        cpu: Sequence[MachineCpu] = (),
        link_bits_per_s: float | None = LINK_BITS_PER_S,
        seed: int = 1,
    ) -> None:
        server = FakeHost("server")
        servers = [_end(server, f"s{port}", None, link_bits_per_s) for port in range(ports)]
        clients = [
            _end(FakeHost(f"h{port}{number}"), f"c{port}{number}", f"s{port}", link_bits_per_s)
            for port in range(ports)
            for number in range(clients_per_port)
        ]
        self.player = FakePlayer(outcome)
        self.published: list[Result] = []
        monitors, self.bus = KnownMonitors(), Bus()
        monitors.cpu = tuple(cpu)
        self.bus.subscribe(self._hear)
        maker = RoundMaker(self.player, monitors, Thresholds(), SampleLog({}, self.bus))
        testbed = EndpointTestbed(servers=tuple(servers), clients=tuple(clients), link_is_nominal=False)
        self.context = LiveRoundContext(TestSetting("test", seed, 1e6), maker, testbed)

    @property
    def requests(self) -> list[RoundRequest]:
        """Every round that was played, in order."""
        return self.player.heard

    def _hear(self, event: Event) -> None:
        if isinstance(event, ResultReady):
            self.published.append(event.result)


def fast_laboratory(outcome: Callable[[int, Job], JobOutcome], **options: Any) -> Laboratory:
    """A laboratory whose links carry whatever frames of film need."""
    return Laboratory(outcome, **{"link_bits_per_s": 1e12, **options})


def _end(host: FakeHost, name: str, port: str | None, link_bits_per_s: float | None) -> Endpoint:
    facts = EndpointFacts(
        name=name,
        host=host.name,
        machine=host.name,
        address="198.18.0.1",
        device=f"{name}-device",
        port=port,
        link_bits_per_s=link_bits_per_s,
    )
    return Endpoint(host=host, facts=facts)


def streamed(rate_bits_per_s: float | None, **figures: float) -> JobOutcome:
    """What a tool says that moved so much; a failure where that is ``None``."""
    if rate_bits_per_s is None:
        return JobOutcome(failure="it ended with exit status 1", repeatable=False)
    flow = Flow(direction="forward", received_bits_per_s=rate_bits_per_s, retransmissions=1)
    return JobOutcome(figures=Figures(flows=(flow,), **figures), began_s=0.0, took_s=1.0)  # type: ignore[arg-type]
