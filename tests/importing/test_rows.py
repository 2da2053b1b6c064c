"""Units, empty cells and impossible figures, one row at a time; every refusal has its place and a next step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.errors import UsageError, WrongFileError
from nicbench.core.result import Bounded
from nicbench.core.table import Column
from nicbench.importing.cells import read_sheet
from nicbench.importing.columns import ImportOptions, parse_link, parse_unit
from nicbench.importing.results import ImportedResults, import_results, importable, method_of
from nicbench.report.cells import text_of

Imported = Callable[..., ImportedResults]
HEADS = ("frame size", "load [% of line rate]", "rate [Mpps]", "PDR [Gb/s L1]", "% of line rate", "max [us]", "burst")
MORE_HEADS = (
    "p99.9 [ns]",
    "ports",
    "link",
    "duplex",
    "loss [%]",
    "returned [%]",
    "frames outside 10 us",
    "line rate [fps]",
)
LAST_HEADS = ("frames to 99999999999 us", "timed frames", "throughput [Gb/s L2]")
CELLS = ("64", "128", "100", "0", "-1", "1e30", "99.9 %", "5 Mpps", "25GbE", "2x10GbE", "half", "", "-", "n/a", "x")
WORDS = st.sampled_from([*HEADS, *MORE_HEADS, *LAST_HEADS, *CELLS])
LINK = parse_link("1x10GbE")
COLUMN = Column("throughput_bits_per_s", "Throughput", unit="Gb/s", form="gigabits")


@pytest.mark.parametrize(
    ("head", "cell", "frames_per_s"),
    [
        ("frame rate [fps]", "1000000", 1e6),
        ("frame rate [kfps]", "1000", 1e6),
        ("NDR (Mpps)", "1", 1e6),
        ("throughput [Gb/s L2]", "0.512", 1e6),
        ("throughput [Gb/s L1]", "0.672", 1e6),
        ("throughput [MB/s L2]", "64", 1e6),
        ("throughput [% of line rate]", "50", 10e9 / (84 * 8) / 2),
        ("frame rate", "1 Mpps", 1e6),
    ],
)
def test_units_of_a_rate(head: str, cell: str, frames_per_s: float, imported: Imported) -> None:
    (result,) = imported(f"frame size,{head}\n64,{cell}\n", "throughput", link=LINK).results
    rate = result.values["ndr_frames_per_s"]
    assert rate.value == pytest.approx(frames_per_s)
    assert rate.is_bare
    assert not rate.at_least


@pytest.mark.parametrize(("unit", "factor"), [("ns", 1), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)])
def test_units_of_a_latency(unit: str, factor: float, imported: Imported) -> None:
    text = f"frame size,load [% of line rate],max [{unit}]\n64,100,1.5\n"
    (result,) = imported(text, "latency").results
    assert result.values["latency_maximum_ns"] == pytest.approx(1.5 * factor)


def test_a_decimal_comma_in_a_spreadsheet_of_windows(imported: Imported) -> None:
    (result,) = imported("frame size;PDR [Mpps]\r\n64;1,25\r\n", "throughput", decimal="comma").results
    assert result.values["pdr_frames_per_s"] == Bounded(value=1.25e6)
    assert result.imported.printed["pdr_frames_per_s"].text == "1.25"


@pytest.mark.parametrize("empty", ["", "-", "--", "n/a", "\u2013"])
def test_an_empty_cell_is_unknown_and_never_zero(empty: str, imported: Imported) -> None:
    results = imported(f"frame size,frame rate [Mpps]\n64,{empty}\n128,1\n", "throughput").results
    rate = results[0].values["ndr_frames_per_s"]
    assert rate.value is None
    assert results[0].values.get("ndr_percent_of_line_rate") is None


def test_what_the_source_does_not_print_is_computed_and_said(imported: Imported) -> None:
    (result,) = imported("frame size,% of line rate\n64,50\n", "throughput", link=LINK).results
    rate = result.values["ndr_frames_per_s"]
    assert rate.value == pytest.approx(10e9 / 672 / 2)
    assert set(result.imported.computed) == {"ndr_frames_per_s", "line_rate_frames_per_s"}


def test_a_share_of_a_line_rate_that_nobody_names_stands_alone(imported: Imported) -> None:
    (result,) = imported("frame size,% of line rate\n64,50\n", "throughput").results
    assert result.values["ndr_percent_of_line_rate"] == 50.0
    assert result.values["ndr_frames_per_s"] == Bounded(value=None, reason_null="the source has no figure")
    assert not any(name.startswith("pdr") for name in result.values)


def test_bins_alone_are_enough_of_a_latency(imported: Imported) -> None:
    text = "frame size,load [% of line rate],frames,frames outside 20 us\n64,100,1000,5\n"
    (result,) = imported(text, "latency").results
    assert result.values["outside_20000_ns_per_100_million"] == 500_000.0


def test_an_interval_is_kept(imported: Imported) -> None:
    text = "frame size,frame rate [Mpps],frame rate lower [Mpps],frame rate upper [Mpps]\n64,2,1.9,2.1\n"
    (result,) = imported(text, "throughput").results
    assert result.values["ndr_frames_per_s"] == Bounded(value=2e6, lower=1.9e6, upper=2.1e6)


def test_back_to_back(imported: Imported) -> None:
    text = "frame size,back-to-back value,min,max,N,implied buffer time [ms]\n64,100.5,90,110,50,0.25\n"
    (result,) = imported(text, "back-to-back").results
    assert result.values["back_to_back_frames"] == Bounded(value=100.5)
    assert result.values["implied_buffer_time_us"] == pytest.approx(250.0)


def test_a_rate_that_its_rounding_lifts_above_the_line_rate_is_all_of_it(imported: Imported) -> None:
    text = "frame size,frame rate [fps],PDR [fps]\n64,1.49E+06,1.49E+06\n1518,8E+04,\n"
    first, second = imported(text, "throughput", link=parse_link("1x1GbE")).results
    assert first.values["ndr_percent_of_line_rate"] == first.values["pdr_percent_of_line_rate"] == 100.0
    assert second.values["ndr_percent_of_line_rate"] == pytest.approx(98.432)
    text = "frame size,frame rate [Mpps],line rate [Mpps]\n64,1.49,1.488\n"
    (only,) = imported(text, "single-core").results
    assert [share for name, share in only.values.items() if name.endswith("percent_of_line_rate")] == [100.0]


def test_an_erratum_above_the_line_rate_keeps_its_share(imported: Imported) -> None:
    (result,) = imported("size,rate [fps]\n64,1600000\n", "throughput", link=parse_link("1GbE"), errata=True).results
    assert result.values["ndr_percent_of_line_rate"] == pytest.approx(107.52)


@pytest.mark.parametrize(
    ("method", "counts", "loss"),
    [
        ("frame-loss", "offered frames,lost frames\n64,100,1000,100", ("loss_percent", 10.0)),
        ("frame-loss", "tx frames,rx frames\n64,100,1000,900", ("loss_percent", 10.0)),
        ("frame-loss", "offered frames,lost frames\n64,100,1000,0", ("loss_percent", 0.0)),
        ("load-sweep", "offered frames,lost frames\n64,100,1000,100", ("returned_percent", 90.0)),
    ],
)
def test_a_loss_that_is_not_printed_follows_from_counts(
    method: str, counts: str, loss: tuple[str, float], imported: Imported
) -> None:
    (result,) = imported(f"frame size,load [%],{counts}\n", method).results
    assert result.values[loss[0]] == pytest.approx(loss[1])
    assert loss[0] in result.imported.computed


def test_one_count_says_nothing_of_a_loss(imported: Imported) -> None:
    with pytest.raises(WrongFileError, match="there is no column `loss` or `returned`"):
        imported("frame size,load [%],lost frames\n64,100,100\n", "frame-loss")


MERGED = [
    ("throughput", "NIC,Frame size,Frame rate [Mpps]\nA,64,37.2\n,512,5.87\nB,128,21.1\n", "NIC", ("NIC",)),
    ("throughput", "Link,Frame size,Frame rate [Mpps]\n25GbE,64,37.2\n,512,5.87\n", "Link", ()),
    ("stream", "Tool,Port,Throughput [Mb/s]\niperf3,s0,941\n,s1,938\nnuttcp,s2,930\n", "Tool", ()),
    ("stream", "Tool,Port,Client,Throughput [Mb/s]\niperf3,s0,a,941\niperf3,,b,938\n", "Port", ()),
    ("latency", "Frame size,Load [% of line rate],max [us]\n64,50,5\n,100,9\n", "Frame size", ()),
    ("frames", "Direction,Instances,Run,Sum [fps]\nread,1,1,24\n,1,2,25\n", "Direction", ()),
    ("back-to-back", "Card,Port,Frame size,Burst\nA,1,64,50\n,,512,25\n", "Port", ("Card", "Port")),
]  # fmt: skip


@pytest.mark.parametrize(("method", "text", "head", "configurations"), MERGED)
def test_an_empty_cell_where_others_tell_rows_apart_is_refused_or_the_value_above(
    method: str, text: str, head: str, configurations: tuple[str, ...], imported: Imported
) -> None:
    with pytest.raises(WrongFileError) as refused:
        imported(text, method, configurations=configurations)
    asked = [problem.flags for problem in refused.value.problems]
    assert ("--repeat", head) in asked
    repeated = tuple(flags[1] for flags in asked)
    results = imported(text, method, configurations=configurations, repeat=repeated).results
    assert len(results) == text.count("\n") - 1
    assert not any(result.configuration == "default" for result in results if configurations)


def test_a_first_cell_that_is_empty_has_no_value_above(imported: Imported) -> None:
    text = "NIC,Frame size,Frame rate [Mpps]\n,64,37.2\nA,512,5.87\n"
    for repeat in ((), ("NIC",)):
        with pytest.raises(WrongFileError, match="`NIC` is empty") as refused:
            imported(text, "throughput", configurations=("NIC",), repeat=repeat)
        assert refused.value.problems[0].flags == ()


def test_an_instance_of_no_run_is_refused_where_others_have_one(imported: Imported) -> None:
    text = "instances,run,instance,rate [fps]\n2,1,1,24\n2,,2,25\n2,2,1,24\n2,,2,25\n"
    with pytest.raises(WrongFileError, match="`run` is empty, and the row is of a part of one") as refused:
        imported(text, "frames")
    assert refused.value.problems[0].flags == ("--repeat", "run")
    assert [result.parameters["run"] for result in imported(text, "frames", repeat=("run",)).results] == [1, 1, 2, 2]


def test_empty_cells_of_a_run_of_all_its_instances_say_so(imported: Imported) -> None:
    text = "instances,run,instance,rate [fps],sum [fps]\n2,1,1,24,\n2,1,2,24,\n2,1,,,48\n"
    assert len(imported(text, "frames").results) == 3


WRONG = [
    ("frame size,frame rate\n64,1\n", "2:4", {}, "it has no unit, which is never guessed", "--unit 'frame rate=UNIT'"),
    ("frame size,rate [Gb/s]\n64,1\n", "2:4", {}, "whether that is of layer 1 or of layer 2", "`Gb/s L2`"),
    ("frame size,rate [%]\n64,1\n", "2:4", {}, "a share of the line rate needs the link's speed", "--link-speed"),
    ("frame size,rate [us]\n64,1\n", "2:4", {}, "us is no unit of it", "Mpps"),
    ("frame size,rate [Mpps]\n63,1\n", "2:1", {}, "a whole number of bytes from 64 to 65535", ""),
    ("frame size,rate [Mpps]\n64.5,1\n", "2:1", {}, "a whole number of bytes from 64 to 65535", ""),
    ("frame size,rate [Mpps]\n,1\n", "2:1", {}, "it tells rows apart and may not be empty", "write it"),
    ("frame size,rate [Mpps]\n64,fast\n", "2:4", {}, "rate `fast`: it is no number", "write a number"),
    ("frame size,rate [Mpps]\n64,1\n64,2\n", "3:1", {}, "about the same as line 2", "--where"),
    ("frame size,rate [Mpps]\n64,\n", "2:1", {}, "no row has a `frame rate`", "chosen"),
    ("size,rte [Mpps]\n64,1\n", "1:6", {}, "unknown column `rte [Mpps]`", "did you mean `frame rate`? expected are"),
    ("frame size,colour\n64,red\n", "1:12", {}, "unknown column `colour`", "--ignore 'colour' leaves it out"),
    ("frame size,rate [Mpps],NDR [Mpps]\n64,1,1\n", "1:24", {}, "are both the frame rate", "--ignore"),
    ("rate [Mpps]\n1\n", "1:1", {}, "there is no column `frame size`", "--set 'frame size=...'"),
    ("frame size,loss [%]\n64,1\n", "1:1", {}, "there is no column `frame rate` or `PDR`", "expected are"),
    (
        "frame size,rate [Mpps]\n64,14.90\n",
        "2:4",
        {"link": LINK},
        "frame rate 14.90 Mpps cannot be: the line",
        "--errata",
    ),
    (
        "frame size,rate [Mpps]\n64,-1\n",
        "2:4",
        {},
        "frame rate -1 Mpps cannot be: nothing of it can be neg",
        "--errata",
    ),
    (
        "frame size,rate [Mpps],line rate [Mpps]\n64,2,1.0\n",
        "2:4",
        {},
        "line carries no more; computed: 1 Mpps",
        "--errata",
    ),
    ("frame size,rate [Mpps],% of line rate\n64,14.88,90\n", "2:10", {"link": LINK}, "computed: 99.9936 %", "--errata"),
    ("frame size,% of line rate\n64,101\n", "2:4", {}, "% of line rate 101 % cannot be: 100 % is all", "--errata"),
    (
        "frame size,rate [Mpps],PDR [Mpps]\n64,2,1.0\n",
        "2:6",
        {},
        "cannot be less than the frame rate, 2 Mpps",
        "--errata",
    ),
]


@pytest.mark.parametrize(("text", "place", "options", "message", "hint"), WRONG)
def test_a_wrong_throughput_table(
    text: str, place: str, options: dict[str, Any], message: str, hint: str, imported: Imported
) -> None:
    with pytest.raises(WrongFileError) as refused:
        imported(text, "throughput", **options)
    problem = next(one for one in refused.value.list_errors() if message in one.message)
    assert problem.place == f"x.csv:{place}"
    assert hint in (problem.next_step or "")


IMPOSSIBLE = [
    ("latency", "size,load [% of line rate],min [us],avg [us]\n64,100,5.0,4.0\n", "latency_mean_ns", "5 us"),
    ("latency", "size,load [% of line rate],p99 [us],p50 [us]\n64,100,5.0,6.0\n", "latency_p99_ns", "6 us"),
    ("latency", "size,load [% of line rate],max [us]\n64,120,5\n", "load_percent", "100 %"),
    ("frame-loss", "size,load [%],loss [%],returned [%]\n64,100,20,90\n", "returned_percent", "80 %"),
    ("frame-loss", "size,load [%],loss [%],lost frames,sent frames\n64,100,20,1,10\n", "loss_percent", "10 %"),
    ("frame-loss", "size,load [%],loss [%],sent frames,rx frames\n64,100,0,10,11\n", "offered_frames", "11 frames"),
    ("load-sweep", "size,load [%],returned [%]\n64,300,101\n", "returned_percent", "100 %"),
    ("back-to-back", "size,burst,min\n64,5,6\n", "back_to_back_frames", "6"),
    ("back-to-back", "size,burst,min\n64,5,1.5\n", "minimum_frames", None),
]


@pytest.mark.parametrize(("method", "text", "name", "computed"), IMPOSSIBLE)
def test_what_cannot_be_is_refused_or_listed_as_it_is_printed(
    method: str, text: str, name: str, computed: str | None, imported: Imported
) -> None:
    with pytest.raises(WrongFileError, match="cannot be"):
        imported(text, method)
    ((result, erratum),) = imported(text, method, errata=True).errata
    assert (erratum.value, erratum.computed) == (name, computed)
    assert erratum.printed.startswith(result.imported.printed[name].text)


def test_an_overload_of_several_ports_is_at_its_own_rate_and_no_higher(imported: Imported) -> None:
    text = "size,load [% of line rate],load rate [kpps],returned [%]\n64,150,{},66.7\n"
    (result,) = imported(text.format(22321), "load-sweep", link=LINK).results
    assert result.values["load_frames_per_s"] == pytest.approx(22_321e3)
    with pytest.raises(WrongFileError, match="the line carries no more"):
        imported(text.format(22400), "load-sweep", link=LINK)


def test_a_load_says_of_what(imported: Imported) -> None:
    text = "size,load [%],max [us]\n64,50,5\n"
    with pytest.raises(WrongFileError, match="it is not said what 100 % is"):
        imported(text, "latency")
    unit = parse_unit("% of throughput")
    assert unit is not None
    (result,) = imported(text, "latency", units={"load [%]": unit}).results
    assert result.parameters["load_of"] == "throughput"


def test_an_option_that_names_a_column_the_file_has_not_is_refused(imported: Imported) -> None:
    for option in (
        {"ignore": ("rat",)},
        {"where": {"rat": "1"}},
        {"columns": {"rat": "x"}},
        {"configurations": ("rat",)},
    ):
        with pytest.raises(UsageError, match="the file has no column `rat`") as refused:
            imported("frame size,rate\n64,1\n", "throughput", **option)  # fmt: skip
        assert refused.value.next_step == "did you mean `rate`?"


def test_rows_that_nobody_has_are_told_with_those_there_are(imported: Imported) -> None:
    with pytest.raises(UsageError, match="no row has nic = x") as refused:
        imported("nic,frame size,rate [Mpps]\na,64,1\nb,64,1\n", "throughput", where={"nic": "x"})
    assert refused.value.next_step == "its values are: a, b"


@given(st.lists(st.lists(WORDS, min_size=1, max_size=4), min_size=2, max_size=4), st.sampled_from(list(importable())))
def test_whatever_stands_in_a_table_it_is_results_or_an_error_for_its_user(table: list[list[str]], method: str) -> None:
    text = "\n".join(",".join(row) for row in table)
    told = []
    try:
        found = import_results(
            read_sheet(text, "x.csv"), "x.csv", method_of(method), ImportOptions(link=LINK, errata=True)
        )
        told = [result.model_dump_json() for result in found.results]
    except UsageError as error:
        told = [error.message]
    assert all(told)


def test_a_method_without_imports_says_which_have_them(imported: Imported) -> None:
    with pytest.raises(UsageError, match="results of `soak` cannot be imported") as refused:
        imported("a\n1\n", "soak")
    assert "`throughput`" in str(refused.value.next_step)
    with pytest.raises(UsageError, match="there is no method `speed`"):
        imported("a\n1\n", "speed")


@pytest.mark.parametrize(
    ("head", "cell", "shown"),
    [
        ("throughput [Mb/s]", "327.90", "0.32790"),
        ("throughput [kb/s]", "500", "0.000500"),
        ("throughput [Gb/s]", "9.4", "9.4"),
        ("throughput [b/s]", "9412345678.25", "9.41"),  # as a program prints: cut
    ],
)
def test_a_source_s_digits_are_shown_in_the_unit_of_the_column_too(
    head: str, cell: str, shown: str, imported: Imported
) -> None:
    results = imported(f"tool,port,{head}\niperf,1,{cell}\n", "stream").results
    assert text_of(COLUMN, results[0]) == shown
