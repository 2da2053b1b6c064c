"""Settings of a port: set to another value, read back, seen in traffic where traffic shows them, and put back.

Receive queues first, as some settings are seen in them: whether each queue gets the flows of the card's hash, to the
frame.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from nicbench.core.errors import HostError, NicbenchError
from nicbench.core.headers import FlowRule
from nicbench.core.machine import PortQueues
from nicbench.core.pattern import way_of_stream
from nicbench.core.plan import Values
from nicbench.core.proof import Finding, Outcome
from nicbench.core.traffic import Frames
from nicbench.core.trial import Reading
from nicbench.prove.abilities.frames import pass_all
from nicbench.prove.base import Ability, absent, failed, proven, untried
from nicbench.prove.loop import Loop
from nicbench.tuning.items.base import Item
from nicbench.tuning.items.link import FlowControl, FlowControlOptions, Mtu, MtuOptions
from nicbench.tuning.items.queues import (
    ChannelOptions,
    Channels,
    Coalescing,
    CoalescingOptions,
    OffloadOptions,
    Offloads,
    RingOptions,
    Rings,
)
from nicbench.tuning.items.steering import FlowRules, FlowRulesOptions, ReceiveHashing, ReceiveHashingOptions
from nicbench.tuning.setting import CannotSetError, Place, values_in_words
from nicbench.tuning.stack import UndoStack

_FRAMES: Final = 6_403
_SIZE: Final = 128


def judge_sum(name: str, reading: Reading) -> Finding:
    """Whether the counters of the queues of each port add up to the frames that came to it."""
    queues = reading.queues
    if queues is None or not queues.ports:
        return absent(name, queues.unread[0] if queues is not None and queues.unread else "no queue was read")
    for port in queues.ports:
        ways = [(way_of_stream(stream.name), stream.counts.received) for stream in reading.streams]
        came = sum(received for way, received in ways if way is not None and way[1] == port.port)
        if sum(port.frames) != came:
            return failed(name, f"{port.device}: its queues counted {sum(port.frames):,} frames, and {came:,} came")
    most = max(len(port.frames) for port in queues.ports)
    return proven(name, f"{queues.ports[0].source}: {most} receive queues, whose frames add up", queues=most)


def judge_spread(name: str, reading: Reading) -> Finding:
    """Whether each queue of each port got the frames of the flows that the hash and the rules send to it."""
    queues = reading.queues
    if queues is None or not queues.ports:
        return absent(name, queues.unread[0] if queues is not None and queues.unread else "no queue was read")
    for port in queues.ports:
        if port.expected is None:
            return absent(name, f"{port.device}: {port.why_not}")
        if port.expected != port.frames:
            return failed(name, f"{port.device}: {_differing(port)}")
    told = " and ".join(f"{port.device}: {_numbers(port.frames)}" for port in queues.ports)
    return proven(name, f"each queue got the flows of the hash, to the frame ({told})")


def _differing(port: PortQueues) -> str:
    return f"its queues got {_numbers(port.frames)} frames, and {_numbers(port.expected or ())} were to come"


def _numbers(frames: tuple[int, ...]) -> str:
    return ", ".join(f"{each:,}" for each in frames)


async def spread(loop: Loop) -> Reading:
    """Sends frames of all flows both ways, slower until none is lost, and reads the queues."""
    driver = next((each for each in ("xdp", "net_af_packet") if each in loop.working), loop.working[0])
    async with loop.session(driver) as session:
        while True:
            reading = (await session.send(_SIZE, frames=_FRAMES, both_ways=True)).reading
            if not reading.counts.lost or not session.slow_down():
                return reading


class Queues(Ability):
    """Which queue gets which flow. Settings of the hash are tried with the other settings."""

    kind = "queues"
    order = 5
    tries = "frames of 64 flows both ways, against the counters of each receive queue and the hash of the card"
    estimate_s = 4.0

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        reading = await spread(loop)
        yield judge_sum("queues.sum", reading)
        yield judge_spread("queues.hash", reading)


def _other_amount(now: Values, name: str) -> int | None:
    """Half of a setting, or twice of it where that is possible; None where the setting has one value only."""
    current, most = now.get(name), now.get(f"{name}_maximum")
    if not isinstance(current, int):
        return None
    if current > 1:
        return current // 2
    return current * 2 if isinstance(most, int) and most >= current * 2 else None


def _rings(now: Values) -> Item | None:
    rx, tx = _other_amount(now, "rx"), _other_amount(now, "tx")
    return Rings(RingOptions(rx=rx, tx=tx)) if rx or tx else None


def _channels(now: Values) -> Item | None:
    asked = {name: _other_amount(now, name) for name in ("combined", "rx", "tx")}
    known = {name: amount for name, amount in asked.items() if amount}
    return Channels(ChannelOptions(**known)) if known else None


def _coalescing(now: Values) -> Item | None:
    current = now.get("rx_usecs")
    return Coalescing(CoalescingOptions(rx_usecs=current + 40)) if isinstance(current, int) else None


def _flow_control(now: Values) -> Item | None:
    current = now.get("rx")
    return FlowControl(FlowControlOptions(rx=not current)) if isinstance(current, bool) else None


def _one_queue(now: Values) -> Item | None:
    queues = now.get("queues")
    one = isinstance(queues, int) and queues > 1
    return ReceiveHashing(ReceiveHashingOptions(queues=1, first=int(str(queues)) - 1)) if one else None


def _other_key(now: Values) -> Item | None:
    key = now.get("key")
    if not isinstance(key, str):
        return None
    return ReceiveHashing(ReceiveHashingOptions(key=":".join(f"{int(each, 16) ^ 0x55:02x}" for each in key.split(":"))))


def _rule(now: Values) -> Item | None:
    echo = FlowRule(flow="udp4", destination_port=Frames().destination_port, queue=1)
    return FlowRules(FlowRulesOptions(rules=(echo,)))


def _mtu(now: Values) -> Item | None:
    return Mtu(MtuOptions(bytes=1900))


@dataclass(frozen=True, slots=True)
class _Trial:
    """A setting that is tried: how another value of it is chosen by what is set now, and which frames show it."""

    kind: type[Item]
    choose: Callable[[Values], Item | None]
    thing: str | None = None
    sizes: tuple[int, ...] = (512,)
    by_sockets: bool = False
    """Whether frames go through the kernel's own way, where the setting is at work."""
    by_queues: bool = False
    """Whether each queue must get the frames that the setting sends to it."""

    @property
    def name(self) -> str:
        """The name of its finding."""
        return f"settings.{self.thing or self.kind.kind}"


