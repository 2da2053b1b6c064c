"""A Linux bridge between the DUT's ports (`bridge`), which switches frames by MAC address.

No spanning tree (a port would be silent for its forward delay), and no multicast snooping unless asked for. Each tester
MAC is a static entry of the forwarding database, so that no frame is flooded and nothing is learnt while a trial runs;
the report says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.quantity import BitsPerSecond, FramesPerSecond, Seconds
from nicbench.hosts.base import Host
from nicbench.testbed.addressing import MOST_PORTS, tester_macs, transparent_addressing
from nicbench.testbed.duts._kernel import dut_devices, require_host, set_up_table
from nicbench.testbed.duts.base import Addressing, FrameDut
from nicbench.testbed.interfaces.active_queue import ActiveQueue
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.queues import Qdisc, QdiscOptions
from nicbench.tuning.setting import CannotSetError, Place
from nicbench.tuning.undo.network import DeleteLink

# What a bridge may be told beside switching: multicast snooping, slow ports with a queue, policers by DSCP.
#
# Each has a known truth: how many groups are kept and how long after a leave frames still come, how many frames a
# queue holds, at which rate a policer passes.


TABLE: Final = "nicbench_bridge"
_FAMILY: Final = "bridge"
# FCS, preamble and the smallest gap (IEEE 802.3): what a frame takes of a line beyond what the kernel counts of it.
_LINE_OVERHEAD_BYTES: Final = 24
_LARGEST_FRAME_BYTES: Final = 1600
_BUCKET_S: Final = 0.001
"""The time that the kernel may be late, which sends from a token bucket when a timer wakes it."""
_BELOW: Final = "6e62:1"
"""The class of the token bucket of the tuning item `qdisc`: its queue stands there."""
_CENTISECONDS: Final = 100
_QUERY_RESPONSE: Final = "10"
"""The time that a bridge that begins to ask floods everything, in hundredths of a second."""
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


_LIMIT: Final = Path(__file__).with_name("_bridge_limit.py")


class BridgeOptions(Frozen):
    """``dut: {kind: bridge}``; ``device`` names the bridge, ``ageing_s`` is how long it remembers a MAC."""

    device: str = Field(default="nicbench-br", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$")
    """The name of the bridge."""
    ageing_s: int = Field(default=300, ge=0, le=1_000_000)
    """How long the bridge remembers an address, in seconds."""
    most_learned: int | None = Field(default=None, ge=1, le=10_000_000)
    """The most addresses that it learns (`fdb_max_learned`, Linux 6.7); without it as many as memory takes. Needs
    Python on the DUT's host.
    """
    snooping: Snooping | None = None
    """Multicast snooping, with keys of its own; without it frames to groups go to every port."""
    output: Output | None = None
    """Slow ports with a queue of known length; without it ports send as fast as they can."""
    police: tuple[Policing, ...] = ()
    """Policers of what is forwarded, by DSCP."""


class Bridge(FrameDut):
    """The DUT's host switches between its ports. A frame for the port that it came in on is filtered (IEEE 802.1D)."""

    kind = "bridge"
    Options = BridgeOptions
    fewest_ports = 2
    most_ports = MOST_PORTS
    options: BridgeOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._commands: list[tuple[str, ...]] = []
        self._entries: dict[str, str] = {}
        self._host: Host | None = None

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        devices = await dut_devices(testbed, self.kind, fewest=self.fewest_ports, most=self.most_ports)
        await self._make_bridge(host, changes)
        if self.options.most_learned is not None:
            await self._limit_learned(host, self.options.most_learned)
        self._host = host
        macs = tester_macs(testbed)
        for device, mac in zip(devices.names, macs, strict=True):
            # Leaving the bridge and the end of the static entry come with the bridge's deletion.
            await self._run(host, "ip", "link", "set", "dev", device, "master", self.options.device)
            await self._run(host, "bridge", "fdb", "replace", mac, "dev", device, "master", "static")
            if self.options.snooping is not None and self.options.snooping.fast_leave:
                await self._run(host, "bridge", "link", "set", "dev", device, "fastleave", "on")
            if self.options.output is not None:
                await slow_down(host, changes, device, self.options.output)
        self._entries = dict(zip(devices.names, macs, strict=True))
        if self.options.police:
            await police(host, changes, self.options.police)
        await self._run(host, "ip", "link", "set", "dev", self.options.device, "up")
        if self.options.snooping is not None:
            await self._run(host, "ip", "link", "set", "dev", self.options.device, *ASKING)

    async def begin_trial(self, number: int) -> None:
        """Lets it forget all groups, and snoop again where it had too many: both come with the end of snooping."""
        if self._host is None or self.options.snooping is None:
            return
        for is_on in ("1", "0", "1"):
            await self._host.run(
                ("ip", "link", "set", "dev", self.options.device, "type", "bridge", "mcast_snooping", is_on)
            )

    async def _make_bridge(self, host: Host, changes: Changes) -> None:
        """Makes the bridge without IPv6, so that it sends nothing by itself; with it where it is to ask by MLD."""
        device = self.options.device
        if (await host.run(("ip", "link", "show", "dev", device), check=False)).status == 0:
            raise NotReadyError(
                f"there is already an interface {device}",
                place=host.name,
                next_step=f"remove it (ip link delete dev {device}), or give the bridge another `device` under `dut`",
            )
        # `ip` takes hundredths of a second.
        ageing = str(self.options.ageing_s * 100)
        snooping = self.options.snooping
        multicast = snooping.words() if snooping is not None else ("mcast_snooping", "0")
        kind = ("type", "bridge", "stp_state", "0", *multicast, "ageing_time", ageing)
        await changes.make(
            host, DeleteLink(device=device), lambda: self._run(host, "ip", "link", "add", "name", device, *kind)
        )
        silent = f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6"
        if await host.read_file(silent) is None:
            return
        if snooping is not None and snooping.mld:
            # It asks from its address, at once.
            await host.write_file(f"/proc/sys/net/ipv6/conf/{device}/accept_dad", "0")
            await host.write_file(silent, "0")
        else:
            await host.write_file(silent, "1")

    async def _limit_learned(self, host: Host, most: int) -> None:
        """Sets the limit, and reads it back: a kernel that has none ignores it. It goes with the bridge."""
        done = await host.run(("python3", "-c", _LIMIT.read_text(), self.options.device, str(most)))
        if done.stdout.strip() != str(most):
            raise NotReadyError(
                f"its kernel does not limit how many addresses a bridge learns to {most}",
                place=host.name,
                next_step="use Linux 6.7 or newer, or remove `most_learned` under `dut`",
            )

    async def _run(self, host: Host, *command: str) -> None:
        await host.run(command)
        self._commands.append(command)

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return transparent_addressing(testbed, ip)

    def disclosure(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "bridge": self.options.device,
            "spanning_tree": False,
            "multicast_snooping": False if (snooping := self.options.snooping) is None else snooping.model_dump(),
            "ageing_s": self.options.ageing_s,
            "most_learned": self.options.most_learned,
            "output": None if self.options.output is None else self.options.output.model_dump(),
            "police": [one.model_dump() for one in self.options.police],
            "static_entries": dict(self._entries),
            "learning": "none is needed: the tester's MAC addresses are static entries of the forwarding database",
            "commands": [" ".join(command) for command in self._commands],
        }
