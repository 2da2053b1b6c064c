"""What the report says of trials: each frame by frame, where frames were lost, the hardware, time stamps and clocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nicbench.core.clocks import ClockMapping, PtpState
from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.plan import Plan
from nicbench.core.reading import (
    Counts,
    Flows,
    HealthEvent,
    HealthLevel,
    Intervals,
    MachineHealth,
    Measure,
    Reordering,
    Stamps,
    Variation,
)
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.trial import (
    Health,
    Latency,
    LossBeside,
    LossPlace,
    PortReading,
    Purpose,
    Reading,
    StreamReading,
    Trial,
    TrialRequest,
)
from nicbench.report.document.blocks import Cell, Group, Paragraph, Table, plain
from nicbench.report.document.finishing import walk
from nicbench.report.html import fragment
from nicbench.report.sections.method import clocks
from nicbench.report.sections.trials import (
    count_lost,
    detail_row,
    hardware,
    ledger,
    lossy_trials,
    n_reordered,
    received_over_time,
    telling_trials,
)
from nicbench.report.timing import clock_rows, warnings, words
from nicbench.report.wiring import wiring


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
    assert telling_trials([RESULT], {"throughput/64": "throughput"}, trials) == {"throughput": [trials["high"]]}
    name, size, load, *_, extent, behind, _, _, _, ipdv_mean, ipdv_maximum, flows, _ = texts(detail_row(trials["high"]))
    assert (size, load, name) == ("64", "300", "high")
    assert (extent, behind) == ("2.00 / 4", "1")
    assert (ipdv_mean, ipdv_maximum) == ("0.050", "0.700")
    assert flows == "2 of 8"


def texts(cells: Iterable[Cell]) -> list[str]:
    return [plain(cell.inlines) for cell in cells]


def test_rates_over_time_leave_out_the_interval_that_was_cut_short_and_mark_where_frames_were_missing() -> None:
    streams = trial("low", 1e5, 0).reading.streams
    over_time = received_over_time([stream.intervals for stream in streams if stream.intervals])
    assert over_time is not None
    drawing, _ = over_time
    heights = [float(height) for height in re.findall(r"[\d.]+,([\d.]+)", drawing.svg)]
    assert (len(heights), min(heights), max(heights)) == (3, 2.0, 13.0), "the least rate is half of the greatest"
    assert re.findall(r'<line x1="([^"]*)"', drawing.svg) == ["66.0"]


def test_n_reordering_beyond_three_is_told_where_it_was_asked_for() -> None:
    def row(*counts: tuple[int, ...]) -> tuple[int, ...]:
        streams = tuple(
            stream(f"{number}", Reordering(maximum_extent=9, mean_extent=1.0, measured=9, by_three_or_more=1,
                                           n_reordered=count), (1, 1, 1), (0, 0, 0))
            for number, count in enumerate(counts)
        )  # fmt: skip
        return n_reordered(trial("low", 1e5, 0, streams))

    assert row((4, 3, 2, 1)) == (4, 3, 2, 1)
    assert row((4, 3, 2, 1), (1, 1, 1, 1)) == (5, 4, 3, 2)
    assert row((3, 2, 1)) == ()


def test_results_without_details_have_no_row() -> None:
    bare = StreamReading(name="0->1", counts=Counts(intended=1, sent=1, received=1, lost=0))
    assert telling_trials([RESULT], {}, {"low": trial("low", 1e5, 0, (bare,))}) == {}
    assert telling_trials([RESULT], {}, {}) == {}


def ledger_trial(
    run: Any, name: str, *rows: LossPlace, lost: int, purpose: Purpose = Purpose.SEARCH, **more: Any
) -> Trial:
    one = run.trial("throughput", 64, 1e6, purpose, 0, knee=1e5)
    counts = one.reading.counts.replace(lost=lost)
    left = lost - sum(row.frames for row in rows if not row.unsent)
    reading = one.reading.replace(counts=counts, ledger=rows, unexplained=left, **more)
    return one.replace(id=name, reading=reading)


def place(name: str, stage: int, frames: int, *, unsent: bool = False) -> LossPlace:
    return LossPlace(place=name, counter=f"counter of {name}", frames=frames, stage=stage, unsent=unsent)


def test_places_stand_from_sender_to_receiver_whatever_trial_met_them_first(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    ring, queue = place("receive ring", 15, 5), place("queue", 3, 7)
    lossy = lossy_trials(
        [
            ledger_trial(run, "t0001", ring, lost=5),
            ledger_trial(run, "t0002", place("transmit ring", 1, 9, unsent=True), queue, lost=10),
            ledger_trial(run, "t0003", lost=0),
            ledger_trial(run, "t0004", lost=50, purpose=Purpose.CEILING),
        ]
    )
    head, first, second = table_of(lossy)
    assert (head[4:6], first[0], second[0]) == (["queue", "receive ring"], "throughput", "throughput, t0002")
    assert (first[4:], second[4:]) == (["·", "5", "0"], ["7", "·", "3"])
    assert count_lost(lossy) == (15, 3)


def table_of(lossy: Sequence[Trial]) -> list[list[str]]:
    """The cells of the ledger, without the row above its headings."""
    (table,) = (each for each in walk(ledger(lossy, {"throughput": lossy})) if isinstance(each, Table))
    return [texts(row.cells) for row in (*table.head[1:], *table.body)]


def test_faults_and_counters_beside_are_told_by_trial(synthetic_run: Callable[..., Any]) -> None:
    beside = LossBeside(place="XDP program of d0", counter="xdp_drops", frames=4, why="whose they were it does not say")
    faulty = ledger_trial(
        synthetic_run(), "t0007", lost=4, ledger_faults=("d0 rx ran backwards",), ledger_beside=(beside,)
    )
    page = fragment(*ledger([faulty], {}))
    assert "t0007: d0 rx ran backwards." in page
    assert "t0007, XDP program of d0: 4 by xdp_drops (whose they were it does not say)" in page


def test_nothing_lost_gives_no_table(synthetic_run: Callable[..., Any]) -> None:
    assert lossy_trials([ledger_trial(synthetic_run(), "t0001", lost=0)]) == ()


def test_the_hardwares_table_says_what_rose_how_often_and_what_was_invalid(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()

    def seen(name: str, amount: float, degrees: float, verdict: Verdict) -> Trial:
        event = HealthEvent(
            host="DUT", where="eth2", what="BadTLP", measure=Measure.PCIE_CORRECTED, amount=amount, unit="errors"
        )
        level = HealthLevel(host="DUT", where="module of eth2", value=degrees, unit="C", limit=70.0)
        machine = MachineHealth(events=(event,) if amount else (), levels=(level,), reading_ms=12.0)
        return ledger_trial(run, name, lost=0, machine=machine).replace(verdict=verdict)

    finding = Finding(reason=Reason.HARDWARE, threshold="pcie_corrected_share", value=1.0, limit=0.1, text="many")
    (group,) = hardware(
        [
            seen("t1", 0, 41.0, Verdict()),
            seen("t2", 2, 40.0, Verdict()),
            seen("t3", 900, 44.5, Verdict(findings=(finding,))),
        ]
    )
    assert isinstance(group, Group)
    events, levels = (block for block in group.blocks if isinstance(block, Table))
    assert [texts(row.cells) for row in events.body] == [
        ["DUT, eth2: BadTLP", "902 errors", "2 (t2, t3)", "made 1 invalid"]
    ]
    assert [texts(row.cells) for row in levels.body] == [["DUT, module of eth2", "40.0 °C", "44.5 °C", "70 °C"]]
    assert "Reading took 12 ms a trial" in plain(next(b.inlines for b in group.blocks if isinstance(b, Paragraph)))


def test_a_run_whose_hardware_nobody_asked_has_no_such_table(synthetic_run: Callable[..., Any]) -> None:
    assert list(hardware([ledger_trial(synthetic_run(), "t0001", lost=0)])) == []


LATENCY = Latency(
    source="software", received_by="card", resolution_ns=6.4, count=100, minimum_ns=0, mean_ns=5.0, maximum_ns=9
)
CLOCK = {
    "source": "card",
    **dict.fromkeys(("readings", "outliers", "steps", "unstamped", "implausible", "early", "early_maximum_ns"), 0),
    "stamped": 100,
}


def stamps_trial(latency: Latency = LATENCY, **clock: Any) -> Trial:
    health = Health(longest_gap_ns=0, total_gap_ns=0, gap_floor_ns=1, gaps=0, iterations=1, idle_iterations=0)
    ports = (
        PortReading(name="t0", foreign=0, corrupted_unattributed=0, receive_overrun=0),
        PortReading(
            name="t1",
            foreign=0,
            corrupted_unattributed=0,
            receive_overrun=0,
            timestamps=Stamps(**{**CLOCK, **clock}),
        ),
    )
    counts = Counts(intended=100, sent=100, received=100, lost=0)
    reading = Reading(transmit_ns=1, counts=counts, streams=(), ports=ports, latency=latency, health=health)
    request = TrialRequest(
        frame_bytes=64, load_frames_per_s=1.0, duration_s=1, drain_s=1, settle_s=1, purpose=Purpose.LATENCY
    )
    return Trial(
        id="t0001",
        key="k",
        test="latency",
        configuration="default",
        parameters={},
        repeat=0,
        request=request,
        reading=reading,
        verdict=Verdict(),
    )


def test_both_ends_are_named_once_with_the_resolution() -> None:
    other = LATENCY.replace(source="scheduled", received_by="tsc", resolution_ns=None)
    said = words([LATENCY, LATENCY, other])
    assert len(said) == 2
    assert "received ones by the card, each when it arrives, in steps of 6.4 ns" in said[0]
    assert said[1].endswith("received ones by software (TSC) when their burst has been received")


def test_only_ports_with_a_clock_of_their_own_have_a_row() -> None:
    rows = clock_rows([("64", stamps_trial())])
    assert [(row.size, row.port, row.stamps.stamped) for row in rows] == [("64", "t1", 100)]


def test_stamps_without_fault_need_no_words() -> None:
    assert warnings("64 bytes", stamps_trial()) == ()


def test_what_cannot_be_right_is_said_with_its_numbers() -> None:
    latency = LATENCY.replace(negative=7, negative_maximum_ns=250)
    said = warnings("64 bytes", stamps_trial(latency, unstamped=3, implausible=2, early=4, early_maximum_ns=90))
    assert "7 of 100 frames of 64 bytes arrived, by their stamps, up to 250 ns before they were sent" in said[0]
    assert "at port t1, 3 bore no stamp and 2 one that cannot be" in said[1]
    assert "4 stamps of 64 bytes at port t1 are up to 90 ns later" in said[2]


FAR = PtpState(
    host="peer",
    state="SLAVE",
    grandmaster="1a9ad8.fffe.24273d",
    offset_ns=-481.0,
    path_delay_ns=1920.0,
    stamping="HARDWARE",
    system_ns=40.0,
)


def mapped(run: Any, name: str, **changes: Any) -> Trial:
    known = {"by": "test links", "offset_ns": 1_000_000, "drift_ppm": 100.0, "asymmetry_bound_ns": 5000.0}
    mapping = ClockMapping(**{**known, "fit_error_ns": 250.0, "step_ns": 0.0, "comparisons": 6, **changes})
    one = run.trial("throughput", 64, 1e6, Purpose.SEARCH, 0, knee=1e5)
    return one.replace(id=name, reading=one.reading.replace(clocks=mapping))


def told(*trials: Trial) -> str:
    return fragment(*clocks(trials))


def test_drift_asymmetry_and_what_the_line_missed_are_told_with_their_ranges(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    page = told(mapped(run, "t0001"), mapped(run, "t0002", drift_ppm=100.2, asymmetry_bound_ns=7000.0))
    assert "by frames that went both ways over the test links" in page
    assert "gained 100 ppm on the first" in page
    assert "wrong by at most 5 to 7 µs because both ways may differ" in page
    assert "by 0.25 µs because the clocks did not follow their line" in page
    assert "PTP on" not in page


def test_ptp_is_told_by_machine_with_its_worst_offset(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    worse = FAR.replace(offset_ns=900.0)
    page = told(mapped(run, "t0001", by="ptp", ptp=(FAR,)), mapped(run, "t0002", by="ptp", ptp=(worse,)))
    assert "PTP on peer: SLAVE of 1a9ad8.fffe.24273d, hardware stamps" in page
    assert "by 900 ns at most, over a path of 1920 ns, and the system’s clock off its own by 40 ns" in page


def test_a_tester_on_one_machine_has_no_such_section(synthetic_run: Callable[..., Any]) -> None:
    one = synthetic_run().trial("throughput", 64, 1e6, Purpose.SEARCH, 0, knee=1e5)
    assert told(one) == ""


def test_the_diagram_has_both_machines_with_their_ports() -> None:
    drawn = wiring(
        Plan(
            run_id="r",
            title="t",
            nicbench_version="0",
            seed=1,
            dut={"kind": "bridge"},
            facts={"links": ["t0 <-> d0", "t1 <-> d1"]},
            tester={"ports": [{"name": "t0"}, {"name": "t1"}], "second_machine": {"host": "far", "ports": ["t1"]}},
        )
    )
    assert [(link.left_machine.title, link.left.name) for link in drawn.links] == [
        ("Tester", "t0"),
        ("Second tester", "t1"),
    ]
    assert "t1 on a second machine" in drawn.words
