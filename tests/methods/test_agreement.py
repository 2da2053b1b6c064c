"""Agreement of tools: turns in an order of its own, and the three answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from itertools import count

import pytest
from pydantic import ValidationError

from nicbench.core.result import Result, ResultVerdict
from nicbench.core.round import Job, JobOutcome
from nicbench.methods.agreement import Agreement
from nicbench.report.tables import sections

from .round_contexts import Laboratory, streamed


def compared(laboratory: Laboratory, **options: object) -> tuple[Result, ...]:
    method = Agreement("two tools", Agreement.Options.model_validate(options))
    return asyncio.run(method.run(laboratory.context))


def times(factor: float, spread: float = 0.001) -> Callable[[int, Job], JobOutcome]:
    """Nuttcp says a multiple of what iperf3 says, which drifts upwards; with a spread that is not a drift."""
    turns = count()

    def outcome(number: int, job: Job) -> JobOutcome:
        drift = 50e6 * (1 + 0.001 * number)
        wobble = 1 + spread * (next(turns) % 3 - 1)
        return streamed(drift * wobble * (factor if job.workload == "nuttcp" else 1.0))

    return outcome


@pytest.mark.parametrize(
    ("factor", "spread", "answer"),
    [
        (1.01, 0.001, "agree within 5 %: nuttcp is 1.01 times iperf3 ["),
        (1.12, 0.001, "do not agree within 5 %: nuttcp is 1.12 times iperf3 ["),
        (1.05, 0.1, "cannot be told to agree within 5 %: nuttcp is "),
    ],
)
def test_the_answer_in_words(factor: float, spread: float, answer: str) -> None:
    results = compared(Laboratory(times(factor, spread)))
    (pair,) = (one for one in results if one.parameters["part"] == "agreement")
    assert str(pair.values["answer"]).startswith(answer)
    lower, ratio, upper = (pair.values[name] for name in ("ratio_lower", "ratio", "ratio_upper"))
    assert isinstance(lower, float)
    assert isinstance(ratio, float)
    assert isinstance(upper, float)
    assert lower < ratio < upper
    assert pair.verdict is ResultVerdict.VALID  # that tools disagree is a finding, not a fault of the measurement


def test_every_tool_has_a_turn_in_each_repetition_in_an_order_drawn_with_the_seed() -> None:
    def order(seed: int) -> list[str]:
        laboratory = Laboratory(times(1.0), seed=seed)
        compared(laboratory)
        return [request.jobs[0].workload for request in laboratory.requests]

    drawn = order(1)
    turns = [tuple(drawn[number : number + 2]) for number in range(0, len(drawn), 2)]
    assert len(turns) == 10
    assert all(set(turn) == {"iperf3", "nuttcp"} for turn in turns)
    assert len(set(turns)) == 2
    assert order(1) == drawn
    assert order(2) != drawn


def test_all_clients_of_a_port_send_together_and_each_port_has_an_answer() -> None:
    laboratory = Laboratory(times(1.0), ports=2, clients_per_port=2)
    results = compared(laboratory, repetitions=2)
    assert Counter(len(request.jobs) for request in laboratory.requests) == {2: 8}
    answers = [one for one in results if one.parameters["part"] == "agreement"]
    assert [one.parameters["port"] for one in answers] == ["s0", "s1"]
    tools = [one for one in results if one.parameters["part"] == "tools"]
    assert [(one.parameters["port"], one.parameters["workload"]) for one in tools] == [
        (port, tool) for port in ("s0", "s1") for tool in ("iperf3", "nuttcp")
    ]


def test_of_three_tools_each_pair_has_an_answer() -> None:
    results = compared(Laboratory(times(1.0)), workloads=("iperf3", "nuttcp", "qperf"), repetitions=2)
    pairs = [one.parameters["tools"] for one in results if one.parameters["part"] == "agreement"]
    assert pairs == ["iperf3 and nuttcp", "iperf3 and qperf", "nuttcp and qperf"]


def test_a_tool_that_fails_is_told_and_compared_with_nothing() -> None:
    def outcome(number: int, job: Job) -> JobOutcome:
        return streamed(None if job.workload == "nuttcp" else 50e6)

    results = compared(Laboratory(outcome), repetitions=3)
    iperf3, nuttcp, pair = results
    assert iperf3.verdict is ResultVerdict.VALID
    assert nuttcp.verdict is pair.verdict is ResultVerdict.INCOMPLETE
    assert "fewer than two repetitions have figures of both iperf3 and nuttcp" in str(pair.values["answer"])
    assert any("exit status 1" in text for text in pair.disturbances)


def test_so_many_bytes_may_be_asked_for_in_place_of_a_duration() -> None:
    laboratory = Laboratory(times(1.0))
    compared(laboratory, transfer_bytes=16 << 20, repetitions=2)
    ask = laboratory.requests[0].jobs[0].ask
    assert (ask.total_bytes, ask.duration_s, ask.write_bytes) == (16_777_216, None, 8192)


def test_one_tool_named_twice_is_refused() -> None:
    with pytest.raises(ValidationError, match="`iperf3` is named twice in `workloads`"):
        Agreement.Options.model_validate({"workloads": ["iperf3", "iperf3"]})


def test_the_report_says_it_in_a_sentence() -> None:
    answer, tools = sections(compared(Laboratory(times(1.12))), {})
    assert answer.sentence.startswith(
        "is measured by iperf3 and nuttcp, and the two do not agree within 5 %: nuttcp is 1.12 times iperf3 ["
    )
    assert tools.grids[0].heads == (("iperf3", "nuttcp"),)
