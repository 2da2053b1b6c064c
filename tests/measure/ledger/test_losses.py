"""The loss ledger accounts for lost frames by the counters that rose."""

from __future__ import annotations

from typing import Any

from nicbench.core.reading import Counts
from nicbench.core.trial import Health, PortReading, Reading, StreamReading
from nicbench.measure.ledger.base import Count, Side, Stage, View
from nicbench.measure.ledger.losses import add_ledger
from nicbench.measure.ledger.reader import Counters


def reading(lost: int, unsent: int = 0, **port: Any) -> Reading:
    sent = 1000 - unsent
    values = {"name": "t1", "foreign": 0, "corrupted_unattributed": 0, "receive_overrun": 0, **port}
    return Reading(
        transmit_ns=1_000_000_000,
        counts=Counts(intended=1000, sent=sent, unsent_tester=unsent, received=sent - lost, lost=lost),
        streams=(),
        ports=(PortReading(**values),),
        latency=None,
        health=Health(longest_gap_ns=0, total_gap_ns=0, gap_floor_ns=1, gaps=0, iterations=1, idle_iterations=0),
    )


def counters(**frames: int) -> Counters:
    return Counters(
        tuple(Count(name, name, value, stage=Stage.DUT_RECEIVE, place="somewhere") for name, value in frames.items())
    )


def test_frames_are_found_where_a_counter_of_the_dut_rose_and_the_rest_is_unexplained() -> None:
    judged = add_ledger(reading(lost=100), {"policer": 5, "other": 7}, {"policer": 95, "other": 7})
    assert [(row.place, row.counter, row.frames) for row in judged.ledger] == [("DUT", "policer", 90)]
    assert judged.unexplained == 10


def test_frames_beside_the_load_that_were_dropped_are_no_fault_and_more_than_these_are() -> None:
    report = StreamReading(name="1->0 0 join", counts=Counts(intended=20, sent=20, received=0, lost=20))
    for dropped, is_fault in ((110, False), (121, True)):
        lost = reading(lost=100).replace(beside=(report,))
        judged = add_ledger(lost, {"queue": 0}, {"queue": dropped})
        assert bool(judged.ledger_faults) is is_fault
        assert [row.frames for row in judged.ledger_beside] == ([] if is_fault else [10])


def test_counters_of_the_hosts_are_rows_too() -> None:
    judged = add_ledger(reading(lost=7), {}, {}, (counters(d0=3), counters(d0=10)))
    assert [(row.counter, row.frames) for row in judged.ledger] == [("d0", 7)]
    assert (judged.unexplained, judged.ledger_faults) == (0, ())


def test_an_overrun_of_the_testers_own_port_is_a_row_of_the_ledger() -> None:
    judged = add_ledger(reading(lost=40, receive_overrun=40), {}, {})
    assert [row.place for row in judged.ledger] == ["tester, receive ring of t1"]
    assert judged.unexplained == 0


def test_a_socket_that_is_full_is_counted_by_the_interface_again() -> None:
    view = View(Side.TESTER, ("veth1",), kinds={"veth1": "veth"}, ports={"t1": "veth1"})
    before, after = (
        Counters((Count("tester: veth1 rx_drops", "drops", frames, Stage.TESTER_RECEIVE, "poller"),))
        for frames in (0, 41)
    )
    full = reading(lost=41, receive_overrun=40, counters={"xdp_rx_dropped": 40})
    judged = add_ledger(full, {}, {}, (before, after), lambda _: view)
    assert [(row.place, row.frames) for row in judged.ledger] == [("poller", 1), ("tester, receive ring of t1", 40)]


def test_an_overrun_of_a_port_that_only_sends_stands_beside() -> None:
    judged = add_ledger(reading(lost=5, receive_overrun=40), {}, {}, receivers=(1,))
    assert (judged.ledger, judged.unexplained, judged.ledger_faults) == ((), 5, ())
    assert [(row.place, row.frames) for row in judged.ledger_beside] == [("tester, receive ring of t1", 40)]


def test_a_trial_without_loss_has_an_empty_ledger_whatever_the_counters_did() -> None:
    judged = add_ledger(reading(lost=0), {"d0 rx": 0}, {"d0 rx": 3})
    assert judged.ledger == ()
    assert judged.unexplained == 0


def test_what_was_not_sent_stands_at_the_transmit_ring_and_explains_no_loss() -> None:
    judged = add_ledger(reading(lost=5, unsent=30, counters={"xdp_tx_invalid_descs": 10}), {}, {})
    assert [(row.place, row.frames, row.unsent) for row in judged.ledger] == [
        ("tester, transmit ring of t1", 10, True),
        ("tester, transmit ring", 20, True),
    ]
    assert judged.unexplained == 5


def test_a_counter_that_counted_more_than_was_lost_is_a_fault_and_the_counts_stay() -> None:
    before = reading(lost=10)
    judged = add_ledger(before, {}, {}, (counters(d0=0), counters(d0=12)))
    assert judged.unexplained == -2
    assert judged.ledger_faults[0].startswith("2 more frames were counted as dropped than are missing (d0 12)")
    assert judged.counts == before.counts


def test_of_a_frame_that_came_in_copies_one_may_be_dropped_and_that_is_no_fault() -> None:
    copied = reading(lost=10)
    copied = copied.replace(counts=copied.counts.replace(duplicated=30))
    judged = add_ledger(copied, {}, {}, (counters(d0=0), counters(d0=12)))
    assert judged.unexplained == -2
    assert judged.ledger_faults == ()
    assert [(row.counter, row.frames) for row in judged.ledger_beside] == [("d0 12", 2)]


def test_counters_that_could_not_be_read_are_a_fault() -> None:
    judged = add_ledger(reading(lost=10), {}, {}, (Counters(faults=("no counters of dut: gone",)), Counters()))
    assert judged.ledger_faults == ("no counters of dut: gone",)
    assert judged.unexplained == 10
