"""A rule by which an adapter sends chosen flows to a receive queue (flow director, ntuple filters; ethtool(8), -N)."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from nicbench.core.base import Frozen

FlowType = Literal["tcp4", "udp4", "sctp4", "tcp6", "udp6", "sctp6"]


def _address(text: str) -> str:
    return str(ipaddress.ip_address(text))


Address = Annotated[str, AfterValidator(_address)]
Port = Annotated[int, Field(ge=0, le=65_535)]


class FlowRule(Frozen):
    """Frames of ``flow`` in which every given field is as it stands here go to ``queue``; None: they are dropped."""

    flow: FlowType
    source_address: Address | None = None
    destination_address: Address | None = None
    source_port: Port | None = None
    destination_port: Port | None = None
    queue: int | None = Field(ge=0, le=2**16)

    @model_validator(mode="after")
    def _chooses(self) -> FlowRule:
        addresses = [each for each in (self.source_address, self.destination_address) if each is not None]
        version = int(self.flow[-1])
        if any(ipaddress.ip_address(address).version != version for address in addresses):
            raise ValueError(f"an address of a rule for {self.flow} is none of IPv{version}")
        if not addresses and self.source_port is None and self.destination_port is None:
            raise ValueError(f"a rule for {self.flow} names no address and no port: name one at least")
        return self

    @property
    def words(self) -> tuple[str, ...]:
        """The rule in ethtool's words, as they stand behind ``ethtool -N DEVICE``."""
        fields = (
            ("src-ip", self.source_address),
            ("dst-ip", self.destination_address),
            ("src-port", self.source_port),
            ("dst-port", self.destination_port),
        )
        given = [word for name, value in fields if value is not None for word in (name, str(value))]
        return ("flow-type", self.flow, *given, "action", "-1" if self.queue is None else str(self.queue))

    @classmethod
    def of_words(cls, words: str) -> FlowRule:
        """Returns the rule of ``words`` in one line; ValueError where they are none."""
        pairs = words.split()
        given = dict(zip(pairs[::2], pairs[1::2], strict=True))
        queue = int(given["action"])
        return cls.model_validate(
            {
                "flow": given["flow-type"],
                "source_address": given.get("src-ip"),
                "destination_address": given.get("dst-ip"),
                "source_port": None if "src-port" not in given else int(given["src-port"]),
                "destination_port": None if "dst-port" not in given else int(given["dst-port"]),
                "queue": None if queue < 0 else queue,
            }
        )
