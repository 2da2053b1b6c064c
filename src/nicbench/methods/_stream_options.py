"""The options of the method ``stream``: which streams run together, how many, for how long."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from nicbench.core.base import Distinct, Frozen, WorkloadChoice
from nicbench.core.bond import LinkFailure
from nicbench.core.quantity import BitsPerSecond, Seconds, SomeBytes
from nicbench.core.round import Direction
from nicbench.methods import _failures

Together = Literal["port", "card", "all"]
"""What sends at the same time: the clients of one port, of all ports of one card, or of all ports."""

WRITE_BYTES = 8192
DURATION_S = 10.0


class StreamOptions(Frozen):
    """Options of the bench file. ``at_once`` is what sends together, ``streams`` how many connections a client has.

    ``rate`` paces each connection; UDP without a rate is sent as fast as the tool can.
    """

    workload: WorkloadChoice = WorkloadChoice(kind="iperf3")
    """The tool, alone or with options of its own: `{kind: iperf3, ...}`."""
    transport: Literal["tcp", "udp"] = "tcp"
    """The transport protocol."""
    direction: Distinct[Direction] = Field(default=("forward",), min_length=1)
    """`forward`: clients send. `reverse`: the server sends. `both`: at once."""
    at_once: Distinct[Together] = Field(default=("port", "all"), min_length=1)
    """What sends together: each `port` with its clients, each `card` with its ports, `all`."""
    write_bytes: Distinct[SomeBytes] = Field(default=(WRITE_BYTES,), min_length=1)
    """Size of one write or datagram."""
    streams: int = Field(default=1, ge=1, le=128)
    """Connections of each client."""
    window: SomeBytes | None = None
    """Socket buffers; without it the kernel's."""
    congestion_control: str | None = Field(default=None, pattern=r"^[a-z0-9_]{1,15}$")
    """Congestion control of TCP, for example `bbr`; without it the kernel's."""
    zero_copy: bool = False
    """Send without copying, where the tool can."""
    no_delay: bool = False
    """Without Nagle's algorithm."""
    rate: BitsPerSecond | None = Field(default=None, ge=1.0)
    """Rate of each connection; without it as fast as it goes."""
    duration: Seconds = Field(default=DURATION_S, ge=1.0, le=86_400.0)
    """Duration of a round."""
    repetitions: int = Field(default=1, ge=1, le=1000)
    """Repetitions of each round. The result is their mean."""
    failure: LinkFailure | None = None
    """A link of a bond goes down during each round."""

    @model_validator(mode="after")
    def _link_comes_back(self) -> Self:
        _failures.require_link_back(self.failure, self.duration)
        return self

    @model_validator(mode="after")
    def _udp_has_no_congestion_control(self) -> Self:
        if self.transport == "udp" and self.congestion_control is not None:
            raise ValueError("UDP has no congestion control: remove `congestion_control`")
        return self
