"""The load beside a probe: streams of a tool through the same port, which last a little longer than the probe."""

from __future__ import annotations

import math
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from nicbench.model.base import Frozen
from nicbench.model.quantity import BitsPerSecond, SomeBytes
from nicbench.model.round import Ask, Direction
from nicbench.model.workload import WorkloadChoice
from nicbench.units import format_bits_per_s

LOAD_LONGER_S: Final = 4.0
"""A probe starts and warms up; the load must still be there when it ends."""


class Load(Frozen):
    """What runs beside the probe. ``rate`` is of each connection; ``also_without`` measures the idle port as well."""

    workload: WorkloadChoice = WorkloadChoice(kind="iperf3")
    transport: Literal["tcp", "udp"] = "tcp"
    direction: Direction = "forward"
    streams: int = Field(default=1, ge=1, le=15)
    write_bytes: SomeBytes | None = None
    rate: BitsPerSecond | None = Field(default=None, ge=1.0)
    also_without: bool = True

    def ask(self, probe_s: float) -> Ask:
        """Beside a probe of so many seconds; tools count whole ones."""
        return Ask(
            transport=self.transport,
            direction=self.direction,
            duration_s=math.ceil(probe_s) + LOAD_LONGER_S,
            write_bytes=self.write_bytes,
            streams=self.streams,
            rate_bits_per_s=self.rate,
        )

    @property
    def words(self) -> str:
        """As a table has it: "iperf3, TCP, 4 streams of 10 Mb/s"."""
        way = {"forward": "to the server", "reverse": "from the server", "both": "both ways"}[self.direction]
        many = "1 stream" if self.streams == 1 else f"{self.streams} streams"
        paced = "" if self.rate is None else f" of {format_bits_per_s(self.rate)}"
        return f"{self.workload.kind}, {self.transport.upper()}, {many}{paced} {way}"


def _none(value: Any) -> Any:
    return None if value == "none" else value


Beside = Annotated[Load | None, BeforeValidator(_none)]
"""``none``, or a load."""
