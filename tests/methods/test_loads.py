"""Frame loss and load sweep: loads that are given, and what of them comes back from a DUT of a known capacity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from nicbench.core.pattern import Pattern
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.trial import Purpose, Reading, StreamReading, TrialRequest
from nicbench.methods._loads import FullRate, TrialTimes
from nicbench.methods.loss import LOADS_PERCENT, FrameLoss, LoadSweep, falling_loads

from .known import LINE, KnownContext, reading_of, run


class KnownDut(KnownContext):
    """Its DUT forwards ``capacity`` and alters ``altered`` of what it forwards; ``streams`` share the load."""

    def __init__(
        self, capacity: float = 2e6, *, sends: float = 2e6, altered: float = 0.0, streams: int = 1,
        pattern: Pattern = Pattern.ONE_TO_ONE, most_line_rates: float = 1.0, **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(sends=sends, **more)
        self.capacity, self.altered, self.streams = capacity, altered, streams
        self.bidirectional, self.sending_ports = streams > 1, streams
        self.pattern, self.most_line_rates = pattern, most_line_rates

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        load = request.load_frames_per_s
        assert load is not None
        sent = int(load * request.duration_s)
        passed = int(min(load, self.capacity) * request.duration_s)
        corrupted = int(passed * self.altered)
        one = Counts(intended=sent, sent=sent, received=passed - corrupted, corrupted=corrupted, lost=sent - passed)
        names = [f"{port}->{1 - port}" for port in range(self.streams)]
        return reading_of(
            request.duration_s, [StreamReading(name=name, counts=one, checked_bytes=22) for name in names]
        )


async def lost(dut: KnownDut, **options: Any) -> tuple[Result, ...]:
    return await run(FrameLoss("loss", FrameLoss.Options(frame_bytes=(64,), **options)), dut)


async def swept(dut: KnownDut, **options: Any) -> tuple[Result, ...]:
    return await run(LoadSweep("sweep", LoadSweep.Options(frame_bytes=(64,), **options)), dut)


def loads(results: Iterable[Result]) -> list[float]:
    return [result.parameters["load_percent"] for result in results]


def values(results: Iterable[Result], name: str) -> list[Any]:
    return [result.values[name] for result in results]


async def test_loads_fall_by_tenths_until_two_successive_trials_lose_nothing() -> None:
    results = await lost(KnownDut(capacity=0.75 * LINE))
    assert loads(results) == [100.0, 90.0, 80.0, 70.0, 60.0]
    assert values(results, "loss_percent") == pytest.approx([25.0, 100 / 6, 6.25, 0.0, 0.0], abs=0.001)
    assert values(results, "percent_of_line_rate") == pytest.approx(loads(results))
    assert {result.verdict for result in results} == {ResultVerdict.VALID}
    assert values(results, "end") == [None] * 5


async def test_a_dut_that_loses_nothing_is_settled_by_the_first_two_trials() -> None:
    dut = KnownDut()
    assert loads(await lost(dut)) == [100.0, 90.0]
    assert {request.purpose for request in dut.requests} == {Purpose.LOSS}


async def test_one_trial_without_loss_between_two_with_loss_ends_nothing() -> None:
    """A disturbed trial that lost nothing shows nothing of the DUT: the one below it has to be the second."""
    results = await lost(KnownDut(capacity=0.75 * LINE, disturbed=[5]))
    assert loads(results) == [100.0, 90.0, 80.0, 70.0, 60.0, 50.0, 40.0]
    assert results[4].verdict is ResultVerdict.DISTURBED
    assert results[4].disturbances == ("the worker was held up",)


async def test_a_dut_that_always_loses_is_tried_down_to_the_last_step_and_the_result_says_so() -> None:
    results = await lost(KnownDut(capacity=0.05 * LINE), load_step=10.0)
    assert loads(results)[-1] == 10.0
    assert values(results, "end")[-1] == "at 64 bytes no two successive undisturbed trials lost nothing"


async def test_altered_frames_are_lost_ones_and_each_frame_is_compared() -> None:
    results = await lost(KnownDut(altered=0.02))
    assert values(results, "loss_percent")[0] == pytest.approx(2.0, abs=0.001)
    assert values(results, "altered_frames")[0] > 0
    assert values(results, "checked_bytes")[0] == 22


async def test_a_tester_that_cannot_send_the_line_rate_begins_where_it_can_and_the_result_says_so() -> None:
    ceiling = 0.873 * LINE
    results = await lost(KnownDut(capacity=0.5 * LINE, ceiling=ceiling))
    assert loads(results) == [87.3, 80.0, 70.0, 60.0, 50.0, 40.0]
    assert values(results, "start")[0] == (
        "at 64 bytes the tester sends no more than 1.299 Mpps, 87.3 % of the line rate"
    )
    assert values(results, "start")[1] is None


async def test_a_tester_that_turns_out_to_send_less_has_its_load_named_and_higher_ones_left_out() -> None:
    dut = KnownDut(capacity=0.5 * LINE, sends=0.85 * LINE)
    results = await lost(dut)
    assert loads(results) == pytest.approx([85.0, 80.0, 70.0, 60.0, 50.0, 40.0])
    assert values(results, "loss_percent")[0] == pytest.approx(100 * 0.35 / 0.85, abs=0.001)
    assert values(results, "start")[0] == "at 64 bytes the tester sent 1.265 Mpps, 85 % of the line rate"


async def test_a_rate_of_ones_own_is_100_percent() -> None:
    results = await lost(KnownDut(capacity=0.3e6), of=400e3)
    assert loads(results) == [100.0, 90.0, 80.0, 70.0, 60.0]
    assert values(results, "load_frames_per_s")[:2] == [400e3, 360e3]
    assert values(results, "percent_of_line_rate")[0] == pytest.approx(100 * 400e3 / LINE)
    assert results[0].parameters["load_of"] == "400 kpps"


@pytest.mark.parametrize(
    ("highest", "step", "expected"),
    [
        (100.0, 10.0, [100, 90, 80, 70, 60, 50, 40, 30, 20, 10]),
        (100.0, 7.0, [100, 93, 86, 79, 72, 65, 58, 51, 44, 37, 30, 23, 16, 9, 2]),
        (34.2, 10.0, [34.2, 30, 20, 10]),
        (4.0, 10.0, [4.0]),
    ],
    ids=["tenths", "a step that does not divide 100", "a ceiling between two steps", "a ceiling below the last step"],
)
def test_the_sequence_of_loads(highest: float, step: float, expected: list[float]) -> None:
    assert list(falling_loads(highest, step)) == expected


async def test_a_sweep_measures_each_of_the_published_loads() -> None:
    results = await swept(KnownDut(capacity=0.42 * LINE))
    assert loads(results) == list(LOADS_PERCENT) == [100, 75, 50, 45, 42, 35, 25, 20, 10, 1]
    expected = [42.0, 56.0, 84.0, 100 * 42 / 45, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0]
    assert values(results, "returned_percent") == pytest.approx(expected, abs=0.001)
    assert {(result.parameters["mode"], result.parameters["ports"]) for result in results} == {("1 Gb/s, one way", 2)}


async def test_both_ways_are_one_figure_and_each_way_is_shown() -> None:
    (result,) = await swept(KnownDut(capacity=0.5 * LINE, streams=2), loads=(100.0,))
    assert result.parameters["mode"] == "1 Gb/s, both ways"
    assert result.values["returned_percent"] == pytest.approx(50.0, abs=0.001)
    assert result.values["returned_by_way"] == "0->1: 50, 1->0: 50"


async def test_a_load_that_the_tester_cannot_send_is_no_figure_of_the_dut() -> None:
    results = await swept(KnownDut(ceiling=0.6 * LINE), loads=(100.0, 75.0, 50.0))
    reason = "the tester sends no more than 892.9 kpps, 60 % of the line rate"
    assert values(results, "returned_percent")[:2] == [Bounded(value=None, reason_null=reason)] * 2
    assert [result.verdict for result in results] == [ResultVerdict.INCOMPLETE] * 2 + [ResultVerdict.VALID]
    assert results[0].disturbances == (reason,)


async def test_a_load_that_turned_out_too_high_is_left_out_but_its_trial_is_named() -> None:
    results = await swept(KnownDut(sends=0.6 * LINE), loads=(100.0, 75.0, 50.0))
    assert [result.verdict.value for result in results] == ["incomplete", "incomplete", "valid"]
    assert [result.trials for result in results] == [("t0001",), (), ("t0002",)]


async def test_the_highest_load_of_the_tester_may_be_100_percent() -> None:
    dut = KnownDut(ceiling=1e6, sends=0.995e6)
    (result,) = await swept(dut, of="highest", loads=(100.0,))
    assert dut.requests[0].load_frames_per_s == pytest.approx(0.99e6)  # with room for a rate that wavers
    assert result.values["returned_percent"] == 100.0


@pytest.mark.parametrize("text", ["line_rate", "highest", "800 kpps"])
def test_what_100_percent_may_be(text: str) -> None:
    assert TypeAdapter(FullRate).validate_python(text) in ("line_rate", "highest", 800e3)


@pytest.mark.parametrize("value", ["fast", "50 %", "0 pps", 0.0, None, ["line_rate"]])
def test_anything_else_is_refused_with_what_may_be_written(value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(FullRate).validate_python(value)
    assert '"800 kpps"' in refused.value.errors()[0]["ctx"]["accepted"]


def test_steps_wider_than_the_rfcs_are_refused() -> None:
    with pytest.raises(ValidationError):
        FrameLoss.Options(load_step=20.0)


def test_by_the_letter_of_the_rfc_there_is_no_deviation() -> None:
    assert FrameLoss("loss", FrameLoss.Options()).deviations() == ()
    assert LoadSweep("sweep", LoadSweep.Options()).deviations() == ()


def test_every_deviation_is_declared() -> None:
    short = FrameLoss.Options(frame_bytes=(64, 1518), of=400e3, trial=TrialTimes(duration=1.0))
    assert FrameLoss("loss", short).deviations() == (
        "trial duration 1 s, RFC 2544 section 24 asks for 60 s",
        "no frames of 128, 256, 512, 1024, 1280 bytes, RFC 2544 section 9.1 asks for seven",
        "100 % is 400 kpps, RFC 2544 section 26.3 begins at the line rate",
    )
    other = LoadSweep.Options(of="highest")
    assert LoadSweep("sweep", other).deviations() == (
        "100 % is the highest load, the published measurement takes the line rate",
    )


def test_the_two_extremes_by_name_are_the_smallest_and_the_largest_size_that_the_rfc_asks_for() -> None:
    options = FrameLoss.Options(frame_bytes=("minimum", 128, 256, 512, 1024, 1280, "maximum"))
    assert FrameLoss("loss", options).deviations() == ()


def test_the_estimate_holds_for_the_longest_sequence() -> None:
    times = TrialTimes(duration=1.0, drain=0.5, settle=0.25)
    loss = FrameLoss("loss", FrameLoss.Options(trial=times))
    assert (loss.points(), loss.estimate_s()) == (70, 70 * 2.0)
    assert LoadSweep("sweep", LoadSweep.Options(trial=times)).points() == 20
