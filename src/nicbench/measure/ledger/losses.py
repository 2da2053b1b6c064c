"""The loss ledger of a trial: counters along the path, before and after, and what remains unexplained. Pure.

Rows stand in the order of the path. Frames that the tester never sent are in it too, at its transmit ring, but they are
``unsent`` and not ``lost``: they do not count in the sum. ``unexplained`` = lost - the other rows; below zero some
counter counted frames that were not lost, or one frame twice: that is a fault of the ledger, and is reported as one.
Where the path copies frames, a copy that was dropped is counted and nothing is missing; frames that are not load are
dropped as well: both are listed apart. The trial's counts stay.

Counters overlap: a frame that finds a CPU's backlog full is in ``softnet_stat``, in the receiving device's
``rx_dropped`` and, on a veth, in its peer's ``tx_dropped`` as well. Each is given to the narrowest counter, and taken
off the wider ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from nicbench.core.frozen import frozen
from nicbench.core.trial import LossBeside, LossPlace, PortReading, Reading
from nicbench.measure.ledger.base import Count, Stage, View
from nicbench.measure.ledger.reader import Counters
from nicbench.measure.ledger.sources.drivers import EXCESS
from nicbench.measure.ledger.sources.kernel import REPLACED


@frozen
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
        faults.append(_explain_counted_twice(key, counts, grown))
        left[key] = 0
    _take_off_echoes(counts, grown, left)
    _give_to_machine_wide(counts, left)
    shown = sorted(
        (count for count in counts.values() if count.place is not None and left[count.key]),
        key=lambda count: (count.stage or Stage.DUT, count.key),
    )
    return Account(
        rows=tuple(row_of(count, left[count.key]) for count in shown if count.why_not_lost is None),
        beside=tuple(
            LossBeside(place=count.place or "", counter=count.name, frames=left[count.key], why=count.why_not_lost)
            for count in shown
            if count.why_not_lost is not None
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
        by_tester=count.by_tester and frames > 0,
    )


def _explain_counted_twice(key: str, counts: Mapping[str, Count], grown: Mapping[str, int]) -> str:
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


_REFUSED = "xdp_tx_invalid_descs"
_SOCKET = "xdp_rx_dropped"
_TRANSMIT_ERRORS = "oerrors"
_LEFT_TO_KERNEL = "the DUT left these frames to its kernel, which forwarded them, or dropped and counted them itself"


def add_ledger(
    reading: Reading,
    before: Mapping[str, int],
    after: Mapping[str, int],
    counters: tuple[Counters, Counters] = (Counters(), Counters()),
    view_of: Callable[[str], View | None] = lambda _: None,
    receivers: Collection[int] | None = None,
) -> Reading:
    """``reading`` with its ledger. ``receivers`` are the ports, by number, at which frames were to arrive; None: all.
    ``view_of`` gives what is known of the host of a port, by the port's name.

    ``before`` and ``after`` are the DUT's own cumulative counters by name, ``counters`` those of the hosts. Nothing
    lost gives no row but what was not sent, and 0 unexplained. Where frames were sent that nobody counted, it is not
    known how many are lost, nor how many unexplained.
    """
    reading = reading.replace(replaced_connections=_replaced_connections(*counters))
    unsent = _unsent_places(reading)
    lost = reading.counts.lost
    if lost == 0 and reading.uncounted is None:
        return reading.replace(ledger=unsent, unexplained=0)
    own_before, own_after = _dut_counters(before), _dut_counters(after)
    ports = [
        count
        for number, port in enumerate(reading.ports)
        for count in _port_counters(port, view_of(port.name), receives=receivers is None or number in receivers)
    ]
    zeros = [Count(key=count.key, name=count.name, frames=0) for count in ports]
    found = account((*own_before, *zeros, *counters[0].counts), (*own_after, *ports, *counters[1].counts))
    unexplained = lost - sum(row.frames for row in found.rows if not row.unsent)
    if reading.uncounted is not None:  # counters counted those frames too, and how many of them are lost is not known
        return reading.replace(ledger=(*unsent, *found.rows), ledger_beside=found.beside)
    faults = (*dict.fromkeys((*counters[0].faults, *counters[1].faults)), *found.faults)
    beside = found.beside
    if unexplained < 0 and reading.counts.duplicated:
        beside = (*beside, _note_surplus(-unexplained, found, _COPIES))
    elif 0 < -unexplained <= len(reading.ports) * sum(stream.counts.sent for stream in reading.beside):
        beside = (*beside, _note_surplus(-unexplained, found, _BESIDE))
    elif unexplained < 0:
        faults = (*faults, _too_many(-unexplained, found))
    return reading.replace(
        ledger=(*unsent, *found.rows),
        ledger_beside=beside,
        ledger_faults=faults,
        unexplained=unexplained,
    )


def add_left_to_kernel(reading: Reading, before: Mapping[str, int], after: Mapping[str, int]) -> Reading:
    """Returns ``reading`` with what a DUT left to its host's kernel, by its own counters, apart from the losses."""
    if not reading.counts.lost:
        return reading
    grown = {name: frames - before.get(name, 0) for name, frames in after.items()}
    rows = tuple(
        LossBeside(place="DUT", counter=name, frames=frames, why=_LEFT_TO_KERNEL)
        for name, frames in grown.items()
        if frames > 0
    )
    return reading.replace(ledger_beside=(*reading.ledger_beside, *rows))