def _switch(feature: str) -> _Trial:
    """An offload, switched over."""

    def choose(now: Values) -> Item | None:
        on = Offloads(OffloadOptions(features={feature: True}))
        return (
            on if on.find_differing(on.target_values(now), now) else Offloads(OffloadOptions(features={feature: False}))
        )

    return _Trial(Offloads, choose, f"offload_{feature}", sizes=(69, 1001), by_sockets=True)


def _words_of(old: Values, asked: Values) -> str:
    """Says from what to what a setting was changed; of switches that go together only the first is named."""
    name = next(iter(asked))
    if isinstance(asked[name], list):
        return f"another {name.replace('rules', 'rule')}"
    if isinstance(asked[name], bool):
        others = f" and {len(asked) - 1} more" if len(asked) > 1 else ""
        return f"{name}{others}: {'off to on' if asked[name] else 'on to off'}"
    return ", ".join(f"{name} {old[name]} to {value}" for name, value in asked.items())


_TRIALS: Final = (
    _Trial(Rings, _rings),
    _Trial(Channels, _channels),
    _Trial(Coalescing, _coalescing),
    _Trial(FlowControl, _flow_control),
    _Trial(ReceiveHashing, _one_queue, "hash_to_one_queue", by_queues=True),
    _Trial(ReceiveHashing, _other_key, "hash_key", by_queues=True),
    _Trial(FlowRules, _rule, "flow_rule", by_queues=True),
    *map(_switch, ("rx", "tx", "gro", "gso", "tso", "rxvlan", "txvlan")),
    _Trial(Mtu, _mtu, sizes=(1518, 1900), by_sockets=True),  # the last, as some cards need a reset for it
)


