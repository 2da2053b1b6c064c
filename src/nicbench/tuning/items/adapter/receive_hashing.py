"""How an adapter spreads flows over its receive queues (RSS): ``ethtool -X`` and ``-N rx-flow-hash`` (ethtool(8))."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from nicbench.core.plan import Values
from nicbench.system.adapters.ethtool_queues import parse_hash_fields, parse_receive_hashing
from nicbench.tuning.items._adapter import answer_of, device_of, run_setter
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

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


class ReceiveHashing(Item):
    """Only a table that ethtool can make again is replaced: in turn over queues, or runs of rising queues."""

    kind = "receive_hashing"
    Options = ReceiveHashingOptions
    options: ReceiveHashingOptions
    scope = "device"
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
        """The driver's own table by its name: one that somebody chose forbids fewer channels from then on."""
        found = await answer_of(place, parse_receive_hashing, "ethtool", "-x", device_of(place))
        if found.queues and table == tuple(entry % found.queues for entry in range(len(table))):
            return ("default",)
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
