"""A file that is wrong: each format and method tells column, unit or missing cell with its line and column."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from nicbench.cli.main import main
from nicbench.core.errors import WrongFileError
from nicbench.importing.cells import read_sheet
from nicbench.importing.columns import ImportOptions
from nicbench.importing.results import ImportedResults, import_results
from nicbench.methods.frames import Frames
from nicbench.stats.frames import SUM, Target, group_by_point

GOLDEN = Path(__file__).parent / "golden"
IXIA = (GOLDEN / "ixnetwork_aggregate_results.csv").read_text()
SPIRENT = (GOLDEN / "testcenter_throughput.csv").read_text()
LATENCY = "frame size,load [% of line rate],{}\n64,{},{}\n"
FRAMES = "direction,instances,run,{}\n{},{},1,24\n"
LONG = "frame size,metric,value,unit\n{},{},{},{}\n"
TREX = '{{\n "total": {{"opackets": 10, "ipackets": 9}},\n "latency": {{"5": {{"latency": {{"average": {}}}}}}}\n}}\n'

WRONG = [
    ("plain", "latency", LATENCY.format("avg lat [us]", 100, 5), "1:34", "unknown column `avg lat [us]`"),
    ("plain", "latency", LATENCY.format("average latency", 100, 5), "2:8", "it has no unit, which is never guessed"),
    ("plain", "latency", LATENCY.format("average latency [Mpps]", 100, 5), "2:8", "Mpps is no unit of it"),
    ("plain", "latency", LATENCY.format("average latency [us]", "", 5), "2:4", "load ``: it tells rows apart"),
    ("plain", "latency", LATENCY.format("average latency [us]", 100, ""), "2:1", "no row has a `average latency`"),
    ("plain", "frame-loss", "frame size,load [%],lost\n64,100,1\n", "1:21", "unknown column `lost`"),
    ("plain", "frame-loss", "frame size,load [Mpps],loss [%]\n64,100,1\n", "2:4", "Mpps is no unit of it"),
    ("plain", "frame-loss", "frame size,load [%],loss [%]\n64,,1\n", "2:4", "may not be empty"),
    ("plain", "load-sweep", "size,load [%],loss [us]\n64,100,1\n", "2:8", "us is no unit of it"),
    ("plain", "load-sweep", "size,load [%],loss [%]\n,100,1\n", "2:1", "frame size ``: it tells rows apart"),
    ("plain", "single-core", "size,frame rate [Mpps],core clock [us]\n64,1,1\n", "2:6", "us is no unit of it"),
    ("plain", "single-core", "size,frame rate [Mpps],clock [GHz]\n64,1,1\n", "1:24", "unknown column `clock [GHz]`"),
    ("plain", "back-to-back", "size,burst [Mpps]\n64,5\n", "2:4", "Mpps is no unit of it"),
    ("plain", "back-to-back", "size,bursts of frames\n64,5\n", "1:6", "unknown column `bursts of frames`"),
    ("plain", "back-to-back", "size,burst,min\n,5,6\n", "2:1", "frame size ``: it tells rows apart"),
    ("plain", "frames", FRAMES.format("sum [Mb/s]", "read", 1), "2:10", "Mb/s is no unit of it"),
    ("plain", "frames", FRAMES.format("total [fps]", "read", 1), "1:25", "unknown column `total [fps]`"),
    ("plain", "frames", FRAMES.format("sum [fps]", "read", ""), "2:6", "instances ``: it tells rows apart"),
    ("plain", "frames", FRAMES.format("sum [fps]", "sideways", 1), "2:1", "it is none of read, write"),
    ("plain", "stream", "tool,port,throughput [us]\niperf,1,3\n", "2:9", "us is no unit of it"),
    ("plain", "stream", "tool,port,thruput [Mb/s]\niperf,1,3\n", "1:11", "unknown column `thruput [Mb/s]`"),
    ("long", "throughput", LONG.format(64, "frame rte", 1, "Mpps"), "2:4", "unknown column `frame rte`"),
    ("long", "throughput", LONG.format(64, "frame rate", 1, "us"), "2:15", "us is no unit of it"),
    ("long", "throughput", LONG.format(64, "frame rate", "", "Mpps"), "2:1", "no row has a `frame rate`"),
    ("long", "throughput", LONG.format("", "frame rate", 1, "Mpps"), "2:1", "frame size ``: it tells rows apart"),
    ("long", "throughput", LONG.format(64, "frame rate", "many", "Mpps"), "2:15", "`many Mpps`: it is no number"),
    ("ixnetwork", "throughput", IXIA.replace("69955.021", "n.n."), "2:17", "frame rate `n.n.`: it is no number"),
    ("ixnetwork", "throughput", IXIA.replace("1,64,1", "1,,1"), "2:3", "frame size ``: it tells rows apart"),
    ("ixnetwork", "latency", IXIA.replace("13120", "fast"), "2:59", "minimum latency `fast`: it is no number"),
    ("ixnetwork", "frame-loss", IXIA.replace("Frame Loss (%)", "L").replace("Tx C", "C"), "1:7", "no column `loss`"),
    ("testcenter", "throughput", SPIRENT.replace("ConfiguredFrameSize", "Length"), "1:1", "it has no frame size"),
    ("testcenter", "latency", SPIRENT.replace("21.55", "x"), "3:63", "maximum latency `x`: it is no number"),
    ("testcenter", "frame-loss", SPIRENT.replace("0.745", "x"), "2:42", "loss `x`: it is no number"),
    ("trex", "latency", TREX.format("}"), "3:43", "the output of TRex is no JSON"),
    ("trex", "latency", TREX.format('"x"'), "3:32", "latency.5.latency.average is no number"),
    ("trex", "frame-loss", '{\n "total": {"ipackets": 1}}', "2:2", "has no total.opackets"),
    ("trex", "latency", '{"total": {"opackets": 1, "ipackets": 1}}', "1:1", "there is no latency stream in it"),
    ("iperf3", "stream", '{\n "start": {},,\n}', "2:14", "the output of iperf3 is no JSON"),
    ("iperf3", "stream", '{\n "start": {}\n}', "2:2", "has no start.test_start"),
    ("iperf3", "stream", '{"error": "unable to connect"}', "1:1", "iperf3 failed: unable to connect"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "method", "text", "place", "says"), WRONG)
def test_what_is_wrong_is_told_with_its_place(
    form: str, method: str, text: str, place: str, says: str, imported: Callable[..., Any]
) -> None:
    with pytest.raises(WrongFileError) as refused:
        imported(text, method, form)
    problem = next((one for one in refused.value.list_errors() if says in one.message), None)
    assert problem is not None, str(refused.value)
    assert problem.place == f"x.csv:{place}"


TABLE = "Frame size [bytes],Frame rate [Mpps]\n64,37.20\n1518,2.03\n"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results.csv").write_text(TABLE)
    assert main(["import", "results.csv", "--method", "throughput", "--title", "A card"]) == 0
    (found,) = tmp_path.glob("runs/*/report.html")
    return found


def test_every_file_that_it_links_to_is_there(page: Path) -> None:
    files = re.findall(r'href="\./([^"#]+)"', page.read_text())
    assert "raw/results.csv" in files
    assert [name for name in files if not (page.parent / name).exists()] == []


def test_no_column_is_empty_and_no_interval_is_promised(page: Path) -> None:
    first_screen = page.read_text().partition('id="findings"')[0]
    assert "Limited by" not in first_screen
    assert "its interval" not in first_screen


OF_RUNS = "direction,instances,run,sum [fps],target [fps]"
OF_INSTANCES = "direction,run,instances,instance,rate [fps],sum [fps]"


def imported(*lines: str, errata: bool = False) -> ImportedResults:
    return import_results(read_sheet("\n".join(lines), "x.csv"), "x.csv", Frames, ImportOptions(errata=errata))


def refused(*lines: str) -> str:
    """All errors of the file."""
    with pytest.raises(WrongFileError) as error:
        imported(*lines)
    return str(error.value)


@pytest.mark.parametrize("order", list(permutations(["read,1,1,24,24", "read,1,2,24,48"])))
def test_targets_that_contradict_each_other_are_refused_in_either_order(order: tuple[str, ...]) -> None:
    said = refused(OF_RUNS, *order)
    assert re.search(r"x\.csv:3:\d+", said)
    assert "which contradicts line 2" in said


def test_a_target_of_one_instance_beside_sums_is_refused_with_what_it_would_be_of_each() -> None:
    said = refused(OF_RUNS, "read,1,1,24,24", "read,2,1,48,24")
    assert "target 24 fps is 12 fps for each of 2, which contradicts line 2" in said


def test_each_number_of_instances_is_judged_by_its_own_target() -> None:
    found = group_by_point(imported(OF_RUNS, "read,1,1,30,30", "read,2,1,50,60", "write,1,1,24,24").results, Target())
    assert {point[1:]: (one.target, one.over.runs_met) for point, one in found.items()} == {
        ("read", 1): (Target(30.0), 1),
        ("read", 2): (Target(30.0), 0),
        ("write", 1): (Target(24.0), 1),
    }


def test_targets_that_round_to_what_is_printed_agree() -> None:
    assert imported(OF_RUNS, "read,1,1,24.0,24.0", "read,3,1,72.0,71.9").results


def test_the_target_of_an_instance_is_its_own_and_a_summary_has_that_of_all() -> None:
    of_one = imported("instances,run,instance,fps,target [fps]", "2,1,1,30,30", "2,1,2,30,30")
    (one,) = group_by_point(of_one.results, Target()).values()
    assert one.target == Target(30.0)
    of_all = imported("instances,run,sum [fps],target [fps]", "2,1,50,", "2,,,60")
    (both,) = group_by_point(of_all.results, Target()).values()
    assert (both.target, both.is_assumed, both.over.runs, both.over.runs_met) == (Target(30.0), False, 1, 0)


@pytest.mark.parametrize("turned", [False, True])
def test_where_files_contradict_each_other_the_strictest_target_holds(turned: bool) -> None:
    results = [imported(OF_RUNS, row).results[0] for row in ("read,1,1,24,24", "read,1,2,24,48")]
    (one,) = group_by_point(reversed(results) if turned else results, Target()).values()
    assert (one.target, one.over.runs_met) == (Target(48.0), 0)


def test_a_sum_that_is_not_that_of_its_instances_is_refused_or_an_erratum() -> None:
    rows = (OF_INSTANCES, "read,1,2,1,24,", "read,1,2,2,24,", "read,1,2,,,40")
    said = refused(*rows)
    assert re.search(r"x\.csv:4:\d+", said)
    assert "sum 40 fps cannot be: 2 instances, the first on line 2, make another; computed: 48 fps" in said
    [(_, erratum)] = imported(*rows, errata=True).errata
    assert (erratum.value, erratum.printed, erratum.computed) == (SUM, "40 fps", "48 fps")


@pytest.mark.parametrize(
    "rows",
    [
        ("read,1,2,1,24.0,", "read,1,2,2,24.0,", "read,1,2,,,48.1"),
        ("read,1,2,1,24,48", "read,1,2,2,24,48"),
        ("read,1,2,1,24,", "read,1,2,,,40"),
        ("read,1,2,1,24,", "read,1,2,2,24,", "write,1,2,,,40"),
        ("read,1,2,1,24,", "read,1,2,2,24,", "read,2,2,,,40"),
    ],
    ids=["rounded", "on each row", "of instances that are not all known", "another direction", "another run"],
)
def test_a_sum_that_can_be_is_taken(rows: tuple[str, ...]) -> None:
    assert imported(OF_INSTANCES, *rows).results


def test_a_sum_below_the_instances_that_are_known_is_refused() -> None:
    said = refused(OF_INSTANCES, "read,1,3,1,24,", "read,1,3,2,24,", "read,1,3,,,40")
    assert "2 known ones of 3 instances" in said


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("sideways,1,1,1,24,24", "direction 'sideways': it is none of read, write"),
        ("read,0,1,,24,24", "run 0 cannot be: it is counted from 1"),
        ("read,-1,1,1,24,24", "run -1 cannot be: nothing of it can be negative"),
        ("read,1,0,,24,24", "instances 0 cannot be: it is counted from 1"),
        ("read,1,1.5,1,24,24", "instances 1.5 cannot be: there are only whole ones"),
        ("read,1,1e18,1,24,24", "instances 1e18 cannot be: it is 100000 at most"),
        ("read,1,1,0,24,24", "instance 0 cannot be: it is counted from 1"),
        ("read,1,1,1,24,0", "target 0 fps cannot be: it is above 0"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place_and_the_next_step(row: str, said: str) -> None:
    message = refused("direction,run,instances,instance,rate [fps],target [fps]", row)
    assert said in message.replace('"', "'").replace("`", "'")
    assert re.search(r"x\.csv:2:\d+", message)
    assert "next: " in message


def test_a_direction_is_known_in_any_case() -> None:
    [result] = imported(OF_RUNS, "Write,1,1,24,24").results
    assert result.parameters["direction"] == "write"


def test_the_unit_that_is_asked_for_is_the_one_that_fits() -> None:
    assert "--unit 'sum=UNIT': fps\n" in f"{refused('instances,run,sum', '1,1,24')}\n"


def test_dropped_and_due_frames_have_short_headings_too() -> None:
    [result] = imported("instances,run,instance,fps,dropped,due", "1,1,1,24,1,480").results
    assert (result.values["dropped_frames"], result.values["due_frames"]) == (1, 480)