class Settings(Ability):
    """Which settings take effect, and come back."""

    kind = "settings"
    order = 8
    tries = "MTU, rings, channels, coalescing, flow control, hash, offloads: another value, frames, the old one again"
    changes = "these, one after the other"
    estimate_s = 30.0

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        for trial in _TRIALS:
            if loop.needs_gro and trial.name == "settings.offload_gro":
                yield untried(trial.name, "without it these ports take no redirected frames")
                continue
            try:
                found = await self._set(trial, loop, changes)
                yield found
                if found.outcome is Outcome.FAILED and (damage := await self._pass(loop)):
                    yield failed("settings.again", f"after {trial.name} no frames pass as before: {damage}")
                    return
            except CannotSetError as error:
                yield absent(trial.name, str(error))
            except NicbenchError as error:
                yield failed(trial.name, error.message)

    async def _set(self, trial: _Trial, loop: Loop, changes: UndoStack) -> Finding:
        """Sets it at every port, has frames pass, and puts it back; what does not come back is a failure of its own."""
        set_at: list[tuple[Item, Place, Values]] = []
        words, seen, damage = "", "", None
        try:
            for place in loop.places:
                now = await trial.kind(trial.kind.Options.model_construct()).read_checked(place)
                item = trial.choose(now)
                if item is None:
                    return absent(trial.name, "the driver has no other value of it")
                asked = item.find_differing(item.target_values(now), now)
                if not asked and set_at:
                    damage = f"{loop.name_of(str(place.device))} read as the other port was set, before it was itself"
                    break
                if not asked:
                    return absent(trial.name, "it has the other value already")
                old = {key: now[key] for key in asked}
                try:
                    await item.apply(changes, place, old, asked)
                except HostError as error:  # the driver says no
                    return absent(trial.name, error.message)
                set_at.append((item, place, old))
                left = item.find_differing(asked, await item.read_checked(place))
                if left:
                    damage = f"{loop.name_of(str(place.device))}: {values_in_words(left)} was set, and reads otherwise"
                words = _words_of(old, asked)
            await loop.wait_for_links()  # drivers take the link down for many settings
            if damage is None:
                seen, damage = await self._seen(trial, loop)
        finally:
            stayed = [await self._put_back(*each) for each in reversed(set_at)]
            await loop.wait_for_links()
        if damage is not None:
            return failed(trial.name, f"{words}: {damage}")
        if wrong := [each for each in stayed if each]:
            return failed(trial.name, f"{values_in_words(wrong[0])} did not come back")
        return proven(trial.name, f"{words}, read back, {seen}, and back again")

    async def _seen(self, trial: _Trial, loop: Loop) -> tuple[str, str | None]:
        """Sends frames meanwhile, tagged and with checksums, or to all queues.

        Returns what was seen, and what was wrong with it; None where nothing was.
        """
        if trial.by_queues:
            found = judge_spread(trial.name, await spread(loop))
            if found.outcome is Outcome.ABSENT:
                return f"not seen in the queues ({found.seen})", None
            return "each queue got its frames", found.seen if found.outcome is Outcome.FAILED else None
        sockets = trial.by_sockets and "net_af_packet" in loop.working
        async with loop.session("net_af_packet" if sockets else None, udp_checksum=True, vlan=100) as session:
            return "frames pass", await pass_all(session, trial.sizes)

    async def _pass(self, loop: Loop) -> str | None:
        """Says what is wrong with plain frames as the port is now; None where nothing is."""
        async with loop.session() as session:
            return await pass_all(session, (512,))

    async def _put_back(self, item: Item, place: Place, old: Values) -> Values:
        await item.write(place, old)
        return item.find_differing(old, await item.read_checked(place))
