"""The loss ledger of a trial: counters along the path, before and after, and what remains unexplained."""

from __future__ import annotations

from collections.abc import Mapping

from nicbench.model.trial import LossPlace, Reading


def with_ledger(reading: Reading, before: Mapping[str, int], after: Mapping[str, int]) -> Reading:
    """``reading`` with a row for each counter that rose, and ``unexplained`` = lost - the sum of the rows.

    ``before`` and ``after`` are the DUT's cumulative counters by place. A negative remainder is kept: it says that a
    counter also counted frames that were not ours. Nothing lost gives an empty ledger with 0 unexplained.
    """
    lost = reading.counts.lost
    if lost == 0:
        return reading.model_copy(update={"ledger": (), "unexplained": 0})
    in_dut = [
        LossPlace(place="DUT", counter=place, frames=count - before.get(place, 0))
        for place, count in after.items()
        if count > before.get(place, 0)
    ]
    in_tester = [
        LossPlace(place=f"tester port {port.name}", counter="receive overrun", frames=port.receive_overrun)
        for port in reading.ports
        if port.receive_overrun
    ]
    rows = (*in_dut, *in_tester)
    return reading.model_copy(update={"ledger": rows, "unexplained": lost - sum(row.frames for row in rows)})


def with_overruns(reading: Reading, before: Mapping[int, int], after: Mapping[int, int]) -> Reading:
    """``reading`` with what a DUT in memory saw of the tester's full rings, by port, as overruns."""
    grown = {port: count - before.get(port, 0) for port, count in after.items()}
    ports = tuple(
        port.model_copy(update={"receive_overrun": (port.receive_overrun or 0) + max(0, grown[number])})
        if number in grown
        else port
        for number, port in enumerate(reading.ports)
    )
    return reading.model_copy(update={"ports": ports})
