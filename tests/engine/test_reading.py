"""The engine's reading as the frozen types."""

from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from nicbench.core.errors import EngineError
from nicbench.core.trial import Looks, Reading
from nicbench.engine.reading import parse_reading, require_consistent
from nicbench.stats.latency import histogram_of

HEALTH = {
    "longest_gap_ns": 5,
    "total_gap_ns": 5,
    "gap_floor_ns": 100_000,
    "gaps": 0,
    "iterations": 9,
    "idle_iterations": 1,
    "voluntary_switches": 0,
    "involuntary_switches": 2,
    "clock_step_ns": -3,
    "core_clock_hz": [2.6e9, 2.5e9],
    "cpus": [],
}


def stream(name: str, **counts: int) -> dict[str, Any]:
    zero = dict.fromkeys(
        (
            "intended",
            "sent",
            "unsent_tester",
            "unsent_backpressure",
            "received",
            "lost",
            "late",
            "duplicated",
            "reordered",
            "corrupted",
        ),
        0,
    )
    return {"name": name, "maximum_burst": 1, "latency": None, **zero, **counts}


def port(name: str, **values: Any) -> dict[str, Any]:
    return {
        "name": name,
        "foreign": 0,
        "misdirected": 0,
        "corrupted_unattributed": 0,
        "receive_overrun": 0,
        "counters": {},
        "link_changed": False,
        **values,
    }


def drained(streams: list[dict[str, Any]], ports: list[dict[str, Any]]) -> dict[str, Any]:
    return {"trial": 1, "transmit_ns": 10, "streams": streams, "ports": ports, "health": HEALTH}


def test_rates_count_over_the_sending_and_not_over_the_wait_for_the_last_frames() -> None:
    raw = {**drained([stream("0->1")], [port("t0")]), "transmit_ns": 108, "sending_ns": 100, "sent_while_sending": 7}
    reading = parse_reading(raw, [0])
    assert (reading.transmit_ns, reading.offering_ns, reading.sent_while_sending) == (108, 100, 7)
    before_it_was_measured = parse_reading(drained([stream("0->1")], [port("t0")]), [0])
    assert (before_it_was_measured.offering_ns, before_it_was_measured.sent_while_sending) == (10, None)


def test_streams_and_ports_are_summed_once() -> None:
    reading = parse_reading(
        drained(
            [
                stream("0->1", intended=10, sent=10, received=9, lost=1),
                stream("1->0", intended=10, sent=8, unsent_tester=2, received=8),
            ],
            [port("t0", foreign=3, misdirected=5), port("t1", corrupted_unattributed=2, link_changed=True)],
        ),
        [0, 0],
    )
    assert (reading.counts.intended, reading.counts.sent, reading.counts.lost) == (20, 18, 1)
    assert (reading.counts.foreign, reading.counts.corrupted_unattributed) == (3, 2)
    assert (reading.counts.misdirected, [each.misdirected for each in reading.ports]) == (5, [5, 0])
    assert reading.ports[1].link_changed
    assert reading.latency is None
    assert reading.health.core_clock_hz == (2.6e9, 2.5e9)


def test_a_frame_that_came_after_the_drain_is_late_and_not_lost() -> None:
    reading = parse_reading(
        drained([stream("0->1", intended=10, sent=10, received=6, lost=4)], [port("t0"), port("t1")]), [3]
    )
    assert (reading.counts.lost, reading.counts.late) == (1, 3)


@pytest.mark.parametrize(("late", "lost", "unattributed"), [(1, 0, 3), (2, 0, 2), (4, 0, 0)])
def test_a_late_frame_was_not_the_one_with_a_broken_signature(late: int, lost: int, unattributed: int) -> None:
    """Every frame has one fate: what came late in the end is not charged as altered too."""
    raw = stream("0->1", intended=10, sent=10, received=6, lost=1) | {"unattributed": 3}
    counts = parse_reading(drained([raw], [port("t0"), port("t1", corrupted_unattributed=3)]), [late]).counts
    assert (counts.lost, counts.unattributed, counts.corrupted_unattributed) == (lost, unattributed, 3)
    assert counts.received + (counts.late or 0) + counts.lost + (counts.unattributed or 0) == counts.sent


def test_fields_that_a_newer_engine_adds_are_ignored() -> None:
    raw = drained([{**stream("0->1"), "new": 1}], [port("t0", newer=2)])
    raw["health"] = {**HEALTH, "newest": 3}
    assert parse_reading(raw, [0]).counts.intended == 0


def test_how_evenly_a_stream_was_sent_and_how_each_worker_fared_are_kept() -> None:
    gaps = {"count": 9, "minimum_ns": 0, "mean_ns": 5.5, "maximum_ns": 70, "histogram": "x", "newer": 1}
    worker = {
        "longest_gap_ns": 7,
        "total_gap_ns": 0,
        "gaps": 0,
        "iterations": 5,
        "idle_iterations": 1,
        "sent": 10,
        "core_clock_hz": [3e9, 3e9],
    }
    raw = drained([{**stream("0->1"), "transmit_gaps": gaps}, stream("1->0")], [port("t0")])
    raw["health"] = {**HEALTH, "workers": [worker, {**worker, "sent": 0}]}
    reading = parse_reading(raw, [0, 0])
    first, second = reading.streams
    assert first.transmit_gaps is not None
    assert (first.transmit_gaps.count, first.transmit_gaps.maximum_ns) == (9, 70)
    assert second.transmit_gaps is None
    assert [worker.sent for worker in reading.health.workers] == [10, 0]


