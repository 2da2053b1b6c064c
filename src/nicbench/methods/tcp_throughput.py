"""TCP throughput (RFC 6349): what TCP makes of a path, and how much delay it fills into the path's buffers.

Steps, for the first client of each port, which sends: a slow connection that fills no buffer, whose least round-trip
time is the baseline; then connections as fast as they go. From both follow the metrics of RFC 6349 section 4: the TCP
transfer time ratio (how much longer a transfer takes than the bottleneck would need), the TCP efficiency (the share of
what was sent other than retransmissions), and the buffer delay (by how much the mean round trip is longer than the
baseline). Path MTU and round-trip times are those of the sending kernel, smoothed, as the tool reads them each second.
Verified: what a tool reports is refused where it exceeds the link or contradicts itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from pydantic import Field

from nicbench.core.base import Frozen, WorkloadChoice
from nicbench.core.lists import without_none
from nicbench.core.quantity import BitsPerSecond, Seconds, SomeBytes
from nicbench.core.reading import sum_of_known
from nicbench.core.result import Bounded, Result
from nicbench.core.round import EndpointFacts, Figures, JobSpec, RoundRequest, RoundTrip
from nicbench.core.table import Column, ResultTable
from nicbench.methods._round_figures import (
    PAYLOAD_RATE,
    ROUND_OVERHEAD_S,
    PlayedRounds,
    clients_by_port,
    jobs_of,
    loads_of,
    retransmissions_of,
)
from nicbench.methods.base import PORT, RoundContext, RoundMethod, Values
from nicbench.stats.rounds import bits_per_s

STANDARD_S: Final = 30.0
"""RFC 6349 asks for a transfer that is long enough to leave slow start behind: 30 s and more."""
# Beside each segment with its IP and TCP headers: Ethernet's header, checksum, preamble and gap; or its header alone,
# where the rate is that of a token bucket of nicbench's, which counts frames as the kernel has them.
_LINE_OVERHEAD_BYTES: Final = 38
_FRAME_OVERHEAD_BYTES: Final = 14
_NO_TIMES: Final = "the tool reports no round-trip times"


class TcpThroughput(RoundMethod):
    """Baseline, throughput, and the three metrics of RFC 6349, of each port."""

    kind = "tcp-throughput"
    question = "What does TCP make of the path to {subject}, and how long does it fill its buffers?"

    class Options(Frozen):
        """Options of the bench file."""

        workload: WorkloadChoice = WorkloadChoice(kind="iperf3")
        """The tool, alone or with options of its own; it must report round-trip times, as `iperf3` does."""
        bottleneck: BitsPerSecond | None = Field(default=None, gt=0.0)
        """Bandwidth of the bottleneck (layer 1); without it the link of the port. Measure it before, for instance by
        `service-activation` or `throughput`.
        """
        streams: int = Field(default=1, ge=1, le=128)
        """Connections at once."""
        window: SomeBytes | None = None
        """Socket buffers; without it the kernel's."""
        duration: Seconds = Field(default=STANDARD_S, ge=1.0, le=86_400.0)
        """Duration of the transfer."""
        baseline: Seconds = Field(default=5.0, ge=1.0, le=3600.0)
        """Duration of the slow connection."""
        baseline_rate: BitsPerSecond = Field(default=500e3, gt=0.0)
        """Rate of the slow connection."""

    options: Options

    def points(self) -> int:
        return 2

    def estimate_s(self) -> float:
        return self.planned_ports * (self.options.baseline + self.options.duration + 2 * ROUND_OVERHEAD_S)

    def deviations(self) -> tuple[str, ...]:
        if self.options.duration >= STANDARD_S:
            return ()
        return (f"transfers of {self.options.duration:g} s, RFC 6349 asks for {STANDARD_S:g} s and more",)

    def clients_at_once(self, clients: int) -> int:
        return min(clients, 1)

    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        return tuple((self.options.workload, ask) for ask in self._asks())

    def _asks(self) -> Iterator[JobSpec]:
        """Yields the slow connection, then the fast ones."""
        options = self.options
        yield JobSpec(duration_s=options.baseline, rate_bits_per_s=options.baseline_rate, write_bytes=1024)
        yield JobSpec(duration_s=options.duration, streams=options.streams, window_bytes=options.window)

    async def results(self, context: RoundContext) -> AsyncIterator[Result]:
        for clients in clients_by_port(context).values():
            for client in clients[:1]:
                yield await self._measure(context, client)

    async def _measure(self, context: RoundContext, client: EndpointFacts) -> Result:
        played, figures = PlayedRounds(), list[Figures | None]()
        for name, ask in zip(("baseline", "transfer"), self._asks(), strict=True):
            jobs = jobs_of([client], self.options.workload, ask)
            request = RoundRequest(jobs=jobs, duration_s=(ask.duration_s or 0.0) + ROUND_OVERHEAD_S)
            played.add(await context.play({"port": client.port, "client": client.name, "step": name}, request))
            figures += [outcome.figures for _, outcome in loads_of(played.rounds[-1])]
        slow, fast = figures
        outcomes = [outcome for _, outcome in loads_of(played.rounds[-1])]
        values = self._values(client, slow, fast, retransmissions_of(outcomes))
        return played.result(
            self,
            f"{self.name}/{client.port}",
            "one direction",
            {"port": client.port, "client": client.name, "streams": self.options.streams},
            values,
            failed=values[PAYLOAD_RATE.value] is None,
        )

    def _values(
        self, client: EndpointFacts, slow: Figures | None, fast: Figures | None, retransmissions: int | None
    ) -> Values:
        rate, mss = bits_per_s(fast), None if fast is None else fast.mss_bytes
        mtu = None if fast is None else fast.path_mtu_bytes
        baseline, loaded = round_trip(slow), round_trip(fast)
        bottleneck = self.options.bottleneck or client.link_bits_per_s
        is_bucket = self.options.bottleneck is None and client.bucket_bytes is not None
        ideal = None
        if bottleneck is not None and mss is not None and mtu is not None:
            ideal = bottleneck * mss / (mtu + (_FRAME_OVERHEAD_BYTES if is_bucket else _LINE_OVERHEAD_BYTES))
        return {
            "path_mtu_bytes": mtu,
            "mss_bytes": mss,
            PAYLOAD_RATE.value: rate,
            "achievable_bits_per_s": ideal,
            "transfer_time_ratio": ideal / rate if ideal and rate else None,
            "retransmissions": retransmissions,
            "tcp_efficiency_percent": efficiency_percent(fast, retransmissions),
            "baseline_round_trip_ns": Bounded(value=None, reason_null=_NO_TIMES) if baseline is None
            else baseline.minimum_ns,
            **_buffer_values(baseline, loaded, rate),
        }  # fmt: skip

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="TCP throughput",
            caption=(
                "RFC 6349. Achievable: what the bottleneck carries of payload, in segments of the path MTU. Transfer "
                "time ratio: achievable over reached. Efficiency: the share of what was sent that was no "
                "retransmission. Buffer delay: by how much the mean round trip under load is longer than the baseline. "
                "Buffered: what the throughput moves in the longest round trip seen, less the baseline."
            ),
            columns=(
                PORT,
                Column("streams", "Connections", form="whole"),
                Column("path_mtu_bytes", "Path MTU", unit="bytes", form="whole"),
                PAYLOAD_RATE,
                Column("achievable_bits_per_s", "Achievable"),
                Column("transfer_time_ratio", "Transfer time ratio"),
                Column("tcp_efficiency_percent", "TCP efficiency", unit="%", form="of_frames"),
                Column("baseline_round_trip_ns", "Baseline round trip"),
                Column("round_trip_mean_ns", "Mean under load"),
                Column("buffer_delay_percent", "Buffer delay", unit="%", form="number"),
                Column("buffered_bytes", "Buffered", unit="bytes", form="whole"),
            ),
            sentences=(
                (
                    "moves {throughput_bits_per_s} by TCP at {port}, with an efficiency of {tcp_efficiency_percent} "
                    "and a buffer delay of {buffer_delay_percent}"
                ),
                "moves {throughput_bits_per_s} by TCP at {port}",
            ),
            has_basis=False,
        )


