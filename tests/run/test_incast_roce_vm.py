"""RoCE v2 incast by perftest over soft RoCE: receiver and senders are guests, as they are servers on a rack."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nicbench.core.events import RoundFinished
from nicbench.core.round import Round

from .lab_bench import machine_state, make_folder, run_async

pytestmark = [pytest.mark.vm, pytest.mark.acceptance]  # most of a minute on an emulated machine

EXAMPLE = Path(__file__).parents[2] / "examples" / "incast-roce.yaml"
TEST = """
monitor: off
tests:
  - {name: incast, method: incast, transport: rdma, message_bytes: [4 KiB], streams: [2, 5], bins: [10 ms, 100 ms],
     duration: 2 s, workload: {kind: perftest, transmit_depth: 4, qp_timeout: 18},
     probe: {kind: perftest, iterations: 50, qp_timeout: 18}}
"""


def test_two_senders_meet_at_one_port_and_their_bytes_crossed_the_wire(tmp_path: Path) -> None:
    before = machine_state()
    setting = EXAMPLE.read_text().partition("\ntests:")[0]
    folder = make_folder(tmp_path, setting + TEST)
    summary = asyncio.run(run_async(folder))
    plan = folder.plan()
    made = plan.facts["rdma_devices"]
    assert {name: text.split(",")[0] for name, text in made.items()} == dict.fromkeys(("s0", "c0", "c1"), "rxe_r0")
    assert any("soft RoCE" in sentence for sentence in plan.statements)
    played = [event.round for event in folder.journal.events() if isinstance(event, RoundFinished)]
    rounds = {one.id: one for one in played}
    assert [result.parameters["streams"] for result in summary.results] == [2, 5]
    for result in summary.results:
        # perftest now and then cannot tell its clock's frequency, and says zero: refused, whatever else was said.
        assert all(value != 0.0 for name, value in result.values.items() if name.endswith("bits_per_s"))
        if result.values["throughput_bits_per_s"] is None or result.values["latency_maximum_ns"] is None:
            said = failures(rounds[result.trials[-1]])
            assert "perftest says 0.00" in said or "no finite number" in said
            continue
        assert result.values["timed_messages"] == 49
        assert result.values["latency_basis"] == "half round trip"
        assert sum(int(count) for name, count in result.values.items() if name.startswith("bin_")) == 49  # type: ignore[arg-type]
    last = rounds[summary.results[-1].trials[-1]]
    payload = sum(
        flow.received_bytes or 0 for outcome in last.outcomes if outcome.figures for flow in outcome.figures.flows
    )
    assert last.counters["s0"]["rx_bytes"] > payload
    assert last.counters["s0"]["rcvd_pkts"] > 0
    assert all("-x" in outcome.client_command and "-R" not in outcome.client_command for outcome in last.outcomes)
    assert machine_state() == before


def failures(one: Round) -> str:
    return " ".join(outcome.failure or "" for outcome in one.outcomes)
