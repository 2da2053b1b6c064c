"""Sections that methods bring along: their values as text, unknown as a dash, and a sentence for the answer."""

from __future__ import annotations

from nicbench.core.plan import Plan, PlannedTest
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.methods.single_core import NO_RECORD, SingleCore
from nicbench.report.numbers import UNKNOWN, speak_number
from nicbench.report.section import RunKnowledge
from nicbench.report.tables import sections, with_tables


def result(frame_bytes: int, rate: float, *, at_least: bool = False, cycles: float | None = 61.34) -> Result:
    limit = LimitedBy.TESTER if at_least else LimitedBy.DUT
    return Result(
        id=f"one/{frame_bytes}",
        method=SingleCore.kind,
        scope="sum of 2 ports",
        parameters={"frame_bytes": frame_bytes, "size": str(frame_bytes), "load_percent": 100.0},
        values={
            "frame_rate_frames_per_s": Bounded(value=rate, upper=None if at_least else rate, limited_by=limit),
            "line_rate_frames_per_s": 297_619_047.6,
            "percent_of_line_rate": 100 * rate / 297_619_047.6,
            "throughput_l2_bits_per_s": rate * frame_bytes * 8,
            "limited_by": "tester" if at_least else "DUT",
            "ceiling_frames_per_s": 20e6,
            "core_clock_hz": 3.696e9,
            "tsc_cycles_per_packet": cycles,
            "core_cycles_per_packet": None,
            "cycles_source": "its own record" if cycles is not None else NO_RECORD,
        },
        verdict=ResultVerdict.DISTURBED if at_least else ResultVerdict.VALID,
        disturbances=("the worker was held up",) if at_least else (),
    )


def test_each_value_stands_below_its_heading_and_unknown_is_a_dash() -> None:
    (section,) = sections([result(64, 9_660_000.0), result(1518, 3_200_000.0)], {"one/64": "one", "one/1518": "one"})
    assert [column.head for column in section.table.columns][:3] == ["Frame", "Frame rate", "Line rate"]
    assert section.rows[0].cells == ("64", "9.66", "297.62", "3.25", "4.95", "DUT", "20.00", "3.70", "61.3", UNKNOWN)
    assert section.rows[1].cells[1] == "3.20"
    assert section.scope == "sum of 2 ports"
    assert list(map(str, section.notes)) == ["Record of cycles: its own record"]
    assert section.doubts == ()


def test_a_rate_that_the_tester_limited_is_at_least_that_and_what_disturbed_it_is_said() -> None:
    (section,) = sections([result(64, 9_660_000.0, at_least=True)], {})
    assert section.rows[0].cells[1] == "≥ 9.66"
    forwards = "forwards at least 9.66\u00a0Mpps of 64-byte frames on one core"
    assert section.claim == f"{forwards}, in 61.3 cycles of the time-stamp counter each"
    assert section.sentence == f"{section.claim}. Not reliable: the trials were disturbed"
    assert section.doubts == ("64 bytes: the worker was held up",)


def test_a_dut_without_a_record_is_said_to_have_none() -> None:
    (section,) = sections([result(64, 1e6, cycles=None)], {})
    assert section.rows[0].cells[8] == UNKNOWN
    assert list(map(str, section.notes)) == [f"Record of cycles: {NO_RECORD}"]
    assert section.sentence == "forwards 1.00\u00a0Mpps of 64-byte frames on one core"


def test_tests_of_one_method_have_a_section_each() -> None:
    other = result(64, 1e6).replace(id="two/64")
    assert [section.test for section in sections([result(64, 1e6), other], {})] == ["one", "two"]


def test_methods_without_a_table_of_their_own_are_left_to_others() -> None:
    assert "single-core" in with_tables()
    assert "of another version" not in with_tables()
    assert sections([result(64, 1e6).replace(method="of another version")], {}) == ()


def soaked(interval: int | str, loss: float) -> Result:
    values = {"interval": interval, "load_frames_per_s": 49_900.0, "loss_percent": loss}
    return Result(id=f"soak/64/{interval}", method="soak", parameters={"size": "64"}, values=values)


def test_a_soak_answers_for_all_of_its_intervals() -> None:
    (section,) = sections([soaked(1, 0.0), soaked(2, 0.0312), soaked("all", 0.0156)], {})
    assert section.sentence == "loses 0.0156\u00a0% of 64-byte frames at 49.9\u00a0kpps, over all intervals of the soak"


def test_a_sentence_has_no_more_digits_than_say_something_and_no_loss_is_rounded_to_none() -> None:
    assert [speak_number(value) for value in (69.5, 93.1234, 0.0, 100.0, 566.087)] == [
        "69.5",
        "93.1",
        "0",
        "100",
        "566",
    ]
    assert speak_number(99.99996) == "> 99.999"
    assert speak_number(1e-9) == "< 0.001"


def searched(test: str, size: int, rate: float, half_width: float) -> Result:
    found = Bounded(value=rate, lower=rate - half_width, upper=rate + half_width, limited_by=LimitedBy.DUT, n=8)
    values = {"ndr_frames_per_s": found, "ndr_percent_of_line_rate": 1.0, "line_rate_frames_per_s": 1e7}
    parameters = {"frame_bytes": size}
    return Result(id=f"{test}/{size}", test=test, method="throughput", parameters=parameters, values=values)


def decimals(text: str) -> int:
    return len(text.partition(".")[2])


def test_a_rate_has_the_digits_of_its_own_interval_whatever_stands_beside_it() -> None:
    results = [searched("coarse", 64, 412e3, 9e3), searched("fine", 64, 98_340.0, 40.0)]
    coarse, fine = sections(results, {result.id: result.test for result in results})
    assert [decimals(section.rows[0].cells[1]) for section in (coarse, fine)] == [0, 2]


def test_a_rate_is_the_same_text_in_every_table_of_its_section() -> None:
    result = searched("throughput", 64, 98_340.0, 40.0)
    test = PlannedTest(
        name="throughput", method="throughput", description="", options={"search": {"goals": {"NDR": 0.0}}},
        points=1, estimate_s=1.0,
    )  # fmt: skip
    plan = Plan(run_id="r", title="t", nicbench_version="0", seed=1, tests=(test,))
    (section,) = sections([result], {result.id: "throughput"}, known=RunKnowledge(plan))
    (lossless,) = [each for each in section.further if each.table.title == "Zero packet loss"]
    assert lossless.rows[0].cells[1] == section.rows[0].cells[1] == "98.34"
