"""Maximum forwarding rate: a DUT whose rate falls under pressure has its maximum below the maximum offered load."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.reading import Counts
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.trial import Reading, StreamReading, Trial, TrialRequest
from nicbench.methods.maximum_forwarding_rate import MaximumForwardingRate, rising
from nicbench.report.tables import sections

from .known import LINE, KnownContext, reading_of, run

CAPACITY = 0.5 * LINE


class PressedDut(KnownContext):
    """Forwards everything up to its capacity; beyond that each frame too many costs half a frame."""

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        assert request.load_frames_per_s is not None
        load = request.load_frames_per_s
        passed = int(min(load, CAPACITY - 0.5 * max(0.0, load - CAPACITY)) * request.duration_s)
        sent = int(load * request.duration_s)
        counts = Counts(intended=sent, sent=sent, received=passed, lost=sent - passed)
        return reading_of(request.duration_s, [StreamReading(name="0->1 a", counts=counts)])


async def measured(dut: KnownContext) -> Result:
    options = MaximumForwardingRate.Options(at="t", frame_bytes=(64,), load_step=5.0)
    (result,) = await run(MaximumForwardingRate("most", options), dut)
    return result


async def test_the_maximum_lies_where_the_dut_is_full_and_not_where_it_is_pressed_hardest() -> None:
    result = await measured(PressedDut(throughput=0.45 * LINE))
    assert result.values["maximum_forwarding_rate_frames_per_s"] == pytest.approx(CAPACITY, rel=1e-4)
    assert result.values["load_of_maximum_frames_per_s"] == pytest.approx(CAPACITY)
    assert result.values["rate_at_maximum_load_frames_per_s"] == pytest.approx(0.25 * LINE, rel=1e-4)
    assert result.values["maximum_offered_load_frames_per_s"] == pytest.approx(LINE)
    assert (result.values["loads"], result.verdict) == (12, ResultVerdict.VALID)


async def test_the_maximum_offered_load_is_what_was_sent() -> None:
    result = await measured(PressedDut(throughput=0.45 * LINE, sends=0.6 * LINE))
    assert result.values["maximum_offered_load_frames_per_s"] == pytest.approx(0.6 * LINE)
    assert result.values["load_of_maximum_frames_per_s"] == pytest.approx(CAPACITY)
    assert result.values["loads"] == 5
    assert result.values["lowered"] == "at 64 bytes the tester sent 892.9 kpps, not 967.3 kpps"


async def test_a_tester_that_is_known_to_send_a_constant_share_reaches_every_load() -> None:
    """More is asked of it, so that it sends the load but for the rounding of the division."""

    class Short(PressedDut):
        async def measure(self, point: dict[str, Any], request: TrialRequest) -> tuple[Trial, bool]:
            assert request.load_frames_per_s is not None
            asked = request.load_frames_per_s / 0.97
            return await super().measure(point, request.replace(load_frames_per_s=asked, sent_share=0.97))

    for step in range(20):
        result = await measured(Short(throughput=0.45 * LINE + 137.0 * step))
        assert result.values["load_of_maximum_frames_per_s"] == pytest.approx(CAPACITY, rel=0.04)


async def test_its_column_is_in_the_report_in_a_unit_that_suits_its_magnitude() -> None:
    (section,) = sections([await measured(PressedDut(throughput=0.45 * LINE))], {})
    assert (section.table.title, section.table.columns[1].unit) == ("Maximum forwarding rate", "kpps")
    assert section.rows[0].cells[:4] == ("64", "744", "744", "372")
    assert section.sentence == (
        "forwards up to 744\u00a0kpps of 64-byte frames, and 372\u00a0kpps at the maximum offered load"
    )


async def test_a_disturbed_trial_is_said_and_without_a_throughput_nothing_is_measured() -> None:
    disturbed = await measured(PressedDut(throughput=0.45 * LINE, disturbed=[2]))
    assert (disturbed.verdict, disturbed.disturbances) == (ResultVerdict.DISTURBED, ("the worker was held up",))
    result = await measured(PressedDut(throughput=None))
    rate = result.values["maximum_forwarding_rate_frames_per_s"]
    assert (rate.value, rate.reason_null) == (None, "t found no NDR at 64 bytes")
    assert result.verdict is ResultVerdict.INCOMPLETE


async def test_what_was_not_measured_is_of_as_many_ports_as_what_was() -> None:
    dut = PressedDut(throughput=None)
    dut.sending_ports = 2
    assert (await measured(dut)).scope == "sum of 2 ports"


def test_loads_rise_to_the_most_and_a_throughput_at_line_rate_needs_one_trial() -> None:
    assert list(rising(80.0, 100.0, 15.0)) == [80.0, 95.0, 100.0]
    assert list(rising(100.0, 100.0, 1.0)) == [100.0]