def round_trip(figures: Figures | None) -> RoundTrip | None:
    """Returns the round-trip times of all connections together; None where one has none."""
    streams = [stream.round_trip for flow in (figures.flows if figures else ()) for stream in flow.streams]
    known = without_none(streams)
    if not known or len(known) < len(streams):
        return None
    return RoundTrip(
        minimum_ns=min(one.minimum_ns for one in known),
        mean_ns=sum(one.mean_ns for one in known) / len(known),
        maximum_ns=max(one.maximum_ns for one in known),
    )


def efficiency_percent(figures: Figures | None, retransmissions: int | None) -> float | None:
    """Returns the share of the bytes sent other than retransmissions, of a segment each (RFC 6349 section 4)."""
    sent = sum_of_known(flow.sent_bytes for flow in figures.flows) if figures else None
    if figures is None or figures.mss_bytes is None or retransmissions is None or not sent:
        return None
    return 100.0 * sent / (sent + retransmissions * figures.mss_bytes)


def _buffer_values(baseline: RoundTrip | None, loaded: RoundTrip | None, rate: float | None) -> dict[str, Any]:
    if baseline is None or loaded is None:
        return {"buffer_delay_percent": Bounded(value=None, reason_null=_NO_TIMES)}
    longer_ns = max(0.0, loaded.maximum_ns - baseline.minimum_ns)
    # At least so much: readings are a second apart and smoothed, and TCP may have left room.
    filled = None if rate is None else float(round(longer_ns * 1e-9 * rate / 8.0))
    return {
        "round_trip_mean_ns": loaded.mean_ns,
        "round_trip_maximum_ns": loaded.maximum_ns,
        "buffer_delay_percent": 100.0 * (loaded.mean_ns - baseline.minimum_ns) / baseline.minimum_ns,
        "buffered_bytes": None if filled is None else Bounded(value=filled, lower=filled),
    }
