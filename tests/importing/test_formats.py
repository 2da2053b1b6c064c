"""Exports of testers. Each format's file describes it; here a golden file of each, and its results.

The figures of the IxNetwork file are those that the maker's own sample script prints of a flow; TestCenter's are made
up, in the columns that public programs read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import UsageError, WrongFileError
from nicbench.core.registry import find
from nicbench.core.result import Bounded
from nicbench.importing.cells import Dialect
from nicbench.importing.columns import ImportOptions, parse_link
from nicbench.importing.folder import GivenFile, import_files
from nicbench.importing.formats.base import Format
from nicbench.importing.formats.documents import Iperf3Json, TrexStatistics
from nicbench.importing.formats.tables import Tframetest
from nicbench.importing.results import ImportedResults, method_of
from nicbench.methods.frames import Frames
from nicbench.methods.stream import Stream
from nicbench.stats.frames import RATE

Imported = Callable[..., ImportedResults]
GIGABIT, TEN_GIGABIT = parse_link("1x1GbE"), parse_link("1x10GbE")


def test_every_format_says_what_it_is() -> None:
    formats = find("nicbench.importing.formats", Format)
    assert {"iperf3", "ixnetwork", "long", "plain", "testcenter", "tframetest", "trex", "wide"} < set(formats)
    assert all(one.about for one in formats.values())


def test_ixnetwork_latency(imported: Imported, golden: Path) -> None:
    text = (golden / "ixnetwork_aggregate_results.csv").read_text()
    (result,) = imported(text, "latency", "ixnetwork").results
    assert (result.parameters["load_percent"], result.parameters["load_of"]) == (10.0, "line rate")
    latencies = ("latency_minimum_ns", "latency_mean_ns", "latency_maximum_ns")
    assert [result.values[name] for name in latencies] == [13_120, 112_147_705, 257_539_360]
    assert result.values["loss_ratio"] == pytest.approx(2e-5)


def test_ixnetwork_throughput_that_allowed_loss_is_a_pdr(imported: Imported, golden: Path) -> None:
    text = (golden / "ixnetwork_aggregate_results.csv").read_text()
    with pytest.raises(UsageError, match=r"loss 0.002 % cannot be: the rate beside it was found without loss"):
        imported(text, "throughput", "ixnetwork", link=GIGABIT)
    (result,) = imported(text, "throughput", "ixnetwork", link=GIGABIT, loss_ratio=0.005).results
    assert result.values["pdr_frames_per_s"] == Bounded(value=69955.021)
    assert result.values["pdr_percent_of_line_rate"] == 4.701
    assert result.values["line_rate_frames_per_s"] == pytest.approx(1e9 / (84 * 8))


def test_ixnetwork_frame_loss(imported: Imported, golden: Path) -> None:
    text = (golden / "ixnetwork_aggregate_results.csv").read_text()
    (result,) = imported(text, "frame-loss", "ixnetwork").results
    names = ("offered_frames", "returned_frames", "lost_frames", "loss_percent")
    assert [result.values[name] for name in names] == [1_488_095, 1_488_068, 27, 0.002]


def test_several_trials_are_not_thrown_together(imported: Imported, golden: Path) -> None:
    head, row, *_ = (golden / "ixnetwork_aggregate_results.csv").read_text().splitlines()
    text = "\n".join([head, row, row.replace("1,64", "2,64", 1)])
    with pytest.raises(UsageError, match="about the same as line 2"):
        imported(text, "latency", "ixnetwork")
    (result,) = imported(text, "latency", "ixnetwork", where={"Trial": "2"}).results
    assert result.imported.line == 3


def test_testcenter_throughput_is_the_highest_load_that_passed(imported: Imported, golden: Path) -> None:
    text = (golden / "testcenter_throughput.csv").read_text()
    found = imported(text, "throughput", "testcenter", link=TEN_GIGABIT)
    rates = [result.values["ndr_frames_per_s"] for result in found.results]
    assert rates == [
        Bounded(value=11_160_714.0),
        Bounded(value=8_445_945.0),
        Bounded(value=None, reason_null="the source has no figure"),
    ]
    assert [result.imported.line for result in found.results if result.imported] == [4, 6, 7]


ITERATIONS = """\
TrialNumber{0}FrameSize{0}Load(%){0}Result{0}ForwardingRate(fps){0}PercentLoss
1{0}64{0}{1}{0}Passed{0}156250{0}0
1{0}64{0}{2}{0}Passed{0}747768{0}0
1{0}64{0}{3}{0}Failed{0}1300000{0}1
"""


@pytest.mark.parametrize(
    ("mark", "loads", "options"),
    [
        (";", ("10,5", "50,25", "97,5"), {"decimal": "comma"}),
        (",", ("10.5%", "50.25%", "97.5 %"), {}),
        (",", ("9.125", "50.250", "97.500"), {}),
        (";", ("9,5 %", "50,25 %", "100 %"), {"decimal": "comma"}),
    ],
)
def test_testcenter_s_iterations_are_compared_by_the_numbers_that_they_print(
    mark: str, loads: tuple[str, ...], options: dict[str, str], imported: Imported
) -> None:
    (result,) = imported(ITERATIONS.format(mark, *loads), "throughput", "testcenter", **options).results
    assert result.values["ndr_frames_per_s"] == Bounded(value=747_768.0)


@pytest.mark.parametrize(
    ("loads", "says"),
    [
        (("10,5", "50,25", "97,5"), "`10,5`: its decimal mark is a comma"),
        (("10.5", "most", "97.5"), "`most`: it is no number"),
        (("10.5", "", "97.5"), "``: it is no number"),
    ],
)
def test_testcenter_s_loads_that_cannot_be_read_are_refused(
    loads: tuple[str, ...], says: str, imported: Imported
) -> None:
    with pytest.raises(WrongFileError) as refused:
        imported(ITERATIONS.format(";", *loads), "throughput", "testcenter")
    assert says in str(refused.value)


def test_testcenter_latency_is_at_every_load(imported: Imported, golden: Path) -> None:
    text = (golden / "testcenter_throughput.csv").read_text()
    results = imported(text, "latency", "testcenter").results
    assert [result.parameters["load_percent"] for result in results] == [100.0, 50.0, 75.0, 87.5, 100.0, 1.0]
    assert results[1].values["latency_maximum_ns"] == 21_550


@pytest.mark.parametrize("form", ["ixnetwork", "testcenter"])
def test_a_table_of_something_else_is_no_export(form: str, imported: Imported) -> None:
    with pytest.raises(UsageError, match="this is no table of"):
        imported("frame size,frame rate [Mpps]\n64,1\n", "throughput", form)
    with pytest.raises(UsageError, match="nothing is known of how"):
        imported("Framesize,x\n64,1\n", "single-core", form)


def test_a_long_table_needs_its_columns_and_each_figure_once(imported: Imported) -> None:
    with pytest.raises(UsageError, match="there is no column `metric`"):
        imported("a,value\n1,2\n", "latency", "long")
    with pytest.raises(UsageError, match="stands on line 2 already"):
        imported("metric,value\nmin,2\nmin,3\n", "latency", "long")


RECORDED = Path(__file__).parents[1] / "golden/workloads"


def text_of(case: str) -> str:
    return (RECORDED / f"iperf3-{case}.client.txt").read_text()


def imported_as(format_: Any, method: Any, name: str, *texts: str, **said: Any) -> ImportedResults:
    files = [GivenFile(Path(name.format(number)), text.encode()) for number, text in enumerate(texts, 1)]
    return import_files(files, format_, (method,), ImportOptions(**said), Dialect())


imported = partial(imported_as, Iperf3Json, Stream, "client {}.json")


@pytest.mark.parametrize(
    ("case", "modes"),
    [
        ("3.12-tcp", ["TCP to the server, writes of 8192 bytes, 2 connections"]),
        ("3.12-tcp-reverse", ["TCP from the server, writes of 131072 bytes"]),
        (
            "3.12-tcp-bidir",
            [
                "TCP both ways at once, to the server, writes of 131072 bytes",
                "TCP both ways at once, from the server, writes of 131072 bytes",
            ],
        ),
        ("3.9-tcp-omit", ["TCP to the server, writes of 131072 bytes"]),
        ("3.12-tcp-bytes", ["TCP to the server, writes of 8192 bytes"]),
        ("3.12-udp", ["UDP to the server, writes of 1400 bytes"]),
        ("3.16-udp", ["UDP to the server, writes of 1398 bytes"]),
    ],
)
def test_what_was_sent_is_told_as_of_measured_streams(case: str, modes: list[str]) -> None:
    assert [one.parameters["mode"] for one in imported(text_of(case)).results] == modes


def test_a_throughput_is_what_the_receiver_got() -> None:
    text = text_of("3.12-tcp")
    (result,) = imported(text).results
    received = json.loads(text)["end"]["sum_received"]["bits_per_second"]
    assert result.values["throughput_bits_per_s"] == pytest.approx(received, rel=1e-14)
    assert result.values["retransmissions"] == json.loads(text)["end"]["sum_sent"]["retransmits"]
    assert result.parameters["workload"] == "iperf3 3.12"
    assert result.parameters["port"] == "port 198.18.90.2"
    assert text.splitlines()[result.imported.line - 1].strip().startswith('"sum_received"')


def test_lost_datagrams_are_a_share_of_those_sent() -> None:
    text = text_of("3.16-udp")
    (result,) = imported(text).results
    end = json.loads(text)["end"]
    lost = 100.0 * end["sum_received"]["lost_packets"] / end["sum_sent"]["packets"]
    assert result.values["lost_datagrams_percent"] == pytest.approx(lost)


def test_several_files_of_the_same_are_told_apart_by_their_names() -> None:
    text = text_of("3.12-tcp")
    with pytest.raises(UsageError, match=r"client 2.json: is about the same as client 1.json") as refused:
        imported(text, text)
    assert "--configuration file" in str(refused.value)
    assert [one.configuration for one in imported(text, text, configurations=("file",)).results] == [
        "client 1",
        "client 2",
    ]
    ports = [one.parameters["port"] for one in imported(text, text, columns={"file": "port"}, ignore=("port",)).results]
    assert ports == ["port client 1", "port client 2"]


def test_more_than_the_link_carries_is_refused_with_its_place() -> None:
    with pytest.raises(WrongFileError, match=r"client 1.json:\d+:\d+: throughput .* the link carries no more"):
        imported(text_of("3.12-tcp"), link=parse_link("1 Mb/s"))


def changed(case: str, *path: str, to: object) -> str:
    whole = part = json.loads(text_of(case))
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = to
    return json.dumps(whole)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[1]", "no JSON object"),
        ("{}", "has no start"),
        ('{"event":"start"}\n{"event":"end"}', "has no start"),
        ((RECORDED / "iperf3-3.12-tcp.server.txt").read_text(), "written by iperf3's server"),
        (text_of("3.12-refused"), "unable to connect to server"),
        (text_of("3.12-tcp")[:2000], "is no JSON"),
        (changed("3.12-tcp", "start", "test_start", "protocol", to="SCTP"), "iperf3 sent sctp"),
        (changed("3.12-tcp", "end", "sum_received", "bits_per_second", to=None), "has no end.sum_received"),
        (changed("3.12-tcp", "end", "sum_received", "bits_per_second", to="9"), "is no number"),
        (changed("3.12-tcp", "end", "sum_received", "bits_per_second", to=-1.0), "cannot be"),
        (changed("3.12-tcp", "end", "sum_received", "bits_per_second", to=1e300), "cannot be"),
    ],
)
def test_what_is_no_such_file_is_refused(text: str, refused: str) -> None:
    with pytest.raises(WrongFileError, match=refused):
        imported(text)


def test_names_in_the_file_are_texts_and_no_more() -> None:
    text = changed("3.12-tcp", "start", "connecting_to", to={"host": "=cmd|\x1b[2J\n<b>" + "x" * 5000, "port": 1})
    (result,) = imported(text).results
    port = result.parameters["port"]
    assert port.isprintable()
    assert len(port) < 250


STATS = {
    "0": {"opackets": 1000, "ipackets": 0, "obytes": 60000, "ibytes": 0},
    "1": {"opackets": 0, "ipackets": 990, "obytes": 0, "ibytes": 59400},
    "total": {"opackets": 1000, "ipackets": 990, "obytes": 60000, "ibytes": 59400},
    "global": {"cpu_util": 3.5, "queue_full": 0},
    "flow_stats": {},
    "latency": {
        "global": {"bad_hdr": 0, "old_flow": 0},
        "5": {
            "latency": {"average": 21.5, "total_min": 10, "total_max": 84, "jitter": 3, "histogram": {"20": 7}},
            "err_cntrs": {"dropped": 0, "out_of_order": 0},
        },
        "7": {"latency": {"average": 30, "total_max": 90}, "err_cntrs": {}},
    },
}
GIVEN = {"frame size": "64", "load [% of line rate]": "50"}


def test_several_tests_in_a_file_are_told_apart_by_their_number() -> None:
    one, other = text_of("3.12-tcp"), text_of("3.12-tcp-reverse")
    found = imported(f"{one}\n{other}").results
    assert [result.parameters["direction"] for result in found] == ["forward", "reverse"]
    assert [result.imported.line for result in found if result.imported][1] > one.count("\n")
    with pytest.raises(WrongFileError, match="about the same"):
        imported(f"{one}\n{one.replace('52', '53', 1)}")
    named = imported(f"{one}\n{one.replace('52', '53', 1)}", configurations=("test",)).results
    assert [result.configuration for result in named] == ["1", "2"]
    assert len(imported(f"{one}\n{one}").results) == 1, "iperf3 3.16 may print its report twice"


def test_events_of_json_stream_are_the_document_that_they_make_up() -> None:
    whole = json.loads(text_of("3.12-tcp"))
    lines = [
        {"event": "start", "data": whole["start"]},
        *({"event": "interval", "data": one} for one in whole["intervals"]),
        {"event": "end", "data": whole["end"]},
    ]
    streamed = imported("\n".join(map(json.dumps, lines)))
    assert [one.values for one in streamed.results] == [one.values for one in imported(text_of("3.12-tcp")).results]
    with pytest.raises(WrongFileError, match="has no end"):
        imported("\n".join(map(json.dumps, lines[:-1])))
    with pytest.raises(WrongFileError, match="iperf3 failed: unable"):
        imported("\n".join(map(json.dumps, [*lines[:1], {"event": "error", "data": "unable to connect"}])))


INSTANCE = "case,profile,threads,frames,bytes,time,fps,bps,mibps,fmin,favg,fmax\n{}"
OF_CASES = '"write","4k",1,{0},397440000,10000000000,{1:.6f},39744000.0,37.9,1,2.0,9,\n'


film_imported = partial(imported_as, Tframetest, Frames, "i{}.csv")


def test_files_of_tframetest_are_instances_of_a_run() -> None:
    texts = [INSTANCE.format(OF_CASES.format(frames, frames / 10)) for frames in (240, 235)]
    found = film_imported(*texts).results
    assert [(one.parameters["instance"], one.parameters["instances"]) for one in found] == [(1, 2), (2, 2)]
    assert [one.values[RATE] for one in found] == [24.0, 23.5]
    runs = film_imported(*texts, columns={"file number": "run"}).results
    assert [(one.parameters["instances"], one.parameters["run"]) for one in runs] == [(1, 1), (1, 2)]


def test_what_tframetest_itself_wrote_is_read(golden: Path) -> None:
    """Two instances of 3025.10.2, which wrote 24 frames each and then read them."""
    texts = [(golden / f"tframetest_3025.10.2_{number}.csv").read_text() for number in (1, 2)]
    found = film_imported(*texts).results
    assert [(one.parameters["direction"], one.parameters["instance"]) for one in found] == [
        ("write", 1), ("read", 1), ("write", 2), ("read", 2),
    ]  # fmt: skip
    assert [one.values[RATE] for one in found] == [317.243409, 186.33028, 310.620881, 168.7201]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (INSTANCE.format(OF_CASES.format(240, 25.0)), "2:42: fps 25.000000 cannot be: 240 frames in 10000000000 ns"),
        (INSTANCE.format(OF_CASES.format("2_40", 24.0)), "is no number as tframetest prints it"),
        (INSTANCE.format(OF_CASES.format(240, 24.0)).replace("fps", "rate"), "it has no column `fps`"),
        (INSTANCE.format(OF_CASES.format(240, 24.0)).replace('"write"', '"scan"'), "it is none of read, write"),
    ],
)
def test_what_tframetest_cannot_have_written_is_refused(text: str, says: str) -> None:
    with pytest.raises(WrongFileError) as refused:
        film_imported(text)
    assert says in str(refused.value)


def trex_imported(stats: object, method: str, **said: Any) -> ImportedResults:
    text = stats if isinstance(stats, str) else json.dumps(stats)
    files = [GivenFile(Path("stats.json"), text.encode())]
    return import_files(files, TrexStatistics, (method_of(method),), ImportOptions(given=GIVEN, **said), Dialect())


def test_frames_of_all_ports_are_a_frame_loss() -> None:
    (result,) = trex_imported(STATS, "frame-loss").results
    assert (result.values["offered_frames"], result.values["returned_frames"]) == (1000, 990)
    assert result.values["loss_percent"] == 1.0
    assert (result.parameters["frame_bytes"], result.parameters["load_percent"]) == (64, 50.0)


def test_latencies_are_those_of_each_packet_group() -> None:
    first, second = trex_imported(STATS, "latency", configurations=("packet group",)).results
    names = ("latency_minimum_ns", "latency_mean_ns", "latency_maximum_ns")
    assert [first.values.get(name) for name in names] == [10_000, 21_500, 84_000]
    assert [second.values.get(name) for name in names] == [None, 30_000, 90_000]
    assert (first.configuration, second.configuration) == ("5", "7")
    (chosen,) = trex_imported(STATS, "latency", where={"packet group": "7"}).results
    assert chosen.values["latency_maximum_ns"] == 90_000


def test_two_groups_are_not_thrown_together() -> None:
    with pytest.raises(WrongFileError, match="about the same"):
        trex_imported(STATS, "latency")


def test_more_than_was_sent_is_refused() -> None:
    wrong = {**STATS, "total": {"opackets": 10, "ipackets": 11}}
    with pytest.raises(WrongFileError, match=r"stats.json:1:1: "):
        trex_imported(wrong, "frame-loss")


@pytest.mark.parametrize(
    ("stats", "method", "refused"),
    [
        ("", "latency", "is no JSON"),
        ("[" * 100_000, "latency", "is no JSON"),
        ({"0": {}}, "frame-loss", "has no total"),
        ({"total": {"opackets": "many", "ipackets": 1}}, "frame-loss", "total.opackets is no number"),
        ({"total": {"opackets": 1, "ipackets": 1}}, "latency", "there is no latency stream"),
        ({**STATS, "latency": {"5": []}}, "latency", "has no latency.5"),
        (STATS, "throughput", "nothing of `throughput`"),
    ],
)
def test_what_is_no_such_file_is_refused_of_trex(stats: object, method: str, refused: str) -> None:
    with pytest.raises(UsageError, match=refused):
        trex_imported(stats, method)
