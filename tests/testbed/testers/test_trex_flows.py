"""TRex sends as many flows as the bench file asks for, and what it cannot make is refused beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.testbed.testers.trex_bench import LOSS, bench, run
from tests.testbed.testers.trex_flows import addresses_of

from nicbench.bench_file import WrongBenchFileError, parse
from nicbench.core.traffic import Traffic
from nicbench.engine.trex_process import make_stream
from nicbench.testbed.addressing import flow_headers
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.testers._trex_traffic import flow_program, udp_frame

SOURCE, DESTINATION = "198.18.64.0", "198.19.64.0"


def way_of(sources: int, destinations: int) -> Addressing:
    return Addressing(0, 1, "02:00:00:00:00:01", "02:00:00:00:00:02", 4, SOURCE, DESTINATION, sources, destinations)


def stream_of(traffic: Traffic, way: Addressing) -> Any:
    from trex.stl import api  # its stand-in

    asked = {
        "packet": udp_frame(traffic, way, 64).hex(),
        "program": flow_program(traffic, way),
        "frames_per_s": 1000.0,
        "frames": None,
        "group": 1,
        "stamped": False,
    }
    return make_stream(api, asked)


@pytest.mark.sampled(18)
@pytest.mark.parametrize(
    ("flows", "addresses", "counts"),
    [
        (1, None, (32_768, 32_768)),
        (256, None, (32_768, 32_768)),
        (1024, 32, (32_768, 32_768)),
        (1024, None, (254, 254)),
        (1000, 40, (32_768, 32_768)),
        (254, None, (254, 1)),
        (96, None, (8, 254)),
        (16, 4, (254, 254)),
        (30, None, (1, 254)),
    ],
)
@pytest.mark.parametrize("cores", [1, 2, 3, 4, 7, 16])
def test_there_are_as_many_flows_as_were_asked_for_on_any_number_of_cores(
    flows: int, addresses: int | None, counts: tuple[int, int], cores: int, trex: Any
) -> None:
    traffic, way = Traffic(flows=flows, addresses=addresses), way_of(*counts)
    sent = addresses_of(stream_of(traffic, way), 2 * flows * cores, cores)
    assert len(set(sent)) == flows
    assert {sent.count(flow) for flow in set(sent)} == {2 * cores}  # none has more frames than another
    limit = addresses or 2**32
    assert len({source for source, _ in sent}) <= min(limit, counts[0])
    assert len({destination for _, destination in sent}) <= min(limit, counts[1])


@pytest.mark.parametrize(("flows", "addresses"), [(1024, 32), (256, None), (4096, 64)])
def test_where_the_digits_are_whole_the_flows_are_those_of_our_own_engine(
    flows: int, addresses: int | None, trex: Any
) -> None:
    traffic, way = Traffic(flows=flows, addresses=addresses), way_of(32_768, 32_768)
    own = {
        (int.from_bytes(headers.source), int.from_bytes(headers.destination))
        for (stream,) in [traffic.port_streams()]
        for headers in flow_headers(stream, way)
    }
    assert set(addresses_of(stream_of(traffic, way), flows)) == own


def test_a_whole_run_sends_all_its_flows(trex: Any, tmp_path: Path) -> None:
    status, _ = run(tmp_path, bench(LOSS, traffic="addresses: 4").replace("flows: 8", "flows: 12"))
    assert status == 0
    ((_, stream),) = trex.SERVER.starts[1]["streams"]
    assert len(set(addresses_of(stream, 100))) == 12


@pytest.mark.parametrize(
    ("flows", "dut", "traffic", "says", "instead"),
    [
        (17, "{kind: external}", "addresses: 4", "4 source and 4 destination addresses: too few for 17 flows", 16),
        (13, "{kind: external}", "addresses: 4", "no numbers of them make 13 flows", 12),
        (
            257,
            "{kind: external, addresses: [{count: 254}, {count: 16}]}",
            "ip: 4",
            "254 source and 16 destination addresses: no numbers of them make 257 flows",
            256,
        ),
    ],
)
def test_flows_that_trex_cannot_make_are_refused_where_they_are_written(
    flows: int, dut: str, traffic: str, says: str, instead: int
) -> None:
    text = bench(LOSS, traffic=traffic).replace("flows: 8", f"flows: {flows}").replace("{kind: external}", dut)
    with pytest.raises(WrongBenchFileError) as refused:
        parse(text.encode(), Path("bench.yaml"))
    assert says in str(refused.value)
    assert f"`flows: {instead}`" in str(refused.value)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "flows:" in each)
    assert f"bench.yaml:{line}:" in str(refused.value)


@pytest.mark.parametrize("learning", ["{rate: 1 kpps}", "{flows: all}", "{again_after: 0 s}"])
def test_flows_that_are_to_be_taught_are_refused_where_that_is_written(learning: str) -> None:
    text = bench(LOSS, traffic=f"learning: {learning}")
    with pytest.raises(WrongBenchFileError) as refused:
        parse(text.encode(), Path("bench.yaml"))
    said = str(refused.value)
    assert "this traffic needs learning frames of every flow, and the tester `trex` cannot" in said
    assert "write `learning: {flows: few}`, or choose a tester that can: `tester: {kind: packets}`" in said


@pytest.mark.parametrize("learning", ["{flows: few}", "{}"])
def test_a_few_learning_frames_are_what_trex_sends(learning: str) -> None:
    parse(bench(LOSS, traffic=f"learning: {learning}").encode(), Path("bench.yaml"))
