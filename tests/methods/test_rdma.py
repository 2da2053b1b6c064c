"""Streams and requests over RDMA: which commands of perftest they ask for, and figures from its recorded tables."""

from __future__ import annotations

import asyncio

import pytest
from tests.fakes import FakeHost
from tests.workloads.goldens import golden

from nicbench.core.result import Result
from nicbench.core.round import Job, JobOutcome
from nicbench.methods.base import RoundMethod
from nicbench.methods.incast import Incast
from nicbench.methods.request_response import RequestResponse
from nicbench.methods.stream import Stream
from nicbench.workloads.base import End, Output
from nicbench.workloads.tools.perftest import Perftest

from .round_contexts import Laboratory

ENDS = (End(FakeHost(), "198.18.0.1", rdma_device="mlx5_0"), End(FakeHost(), "198.18.0.2", rdma_device="mlx5_1"))
RECORDED = {
    "ib_write_lat": "write-lat",
    "ib_send_lat": "send-lat-raw",
    "ib_read_lat": "read-lat-raw",
}
"""What was recorded of each program; a table of ``ib_write_bw`` stands for all of bandwidth."""


class Recorded:
    """Answers each job with what perftest 4.5 printed once, and keeps the command lines."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    def __call__(self, number: int, job: Job) -> JobOutcome:
        tool = Perftest(job.options)
        assert tool.refusal(job.ask) is None
        self.commands.append(" ".join(tool.client_command(job, *ENDS)))
        name = RECORDED.get(tool.program(job.ask), "write-bw")
        output = Output(golden(f"perftest-4.5-{name}.client"))
        return JobOutcome(figures=tool.parse(job, output, None), began_s=0.0, took_s=3.0)


def play(method: type[RoundMethod], **options: object) -> tuple[tuple[Result, ...], list[str]]:
    recorded = Recorded()
    laboratory = Laboratory(recorded)
    transport = "rdma" if method is Stream else ("rdma",)
    asked = method.Options.model_validate({"transport": transport, **options})
    return asyncio.run(method("rdma", asked).run(laboratory.context)), recorded.commands


def ports_of(results: tuple[Result, ...]) -> list[Result]:
    return [result for result in results if result.parameters["part"] == "ports"]


def test_every_verb_size_and_number_of_queue_pairs_is_a_row() -> None:
    results, commands = play(
        Stream, verb=("write", "send", "read"), write_bytes=(4096, 65536), streams=(1, 10), duration=3.0
    )
    rows = ports_of(results)
    assert len(rows) == len({result.id for result in rows}) == len(commands) == 12
    assert [result.parameters["mode"] for result in rows][1] == (
        "RDMA write to the server, messages of 4096 bytes, 10 queue pairs a client"
    )
    assert all(result.values["throughput_bits_per_s"] == 7.65 * 2**20 * 8 for result in rows)


@pytest.mark.parametrize(
    ("verb", "direction", "reversed_"),
    [("write", "forward", False), ("write", "reverse", True), ("read", "forward", True), ("read", "reverse", False)],
)
def test_a_read_fetches_so_that_the_reader_is_who_receives(verb: str, direction: str, reversed_: bool) -> None:
    _, (command,) = play(Stream, verb=(verb,), direction=(direction,), duration=3.0)
    assert command.startswith(f"ib_{verb}_bw ")
    assert ("--reversed" in command) == reversed_


def test_both_ways_are_two_programs_at_once_whose_rates_are_added() -> None:
    results, commands = play(Stream, direction=("both",), duration=3.0)
    assert ["--reversed" in command for command in commands] == [False, True]
    assert len({command.partition(" -p ")[2].split()[0] for command in commands}) == 2
    (port,) = ports_of(results)
    assert port.values["throughput_bits_per_s"] == 2 * 7.65 * 2**20 * 8


def test_latency_by_verb_and_size_has_its_percentiles_and_its_tail() -> None:
    results, commands = play(RequestResponse, verb=("write", "send", "read"), message_bytes=(64,), duration=3.0)
    assert [command.split()[0] for command in commands] == ["ib_write_lat", "ib_send_lat", "ib_read_lat"]
    written, sent, read = results
    assert (written.parameters["transport"], written.values["basis"]) == ("RDMA write", "half round trip")
    assert (sent.values["timed_messages"], sent.values["latency_maximum_ns"]) == (999, 26601500)
    assert (read.values["basis"], read.id) == ("round trip", "rdma/s0/rdma-read/64/idle")


def test_without_a_tool_perftest_is_chosen_for_rdma_alone() -> None:
    assert Stream.Options(transport="rdma").workload.kind == "perftest"
    assert Stream.Options().workload.kind == "iperf3"
    assert RequestResponse.Options(transport=("rdma",)).workload.kind == "perftest"
    assert RequestResponse.Options().workload.kind == "sockperf"
    assert RequestResponse.Options(transport=("rdma",), workload="qperf").workload.kind == "qperf"


def test_the_tool_that_nobody_named_stands_in_the_plan_by_which_runs_are_compared() -> None:
    incast = Incast.Options(transport="rdma", probe_transport="tcp")
    assert incast.model_dump()["workload"] == {"kind": "perftest"}
    assert incast.model_dump()["probe"] == {"kind": "sockperf"}
    assert Stream.Options().model_dump()["workload"] == {"kind": "iperf3"}
