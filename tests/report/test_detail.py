"""The section "Frame by frame"."""

from nicbench.core.judging import Verdict
from nicbench.core.reading import Counts, Flows, Intervals, Reordering, Variation
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.trial import Health, Latency, Purpose, Reading, StreamReading, Trial, TrialRequest
from nicbench.report.sections.trials import detail_tables


def stream(
    name: str, reordering: Reordering | None, received: tuple[int, ...], missing: tuple[int, ...]
) -> StreamReading:
    return StreamReading(
        name=name,
        counts=Counts(intended=100, sent=100, received=100, lost=0),
        checked_bytes=22,
        reordering=reordering,
        variation=Variation(pairs=10, mean_ns=50.0, maximum_ns=700),
        intervals=Intervals(interval_ns=100_000_000, received=received, missing=missing),
        flows=Flows(
            flows=4, silent=0, with_loss=1, with_reordering=0, with_duplicates=0, with_corruption=0, most_lost=(2, 5)
        ),
    )


def trial(name: str, load_frames_per_s: float, lost: int, streams: tuple[StreamReading, ...] | None = None) -> Trial:
    once = Reordering(maximum_extent=4, mean_extent=2.0, measured=3, by_three_or_more=1, n_reordered=(3, 2, 1))
    streams = streams or (
        stream("0->1", once, (10, 20, 20, 1), (0, 3, 0, 0)),
        stream("1->0", None, (10, 20, 20, 1), (0, 0, 0, 0)),
    )
    latency = Latency(
        source="software", count=200, minimum_ns=1000, mean_ns=2000.0, maximum_ns=9000, percentiles_ns={"99.9": 8000}
    )
    return Trial(
        id=name,
        key=name,
        test="throughput",
        configuration="default",
        parameters={},
        repeat=0,
        request=TrialRequest(
            frame_bytes=64,
            load_frames_per_s=load_frames_per_s,
            duration_s=0.4,
            drain_s=0.1,
            settle_s=0.1,
            purpose=Purpose.SEARCH,
        ),
        reading=Reading(
            transmit_ns=400_000_000,
            counts=Counts(intended=200, sent=200, received=200 - lost, lost=lost),
            streams=streams,
            ports=(),
            latency=latency,
            health=Health(longest_gap_ns=0, total_gap_ns=0, gap_floor_ns=1, gaps=0, iterations=1, idle_iterations=0),
        ),
        verdict=Verdict(),
    )


RESULT = Result(
    id="throughput/64",
    method="throughput",
    scope="per port",
    parameters={"frame_bytes": 64},
    values={},
    verdict=ResultVerdict.VALID,
    trials=("low", "high", "lossy"),
)


def test_the_trial_shown_is_the_highest_load_without_a_failed_frame() -> None:
    trials = {
        name: trial(name, load, lost) for name, load, lost in (("low", 1e5, 0), ("high", 3e5, 0), ("lossy", 4e5, 9))
    }
    (table,) = detail_tables([RESULT], {"throughput/64": "throughput"}, trials)
    (row,) = table.rows
    assert (table.test, row.trial.id) == ("throughput", "high")
    assert (row.maximum_extent, row.mean_extent, row.by_three_or_more) == (4, 2.0, 1)
    assert (row.pdv_ns, row.ipdv_mean_ns, row.ipdv_maximum_ns) == (7000.0, 50.0, 700)
    assert row.flows is not None
    assert (row.flows.flows, row.flows.with_loss, row.flows.most_lost) == (8, 2, (2, 5))


def test_rates_over_time_leave_out_the_interval_that_was_cut_short_and_mark_where_frames_were_missing() -> None:
    (table,) = detail_tables([RESULT], {}, {"low": trial("low", 1e5, 0)})
    over_time = table.rows[0].over_time
    assert over_time is not None
    assert (over_time.lowest_frames_per_s, over_time.highest_frames_per_s) == (200.0, 400.0)
    assert (len(over_time.points.split()), over_time.missing) == (3, (66.0,))


def test_n_reordering_beyond_three_is_told_where_it_was_asked_for() -> None:
    def row(*counts: tuple[int, ...]) -> tuple[int, ...]:
        streams = tuple(
            stream(f"{number}", Reordering(maximum_extent=9, mean_extent=1.0, measured=9, by_three_or_more=1,
                                           n_reordered=count), (1, 1, 1), (0, 0, 0))
            for number, count in enumerate(counts)
        )  # fmt: skip
        (table,) = detail_tables([RESULT], {}, {"low": trial("low", 1e5, 0, streams)})
        return table.rows[0].n_reordered

    assert row((4, 3, 2, 1)) == (4, 3, 2, 1)
    assert row((4, 3, 2, 1), (1, 1, 1, 1)) == (5, 4, 3, 2)
    assert row((3, 2, 1)) == ()


def test_results_without_details_have_no_row() -> None:
    bare = StreamReading(name="0->1", counts=Counts(intended=1, sent=1, received=1, lost=0))
    assert detail_tables([RESULT], {}, {"low": trial("low", 1e5, 0, (bare,))}) == ()
    assert detail_tables([RESULT], {}, {}) == ()
