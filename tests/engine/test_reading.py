"""The engine's reading as the frozen types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from tests.engine.test_examples import EXAMPLES, Played, known

from nicbench.core.errors import EngineError
from nicbench.core.trial import Looks, Reading
from nicbench.engine.client import EngineClient
from nicbench.engine.generator import Action, FlowState, Generator, parse_tally
from nicbench.engine.reading import parse_reading, parse_received, parse_recorded, require_consistent
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
    assert (clock.source, clock.stamped, clock.uncertainty_ns) == ("card", 9, 40.0)
    assert clock.transmit_delay.minimum_ns is None
    assert (reading.latency.source, reading.latency.received_by) == ("scheduled", "card")
    assert (reading.latency.negative, reading.latency.negative_maximum_ns) == (2, 30)


def test_looks_and_frames_of_a_shared_core_are_read_and_an_older_engine_has_none() -> None:
    times = ("user", "nice", "system", "softirq", "irq", "steal", "idle")
    cpu = {"cpu": 1, **{f"{name}_ns": 1 for name in times}}
    looks = {"begins_ns": -5, "slot_ns": 2_000_000, "shares": "eA=="}
    histogram = HdrHistogram(1, 100_000_000_000, 3)
    histogram.record_value(7)
    latency = {"source": "software", "count": 1, "minimum_ns": 7, "mean_ns": 7.0, "maximum_ns": 7}
    latency["histogram"] = histogram.encode().decode()

    def read(of_cpu: dict[str, Any], of_latency: dict[str, Any]) -> Reading:
        streams = [{**stream("0->1"), "latency": {**latency, **of_latency}}]
        health = {**HEALTH, "cpus": [{**cpu, **of_cpu}]}
        return parse_reading({**drained(streams, [port("t0")]), "health": health}, [0])

    shared = {"count": 1, "histogram": latency["histogram"], "from_the_future": 1}
    new = read({"looks": {**looks, "from_the_future": 1}}, {"shared_core": shared})
    assert new.health.cpus[0].looks == Looks(**looks)
    assert new.latency.shared_core.count == 1
    old = read({}, {})
    assert old.health.cpus[0].looks is None
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


# What the receiver knows beyond counts, as the frozen types; engines that tell less, or more, are understood.


def test_what_an_older_engine_leaves_out_is_unknown() -> None:
    fields = parse_received({"name": "0->1"})
    assert fields == {
        "checked_bytes": None,
        "reordering": None,
        "variation": None,
        "intervals": None,
        "arrivals": None,
        "last_jump_ns": None,
        "groups": (),
        "flows": None,
        "traffic_classes": None,
    }
    assert parse_recorded({}) == {"capture": None, "flow_report": None}


def test_what_a_newer_engine_tells_beyond_is_ignored() -> None:
    raw = {"pairs": 3, "mean_ns": 1.5, "maximum_ns": 9, "colour": "green"}
    variation = parse_received({"variation": raw})["variation"]
    assert (variation.pairs, variation.maximum_ns) == (3, 9)


def test_files_are_named_by_their_place_in_the_run_folder() -> None:
    raw = {"path": "/somewhere/run/raw/t0007.pcapng", "frames": 12, "jumps": 1, "truncated": False, "error": None}
    assert parse_recorded({"capture": raw})["capture"].name == "raw/t0007.pcapng"


def test_flows_keep_their_worst() -> None:
    raw = {
        "flows": 256,
        "silent": 0,
        "with_loss": 2,
        "with_reordering": 1,
        "with_duplicates": 0,
        "with_corruption": 0,
        "most_lost": [17, 40],
        "slowest": [3, 1234.5],
    }
    flows = parse_received({"flows": raw})["flows"]
    assert (flows.most_lost, flows.slowest) == ((17, 40), (3, 1234.5))


# The engine as a generator: what is asked, and the frozen types that its replies become.

LINES = (EXAMPLES / "generator.ndjson").read_text().splitlines()


def told(number: int) -> dict[str, Any]:
    """The reply to the request of this number."""
    replies = (json.loads(line.removeprefix("< ")) for line in LINES if line.startswith("< "))
    return next(reply for reply in replies if reply.get("id") == number)


def generator(*replies: dict[str, Any]) -> tuple[Generator, Played]:
    """A generator whose engine says this."""
    engine = Played([json.dumps(known(reply)) for reply in replies])
    return Generator(EngineClient(engine, "tester")), engine


async def test_the_conversation_of_the_protocol_is_led_with_types() -> None:
    lines = [json.dumps(known(json.loads(line.removeprefix("< ")))) for line in LINES if line.startswith("< ")]
    engine = Played(lines)
    client = EngineClient(engine, "tester")
    asked = [json.loads(line.removeprefix("> ")) for line in LINES if line.startswith("> ")]
    for request in asked[:2]:
        await client.request(**{key: value for key, value in request.items() if key != "id"})
    flows = Generator(client)
    assert await flows.load(asked[2]["flows"]) == 3
    assert (await flows.tally([0])).flows[0].state is FlowState.STOPPED
    options = {key: asked[4][key] for key in ("filters", "at_most_bytes")}
    assert (await flows.start_capture([1], "captured-", **options))[0].frames == 0
    assert (await flows.control(Action.START)).changed == 3
    tally = await flows.tally(histograms=True)
    assert [flow.sent for flow in tally.flows] == [1000, 50, 500]
    assert [flow.received for flow in tally.flows] == [1000, None, 500]
    assert tally.flows[2].latency is None
    assert tally.health is not None
    assert (await flows.tally_columns()).columns.sent == (1000, 50, 500)
    (captured,) = await flows.stop_capture([1])
    assert (captured.frames, captured.dropped) == (124, 376)
    defaults = {"flows": None, "histograms": False, "columns": False}
    for request, expected in zip(engine.asked[2:], asked[2:], strict=False):
        assert {**defaults, **request} == {**defaults, **expected}


async def test_flows_by_columns_are_told_as_in_their_tallies() -> None:
    flows, engine = generator({**told(8), "id": 1})
    told_by_columns = (await flows.tally_columns()).columns
    whole = parse_tally(known(told(7))).flows
    left_out = {"in_flight": None, "misdirected": None, "by_port": ()}
    for flow, same in zip(whole, told_by_columns.tallies(), strict=True):
        latency = flow.latency.replace(histogram=None) if flow.latency else None
        assert same == flow.replace(**(left_out | {"latency": latency}))
    assert engine.asked[-1]["columns"] is True
    flows, _ = generator({**told(8), "id": 1, "columns": {**told(8)["columns"], "sent": [1]}})
    with pytest.raises(EngineError, match="columns of flows differ in their length"):
        await flows.tally_columns()


async def test_what_the_engine_refuses_is_an_error_of_its_kind() -> None:
    refused = {**told(12), "id": 1}
    flows, _ = generator(refused)
    with pytest.raises(EngineError) as error:
        await flows.load([])
    assert error.value.kind == "frame_size"
    assert "64 bytes" in str(error.value)


def test_what_a_newer_engine_tells_beyond_is_ignored_and_a_reply_that_is_none_is_an_error() -> None:
    reply = known(told(7))
    assert parse_tally({**reply, "colour": "green"}).flows == parse_tally(reply).flows
    for wrong in ({}, {**reply, "flows": [{}]}, {**reply, "health": 3}):
        with pytest.raises(EngineError, match="none of a generator"):
            parse_tally(wrong)