def test_a_histogram_that_holds_other_frames_than_its_latency_counts_is_refused() -> None:
    latency = {
        **dict.fromkeys(("count", "minimum_ns", "mean_ns", "maximum_ns"), 1),
        "source": "software",
        "histogram": histogram_of([(1, 21)]),
    }
    streams = [{**stream("0->1", intended=10, sent=10, received=10), "latency": latency}]
    with pytest.raises(EngineError, match="1 latencies are counted, and their histogram has 21"):
        parse_reading(drained(streams, [port("t0"), port("t1")]), [0])


def test_stamps_of_the_ports_and_latencies_that_came_out_negative_are_kept() -> None:
    stamps = {
        **dict.fromkeys(("readings", "outliers", "steps", "unstamped", "implausible", "early", "early_maximum_ns"), 1),
        "source": "card",
        "clock_hz": 1e9,
        "resolution_ns": 1.0,
        "uncertainty_ns": 40.0,
        "stamped": 9,
        "transmit_delay": {"asked": 3, "count": 0, "minimum_ns": None, "mean_ns": None, "maximum_ns": None},
        "of_a_later_version": 5,
    }
    latency = {
        **dict.fromkeys(("count", "minimum_ns", "mean_ns", "maximum_ns"), 1),
        "source": "scheduled",
        "received_by": "card",
        "negative": 2,
        "negative_maximum_ns": 30,
        "histogram": histogram_of([(1, 1)]),
    }
    streams = [{**stream("0->1", intended=10, sent=10, received=10), "latency": latency}]
    reading = parse_reading(drained(streams, [port("t0"), port("t1", timestamps=stamps)]), [0])
    assert reading.ports[0].timestamps is None
    clock = reading.ports[1].timestamps
    assert clock is not None
    assert (clock.source, clock.stamped, clock.uncertainty_ns) == ("card", 9, 40.0)
    assert clock.transmit_delay is not None
    assert clock.transmit_delay.minimum_ns is None
    assert reading.latency is not None
    assert (reading.latency.source, reading.latency.received_by) == ("scheduled", "card")
    assert (reading.latency.negative, reading.latency.negative_maximum_ns) == (2, 30)


def test_looks_and_frames_of_a_shared_core_are_read_and_an_older_engine_has_none() -> None:
    times = ("user", "nice", "system", "softirq", "irq", "steal", "idle")
    cpu = {"cpu": 1, **{f"{name}_ns": 1 for name in times}}
    looks = {"begins_ns": -5, "slot_ns": 2_000_000, "shares": "eA=="}
    histogram = HdrHistogram(1, 100_000_000_000, 3)
    histogram.record_value(7)
    latency: dict[str, Any] = {"source": "software", "count": 1, "minimum_ns": 7, "mean_ns": 7.0, "maximum_ns": 7}
    latency["histogram"] = histogram.encode().decode()

    def read(of_cpu: dict[str, Any], of_latency: dict[str, Any]) -> Reading:
        streams = [{**stream("0->1"), "latency": {**latency, **of_latency}}]
        health = {**HEALTH, "cpus": [{**cpu, **of_cpu}]}
        return parse_reading({**drained(streams, [port("t0")]), "health": health}, [0])

    shared = {"count": 1, "histogram": latency["histogram"], "from_the_future": 1}
    new = read({"looks": {**looks, "from_the_future": 1}}, {"shared_core": shared})
    assert new.health.cpus[0].looks == Looks(**looks)
    assert new.latency is not None
    assert new.latency.shared_core is not None
    assert new.latency.shared_core.count == 1
    old = read({}, {})
    assert old.health.cpus[0].looks is None
    assert old.latency is not None
    assert old.latency.shared_core is None


@pytest.mark.parametrize(
    ("changed", "late"),
    [
        ({"streams": None}, [0]),
        ({"streams": [{}]}, [0]),
        ({"streams": [stream("0->1", received=-5)]}, [0]),
        ({"streams": [stream("0->1", received="many")]}, [0]),
        ({"streams": [stream("0->1")]}, []),
        ({"streams": [stream("0->1")]}, ["late"]),
        ({"ports": [port("t0", foreign="none")]}, [0]),
        ({"streams": [stream("0->1", intended=9, sent=9, received=10)]}, [0]),
        ({"streams": [stream("0->1", intended=9, sent=9, received=8)]}, [0]),
        ({"streams": [stream("0->1", intended=9, sent=9, received=9, reordered=10)]}, [0]),
        ({"ports": [port("t0", timestamps=[1])]}, [0]),
        ({"health": 5}, [0]),
        ({"capture": {"frames": 1}}, [0]),
    ],
)
def test_counts_that_make_no_reading_are_an_error_of_the_engine(changed: dict[str, Any], late: list[Any]) -> None:
    with pytest.raises(EngineError, match="counts are inconsistent"):
        require_consistent(parse_reading({**drained([stream("0->1")], [port("t0")]), **changed}, late))
