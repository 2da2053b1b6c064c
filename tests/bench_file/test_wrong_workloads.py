"""Tests of workloads that DUT, ports or tools cannot do: refused before anything is touched, with place and way out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError

Read = Callable[[str], BenchFile]

HEAD = "nicbench: 1\ntitle: x\n"
LAB = "lab: {kind: clients, ports: 2, clients_per_port: 2}\n"

WRONG: dict[str, tuple[str, tuple[int, int], str, str]] = {
    "forwarding by a host that forwards nothing": (
        LAB + "dut: {kind: server}\ntests:\n  - {name: t, method: forwarding}\n",
        (6, 23),
        "sends through the DUT, and `server` forwards nothing",
        "router",
    ),
    "forwarding between the ports of a lab with one": (
        "lab: {kind: clients}\ndut: {kind: router}\ntests:\n  - {name: t, method: forwarding}\n",
        (6, 23),
        "needs 2 ports, and there is 1",
        "ports: 2",
    ),
    "forwarding by a tool that there is not": (
        LAB + "dut: {kind: router}\ntests:\n  - {name: t, method: forwarding, workload: iperf4}\n",
        (6, 45),
        "no workload of the kind `iperf4`",
        "iperf3",
    ),
    "a placement of a test that sends frames": (
        LAB + "dut: {kind: server}\ntests:\n  - {name: t, method: placement, of: {method: throughput}}\n",
        (6, 38),
        "`of` needs a `method`",
        "",
    ),
}


@pytest.mark.parametrize(("text", "place", "message", "step"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_is_refused(text: str, place: tuple[int, int], message: str, step: str, read: Read) -> None:
    with pytest.raises(WrongBenchFileError) as refused:
        read(HEAD + text)
    (problem,) = refused.value.problems
    assert (problem.position.line, problem.position.column) == place
    assert message in problem.message
    assert step in (problem.next_step or "")
