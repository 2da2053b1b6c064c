"""Marks in numbers: what a whole file shows is told with the options that say so, and what could be two is asked."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.errors import Problem, WrongFileError
from nicbench.core.number_reader import POINT, THOUSANDS, WRITINGS, Writing, plain_number, read_number
from nicbench.core.result import Bounded
from nicbench.importing.columns import parse_link
from nicbench.importing.results import ImportedResults

Imported = Callable[..., ImportedResults]
RATE = "Frame size [bytes];Frame rate [fps]\n"
LATENCY = "Frame size [bytes];Load [% of line rate];Average latency [{}]\n64;100;{}\n"
QUESTIONS = [
    ("throughput", f"{RATE}512;234.962\n1518;81.274\n", "234.962 or 234962"),
    ("throughput", f"{RATE}512;234,962\n1518;81,274\n", "234962 or 234.962"),
    ("throughput", f"{RATE}512;9400\n1518;81.274\n", "81.274 or 81274"),  # some do not group four digits
    ("frame-loss", "Frame size;Load [%];Loss [%];Lost frames\n64;100;10;1.000\n", "1 or 1000"),
    ("back-to-back", "Frame size;Back-to-back value;Repetitions\n64;26.000;50\n512;12.000;50\n", "26 or 26000"),
    ("stream", "Tool;Throughput [Mb/s];Port\niperf3;9.412;s0\niperf3;9.398;s1\n", "9.412 or 9412"),
    ("stream", "Link;Tool;Throughput [Mb/s];Port\n10.000 Mb/s;iperf3;9;s0\n", "10 or 10000"),
    ("latency", LATENCY.format("ns", "12.345"), "12.345 or 12345"),
    ("throughput", "Frame size;Frame rate\n512;234.962 fps\n", "234.962 or 234962"),
]
DECIDED = [
    (f"{RATE}64;1\u202f488\u202f095\n1518;81\u202f274\n", ("--thousands", "blank"), 1_488_095),
    (f"{RATE}64;1\u00a0488\u00a0095\n", ("--thousands", "blank"), 1_488_095),
    (f"{RATE}64;1 488 095 fps\n", ("--thousands", "blank"), 1_488_095),
    (f"{RATE}64;1.488.095\n1518;81.274\n", ("--thousands", "point", "--decimal", "comma"), 1_488_095),
    (f"{RATE}64;1.488.095,24\n", ("--thousands", "point", "--decimal", "comma"), 1_488_095.24),
    (f"{RATE}64;1'488'095\n", ("--thousands", "apostrophe"), 1_488_095),
    (f"{RATE}64;1’488’095\n", ("--thousands", "apostrophe"), 1_488_095),
    (f"{RATE}64;1_488_095\n", ("--thousands", "underscore"), 1_488_095),
    (f"{RATE}64;14,88,095\n1518;81,274\n", ("--thousands", "comma"), 1_488_095),
    (f"{RATE}64;1,488,095\n1518;81,274\n", ("--thousands", "comma"), 1_488_095),
    (f"{RATE}64;1,488,095.24\n", ("--thousands", "comma"), 1_488_095.24),
    (f"{RATE}64;1 488 095,24\n", ("--thousands", "blank", "--decimal", "comma"), 1_488_095.24),
    (f"{RATE}64;1488095,24\n", ("--decimal", "comma"), 1_488_095.24),
    (f"{RATE}64;1.488.095\n1.518;81.274\n", ("--thousands", "point", "--decimal", "comma"), 1_488_095),
]  # fmt: skip
PLAIN = [
    f"{RATE}64;1488095.238\n512;234.962\n",  # long numbers without marks: these are no thousands
    f"{RATE}64;1488095.238\n512;0.962\n",
    f"{RATE}64;1.49E+06\n512;234.962\n",
    "Frame size;Frame rate [Mpps]\n64;37.202\n512;2.350\n",  # 37,202 Mpps are more than any port carries
    "Frame size;Frame rate [Mpps];% of line rate\n64;1.488;99.992\n",
    "Frame size;PDR [Mpps];Loss [%]\n64;1.488;0.5\n",
]


def problems(error: pytest.ExceptionInfo[WrongFileError]) -> list[Problem]:
    return list(error.value.problems)


@pytest.mark.parametrize(("method", "text", "either"), QUESTIONS)
def test_what_could_be_two_numbers_is_asked_in_one_question(
    method: str, text: str, either: str, imported: Imported
) -> None:
    with pytest.raises(WrongFileError) as refused:
        imported(text, method)
    [problem] = problems(refused)
    assert f"can be {either}" in problem.message
    assert problem.flags == (), "nothing of it is to be tried blindly"


@pytest.mark.parametrize(("method", "text", "either"), QUESTIONS)
def test_either_answer_to_the_question_is_taken(method: str, text: str, either: str, imported: Imported) -> None:
    mark = "," if "234,962" in text else "."
    as_decimal, as_thousands = ("comma", "comma") if mark == "," else ("point", "point")
    assert imported(text, method, decimal=as_decimal).results
    assert imported(text, method, thousands=as_thousands).results


def test_points_that_set_thousands_apart_are_read_so(imported: Imported) -> None:
    first, _ = imported(f"{RATE}512;234.962\n1518;81.274\n", "throughput", thousands="point").results
    assert first.values["ndr_frames_per_s"] == Bounded(value=234_962.0)


@pytest.mark.parametrize(("text", "flags", "frames_per_s"), DECIDED)
def test_what_the_whole_column_decides_is_told_with_its_options(
    text: str, flags: tuple[str, ...], frames_per_s: float, imported: Imported
) -> None:
    with pytest.raises(WrongFileError) as refused:
        imported(text, "throughput")
    [problem] = problems(refused)
    assert problem.flags == flags
    said = dict(zip(("thousands", "decimal"), flags[1::2], strict=False)) if flags[0] == "--thousands" else {}
    first = imported(text, "throughput", **(said or {"decimal": "comma"})).results[0]
    assert first.values["ndr_frames_per_s"] == Bounded(value=frames_per_s)


@pytest.mark.parametrize("text", PLAIN)
def test_nothing_is_asked_where_the_file_shows_a_decimal_point(text: str, imported: Imported) -> None:
    assert imported(text, "throughput").results


def test_a_link_that_is_named_tells_thousands_from_decimals(imported: Imported) -> None:
    text = f"{RATE}512;234.962\n1518;812.740\n"
    with pytest.raises(WrongFileError, match="can be"):
        imported(text, "throughput", link=parse_link("10GbE"))
    assert imported(
        text, "throughput", link=parse_link("100 Mb/s")
    ).results  # 234,962 frames/s are more than it carries


def test_a_number_that_is_written_otherwise_than_the_others_is_told(imported: Imported) -> None:
    with pytest.raises(WrongFileError) as refused:
        imported("Frame size;Frame rate [fps];% of line rate\n64;1.488.095;99.99\n", "throughput")
    assert "`99.99`: it is no number" in str(refused.value)


@given(st.integers(0, 10**12), st.integers(0, 999), st.sampled_from(WRITINGS))
def test_every_way_of_writing_is_read_back(whole: int, thousandths: int, writing: Writing) -> None:
    mark = THOUSANDS[writing.thousands][0] if writing.thousands else ""
    point = "." if writing.decimal == "point" else ","
    text = f"{f'{whole:,}'.replace(',', mark)}{point}{thousandths:03}"
    assert read_number(text, writing).value == whole + Fraction(thousandths, 1000)


@pytest.mark.parametrize("text", ["1_000", "inf", "nan", "1,5", "0x10", "\u0661", "", "1 000", "--1", "1e"])
def test_a_tool_s_number_is_plain_or_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no number"):
        plain_number(text)


@pytest.mark.parametrize("text", ["12.34.5", "1,23,4", "1.2345.678", "1 23", "1'23"])
def test_marks_at_other_places_than_thousands_are_no_number(text: str) -> None:
    for writing in WRITINGS:
        try:
            assert read_number(text, writing).rest, (text, writing)
        except ValueError:
            continue


def test_the_writing_that_nobody_says() -> None:
    assert (POINT.decimal, POINT.thousands) == ("point", None)
