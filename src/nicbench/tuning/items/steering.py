"""Which queue gets a frame, and which CPU works on it: RSS, flow rules, interrupts, RPS and XPS."""

from __future__ import annotations

import asyncio
import re
from itertools import groupby
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from nicbench.core.errors import HostError, UnknownFactError
from nicbench.core.headers import FlowRule
from nicbench.core.machine import parse_cpu_list
from nicbench.core.plan import Values
from nicbench.hosts.asking import text_of, values_of
from nicbench.hosts.kinds.netns import outermost
from nicbench.hosts.owner import start_ticks_of_stat
from nicbench.system.adapters.ethtool import (
    PlacedRule,
    parse_features,
    parse_flow_rules,
    parse_hash_fields,
    parse_limits,
    parse_receive_hashing,
)
from nicbench.system.adapters.pci import interrupts_of_device, numbers_of, parse_interrupts
from nicbench.tuning.items.base import (
    DeviceItem,
    DeviceOptions,
    Item,
    Phase,
    SwitchOptions,
    answer_of,
    assign_in_turn,
    device_of,
    run_setter,
)
from nicbench.tuning.setting import CannotSetError, Place, cpu_mask, same_value

Weight = Annotated[int, Field(ge=0, le=2**16)]
FlowType = Literal["tcp4", "udp4", "ah4", "esp4", "sctp4", "tcp6", "udp6", "ah6", "esp6", "sctp6"]
Fields = Annotated[str, StringConstraints(min_length=1, pattern=r"^(r|m?v?t?s?d?f?n?)$")]
_FIELDS = "fields_"


class ReceiveHashingOptions(DeviceOptions):
    """``queues``: in turn over so many, from ``first`` on; or a weight for each queue.

    ``fields`` by the type of flow, in ethtool's letters and its order: ``sdfn`` are both addresses and both ports.
    """

    queues: int | None = Field(default=None, ge=1, le=2**16)
    first: int = Field(default=0, ge=0, le=2**16)
    weights: tuple[Weight, ...] | None = Field(default=None, min_length=1, max_length=1024)
    key: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{2}(:[0-9a-f]{2})+$", max_length=400)] | None = None
    function: Literal["toeplitz", "xor", "crc32"] | None = None
    fields: dict[FlowType, Fields] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_way(self) -> ReceiveHashingOptions:
        if self.queues is not None and self.weights is not None:
            raise ValueError("either `queues` or `weights` make the table")
        if self.weights is not None and not any(self.weights):
            raise ValueError("one of the `weights` must not be 0")
        return self


