"""A file that is wrong: each format and method tells column, unit or missing cell with its line and column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import WrongFileError

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
    ("ixnetwork", "frame-loss", IXIA.replace("Agg Frame Loss (%)", "Lost"), "1:7", "there is no column `loss`"),
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
