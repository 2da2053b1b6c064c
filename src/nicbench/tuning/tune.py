"""Settings decided, applied and verified; every refusal names item, host, interface, what was asked and got."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NicbenchError, NotReadyError, UsageError
from nicbench.core.frozen import frozen
from nicbench.core.machine import Controller
from nicbench.core.plan import Outcome, TunedSetting, Values
from nicbench.core.registry import find
from nicbench.core.turn import DEFAULT
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.base import Item
from nicbench.tuning.setting import CannotSetError, Place, values_in_words

# What the section ``tuning`` of a bench file asks for, and at which places of a testbed. Touches no host.  A named
# profile is what a machine is commonly set to for one aim; what it lacks is skipped, with the reason.

ALL: Final = "all"
"""The key of the bench file for every host of the test; the others are ``tester``, ``dut`` and names of hosts."""
BENCH_FILE: Final = "bench file"


@frozen
class TuningRequest:
    """One item with its options, for the hosts of a role. ``profile``: it was not written, but brought along by one."""

    role: str
    item: type[Item]
    options: Frozen
    profile: str | None = None

    @property
    def source(self) -> str:
        """Where it comes from, in the words of tuning.json."""
        return BENCH_FILE if self.profile is None else f"profile {self.profile}"


@frozen
class Part:
    """A host of the test: its role, and the interfaces that the test uses there."""

    role: str
    host: Host
    devices: tuple[str, ...]
    controller: Controller | None = None


@frozen
class PlacedRequest:
    """A request at one place. ``place.device`` is also None if the host has no interface for an item of a device,
    which then cannot be set.
    """

    request: TuningRequest
    item: Item
    place: Place

    def __str__(self) -> str:
        return f"{self.item.kind} ({self.place})"


def place_requests(requests: Iterable[TuningRequest], parts: Iterable[Part]) -> tuple[PlacedRequest, ...]:
    """Each request at each of its places, in the order in which they are applied.

    UsageError where two requests of one machine contradict each other.
    """
    found: dict[tuple[str, str, str | None, int], PlacedRequest] = {}
    for part in parts:
        of_host = _requests_of_part(requests, part)
        for number, request in of_host:
            for place in _places(request, part):
                key = (request.item.kind, _key(place.host), place.device, number)
                earlier = found.get(key)
                if earlier is not None and earlier.request.options != request.options:
                    raise UsageError(
                        f"{request.item.kind} is asked for in two ways, by {earlier.request.role!r} and "
                        f"{request.role!r}, and both are of one machine",
                        place=f"tuning, {place}",
                        next_step=f"write it once, under `{ALL}`",
                    )
                found.setdefault(key, PlacedRequest(request, request.item(request.options), place))
    return tuple(sorted(found.values(), key=lambda one: one.item.phase))


def _requests_of_part(requests: Iterable[TuningRequest], part: Part) -> list[tuple[int, TuningRequest]]:
    """Returns the requests for this host, numbered by kind: of several, the one that is written nearest to it wins."""
    levels: Mapping[tuple[bool, bool], dict[str, list[TuningRequest]]] = {
        (written, own): {} for written in (False, True) for own in (False, True)
    }
    for request in requests:
        if request.role in (ALL, part.role, part.host.name):
            levels[request.profile is None, request.role != ALL].setdefault(request.item.kind, []).append(request)
    merged = {kind: of_kind for level in levels.values() for kind, of_kind in level.items()}
    return [pair for of_kind in merged.values() for pair in enumerate(of_kind)]


def _places(request: TuningRequest, part: Part) -> list[Place]:
    if request.item.scope == "machine":
        return [Place(outermost(part.host), controller=part.controller)]
    if request.item.scope == "namespace":
        return [Place(part.host.network)]
    devices = getattr(request.options, "devices", ()) or part.devices
    return [Place(part.host.network, device) for device in devices] or [Place(part.host.network)]


def _key(host: Host) -> str:
    return json.dumps(host.spec(), sort_keys=True)


@frozen
class Step:
    """An item of a profile, its options, and why it is there; docs/tuning.md has a table of them."""

    item: str
    options: dict[str, Any]
    why: str


_UNDISTURBED: Final = (
    Step("irqbalance", {"on": False}, "it would move interrupts, and with them the load, in the middle of a trial"),
    Step(
        "cpu_frequency",
        {"governor": "performance", "energy_preference": "performance"},
        "a frequency that follows the load makes the rate depend on what was measured before",
    ),
    Step("numa_balancing", {"on": False}, "moving pages between nodes costs page faults, which are seen as latency"),
    Step("page_merging", {"on": False}, "looking for equal pages takes CPU time, and a merged page is slow to write"),
    Step("watchdog", {"on": False}, "its interrupts reach every CPU, the measuring ones too"),
)

PROFILES: Final = {
    "low-latency": (
        *_UNDISTURBED,
        Step("idle_states", {"most_exit_latency_us": 1}, "waking from a deep idle state takes up to 200 µs"),
        Step("wakeup_latency", {"us": 0}, "the same for idle states that cannot be switched off one by one"),
        Step("timer_migration", {"on": False}, "timers of idle CPUs would run on the measuring ones"),
        Step(
            "transparent_huge_pages",
            {"enabled": "madvise", "defrag": "never"},
            "compacting memory for a huge page holds the program up that asked",
        ),
        Step("busy_polling", {"us": 50}, "a reader that polls takes a packet without an interrupt and a wake-up"),
        Step(
            "coalescing",
            {"adaptive_rx": False, "rx_usecs": 0},
            "a frame that waits for others before its interrupt waits for nothing",
        ),
        Step(
            "energy_efficient_ethernet", {"on": False}, "a link that slept takes up to 30 µs to carry the first frame"
        ),
        Step("irq_affinity", {"cpus": "local"}, "a frame that crosses to another NUMA node arrives later"),
    ),
    "throughput": (
        *_UNDISTURBED,
        Step("rings", {"rx": "maximum", "tx": "maximum"}, "a burst is held until the CPU comes to it"),
        Step(
            "irq_affinity",
            {"cpus": "local"},
            "frames are taken where their memory is, and no CPU has several queues' share",
        ),
        Step("transparent_huge_pages", {"enabled": "always"}, "fewer TLB misses over large buffers"),
        Step(
            "sysctls",
            {
                "values": {
                    "net.core.rmem_max": 268_435_456,
                    "net.core.wmem_max": 268_435_456,
                    "net.ipv4.tcp_rmem": "4096 131072 268435456",
                    "net.ipv4.tcp_wmem": "4096 65536 268435456",
                    "net.core.netdev_max_backlog": 250_000,
                }
            },
            "windows and queues that hold bandwidth times delay: 200 Gb/s over 10 ms are 250 MB",
        ),
    ),
    "dpdk": (
        *_UNDISTURBED,
        Step(
            "idle_states", {"most_exit_latency_us": 1}, "a sleeping sibling changes the frequency of the polling core"
        ),
        Step("timer_migration", {"on": False}, "timers of idle CPUs would run on the polling ones"),
        Step(
            "realtime_throttling",
            {"on": False},
            "a polling program with real-time priority would lose its CPU for 50 ms of each second",
        ),
        Step(
            "transparent_huge_pages", {"enabled": "never"}, "DPDK has huge pages of its own; khugepaged only disturbs"
        ),
        Step("flow_control", {"rx": False, "tx": False}, "a paused sender hides what the device would have lost"),
        Step("irq_affinity", {"cpus": "far"}, "what is left of interrupts comes where nobody polls"),
    ),
}


def requests_of(profile: str, role: str) -> tuple[TuningRequest, ...]:
    """The items of a profile for the hosts of a role."""
    return tuple(_requests(PROFILES[profile], profile, role))


def _requests(steps: Iterable[Step], profile: str, role: str) -> Iterable[TuningRequest]:
    kinds = find("nicbench.tuning.items", Item)
    for step in steps:
        item = kinds[step.item]
        yield TuningRequest(role=role, item=item, options=item.Options.model_validate(step.options), profile=profile)


async def preview(one: PlacedRequest, configuration: str = DEFAULT, run: int = 1) -> TunedSetting:
    """What would be done at this place: a row with the outcome that is to be expected. Changes nothing."""
    before: Values | None = None
    asked: Values | None = None
    reason: str | None = None
    try:
        if one.item.scope == "device" and one.place.device is None:
            raise CannotSetError("the test has no interface there; name some with `devices`")
        before = await one.item.read_checked(one.place)
        asked = one.item.target_values(before)
        outcome = _expected_outcome(one, before, asked)
    except (CannotSetError, NicbenchError) as error:
        outcome = Outcome.FAILED if one.request.profile is None else Outcome.SKIPPED
        reason = error.message if isinstance(error, NicbenchError) else str(error)
    return TunedSetting(
        configuration=configuration,
        run=run,
        host=one.place.host.name,
        scope=one.item.scope,
        device=one.place.device,
        item=one.item.kind,
        source=one.request.source,
        options=one.request.options.model_dump(mode="json", exclude={"devices"}),
        outcome=outcome,
        reason=reason,
        before=before,
        asked=asked,
        commands=one.item.commands(),
    )


async def tune(
    changes: Changes, every: Iterable[PlacedRequest], configuration: str = DEFAULT, run: int = 1
) -> list[TunedSetting]:
    """Applies everything, in order. What was written and cannot be set refuses the run before anything is changed.

    NotReadyError with every refusal; or with one, where a machine takes a value and then has another.
    """
    every = list(every)
    refuse_failed(every, [await preview(one, configuration, run) for one in every])
    rows = []
    for one in every:
        row = await preview(one, configuration, run)  # anew: what was applied before may have changed it
        if row.outcome is Outcome.CHANGED:
            row = await _apply(changes, one, row)
        rows.append(row)
        refuse_failed([one], [row])
    return rows


async def look_again(
    every: Sequence[PlacedRequest], rows: Sequence[TunedSetting], *, at_end: bool
) -> list[TunedSetting]:
    """What was asked for as it reads now: ``during``, or ``at_end``. None where it cannot be read any more."""
    return [await _reread(one, row, at_end=at_end) for one, row in zip(every, rows, strict=True)]


def refuse_failed(every: Sequence[PlacedRequest], rows: Sequence[TunedSetting]) -> None:
    """Raises NotReadyError if rows failed, with all of them in one message."""
    failed = [(one, row) for one, row in zip(every, rows, strict=True) if row.outcome is Outcome.FAILED]
    if failed:
        said = "; ".join(f"{one}: {row.reason}" for one, row in failed)
        items = ", ".join(dict.fromkeys(f"`{row.item}`" for _, row in failed))
        raise NotReadyError(
            f"the machine cannot be tuned as the bench file says: {said}",
            place="tuning",
            next_step=f"change or remove {items} under `tuning` in the bench file; nicbench tune shows what can be set",
        )


def find_strayed(every: Sequence[PlacedRequest], rows: Sequence[TunedSetting], *, at_end: bool) -> list[str]:
    """Returns a sentence for each setting that no longer has the value that was set, as another program changed it."""
    said = []
    for one, row in zip(every, rows, strict=True):
        now = row.at_end if at_end else row.during
        was = row.during if at_end else row.asked
        if row.outcome not in (Outcome.CHANGED, Outcome.ALREADY) or now is None or was is None:
            continue
        if differing := one.item.find_differing(was, now):
            when = "at the end of the test" if at_end else "before the first trial"
            found = {key: now.get(key) for key in differing}
            said.append(
                f"{place_words(row)}: {row.item} was {values_in_words(differing)} and is {values_in_words(found)} "
                f"{when}: something changed it"
            )
    return said


def place_words(row: TunedSetting) -> str:
    """Host and interface."""
    return row.host if row.device is None else f"{row.host}, {row.device}"


def _expected_outcome(one: PlacedRequest, before: Values, asked: Values) -> Outcome:
    differs = one.item.find_differing(asked, before)
    if one.item.only_checks and differs and getattr(one.request.options, "required", False):
        got = {key: before.get(key) for key in differs}
        raise CannotSetError(
            f"expected {values_in_words(differs)}, and it is {values_in_words(got)}; nicbench does not change it"
        )
    if one.item.only_checks:
        return Outcome.NOT_MET if differs else Outcome.MET
    return Outcome.CHANGED if differs else Outcome.ALREADY


async def _apply(changes: Changes, one: PlacedRequest, row: TunedSetting) -> TunedSetting:
    """The row once it was set and read back; FAILED or SKIPPED, with the old value put back, where it did not take."""
    before, asked = row.before or {}, row.asked or {}
    to_change = one.item.find_differing(asked, before)
    old = {key: before[key] for key in to_change if key in before}
    entailed = {key: before[key] for key in one.item.entailed_keys(before, to_change)}
    try:
        await one.item.apply(changes, one.place, old | entailed, to_change)
        now = await one.item.read_checked(one.place)
        wrong = one.item.find_differing(to_change, now)
        if not wrong:
            return row
        got = {key: now.get(key) for key in wrong}
        reason = f"asked for {values_in_words(wrong)}, got {values_in_words(got)}"
    except (CannotSetError, HostError) as error:
        reason = f"asked for {values_in_words(to_change)}: {error.message if isinstance(error, HostError) else error}"
    reason += await _put_back(one, old, entailed)
    return row.replace(outcome=Outcome.FAILED if one.request.profile is None else Outcome.SKIPPED, reason=reason)


async def _put_back(one: PlacedRequest, old: Values, entailed: Values) -> str:
    """Now, not by the undo: that would take what the machine made of our value for somebody else's."""
    try:
        now = await one.item.read_checked(one.place)
        if differing := one.item.find_differing(old | entailed, now):
            await one.item.write(one.place, differing | entailed)
    except (CannotSetError, NicbenchError) as error:
        return f"; it could not be put back to {values_in_words(old)}: {error}"
    return ""


async def _reread(one: PlacedRequest, row: TunedSetting, *, at_end: bool) -> TunedSetting:
    if row.asked is None or row.outcome in (Outcome.SKIPPED, Outcome.FAILED):
        return row
    try:
        now = await one.item.read_checked(one.place)
        values: Values | None = {key: now.get(key) for key in row.asked}
    except (CannotSetError, NicbenchError):
        values = None
    if at_end:
        return row.replace(at_end=values)
    strayed = None if values is None else tuple(one.item.find_differing(row.asked, values))
    return row.replace(during=values, strayed=strayed)