class ReceiveHashing(DeviceItem):
    """How an adapter spreads flows over its receive queues (RSS): ``ethtool -X`` and ``-N rx-flow-hash`` (ethtool(8)).

    Only a table that ethtool can make again is replaced: in turn over queues, or runs of rising queues.
    """

    kind = "receive_hashing"
    Options = ReceiveHashingOptions
    options: ReceiveHashingOptions
    phase = Phase.STEERING

    async def read(self, place: Place) -> Values:
        device = device_of(place)
        found = await answer_of(place, parse_receive_hashing, "ethtool", "-x", device)
        values: Values = {"queues": found.queues, "key": found.key, "function": found.function}
        values["table"] = list(found.table) or None
        for flow in self.options.fields:
            letters = await answer_of(place, parse_hash_fields, "ethtool", "-n", device, "rx-flow-hash", flow)
            values[f"{_FIELDS}{flow}"] = letters
        return values

    def target_values(self, now: Values) -> Values:
        asked: Values = {f"{_FIELDS}{flow}": letters for flow, letters in self.options.fields.items()}
        for name in ("key", "function"):
            if (value := getattr(self.options, name)) is not None:
                if now[name] is None:
                    raise CannotSetError(f"the driver shows no {name} of its hash")
                asked[name] = value
        if self.options.queues is not None or self.options.weights is not None:
            asked["table"] = list(self._table(now))
        return asked

    def _table(self, now: Values) -> tuple[int, ...]:
        before = now["table"]
        if not isinstance(before, list):
            raise CannotSetError("the driver has no indirection table")
        table = tuple(int(str(queue)) for queue in before)
        if arguments_of(table) is None:
            raise CannotSetError("the table as it is now could not be put back by ethtool, so it is not changed")
        first, weights = self.options.first, self.options.weights
        queues = len(weights) if weights is not None else self.options.queues or 1
        there = now["queues"]
        if isinstance(there, int) and first + queues > there:
            raise CannotSetError(f"queues {first} to {first + queues - 1} are asked for; there are {there}")
        if weights is None:
            return tuple(first + entry % queues for entry in range(len(table)))
        return weighted_table(len(table), first, weights)

    async def write(self, place: Place, values: Values) -> None:
        device = device_of(place)
        arguments: list[str] = []
        if isinstance(table := values.get("table"), list):
            arguments += await self._arguments(place, tuple(int(str(queue)) for queue in table))
        for name, word in (("key", "hkey"), ("function", "hfunc")):
            if values.get(name) is not None:
                arguments += [word, str(values[name])]
        if arguments:
            await run_setter(place, "ethtool", "-X", device, *arguments)
        for name, letters in values.items():
            if name.startswith(_FIELDS):
                flow = name.removeprefix(_FIELDS)
                await run_setter(place, "ethtool", "-N", device, "rx-flow-hash", flow, str(letters))

    async def _arguments(self, place: Place, table: tuple[int, ...]) -> tuple[str, ...]:
        """The words for a table; the driver's own is set by its name and needs none.

        Fewer channels are refused once somebody has chosen a table, even one that equals the driver's.
        """
        device, entries = device_of(place), range(len(table))
        queues = (await answer_of(place, parse_receive_hashing, "ethtool", "-x", device)).queues or 1
        if table in (tuple(each % queues for each in entries), tuple(each * queues // len(table) for each in entries)):
            await run_setter(place, "ethtool", "-X", device, "default")
            if (await answer_of(place, parse_receive_hashing, "ethtool", "-x", device)).table == table:
                return ()
        return arguments_of(table) or ()


def weighted_table(size: int, first: int, weights: tuple[int, ...]) -> tuple[int, ...]:
    """The table that ``ethtool -X weight`` makes: runs of rising queues, as long as their share of the weights."""
    total, table = sum(weights), []
    queue, reached = -1, 0
    for entry in range(size):
        while entry >= size * reached // total:
            queue += 1
            reached += weights[queue]
        table.append(first + queue)
    return tuple(table)


def arguments_of(table: tuple[int, ...]) -> tuple[str, ...] | None:
    """What ``ethtool -X`` makes this table of, None where it cannot."""
    if not table:
        return None
    first = min(table)
    queues = max(table) - first + 1
    start = ("start", str(first)) if first else ()
    if all(queue == first + entry % queues for entry, queue in enumerate(table)):
        return (*start, "equal", str(queues))
    runs = dict.fromkeys(range(first, first + queues), 0)
    for queue, group in groupby(table):
        if runs[queue] or queue < max((other for other, length in runs.items() if length), default=queue):
            return None
        runs[queue] = len(list(group))
    return (*start, "weight", *(str(length) for length in runs.values()))


_NTUPLE = "ntuple-filters"
_RULES, _SWITCH = "rules", "ntuple"


class FlowRulesOptions(DeviceOptions):
    """``rules``: frames of a ``flow`` (``udp4``) with these addresses and ports go to a ``queue``; ``null`` drops."""

    rules: tuple[FlowRule, ...] = Field(min_length=1, max_length=1024)

    @field_validator("rules")
    @classmethod
    def _differ(cls, rules: tuple[FlowRule, ...]) -> tuple[FlowRule, ...]:
        if len({rule.words[:-1] for rule in rules}) < len(rules):
            raise ValueError("two rules are for the same frames")
        return rules


class FlowRules(DeviceItem):
    """Rules that send chosen flows to a receive queue of an adapter (flow director, ntuple): ``ethtool -N``
    (ethtool(8)).

    Rules of others are counted, and never touched. The switch ``ntuple`` is put back with the rules.

    After channels and RSS, which may drop rules.
    """

    kind = "flow_rules"
    Options = FlowRulesOptions
    options: FlowRulesOptions
    phase = Phase.STEERING
    alone = "rules"

    async def read(self, place: Place) -> Values:
        features = await answer_of(place, parse_features, "ethtool", "-k", device_of(place))
        switch = features.get(_NTUPLE)
        if switch is None or (switch.fixed and not switch.on):
            raise CannotSetError(
                "the driver takes no rules for flows (ntuple-filters of `ethtool -k` is off and fixed)"
            )
        rules = await self._present(place)
        words: list[Any] = sorted(" ".join(each.rule.words) for each in rules if each.rule is not None)
        return {_SWITCH: switch.on, _RULES: words, "others": sum(each.rule is None for each in rules)}

    def target_values(self, now: Values) -> Values:
        found = now[_RULES]
        present = [str(words) for words in found] if isinstance(found, list) else []
        ours = [" ".join(rule.words) for rule in self.options.rules]
        criteria = {_criteria(words) for words in present if words not in ours}
        taken = [words for words in ours if _criteria(words) in criteria]
        if taken:
            raise CannotSetError(f"a rule of others is for the same frames: {taken[0]}")
        rules: list[Any] = sorted({*present, *ours})
        return {_SWITCH: True, _RULES: rules}

    async def write(self, place: Place, values: Values) -> None:
        device = device_of(place)
        if values.get(_SWITCH) is True:
            await run_setter(place, "ethtool", "-K", device, "ntuple", "on")
        if isinstance(wanted := values.get(_RULES), list):
            await self._write_rules(place, {str(words) for words in wanted})
        # Some drivers forget every rule when it is switched off: it comes last.
        if values.get(_SWITCH) is False:
            await run_setter(place, "ethtool", "-K", device, "ntuple", "off")

    async def _write_rules(self, place: Place, wanted: set[str]) -> None:
        device = device_of(place)
        present = {
            " ".join(each.rule.words): each.place for each in await self._present(place) if each.rule is not None
        }
        await self._require_queues(place, wanted - present.keys())
        for words in sorted(present.keys() - wanted):
            await run_setter(place, "ethtool", "-N", device, "delete", str(present[words]))
        for words in sorted(wanted - present.keys()):
            await run_setter(place, "ethtool", "-N", device, *words.split())

    async def _require_queues(self, place: Place, wanted: set[str]) -> None:
        """Refuses a queue that there is not: some drivers take such a rule, and drop its frames."""
        if not wanted:
            return
        limits = await answer_of(place, parse_limits, "ethtool", "-l", device_of(place))
        there = sum(limits.get(kind, {}).get("current") or 0 for kind in ("rx", "combined"))
        beyond = [words for words in sorted(wanted) if there and (FlowRule.of_words(words).queue or 0) >= there]
        if beyond:
            raise CannotSetError(f"there are {there} receive queues, from 0 on, and a rule names another: {beyond[0]}")

    async def _present(self, place: Place) -> tuple[PlacedRule, ...]:
        return await answer_of(place, parse_flow_rules, "ethtool", "-n", device_of(place))


def _criteria(words: str) -> str:
    """The frames that a rule is for, without what becomes of them."""
    return words.rpartition(" action ")[0]


_ONLINE = "/sys/devices/system/cpu/online"
_KNOWN = {"local": "cpus_local", "far": "cpus_far", "spread": "cpus_online"}
Where = Annotated[str, StringConstraints(pattern=r"^(local|far|spread|\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*)$")]


class IrqAffinityOptions(DeviceOptions):
    """``local``: CPUs of the adapter's NUMA node; ``far``: those of the others; ``spread``: all; or a list, as ``2-5``.

    Each queue gets one CPU, in turn; interrupts of several queues of a number the same.
    """

    cpus: Where


class IrqAffinity(DeviceItem):
    """Which CPUs take an adapter's interrupts: ``/proc/irq/N/smp_affinity_list`` (core-api/irq/irq-affinity.rst).

    Interrupts that are of no queue (link changes) stay where they are.
    """

    kind = "irq_affinity"
    Options = IrqAffinityOptions
    options: IrqAffinityOptions
    phase = Phase.STEERING
    alone = "cpus"

    async def read(self, place: Place) -> Values:
        device = device_of(place)
        names = await answer_of(place, parse_interrupts, "cat", "/proc/interrupts")
        base = f"/sys/class/net/{device}/device"
        ours = [
            irq for irq in interrupts_of_device(device, None, await _msi(place, base), names) if irq.queue is not None
        ]
        if not ours:
            raise CannotSetError("it has no interrupts of queues")
        machine = outermost(place.host)
        paths = {f"/proc/irq/{irq.number}/smp_affinity_list": f"{irq.number} queue {irq.queue}" for irq in ours}
        try:
            found = await values_of(machine, paths)
            online = (await text_of(machine, _ONLINE)).strip()
        except UnknownFactError as error:
            raise CannotSetError(str(error)) from error
        local = await _local(place, base)
        far = sorted(set(parse_cpu_list(online)) - set(parse_cpu_list(local))) if local else []
        known: Values = {"cpus_online": online, "cpus_local": local, "cpus_far": ",".join(map(str, far)) or None}
        return {**known, **{paths[path]: value for path, value in found.items() if path in paths}}

    def target_values(self, now: Values) -> Values:
        where = self.options.cpus
        chosen = now[_KNOWN[where]] if where in _KNOWN else where
        if not isinstance(chosen, str) or not chosen:
            raise CannotSetError(f"it has no CPUs that are {where}: the machine has one NUMA node, or does not tell")
        cpus, online = parse_cpu_list(chosen), parse_cpu_list(str(now["cpus_online"]))
        if lacking := [cpu for cpu in cpus if cpu not in online]:
            raise CannotSetError(f"the CPUs {', '.join(map(str, lacking))} are not online")
        queues = sorted({_queue(key) for key in now if " queue " in key})
        cpu_of_queue = dict(zip(queues, assign_in_turn(cpus, len(queues)), strict=True))
        return {key: str(cpu_of_queue[_queue(key)]) for key in now if " queue " in key}

    async def write(self, place: Place, values: Values) -> None:
        machine = outermost(place.host)
        for key, cpus in values.items():
            number = key.partition(" ")[0]
            try:
                await machine.write_file(f"/proc/irq/{number}/smp_affinity_list", str(cpus))
            except HostError as error:
                # EIO: the kernel itself spreads the interrupts of this driver, and lets nobody else.
                raise HostError(f"interrupt {number} cannot be moved to CPU {cpus}: {error.message}") from error

    def is_same(self, key: str, one: object, other: object) -> bool:
        if isinstance(one, str) and isinstance(other, str):
            return set(parse_cpu_list(one)) == set(parse_cpu_list(other))
        return one == other


async def _msi(place: Place, base: str) -> list[int]:
    try:
        return numbers_of(await values_of(place.host, (f"{base}/msi_irqs/*", f"{base}/../msi_irqs/*")))
    except UnknownFactError:
        return []


async def _local(place: Place, base: str) -> str | None:
    """CPUs of its node; None where the machine has one node, for then none is nearer than others."""
    node = await place.host.read_file(f"{base}/numa_node")
    cpus = await place.host.read_file(f"{base}/local_cpulist")
    return cpus.strip() if cpus and cpus.strip() and (node or "-1").strip() != "-1" else None


def _queue(key: str) -> int:
    return int(key.rpartition(" ")[2])


_RUNNING, _PAUSED = "running", "paused"
_TRIES, _STEP_S = 100, 0.02


class Irqbalance(Item):
    """The program that moves interrupts between CPUs as it thinks best, and so undoes every placement of them.

    It is paused (SIGSTOP) and goes on afterwards as the same process, whoever started it and in whatever way. A paused
    one does nothing, which is all that a test needs; one that is stopped and started again has forgotten what it knew.

    A value for each process, by its id and its start: one that was started since is not ours to pause or wake.
    """

    kind = "irqbalance"
    Options = SwitchOptions
    options: SwitchOptions
    scope = "machine"
    phase = Phase.SERVICE
    alone = "on"

    async def read(self, place: Place) -> Values:
        found = await place.host.run(("pgrep", "-x", "irqbalance"), check=False)
        values: Values = {}
        for pid in found.stdout.split():
            stat = await place.host.read_file(f"/proc/{pid}/stat")
            ticks = start_ticks_of_stat(stat) if stat else None
            if stat is not None and ticks is not None:
                values[f"process {pid}, start {ticks}"] = state_of_stat(stat)
        return values

    def target_values(self, now: Values) -> Values:
        if self.options.on and not now:
            raise CannotSetError("irqbalance does not run here; nicbench does not start it")
        return dict.fromkeys(now, _RUNNING if self.options.on else _PAUSED)

    async def write(self, place: Place, values: Values) -> None:
        for key, state in values.items():
            pid = key.split(",")[0].removeprefix("process ")
            await place.host.run(("sh", "-c", 'kill "$1" "$2"', "kill", "-STOP" if state == _PAUSED else "-CONT", pid))
            for _ in range(_TRIES):
                if (await self.read(place)).get(key) in (state, None):
                    break
                await asyncio.sleep(_STEP_S)
            else:
                raise HostError(f"irqbalance ({key}) is not {state}", place=place.host.name)


def state_of_stat(text: str) -> str:
    """Whether a process goes on, of /proc/PID/stat (proc(5)): T is stopped by a signal, t by a debugger."""
    return _PAUSED if text.rpartition(")")[2].split()[0] in ("T", "t") else _RUNNING


_QUEUE = re.compile(r"/queues/([rt]x-(\d+)/\w+)$")
_NONE = "none"


def _check(text: str) -> str:
    if text != _NONE and not parse_cpu_list(text):
        raise ValueError("write CPUs, as 0-3,8, or none")
    return text


Cpus = Annotated[
    str, StringConstraints(pattern=r"^(none|\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*)$"), AfterValidator(_check)
]


class PacketSteeringOptions(DeviceOptions):
    """``receive``: the CPUs that take over received frames, all of them for every queue (RPS).

    ``send``: the CPUs that send, one for each transmit queue in turn (XPS). ``flows``: entries of each receive queue's
    flow table (RFS); the whole table is the sysctl ``net.core.rps_sock_flow_entries``. ``none`` is off.
    """

    receive: Cpus | None = None
    send: Cpus | None = None
    flows: int | None = Field(default=None, ge=0, le=2**24)


class PacketSteering(DeviceItem):
    """Which CPUs work on which queue in software: RPS, RFS and XPS (Documentation/networking/scaling.rst).

    After the channels, whose number is that of the queues.
    """

    kind = "packet_steering"
    Options = PacketSteeringOptions
    options: PacketSteeringOptions
    phase = Phase.STEERING

    async def read(self, place: Place) -> Values:
        base = f"/sys/class/net/{device_of(place)}/queues"
        files = ("rx-*/rps_cpus", "rx-*/rps_flow_cnt", "tx-*/xps_cpus")
        try:
            found = await values_of(place.host, tuple(f"{base}/{file}" for file in files))
        except UnknownFactError as error:
            raise CannotSetError("the kernel steers no packets of it") from error
        return {match[1]: value for path, value in found.items() if (match := _QUEUE.search(path))}

    def target_values(self, now: Values) -> Values:
        asked: Values = {}
        for file, cpus in (("rps_cpus", self.options.receive), ("xps_cpus", self.options.send)):
            keys = sorted((key for key in now if key.endswith(f"/{file}")), key=_number)
            if cpus is None:
                continue
            if not keys:
                raise CannotSetError(f"it has no {file}; with one transmit queue there is nothing to choose")
            chosen = () if cpus == _NONE else parse_cpu_list(cpus)
            each = assign_in_turn(chosen, len(keys)) if chosen else []
            for number, key in enumerate(keys):
                asked[key] = cpu_mask((each[number],) if file == "xps_cpus" and each else chosen)
        if self.options.flows is not None:
            asked |= {key: str(self.options.flows) for key in now if key.endswith("/rps_flow_cnt")}
        return asked

    async def write(self, place: Place, values: Values) -> None:
        for key, value in values.items():
            await place.host.write_file(f"/sys/class/net/{device_of(place)}/queues/{key}", str(value))

    def is_same(self, key: str, one: object, other: object) -> bool:
        return same_value(key, str(one), str(other))


def _number(key: str) -> int:
    return int(key.partition("-")[2].partition("/")[0])
