"""What rates are of is said wherever several ports take part, with their sum beside them."""

from __future__ import annotations

import pytest

from nicbench.core.headers import Groups
from nicbench.core.judging import Verdict
from nicbench.core.pattern import Pattern, ways_of
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result
from nicbench.core.trial import Health, PortReading, Purpose, Reading, StreamReading, Trial, TrialRequest
from nicbench.measure.completing import add_basis, add_ports

RESULT = Result(
    id="t/64",
    method="throughput",
    scope="per port",
    parameters={"frame_bytes": 64},
    values={
        "ndr_frames_per_s": Bounded(value=1000.0, lower=1000.0),
        "load_frames_per_s": 900.0,
        "line_rate_frames_per_s": 5000.0,
        "ceiling_frames_per_s": None,
        "ndr_percent_of_line_rate": 20.0,
    },
)


def trial(number: int, load: float, lost: int) -> Trial:
    """Ports 0 and 1 both send 100 frames, with two streams on the way from 0 to 1; ``lost`` of these are."""

    def counts(sent: int, lost: int = 0) -> Counts:
        return Counts(intended=sent, sent=sent, received=sent - lost, lost=lost)

    parts = {"0->1 a": counts(60, lost), "0->1 b": counts(40), "1->0": counts(100)}
    reading = Reading(
        transmit_ns=10**9,
        counts=Counts.sum_of(parts.values()),
        streams=tuple(StreamReading(name=name, counts=part) for name, part in parts.items()),
        ports=tuple(
            PortReading(name=f"t{port}", foreign=port, misdirected=2 * port, receive_overrun=0) for port in range(3)
        ),
        latency=None,
        health=Health(longest_gap_ns=0, total_gap_ns=0, gap_floor_ns=1, gaps=0, iterations=1, idle_iterations=0),
    )
    request = TrialRequest(
        frame_bytes=64, load_frames_per_s=load, duration_s=1.0, drain_s=0.1, settle_s=0.1, purpose=Purpose.SEARCH
    )
    return Trial(
        id=f"t{number:04d}", key="k", test="t", configuration="default", parameters={}, repeat=0, request=request,
        reading=reading, verdict=Verdict(),
    )  # fmt: skip


def test_a_frame_to_a_group_was_offered_once_and_is_expected_at_each_member() -> None:
    counts = Counts(intended=100, sent=100, received=99, lost=1)
    alone = Counts(intended=30, sent=30, received=30, lost=0)
    parts = [*((f"0->{port}", counts) for port in (1, 2)), ("0->1 unicast", alone)]
    one = trial(1, 100.0, 0)
    reading = one.reading.replace(
        streams=tuple(StreamReading(name=name, counts=part) for name, part in parts),
        counts=Counts.sum_of(part for _, part in parts),
    )
    request = one.request.replace(groups=Groups(groups=1, members=2))
    one = one.replace(reading=reading, request=request)
    figures = add_ports(RESULT, ways_of(Pattern.ONE_TO_MANY, 3), [one]).by_port
    assert figures is not None
    assert [(port.offered_frames, port.expected_frames) for port in figures.ports] == [(130, 0), (0, 130), (0, 100)]
    assert (figures.combined.offered_frames, figures.combined.lost_frames) == (130, 2)


def test_between_two_ports_one_way_nothing_is_added() -> None:
    assert add_basis(RESULT, ways_of(Pattern.ONE_TO_ONE, 2)) == RESULT
    assert add_ports(RESULT, ways_of(Pattern.ONE_TO_ONE, 2), [trial(1, 100.0, 0)]) == RESULT


def test_the_sum_of_ports_stands_beside_each_rate_and_line_rates_stay_those_of_a_port() -> None:
    result = add_basis(RESULT, ways_of(Pattern.FULL_MESH, 4))
    assert result.scope == "per port of 4 that send at once"
    added = {name: value for name, value in result.values.items() if name not in RESULT.values}
    assert added == {"ndr_frames_per_s_sum_of_ports": 4000.0, "load_frames_per_s_sum_of_ports": 3600.0}


def test_what_many_ports_send_to_one_is_the_sum_already() -> None:
    result = add_basis(RESULT, ways_of(Pattern.MANY_TO_ONE, 4))
    assert (result.scope, result.values) == ("the sum of 3 ports that send to one", RESULT.values)


def test_a_method_that_summed_by_itself_is_left_as_it_is() -> None:
    summed = RESULT.replace(scope="sum of 2 ports")
    assert add_basis(summed, ways_of(Pattern.FULL_MESH, 4)) == summed


def test_each_way_and_each_port_is_that_of_the_trial_that_tells_most() -> None:
    both = ways_of(Pattern.ONE_TO_ONE, 2, bidirectional=True)
    trials = [trial(1, 300.0, 30), trial(2, 100.0, 0), trial(3, 200.0, 0), trial(4, 400.0, 6)]
    figures = add_ports(RESULT, both, trials).by_port
    assert figures is not None
    assert (figures.trial, figures.load_frames_per_s) == ("t0003", 200.0)
    figures = add_ports(RESULT, both, trials[:1]).by_port
    assert figures is not None
    there, back = figures.ways
    assert (there.transmit_port, there.receive_port, there.offered_frames, there.received_frames) == (
        "t0",
        "t1",
        100,
        70,
    )
    assert (there.loss_ratio, back.loss_ratio, figures.combined.loss_ratio) == pytest.approx((0.3, 0.0, 0.15))
    assert [(port.port, port.offered_frames, port.expected_frames, port.received_frames) for port in figures.ports] == [
        ("t0", 100, 100, 100),
        ("t1", 100, 100, 70),
    ]  # t2 takes no part
    assert [(port.foreign_frames, port.misdirected_frames) for port in figures.ports] == [(0, 0), (1, 2)]
