"""What a bridge may be told beside switching: multicast snooping, slow ports with a queue, policers by DSCP.

Each has a known truth: how many groups are kept and how long after a leave frames still come, how many frames a queue
holds, at which rate a policer passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.quantity import BitsPerSecond, FramesPerSecond, Seconds
from nicbench.hosts.base import Host
from nicbench.testbed.duts._packet_filter import set_up_table
from nicbench.testbed.interfaces.active_queue import ActiveQueue
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.queues import Qdisc, QdiscOptions
from nicbench.tuning.setting import CannotSetError, Place

TABLE: Final = "nicbench_bridge"
_FAMILY: Final = "bridge"
# FCS, preamble and the smallest gap (IEEE 802.3): what a frame takes of a line beyond what the kernel counts of it.
_LINE_OVERHEAD_BYTES: Final = 24
_LARGEST_FRAME_BYTES: Final = 1600
_BUCKET_S: Final = 0.001
"""The kernel sends from a token bucket when a timer wakes it: so long it may be late."""
_BELOW: Final = "6e62:1"
"""The class of the token bucket of the tuning item `qdisc`: its queue stands there."""
_CENTISECONDS: Final = 100
_QUERY_RESPONSE: Final = "10"
"""In hundredths of a second: for so long a bridge that begins to ask floods everything."""
ASKING: Final = ("type", "bridge", "mcast_querier", "1")
"""What follows the name of the device in ``ip link set``: it asks from then on, with the times that it has then."""


def _whole_frames(rate: float) -> float:
    if rate != int(rate):
        raise ValueError("the kernel polices a whole number of frames per second")
    return rate


class Snooping(Frozen):
    """Multicast snooping: frames to a group go to the ports that joined it by IGMP or MLD, and to no other."""

    most_groups: int = Field(default=4096, ge=1, le=2**24)
    """The most groups that it keeps (`mcast_hash_max`). With one more the kernel ends snooping, and floods all groups;
    each trial begins with snooping on and without groups.
    """
    last_member: Annotated[Seconds, Field(ge=0.01, le=60.0)] = 1.0
    """How long it waits for an answer before it asks again whether a group that was left has members
    (`mcast_last_member_interval`). It asks twice: frames go on for twice as long.
    """
    fast_leave: bool = False
    """Frames end with the leave: nobody is asked."""
    mld: bool = False
    """It asks by MLD too, as IPv6 needs it. For that it has an IPv6 address, whose own groups are in its table."""

    def words(self) -> tuple[str, ...]:
        """Returns what follows the kind of the device in ``ip link add``."""
        return (
            *("mcast_snooping", "1", "mcast_hash_max", str(self.most_groups)),
            *("mcast_query_response_interval", _QUERY_RESPONSE),
            *("mcast_last_member_interval", str(round(self.last_member * _CENTISECONDS))),
            *("mcast_igmp_version", "3", "mcast_mld_version", "2"),
        )


class Output(Frozen):
    """Ports that send slower than they receive, each from a queue of its own: a switch whose buffers are known."""

    rate: Annotated[BitsPerSecond, Field(ge=8_000.0, le=1e11)]
    """The rate of each port on the line, with preamble, gap and FCS (tbf)."""
    buffer: Annotated[int, Field(ge=1, le=10_000_000)] = 1000
    """The most frames that wait; one more is dropped. With RED the limit is in bytes, 1000 for each frame."""
    queue: ActiveQueue | None = None
    """A queue that marks or drops frames before it is full; without it a plain one (pfifo)."""

    @property
    def bucket_bytes(self) -> int:
        """The bytes on the line that a port sends at once after a pause."""
        return max(_LARGEST_FRAME_BYTES, round(self.rate / 8.0 * _BUCKET_S))


class Policing(Frozen):
    """A policer of what is forwarded, by the mark of the frames."""

    dscp: int | None = Field(default=None, ge=0, le=63)
    """Frames with this DSCP (RFC 2474); without it every frame."""
    rate: Annotated[FramesPerSecond, Field(ge=1.0, le=1e9), AfterValidator(_whole_frames)]
    """The rate that passes."""
    burst: int = Field(default=32, ge=1, le=1_000_000)
    """Frames that pass at once after a pause."""


async def slow_down(host: Host, changes: Changes, device: str, output: Output) -> None:
    """Gives a port its rate and its queue, undo first; NotReadyError where the kernel cannot."""
    place = Place(host, device)
    words = ("rate", f"{round(output.rate)}bit", "burst", str(output.bucket_bytes), "limit", "1000000")
    item = Qdisc(QdiscOptions(kind="tbf", parameters=(*words, "overhead", str(_LINE_OVERHEAD_BYTES))))
    plain = ("tc", "qdisc", "replace", "dev", device, "parent", _BELOW, "pfifo", "limit", str(output.buffer))
    try:
        before = await item.read_checked(place)
        await item.apply(changes, place, before, item.target_values(before))
        if output.queue is None:
            await host.run(plain)
        else:
            await output.queue.attach(host, device, _BELOW, output.buffer, output.rate)
    except (CannotSetError, HostError) as error:
        raise NotReadyError(
            f"{device} cannot be given a rate and a queue: {error}",
            place=host.name,
            next_step="have a kernel with sch_tbf and sch_fifo, and no queueing discipline of others at the port",
        ) from error


def policing_ruleset(policers: Sequence[Policing]) -> str:
    """Returns the text for nft: one limit for each policer and version of IP, and one for all of a policer of all."""
    rules = []
    for one in policers:
        over = f"limit rate over {int(one.rate)}/second burst {one.burst} packets drop"
        marks = [""] if one.dscp is None else [f"ip dscp {one.dscp} ", f"ip6 dscp {one.dscp} "]
        rules += [f"    {mark}{over}" for mark in marks]
    chain = ["  chain forward {", "    type filter hook forward priority filter; policy accept;", *rules, "  }"]
    return "\n".join([f"table {_FAMILY} {TABLE} {{", *chain, "}", ""])


async def police(host: Host, changes: Changes, policers: Sequence[Policing]) -> None:
    """Puts the policers in place, undo first; NotReadyError where the kernel cannot, or has a table of that name."""
    words = {"what": "the policer", "option": "police", "needs": "nf_tables of bridges and nft_limit"}
    await set_up_table(host, changes, _FAMILY, TABLE, policing_ruleset(policers), **words)
