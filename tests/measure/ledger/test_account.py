"""No frame is in two rows; what contradicts itself is reported."""

from __future__ import annotations

from nicbench.measure.ledger.base import Count, Echo, Stage
from nicbench.measure.ledger.losses import account


def count(key: str, frames: int, **more: object) -> Count:
    values = {"stage": Stage.DUT_RECEIVE, "place": key, **more}
    return Count(key, key, frames, **values)  # type: ignore[arg-type]


def rows(before: list[Count], after: list[Count]) -> dict[str, int]:
    found = account(before, after)
    assert found.faults == ()
    return {row.counter: row.frames for row in found.rows}


def grown(*counts: Count) -> dict[str, int]:
    """Rows where every counter began at 0."""
    return rows([Count(one.key, one.name, 0) for one in counts], list(counts))


def test_a_frame_dropped_at_the_backlog_is_in_one_row_only() -> None:
    device = count("d0 rx_dropped", 100, has_machine_wide=True)
    assert grown(device, count("cpu0", 0, machine_wide=True), count("cpu1", 100, machine_wide=True)) == {"cpu1": 100}


def test_drops_of_other_traffic_of_the_machine_are_not_charged_to_the_dut() -> None:
    device = count("d0 rx_dropped", 10, has_machine_wide=True)
    assert grown(device, count("cpu1", 5000, machine_wide=True)) == {"cpu1": 10}


def test_what_a_device_dropped_for_another_reason_stays_its_own() -> None:
    devices = [count("d0", 30, has_machine_wide=True), count("d1", 12, has_machine_wide=True)]
    cpus = [count("cpu0", 3, machine_wide=True), count("cpu1", 20, machine_wide=True)]
    assert grown(*devices, *cpus) == {"cpu0": 3, "cpu1": 20, "d0": 7, "d1": 12}


def veth(backlog: int, received: int, sent: int, polled: int) -> dict[str, int]:
    return grown(
        count("t0 tx", sent, echo=Echo(of="d0 rx", unless="d0 polled")),
        count("d0 rx", received, has_machine_wide=True),
        count("d0 polled", polled, place=None),
        count("cpu1", backlog, machine_wide=True),
    )


def test_a_veth_that_hands_over_itself_counts_the_full_backlog_too() -> None:
    assert veth(backlog=90, received=90, sent=90, polled=0) == {"cpu1": 90}


def test_a_veth_whose_peer_polls_counts_the_peers_full_queue_alone() -> None:
    assert veth(backlog=90, received=90, sent=40, polled=500) == {"cpu1": 90, "t0 tx": 40}


def test_a_narrow_counter_is_taken_off_the_wider_ones_that_hold_it() -> None:
    socket = count("socket", 8, also_in=("poller",))
    poller = count("poller", 10, also_in=("t1 rx",))
    assert grown(socket, poller, count("t1 rx", 13)) == {"socket": 8, "poller": 2, "t1 rx": 3}


def test_a_part_that_is_more_than_its_whole_is_a_fault_that_names_both() -> None:
    socket, poller = count("socket", 8, also_in=("poller",)), count("poller", 5)
    found = account([count("socket", 0), count("poller", 0)], [socket, poller])
    assert found.faults == ("counted twice: poller rose by 5, and what it holds by more (socket 8)",)
    assert [row.frames for row in found.rows] == [8]


def test_a_driver_of_another_version_holds_its_frames_elsewhere() -> None:
    ring = count("rx_out_of_buffer", 45, within=("rx_missed_errors", "rx_dropped"))
    new = (count("rx_missed_errors", 45), count("rx_dropped", 0))
    old = (count("rx_missed_errors", 0), count("rx_dropped", 50))
    assert grown(ring, *new) == {"rx_out_of_buffer": 45}
    assert grown(ring, *old) == {"rx_out_of_buffer": 45, "rx_dropped": 5}


def test_a_counter_that_ran_backwards_is_a_fault_and_counts_nothing() -> None:
    found = account([count("d0 rx", 10)], [count("d0 rx", 3)])
    assert found.rows == ()
    assert found.faults[0].startswith("d0 rx ran backwards by 7")


def test_a_counter_that_was_not_there_before_counts_nothing() -> None:
    assert rows([], [count("d0 rx", 10)]) == {}


def test_rows_stand_in_the_order_of_the_path() -> None:
    late = count("a", 1, stage=Stage.RECEIVE_RING)
    early = count("z", 1, stage=Stage.TRANSMIT_RING)
    assert list(grown(late, count("m", 1), early)) == ["z", "m", "a"]
