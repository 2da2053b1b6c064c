"""The other DUTs in user space, as real processes: what passes them, and what they do on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.bench_file import parse
from nicbench.core.events import Bus
from nicbench.core.judging import Thresholds
from nicbench.core.trial import Purpose, Trial, TrialRequest
from nicbench.measure.samples import SampleLog
from nicbench.measure.surroundings import TrialSetup
from nicbench.measure.trials import TrialMaker
from nicbench.stages.testbed import lay_out_ways, make_dut, make_testbed
from nicbench.stages.tester import make_tester
from nicbench.testbed.duts import l3fwd as builder
from nicbench.testbed.duts.base import Dut
from nicbench.tuning.stack import UndoStack

from .lab import come_back

pytestmark = pytest.mark.lab

BENCH = """
nicbench: 1
title: A DUT in memory
lab: {{kind: memif, topology: {topology}{ports}}}
dut: {dut}
traffic: {{ip: {ip}, pattern: {pattern}, flows: {flows}}}
tests: [{{name: t, method: throughput, frame_bytes: [90]}}]
"""
REQUEST = TrialRequest(
    frame_bytes=90, load_frames_per_s=20_000, duration_s=0.4, drain_s=0.2, settle_s=0.02, purpose=Purpose.AVERAGE
)


HAS_L3FWD = pytest.mark.skipif(
    not Path(builder.SOURCES, "l3fwd").exists(), reason=f"the sources of l3fwd are missing: {builder.INSTALL_COMMAND}"
)


async def one_trial(
    run_id: str, dut: str, *, topology: str = "crossed", ip: int = 4, ports: int | None = None, flows: int = 1
) -> tuple[Trial, Dut]:
    pattern = "same-port" if ports and topology == "same-port" else "one-to-one"
    written = f", ports: {ports}" if ports else ""
    text = BENCH.format(dut=dut, topology=topology, ip=ip, ports=written, pattern=pattern, flows=flows)
    bench = parse(text.encode(), Path("bench.yaml"))
    changes = UndoStack(run_id, None)
    try:
        _, testbed = await make_testbed(bench, changes)
        made = await make_dut(bench, testbed, changes)
        tester = make_tester(bench, testbed, (), run_id, None)
        try:
            await tester.start()
            _, addressing = lay_out_ways(bench, testbed, made)
            names = tuple(port.name for port in testbed.tester_ports)
            setup = TrialSetup(tester, made, addressing, port_names=names)
            maker = TrialMaker(setup, Thresholds(), SampleLog({}, Bus()))
            request = REQUEST.replace(bidirectional=flows > 1)
            return await maker.make("t/0/0", "t", {}, request, 0), made
        finally:
            await tester.close()
    finally:
        assert await changes.undo_all() == []


@pytest.mark.sampled(4, of="labs in turn")
async def test_the_reflector_without_faults_gives_every_frame_back_and_counts_its_cycles() -> None:
    trial, dut = await one_trial("nb-test-reflect", "{kind: reflector, huge_pages: false}")
    counts = trial.reading.counts
    assert come_back(counts)
    assert (counts.duplicated, counts.corrupted, counts.reordered) == (0, 0, 0)
    assert trial.reading.dut_work.packets >= counts.received
    assert dut.disclosure()["configuration"]["faults"] == {}


@pytest.mark.sampled(4, of="labs in turn")
async def test_what_the_reflector_injects_is_what_the_tester_reports() -> None:
    faults = "{seed: 5, loss: 5 %, duplicate: 3 %, corrupt_payload: 2 %, delay: 2 ms}"
    trial, _ = await one_trial("nb-test-faults", f"{{kind: reflector, huge_pages: false, faults: {faults}}}")
    counts, rows = trial.reading.counts, [row.frames for row in trial.reading.ledger if not row.unsent]
    assert 0 < counts.lost == sum(rows)
    assert trial.reading.unexplained == 0
    assert counts.duplicated > 0
    assert counts.corrupted > 0
    assert trial.reading.latency.minimum_ns >= 2_000_000


@pytest.mark.sampled(2)
@pytest.mark.alone  # a DUT that polls four ports beside other tests may get no turn in a whole trial
@pytest.mark.parametrize("dut", ["{kind: testpmd, forward_mode: io", "{kind: reflector"])
@pytest.mark.parametrize(
    ("topology", "ways"), [("crossed", ["0->1", "2->3"]), ("same-port", ["0->0", "1->1", "2->2", "3->3"])]
)
async def test_four_ports_are_two_pairs_or_four_that_give_back(dut: str, topology: str, ways: list[str]) -> None:
    trial, made = await one_trial("nb-test-four", f"{dut}, huge_pages: false}}", topology=topology, ports=4)
    streams = trial.reading.streams
    assert [stream.name for stream in streams] == ways
    # Frames of a way that leads elsewhere would all be lost, or foreign.
    assert all(come_back(stream.counts) for stream in streams), [stream.counts for stream in streams]
    assert sum(port.foreign for port in trial.reading.ports) == 0
    if made.kind == "testpmd":
        there = [0, 1, 2, 3] if topology == "same-port" else [1, 0, 3, 2]
        joined = [f"port {port} queue 0 to port {other} queue 0" for port, other in enumerate(there)]
        assert [line.partition(" on ")[0] for line in made.disclosure()["port_queue_core_map"]] == joined


@HAS_L3FWD
@pytest.mark.parametrize(("topology", "ip"), [("crossed", 4), ("same-port", 6)])
async def test_l3fwd_routes_between_the_test_networks(topology: str, ip: int) -> None:
    trial, dut = await one_trial("nb-test-l3fwd", "{kind: l3fwd, huge_pages: false}", topology=topology, ip=ip)
    assert come_back(trial.reading.counts)
    assert trial.reading.dut_work is None
    assert dut.disclosure()["patch"] == builder.PATCH


FOUR_QUEUES = "queues: 4, cores: 2, share_cpus: true, receive_descriptors: 2048, transmit_descriptors: 1024, burst: 64"


@pytest.mark.acceptance  # two cores that poll, and two that feed them
@pytest.mark.parametrize(
    "dut",
    [
        f"{{kind: testpmd, {FOUR_QUEUES}, mbuf_cache: 512, rss: udp, huge_pages: false}}",
        pytest.param(f"{{kind: l3fwd, {FOUR_QUEUES}, mbuf_cache: 512, rss: udp, huge_pages: false}}", marks=HAS_L3FWD),
    ],
)
async def test_four_queues_of_each_port_on_two_cores_all_carry_frames(dut: str) -> None:
    trial, made = await one_trial("nb-test-queues", dut, flows=64)
    assert come_back(trial.reading.counts)
    assert trial.reading.counts.reordered == 0  # the frames of a flow stay on one queue
    assert [len(port) for port in trial.reading.dut_queues] == [4, 4]
    assert all(frames > 0 for port in trial.reading.dut_queues for frames in port)
    assert sum(map(sum, trial.reading.dut_queues)) >= trial.reading.counts.received
    settings = made.disclosure()["settings_in_effect"]
    assert (settings["burst"], settings["mbuf_cache"], settings["receive_descriptors"]) == (64, 512, 2048)
    assert (settings["receive_queues_of_each_port"], settings["cores"]) == (4, 2)
