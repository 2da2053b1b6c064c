"""From counters before and after a trial to rows: what is in each place alone, in the order of the path. Pure.

Counters overlap: a frame that finds a CPU's backlog full is in ``softnet_stat``, in the receiving device's
``rx_dropped`` and, on a veth, in its peer's ``tx_dropped`` as well. Each is given to the narrowest counter, and taken
off the wider ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nicbench.core.trial import LossBeside, LossPlace
from nicbench.measure.ledger.base import Count, Stage


@dataclass(frozen=True, slots=True)
class Account:
    """Rows from sender to receiver, counters beside them, and what is wrong with the counters themselves."""

    rows: tuple[LossPlace, ...] = ()
    beside: tuple[LossBeside, ...] = ()
    faults: tuple[str, ...] = ()


def account(before: Iterable[Count], after: Iterable[Count]) -> Account:
    """The ledger of what happened in between. A counter that ran backwards or counted too little is a fault."""
    known = {count.key: count.frames for count in before}
    counts = {count.key: count for count in after if count.key in known}
    grown = {key: count.frames - known[key] for key, count in counts.items()}
    faults = [
        f"{counts[key].name} ran backwards by {-frames}: it was reset, or its device was made anew, during the trial"
        for key, frames in grown.items()
        if frames < 0
    ]
    grown = {key: max(0, frames) for key, frames in grown.items()}
    left = dict(grown)
    for key, count in counts.items():
        for wider in count.also_in:
            if wider in left:
                left[wider] -= grown[key]
    _take_off_within(counts, grown, left)
    for key in [key for key, frames in left.items() if frames < 0]:
        faults.append(_counted_twice(key, counts, grown))
        left[key] = 0
    _take_off_echoes(counts, grown, left)
    _give_to_machine_wide(counts, left)
    shown = sorted(
        (count for count in counts.values() if count.place is not None and left[count.key]),
        key=lambda count: (count.stage or Stage.DUT, count.key),
    )
    return Account(
        rows=tuple(row_of(count, left[count.key]) for count in shown if count.beside is None),
        beside=tuple(
            LossBeside(place=count.place or "", counter=count.name, frames=left[count.key], why=count.beside)
            for count in shown
            if count.beside is not None
        ),
        faults=tuple(faults),
    )


def row_of(count: Count, frames: int) -> LossPlace:
    """The row of a counter that rose by ``frames``."""
    return LossPlace(
        place=count.place or "",
        counter=count.name,
        frames=frames,
        stage=int(count.stage or Stage.DUT),
        unsent=count.unsent,
    )


def _counted_twice(key: str, counts: Mapping[str, Count], grown: Mapping[str, int]) -> str:
    """Narrower counters that say more than the wider one that holds them."""
    parts = [count for count in counts.values() if key in count.also_in and grown[count.key]]
    said = ", ".join(f"{count.name} {grown[count.key]}" for count in parts)
    return f"counted twice: {counts[key].name} rose by {grown[key]}, and what it holds by more ({said})"


def _take_off_within(counts: Mapping[str, Count], grown: Mapping[str, int], left: dict[str, int]) -> None:
    for key, count in counts.items():
        wanted = grown[key]
        for wider in count.within:
            taken = max(0, min(wanted, left.get(wider, 0)))
            wanted -= taken
            if taken:
                left[wider] -= taken


def _take_off_echoes(counts: Mapping[str, Count], grown: Mapping[str, int], left: dict[str, int]) -> None:
    """Before the backlog is given its part: the echo holds that too."""
    for key, count in counts.items():
        echo = count.echo
        if echo is not None and echo.of in left and not grown.get(echo.unless):
            left[key] -= min(left[key], left[echo.of])


def _give_to_machine_wide(counts: Mapping[str, Count], left: dict[str, int]) -> None:
    """A CPU's counter names the cause, a device's whose frames they were: as much as both say goes to the CPU."""
    causes = [key for key, count in counts.items() if count.machine_wide]
    holders = [key for key, count in counts.items() if count.has_machine_wide]
    for cause in causes:
        wanted, left[cause] = left[cause], 0
        for holder in holders:
            taken = min(wanted, left[holder])
            wanted -= taken
            left[holder] -= taken
            left[cause] += taken
