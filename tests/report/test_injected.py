"""What was injected, compared with what was measured: each fault judged by its own rule."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.judging import Verdict
from nicbench.core.plan import Plan
from nicbench.core.reading import Counts
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.trial import Health, Latency, Purpose, Reading, StreamReading, Trial, TrialRequest
from nicbench.methods.impairments import values_of
from nicbench.report.injected import InjectedRow, injected_rows, injected_sentence
from nicbench.stats.latency import add_percentiles, histogram_of

from ._synthetic_plan import synthetic_plan

OWN_NS = 300_000
REQUEST = TrialRequest(
    frame_bytes=512, load_frames_per_s=1e4, duration_s=1.0, drain_s=0.1, settle_s=0.0, purpose=Purpose.AVERAGE
)
CLEAN = Counts(intended=10_000, sent=10_000, received=10_000, lost=0)


def latency(*times_ns: tuple[int, int]) -> Latency:
    """A latency of this many frames, each of which took this long."""
    return add_percentiles(
        Latency(
            source="software",
            count=sum(frames for _, frames in times_ns),
            minimum_ns=min(time for time, _ in times_ns),
            mean_ns=float(times_ns[0][0]),
            maximum_ns=max(time for time, _ in times_ns),
            histogram=histogram_of(times_ns),
        )
    )


class Measured:
    """A run of configurations, each with its faults, counts and latency."""

    def __init__(self) -> None:
        self.plans: dict[str, Plan] = {}
        self.results: list[Result] = []
        self.trials: dict[str, Trial] = {}

    def add(self, name: str, counts: Counts = CLEAN, times: Latency | None = None, **faults: Any) -> None:
        """One configuration."""
        reading = Reading(
            transmit_ns=10**9, streams=(StreamReading(name="0->1", counts=counts, checked_bytes=466),), health=Health(),
            counts=counts, ports=(), latency=times or latency((OWN_NS, counts.received)),
        )  # fmt: skip
        trial = Trial(
            id=f"t{len(self.trials)}", key="k", test="faults", configuration=name, parameters={}, repeat=0,
            request=REQUEST, reading=reading, verdict=Verdict(),
        )  # fmt: skip
        self.trials[trial.id] = trial
        self.results.append(
            Result(
                id=f"faults/512/{name}", method="impairments", configuration=name, run=1, verdict=ResultVerdict.VALID,
                parameters={"frame_bytes": 512, "size": "512"}, values=values_of(reading, 0.95), trials=(trial.id,),
            )
        )  # fmt: skip
        dut = {"kind": "netem", "reorder_gap": 1, "distribution": "uniform", **faults}
        self.plans[name] = synthetic_plan("run", "Faults").replace(dut=dut, configuration=name)

    def rows(self) -> dict[tuple[str, str], InjectedRow]:
        """By configuration and fault."""
        first, *others = self.plans.values()
        plan = first.replace(compared=tuple(self.plans), others=tuple(others))
        return {(row.configuration, row.fault): row for row in injected_rows(self.results, plan, self.trials)}


@pytest.fixture
def measured() -> Measured:
    made = Measured()
    made.add("clean")
    return made


@pytest.mark.parametrize(("lost", "agrees"), [(200, True), (240, True), (150, False), (300, False)])
def test_a_loss_agrees_where_its_interval_holds_the_one_injected(measured: Measured, lost: int, agrees: bool) -> None:
    measured.add("loss", Counts(intended=10_000, sent=10_000, received=10_000 - lost, lost=lost), loss=0.02)
    row = measured.rows()["loss", "loss"]
    assert (row.injected, row.agrees) == ("2 %", agrees)
    assert row.measured.startswith(f"{lost / 100:g} % ({lost} of 10,000; ")


def test_a_flipped_bit_is_looked_for_in_what_is_compared(measured: Measured) -> None:
    counts = Counts(intended=10_000, sent=10_000, received=9_818, lost=0, corrupted=182)
    measured.add("corrupt", counts, corrupt=0.02)
    row = measured.rows()["corrupt", "corrupt"]
    assert (row.expected, row.agrees) == ("1.83 % to 2 %: of each frame 466 of 508 bytes are compared", True)


@pytest.mark.parametrize(
    ("took_ns", "agrees"), [(5_000_000, True), (5_250_000, True), (5_900_000, False), (4_900_000, False)]
)
def test_a_delay_is_never_shorter_and_longer_only_by_what_frames_take_without_it(
    measured: Measured, took_ns: int, agrees: bool
) -> None:
    measured.add("delay", times=latency((took_ns, 10_000)), delay=0.005)
    row = measured.rows()["delay", "delay"]
    assert row.agrees is agrees
    assert f"median {took_ns / 1e6:g} ms ({(took_ns - OWN_NS) / 1e6:g} ms more than without faults)" in row.measured


@pytest.mark.parametrize(("took_ns", "agrees"), [(409_000_000, True), (420_000_000, False), (380_000_000, False)])
def test_the_median_of_delays_that_vary_is_a_draw(measured: Measured, took_ns: int, agrees: bool) -> None:
    measured.add("delay", times=latency((took_ns, 1_500)), delay=0.4, jitter=0.1)
    row = measured.rows()["delay", "delay"]
    assert row.agrees is agrees
    assert "a median of 1,500 draws is within 10.6 ms" in row.expected


@pytest.mark.parametrize(("reorder", "agrees"), [(0.0, False), (0.03, True)])
def test_frames_that_overtake_move_the_median_of_those_that_vary(
    measured: Measured, reorder: float, agrees: bool
) -> None:
    measured.add("delay", times=latency((387_000_000, 1_893)), delay=0.4, jitter=0.1, reorder=reorder)
    row = measured.rows()["delay", "delay"]
    assert row.agrees is agrees
    assert row.expected.startswith("386 ms to" if reorder else "391 ms to")


def test_without_a_configuration_without_faults_a_delay_is_not_judged() -> None:
    alone = Measured()
    alone.add("delay", times=latency((5_100_000, 10_000)), delay=0.005)
    assert alone.rows()["delay", "delay"].agrees is None


@pytest.mark.parametrize(("half_ns", "agrees"), [(1_349_000, True), (1_000_000, False), (1_800_000, False)])
def test_a_jitter_is_the_range_of_the_middle_half(measured: Measured, half_ns: int, agrees: bool) -> None:
    middle = ((5_000_000 - half_ns // 2, 3_000), (5_000_000, 4_000), (5_000_000 + half_ns // 2, 2_900))
    times = latency(*middle, (300_000_000, 100))  # a pause of the machine is no part of it
    measured.add("jitter", times=times, delay=0.005, jitter=0.001, distribution="normal")
    row = measured.rows()["jitter", "jitter"]
    assert (row.injected, row.agrees) == ("±1 ms, normal", agrees)
    measured.add("table", times=times, delay=0.005, jitter=0.001, distribution="pareto")
    assert measured.rows()["table", "jitter"].agrees is None


def test_frames_that_overtake_are_those_that_were_faster_than_the_delay(measured: Measured) -> None:
    counts = CLEAN.replace(reordered=1500)
    measured.add("reorder", counts, latency((OWN_NS, 210), (5_200_000, 9_790)), delay=0.005, reorder=0.02)
    row = measured.rows()["reorder", "reorder"]
    assert row.agrees
    assert "15 % were overtaken in their flow" in row.measured
    # Not judged as the rule of shares has it, where one draw depends on the last.
    measured.add("bursts", counts, delay=0.005, reorder=0.02, reorder_correlation=0.5)
    assert measured.rows()["bursts", "reorder"].agrees is None


def test_with_a_jitter_they_are_faster_than_any_frame_that_waits(measured: Measured) -> None:
    times = latency((OWN_NS, 200), (4_150_000, 4_900), (5_850_000, 4_900))
    measured.add("both", CLEAN, times, delay=0.005, jitter=0.0017, reorder=0.02)
    rows = measured.rows()
    assert (rows["both", "reorder"].expected, rows["both", "reorder"].agrees) == ("2 % faster than 3.3 ms", True)
    assert (rows["both", "jitter"].measured, rows["both", "jitter"].agrees) == (
        "half of the frames within 1.7 ms",
        True,
    )


def test_what_was_not_injected_must_not_be_there(measured: Measured) -> None:
    rows = measured.rows()
    assert rows["clean", "nothing else"].agrees
    measured.add("duplicate", CLEAN.replace(duplicated=195, reordered=3), duplicate=0.02)
    row = measured.rows()["duplicate", "nothing else"]
    assert (row.measured, row.agrees) == ("reordered 3, lost 0, altered 0", False)


def test_other_duts_have_no_such_table(measured: Measured) -> None:
    assert injected_rows(measured.results, synthetic_plan("run", "Other"), measured.trials) == ()
    assert injected_rows(measured.results, None, measured.trials) == ()


@pytest.mark.parametrize(
    ("lost", "sentence"),
    [
        (200, "What the DUT injected was measured as it was injected, and nothing else: all 3 rows agree."),
        (300, "Of 3 rows of what the DUT injected 2 were measured as injected; these were not: loss of “loss”."),
    ],
)
def test_the_answer_is_whether_what_was_injected_was_measured(measured: Measured, lost: int, sentence: str) -> None:
    measured.add("loss", Counts(intended=10_000, sent=10_000, received=10_000 - lost, lost=lost), loss=0.02)
    assert injected_sentence(tuple(measured.rows().values())) == sentence


def test_without_a_row_that_can_be_judged_there_is_no_such_answer() -> None:
    assert injected_sentence(()) is None
