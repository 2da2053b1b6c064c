"""What TRex's field engine makes of the variables of a stream, as its server runs them (trex_stl_stream_vm.h)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any


@dataclass
class _Variable:
    name: str
    first: int
    last: int
    value: int
    step: int
    next_name: str | None

    def run(self) -> bool:
        """Counts on; whether it began anew, so that the next variable counts on as well."""
        is_over = self.last - self.value < self.step
        self.value = self.first + (self.value - self.first + self.step) % (self.last - self.first + 1)
        return is_over


def _variables(stream: Any, core: int, cores: int) -> list[_Variable]:
    """Those of one core: it begins at its number and steps by the number of cores, where cores share a variable."""
    made = []
    for one in stream.packet.vm.commands:
        if not hasattr(one, "count"):
            continue
        phase, step = (core, cores) if one.split_to_cores else (0, 1)
        step %= one.count
        before = one.first + (phase - step) % one.count  # it counts on before the first frame
        made.append(_Variable(one.name, one.first, one.last, before, step, one.next_var))
    return made


def _frames_of_core(stream: Any, core: int, cores: int) -> Iterator[tuple[int, int]]:
    variables = _variables(stream, core, cores)
    places = {
        one.name: one.offset for one in stream.packet.vm.commands if hasattr(one, "name") and hasattr(one, "offset")
    }
    ends = (26, 30)  # of the source and the destination address
    fixed = {at: int.from_bytes(stream.packet.packet[at : at + 4]) for at in ends}
    while True:
        for one in variables:
            if not one.run() and one.next_name is not None:
                break  # the variables that it leads to wait until it begins anew
        values = fixed | {places[one.name]: one.value for one in variables}
        yield values[ends[0]], values[ends[1]]


def addresses_of(stream: Any, frames: int, cores: int = 1) -> list[tuple[int, int]]:
    """Source and destination of each of the frames of ``cores`` cores, which send equally many."""
    each = [islice(_frames_of_core(stream, core, cores), frames // cores) for core in range(cores)]
    return list(chain.from_iterable(each))
