"""A link of a bond that is taken down in the midst of a round, on purpose: what was asked for, and what came of it."""

from __future__ import annotations

from pydantic import Field

from nicbench.model.base import Frozen
from nicbench.model.bond import Connection
from nicbench.model.quantity import Seconds
from nicbench.model.traffic import Name


class LinkFailure(Frozen):
    """``failure: {port: s0, link: 2, after: 3 s, lasts: 4 s}``: of the bond that a port is, its second link.

    Times are from when the clients begin.
    """

    port: Name
    link: int = Field(ge=1, le=64)
    after: Seconds = Field(default=3.0, ge=0.5, le=86_400.0)
    lasts: Seconds = Field(default=4.0, ge=0.5, le=86_400.0)

    @property
    def ends_s(self) -> float:
        """When the link is to be up again."""
        return self.after + self.lasts


class FlowSilence(Frozen):
    """A connection over the failure, as the host of the bond counts its bytes. Seconds; None is unknown.

    ``port_before`` and ``port_down`` are the ports that it left by, before and while the link was down, where they are
    known. ``silent_down_s`` is the longest time without a byte from when the link went down until it came back,
    ``silent_back_s`` that from then on; ``went_on`` is whether anything came after the failure at all.
    """

    jobs: tuple[int, ...]
    connection: Connection
    port_before: str | None = None
    port_down: str | None = None
    silent_down_s: float | None = None
    silent_back_s: float | None = None
    went_on: bool | None = None


class LinkFailed(Frozen):
    """What took place. Times are seconds since the clients began; None: it did not come to that.

    ``link`` is the port of the bond, ``taken_down`` the interface that was, at the other end of the cable in a lab.
    ``step_s`` is the most that the looks at the bytes were apart after the link went down: no silence is known finer.
    """

    asked: LinkFailure
    link: str
    taken_down: str
    down_at_s: float | None = None
    up_at_s: float | None = None
    step_s: float | None = None
    flows: tuple[FlowSilence, ...] = ()
    trouble: str | None = None
    """Why something of it is missing, in words."""
