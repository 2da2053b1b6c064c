"""Active queue management (RFC 7567): a queue that marks or drops packets before it is full, as a qdisc of the kernel.

It stands below a token bucket, whose rate makes packets wait. What is marked is known: CoDel with ``mark_above`` marks
each packet that waited longer (tc-codel(8), ``ce_threshold``), RED with a single threshold each packet that finds a
mean length above it (tc-red(8)), much as DCTCP expects of a switch (RFC 8257 section 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.quantity import Seconds, SomeBytes
from nicbench.core.units import format_duration_s
from nicbench.hosts.base import Host

_AVERAGE_PACKET_BYTES: Final = 1000
"""By which RED counts the time of an idle queue."""
_RED_BURST: Final = 3
"""The multiple of the lower threshold that may come at once before RED's mean has followed."""
_OF_ALL: Final = ("kind", "marks")
_OWN: Final = {
    "codel": ("target", "interval", "mark_above"),
    "fq_codel": ("target", "interval", "mark_above"),
    "red": ("mark_from", "mark_all_from"),
}
_WAIT = Annotated[Seconds, Field(ge=1e-6, le=10.0)]


class ActiveQueue(Frozen):
    """``{kind: codel, target: 5 ms}``: how a queue tells senders that it is growing."""

    kind: Literal["codel", "fq_codel", "red"]
    """The queueing discipline: CoDel (RFC 8289), FQ-CoDel (CoDel for each flow, RFC 8290), or RED."""
    marks: bool = True
    """Packets of senders that know ECN are marked; `false`: they are dropped, as packets of all other senders are."""
    target: _WAIT = 5e-3
    """Of CoDel: the wait in the queue that is always acceptable."""
    interval: _WAIT = 100e-3
    """Of CoDel: how long the wait must stay above `target` before the first packet is marked or dropped."""
    mark_above: _WAIT | None = None
    """Of CoDel: in addition, each packet that waited longer than this is marked (`ce_threshold`), as DCTCP wants it."""
    mark_from: SomeBytes | None = None
    """Of RED: the mean length of the queue from which some packets are marked or dropped."""
    mark_all_from: SomeBytes | None = None
    """Of RED: the mean length from which all are; without it one byte above `mark_from`, so a single threshold."""

    @model_validator(mode="after")
    def _has_its_own(self) -> Self:
        for key in sorted(self.model_fields_set.difference(_OF_ALL, _OWN[self.kind])):
            raise ValueError(f"`{key}` is not an option of {self.kind}: remove it")
        if self.kind == "red":
            if self.mark_from is None:
                raise ValueError("`red` needs `mark_from`: the length of the queue from which it marks")
            if self.mark_all_from is not None and self.mark_all_from <= self.mark_from:
                raise ValueError("`mark_all_from` must be more than `mark_from`")
        if self.mark_above is not None and not self.marks:
            raise ValueError("`mark_above` has no effect with `marks: false`: remove one of them")
        return self

    @property
    def summary(self) -> str:
        """What it does, as the end of a sentence: "packets wait for it in codel (target 5 ms), which marks them"."""
        how = "which marks them (ECN)" if self.marks else "which drops them"
        return f"packets wait for it in {self.kind} ({', '.join(self._settings())}), {how}"

    def _settings(self) -> Iterator[str]:
        if self.mark_from is None:
            yield f"target {format_duration_s(self.target)}"
            yield f"interval {format_duration_s(self.interval)}"
            if self.mark_above is not None:
                yield f"all above {format_duration_s(self.mark_above)}"
        elif self.mark_all_from is None:
            yield f"all from {self.mark_from} bytes on"
        else:
            yield f"from {self.mark_from} bytes on, all from {self.mark_all_from}"

    def words(self, limit_packets: int, rate_bits_per_s: float) -> tuple[str, ...]:
        """Returns kind and parameters as tc takes them, for a maximum of packets behind a bottleneck."""
        return (self.kind, *self._parameters(limit_packets, rate_bits_per_s))

    def _parameters(self, limit_packets: int, rate_bits_per_s: float) -> Iterator[str]:
        if self.mark_from is None:
            yield from ("limit", str(limit_packets), "target", _time(self.target), "interval", _time(self.interval))
            yield "ecn" if self.marks else "noecn"
            if self.mark_above is not None:
                yield from ("ce_threshold", _time(self.mark_above))
            return
        upper = self.mark_all_from or self.mark_from + 1
        burst = max(2, _RED_BURST * self.mark_from // _AVERAGE_PACKET_BYTES)
        yield from ("limit", str(max(limit_packets * _AVERAGE_PACKET_BYTES, upper * 2)))
        yield from ("min", str(self.mark_from), "max", str(upper), "avpkt", str(_AVERAGE_PACKET_BYTES))
        yield from ("burst", str(burst), "bandwidth", f"{round(rate_bits_per_s)}bit")
        # A single threshold is certain; between two the chance grows from 0 to 1.
        yield from ("probability", "1.0")
        if self.marks:
            yield "ecn"

    async def attach(self, host: Host, device: str, parent: str, limit_packets: int, rate_bits_per_s: float) -> None:
        """Puts it below a class of the device's discipline. NotReadyError where the kernel lacks it."""
        words = self.words(limit_packets, rate_bits_per_s)
        try:
            await host.run(("tc", "qdisc", "replace", "dev", device, "parent", parent, *words))
        except HostError as error:
            raise NotReadyError(
                f"{device} cannot be given a queue of the kind {self.kind}: {error.message}",
                place=host.name,
                next_step=f"use a kernel with sch_{self.kind}, as Debian's, or a virtual machine with it (`on: guest`)",
            ) from error


def _time(seconds: float) -> str:
    """A time in whole microseconds, which every tc takes."""
    return f"{round(seconds * 1e6)}us"
