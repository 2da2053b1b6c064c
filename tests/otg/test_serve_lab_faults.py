"""`nicbench serve` of a DUT that polices: where its loss is placed, what disturbs, what a killed engine leaves."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from .served import Served, add_flow, configured, flow_metrics, serving, transmit, wait_for_stop, wait_until
from .test_serve_lab import namespaces

pytestmark = [pytest.mark.lab, pytest.mark.sampled(2, of="served labs")]

# A machine of two cores, on which tests run beside each other, is never quiet: only what a test does itself counts.
BENCH = """
nicbench: 1
title: Policed
lab: {kind: veth}
dut: {kind: policer, rate: 5 kpps, burst: 100}
thresholds:
  {longest_gap_ms: 250, total_gap_share: 0.9, dut_foreign_cpu_share: 0.99, dut_contended_share: 1.0,
   dut_steal_share: 0.9, dut_pause_ms: 500}
"""
STOPPED_S = 0.4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    before = namespaces()
    with serving(tmp_path_factory.mktemp("serve"), text=BENCH) as served:
        yield served
    assert namespaces() <= before


def sent(api: Any, frames: int, rate: int) -> Any:
    config = configured(api, captured=False)
    flow = add_flow(config, "f", frames=frames)
    flow.rate.pps = rate
    flow.metrics.loss = True
    flow.packet.ethernet().ipv4().udp()
    api.set_config(config)
    transmit(api, "start")
    return config


def test_the_loss_of_an_overloaded_dut_is_placed_by_the_ledger_of_that_transmission(server: Served) -> None:
    api, earlier = server.api(), len(server.trials())
    sent(api, frames=400, rate=2_000)
    assert wait_for_stop(api)["f"].loss == 0
    sent(api, frames=6_000, rate=20_000)
    metric = wait_for_stop(api)["f"]
    assert metric.frames_tx == 6_000
    assert metric.loss > 40
    calm, overloaded = wait_until(lambda: (found := server.trials()[earlier:])[1:] and found)
    assert calm["reading"]["counts"]["lost"] == 0
    reading = overloaded["reading"]
    (row,) = reading["ledger"]
    assert "policer" in row["counter"]
    assert row["frames"] == reading["counts"]["lost"] == 6_000 - metric.frames_rx
    assert reading["unexplained"] == 0
    of_machine = {"longest_gap_ms", "total_gap_share"}
    assert {each["threshold"] for each in overloaded["verdict"]["findings"]} <= of_machine


def test_a_transmission_whose_engine_was_held_up_says_that_it_was_disturbed(server: Served) -> None:
    api, earlier = server.api(), len(server.trials())
    sent(api, frames=2_000, rate=2_000)
    wait_until(lambda: flow_metrics(api)["f"].frames_tx > 100)
    engine = server.engine()
    os.kill(engine, signal.SIGSTOP)
    try:
        time.sleep(STOPPED_S)
    finally:
        os.kill(engine, signal.SIGCONT)
    wait_for_stop(api)
    (trial,) = wait_until(lambda: server.trials()[earlier:])
    (finding,) = [each for each in trial["verdict"]["findings"] if each["threshold"] == "longest_gap_ms"]
    assert finding["value"] >= 1000 * STOPPED_S
    (row,) = wait_until(lambda: [each for each in server.results() if each["trials"] == [trial["id"]]])
    assert (row["verdict"], row["disturbances"]) == ("disturbed", [finding["text"]])


def test_what_a_killed_engine_had_counted_is_kept_and_the_next_session_works(server: Served) -> None:
    api = server.api()
    config = sent(api, frames=100_000, rate=2_000)
    seen = wait_until(lambda: (metric := flow_metrics(api)["f"]).frames_rx > 100 and metric)
    first = server.run_folder()
    os.kill(server.engine(), signal.SIGKILL)
    with pytest.raises(Exception, match="killed by signal 9") as refused:
        wait_until(lambda: flow_metrics(api) and None)
    error = api.from_exception(refused.value)
    assert (error.code, error.kind) == (500, "internal")
    api.set_config(config)
    transmit(api, "start")
    wait_until(lambda: flow_metrics(api)["f"].frames_rx > 10)
    transmit(api, "stop")
    trial = server.trials(first)[-1]
    (finding,) = trial["verdict"]["findings"]
    assert finding["reason"] == "tester_failed"
    assert "killed by signal 9" in finding["text"]
    assert trial["reading"]["uncounted"]["received"] >= seen.frames_rx
    (row,) = [event["result"] for event in server.events(first) if event["event"] == "result_ready"][-1:]
    assert (row["verdict"], row["values"]["loss_percent"]) == ("disturbed", None), "frames were under way"
    assert server.events(first)[-1]["event"] == "run_finished"
    assert (first / "report.html").exists()
    assert wait_until(server.trials)[-1]["reading"]["counts"]["lost"] == 0