def add_overruns(reading: Reading, before: Mapping[int, int], after: Mapping[int, int]) -> Reading:
    """``reading`` with what a DUT in memory saw of the tester's full rings, by port, as overruns."""
    grown = {port: count - before.get(port, 0) for port, count in after.items()}
    ports = tuple(
        port.replace(receive_overrun=(port.receive_overrun or 0) + max(0, grown[number])) if number in grown else port
        for number, port in enumerate(reading.ports)
    )
    return reading.replace(ports=ports)


def _replaced_connections(before: Counters, after: Counters) -> int | None:
    known = [next((count.frames for count in at.counts if count.name == REPLACED), None) for at in (before, after)]
    return None if known[0] is None or known[1] is None else max(0, known[1] - known[0])


def _unsent_places(reading: Reading) -> tuple[LossPlace, ...]:
    """What never left, by cause: the kernel refused it, the tester had no time or room, a lossless port pushed back."""
    counts = reading.counts
    refused = {port.name: port.counters.get(_REFUSED, 0) for port in reading.ports}
    rest = max(0, counts.unsent_tester - sum(refused.values()))
    rows = [
        *((f"tester, transmit ring of {port}", f"{port} {_REFUSED}", frames) for port, frames in refused.items()),
        ("tester, transmit ring", "unsent, by the tester", rest),
        ("DUT, its full ring (back-pressure)", "unsent, by back-pressure", counts.unsent_backpressure),
    ]
    return tuple(
        LossPlace(place=place, counter=counter, frames=frames, stage=Stage.TRANSMIT_RING, unsent=True)
        for place, counter, frames in rows
        if frames
    )


def _dut_counters(counters: Mapping[str, int]) -> list[Count]:
    """The DUT's own counters: of a policer, a bridge in user space, a generator of faults."""
    return [
        Count(key=f"DUT's own: {name}", name=name, frames=frames, stage=Stage.DUT, place="DUT")
        for name, frames in counters.items()
    ]


def _port_counters(port: PortReading, tester: View | None, *, receives: bool) -> list[Count]:
    """What the tester's port says of itself, over the trial."""
    counts = []
    if port.receive_overrun:
        device = tester.ports.get(port.name, "") if tester is not None and _SOCKET in port.counters else ""
        # The poller of a veth counts each frame that finds the socket full once more.
        is_veth = tester is not None and tester.kinds.get(device) == "veth"
        also_in = (tester.key(device, EXCESS),) if tester is not None and is_veth else ()
        counts.append(
            Count(
                key=f"{port.name} overrun",
                name=f"{port.name} receive overrun",
                frames=port.receive_overrun,
                stage=Stage.RECEIVE_RING,
                place=f"tester, receive ring of {port.name}",
                also_in=also_in,
                # A capture of libpcap's sees, and drops, what its own port sends.
                why_not_lost=None if receives else "no frame of the trial was to arrive at this port",
            )
        )
    # AF_XDP's driver counts under this name what found no room and was tried again.
    if port.counters.get(_TRANSMIT_ERRORS) and _SOCKET not in port.counters:
        counts.append(
            Count(
                key=f"{port.name} {_TRANSMIT_ERRORS}",
                name=f"{port.name} {_TRANSMIT_ERRORS}",
                frames=port.counters[_TRANSMIT_ERRORS],
                stage=Stage.TRANSMIT_RING,
                place=f"tester, transmit ring of {port.name}",
                by_tester=True,
            )
        )
    return counts


_COPIES = "frames came in copies on this path: of those that were dropped, another copy arrived, or was dropped too"
# A switch forwards a membership report to several ports, and sends queries of its own after a leave.
_BESIDE = "frames that are not part of the load and in no count were dropped too, or frames that the DUT itself sent"


def _note_surplus(frames: int, found: Account, why: str) -> LossBeside:
    """Nobody can say which place dropped them, where there are several."""
    return LossBeside(
        place=", ".join(dict.fromkeys(row.place for row in found.rows)),
        counter=_list_counters(found),
        frames=frames,
        why=why,
    )


def _too_many(frames: int, found: Account) -> str:
    return (
        f"{frames} more frames were counted as dropped than are missing ({_list_counters(found)}): "
        "a counter also counts frames of others, or one frame in two places; where these were lost cannot be relied on"
    )


def _list_counters(found: Account) -> str:
    return ", ".join(f"{row.counter} {row.frames}" for row in found.rows)
