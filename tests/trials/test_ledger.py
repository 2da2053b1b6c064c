"""The loss ledger accounts for lost frames by the counters that rose."""

from nicbench.model.counts import Counts
from nicbench.model.trial import Health, PortReading, Reading
from nicbench.trials.ledger import with_ledger


def reading(lost: int, overrun: int = 0) -> Reading:
    return Reading(
        transmit_ns=1_000_000_000,
        counts=Counts(intended=1000, sent=1000, received=1000 - lost, lost=lost),
        streams=(),
        ports=(PortReading(name="t1", foreign=0, corrupted_unattributed=0, receive_overrun=overrun),),
        latency=None,
        health=Health(longest_gap_ns=0, total_gap_ns=0, gap_floor_ns=1, gaps=0, iterations=1, idle_iterations=0),
    )


def test_frames_are_found_where_a_counter_of_the_dut_rose_and_the_rest_is_unexplained() -> None:
    judged = with_ledger(reading(lost=100), {"softnet cpu1": 5, "d0 rx": 7}, {"softnet cpu1": 95, "d0 rx": 7})
    assert [(row.place, row.counter, row.frames) for row in judged.ledger] == [("DUT", "softnet cpu1", 90)]
    assert judged.unexplained == 10


def test_an_overrun_of_the_testers_own_port_is_a_row_of_the_ledger() -> None:
    judged = with_ledger(reading(lost=40, overrun=40), {}, {})
    assert [row.place for row in judged.ledger] == ["tester port t1"]
    assert judged.unexplained == 0


def test_a_trial_without_loss_has_an_empty_ledger_whatever_the_counters_did() -> None:
    judged = with_ledger(reading(lost=0), {"d0 rx": 0}, {"d0 rx": 3})
    assert judged.ledger == ()
    assert judged.unexplained == 0


def test_a_counter_that_counted_more_than_was_lost_shows_as_a_negative_remainder() -> None:
    assert with_ledger(reading(lost=10), {}, {"d0 rx": 12}).unexplained == -2
