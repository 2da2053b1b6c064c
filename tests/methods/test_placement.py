"""Placement: where each process goes, that it was there, and what it changes against remote."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
from pydantic import ValidationError

from nicbench.core.machine import NumaNode, RanOn
from nicbench.core.result import Bounded, Result, Spread
from nicbench.core.round import Figures, Job, JobOutcome, RequestLatency
from nicbench.methods.placement import PlacementMethod
from nicbench.report.tables import sections

from .round_contexts import Laboratory, streamed

NODES = (NumaNode(number=0, cpus=(0, 1)), NumaNode(number=1, cpus=(2, 3)))
STREAM = {"method": "stream", "duration": 1, "at_once": ["port"]}


def laboratory(
    outcome: Callable[[int, Job], JobOutcome], nodes_of_ports: Sequence[int | None] = (1,), **options: int
) -> Laboratory:
    """A machine with two nodes, whose ports are on these."""
    made = Laboratory(outcome, ports=len(nodes_of_ports), link_bits_per_s=None, **options)  # type: ignore[arg-type]
    made.context.nodes = NODES
    made.context.servers = tuple(
        end.replace(numa_node=node) for end, node in zip(made.context.servers, nodes_of_ports, strict=True)
    )
    return made


def obedient(_: int, job: Job) -> JobOutcome:
    """Node 1 is the adapter's: 1.24 times as fast there."""
    if job.role == "memory":
        return JobOutcome()
    cpus, node = job.server_placement.cpus, job.server_placement.memory_node
    assert cpus is not None
    assert node is not None
    ran_on = RanOn(cpus=cpus, pages={node: 990, 1 - node: 10})
    return streamed(124e6 if node == 1 else 100e6).replace(server_ran_on=ran_on)


def method(**options: object) -> PlacementMethod:
    return PlacementMethod("numa", PlacementMethod.Options.model_validate({"of": STREAM, **options}))


def ports(results: Sequence[Result]) -> dict[tuple[object, object], Result]:
    """The results of the port, by place and loads."""
    return {
        (result.parameters["nodes"], result.parameters["memory_loads"]): result
        for result in results
        if result.parameters["what"].endswith("/s0")
    }


def test_processes_and_their_memory_are_near_far_and_on_both() -> None:
    made = laboratory(obedient, clients_per_port=2)
    asyncio.run(method(memory_loads=[0]).run(made.context))
    placed = [[job.server_placement for job in request.jobs] for request in made.requests]
    assert [[place.memory_node for place in each] for each in placed] == [[0, 0], [1, 1], [1, 0]]
    assert [place.cpus for place in placed[2]] == [(2, 3), (0, 1)]


def test_one_process_of_a_port_is_not_said_to_be_on_all_nodes() -> None:
    made = laboratory(obedient)
    found = ports(asyncio.run(method(memory_loads=[0]).run(made.context)))
    assert {where: result.verdict for (where, _), result in found.items()} == {
        "remote": "valid", "local": "valid", "balanced": "incomplete",
    }  # fmt: skip
    balanced = found["balanced", 0]
    rate = balanced.values["throughput_bits_per_s"]
    assert isinstance(rate, Bounded)
    assert rate.reason_null == (
        "balanced needs as many clients of a port at once as there are nodes: s0 has 1 for 2 nodes"
    )
    assert balanced.disturbances == (rate.reason_null,)
    assert [job.server_placement.memory_node for request in made.requests for job in request.jobs] == [0, 1]
    assert [len(result.trials) for result in found.values()] == [1, 1, 0], "what has no figure is not played"
    assert not [name for name in balanced.values if name.endswith("_change_percent")]
    two = ports(asyncio.run(method(memory_loads=[0]).run(laboratory(obedient, clients_per_port=2).context)))
    assert {result.verdict for result in two.values()} == {"valid"}


@pytest.mark.parametrize(
    "inner",
    [
        {"method": "request-response", "duration": 1},
        {"method": "transfer"},
        {"method": "tcp-throughput", "duration": 1},
        {"method": "sender-reaction"},
        {"method": "agreement", "workloads": ["iperf3", "nuttcp"]},
    ],
    ids=lambda inner: inner["method"],
)
def test_no_inner_test_plays_a_round_that_cannot_be_balanced(inner: dict[str, object]) -> None:
    made = laboratory(obedient)
    results = asyncio.run(method(of=inner, nodes=["balanced"], memory_loads=[0]).run(made.context))
    assert made.requests == []
    assert {result.verdict for result in results} == {"incomplete"}
    assert all("as many clients of a port at once as there are nodes" in result.disturbances[0] for result in results)


def test_ports_on_both_nodes_are_each_served_by_their_own_when_balanced() -> None:
    made = laboratory(obedient, (0, 1))
    stream = {**STREAM, "at_once": ["all"]}
    asyncio.run(method(of=stream, nodes=["balanced"], memory_loads=[0]).run(made.context))
    assert [job.server_placement.memory_node for job in made.requests[0].jobs] == [0, 1]


def test_the_change_is_against_remote_with_as_many_loads() -> None:
    made = laboratory(obedient)
    found = ports(asyncio.run(method(memory_loads=[0, 5]).run(made.context)))
    assert "throughput_bits_per_s_change_percent" not in found["remote", 0].values
    assert found["local", 5].values["throughput_bits_per_s_change_percent"] == pytest.approx(24.0)
    assert found["local", 5].verdict == "valid"
    assert [result.method for result in made.published] == ["placement"] * len(made.published)


def test_a_change_is_claimed_of_several_runs_alone_and_drawn_as_bars() -> None:
    found = asyncio.run(method(memory_loads=[0, 5]).run(laboratory(obedient).context))
    (section,) = sections(found, {})
    heads = [column.head for column in section.table.columns]
    assert not [head for head in heads if head.startswith("Change")]
    assert "Change against remote" not in heads
    assert "several (`runs`) give intervals" in section.table.caption
    assert not any("change_percent" in text for text in section.table.sentences)
    assert section.table.bars.y.value == "throughput_bits_per_s"
    spread = Spread.of([20.0, 24.0, 28.0], 3)
    several = [one.replace(values={**one.values, "latency_mean_ns": spread}) for one in found]
    (section,) = sections(several, {})
    assert "Change against remote" in [column.head for column in section.table.columns]


def test_loads_keep_the_link_between_the_sockets_busy_and_are_no_part_of_the_throughput() -> None:
    made = laboratory(obedient)
    found = ports(asyncio.run(method(nodes=["local"], memory_loads=[5]).run(made.context)))
    (load,) = (job for job in made.requests[0].jobs if job.role == "memory")
    assert (load.workload, load.ask.streams, load.server) == ("stress-ng", 5, None)
    assert (load.client_placement.cpus, load.client_placement.memory_node) == ((0, 1), 1)
    assert found["local", 5].values["throughput_bits_per_s"] == 124e6


def test_where_the_server_ran_is_stated() -> None:
    found = ports(asyncio.run(method(nodes=["local"], memory_loads=[0]).run(laboratory(obedient).context)))
    assert found["local", 0].values["pinning"] == "CPUs 2-3, 99 % of its memory on node 1"


def test_what_was_measured_is_said_in_words() -> None:
    results = asyncio.run(method(nodes=["local"], memory_loads=[0]).run(laboratory(obedient).context))
    assert results[-1].parameters["measured"] == "s0, each port alone"
    assert results[-1].parameters["traffic"] == "TCP to the server, writes of 8192 bytes"
    (section,) = sections(results, {})
    assert "Traffic: TCP to the server, writes of 8192 bytes." in section.table.caption
    assert "Latency, mean" not in [column.head for column in section.table.columns]


def test_latencies_are_said_with_what_they_are_of_and_bins_are_no_rows() -> None:
    latency = RequestLatency(
        basis="half round trip", count=1000, mean_ns=24_800.0, percentiles_ns={"50": 24_000.0}, maximum_ns=90_000.0
    )
    answer = JobOutcome(figures=Figures(transactions_per_s=20e3, latency=latency), began_s=0.0, took_s=1.0)

    def answered(number: int, job: Job) -> JobOutcome:
        return answer.replace(server_ran_on=obedient(number, job).server_ran_on)

    requests = {"method": "request-response", "duration": 1}
    results = asyncio.run(method(of=requests, nodes=["local"], memory_loads=[0]).run(laboratory(answered).context))
    (section,) = sections(results, {})
    said = section.sentence.replace("\u00a0", " ")
    assert "takes 24.8 µs on average (half round trip) with its processes local" in said
    assert all(result.values["transactions_per_s"] == 20e3 for result in results)


def test_the_answer_over_several_runs_is_what_the_place_changes() -> None:
    results = asyncio.run(method(nodes=["local"], memory_loads=[0]).run(laboratory(obedient).context))
    remote, local = (
        results[-1].replace(id=f"numa/0/{where}", parameters={**results[-1].parameters, "nodes": where})
        for where in ("remote", "local")
    )
    rate = {"throughput_bits_per_s": Spread(median=1e8, minimum=1e8, maximum=1e8, n=2, runs=2)}
    change = {"throughput_bits_per_s_change_percent": Spread(median=24.0, minimum=20.0, maximum=28.0, n=2, runs=2)}
    several = (
        remote.replace(values=rate),
        local.replace(values={**rate, **change}),
    )
    (section,) = sections(several, {})
    assert "processes local, a change of 24.0 (20.0 to 28.0) % against remote" in section.sentence.replace(
        "\u00a0", " "
    )


@pytest.mark.parametrize(
    ("ran_on", "text"),
    [
        (RanOn(cpus=(0, 1, 2, 3)), "allowed on CPUs 0-3, not on 2-3 alone"),
        (RanOn(cpus=(2, 3), pages={0: 60, 1: 40}), "40 % of its memory on node 1"),
        (None, "could not be read"),
    ],
    ids=["other CPUs", "memory elsewhere", "not told"],
)
def test_a_server_that_was_elsewhere_is_not_called_local(ran_on: RanOn | None, text: str) -> None:
    made = laboratory(lambda *_: streamed(1e6).replace(server_ran_on=ran_on))
    found = ports(asyncio.run(method(nodes=["local"], memory_loads=[0]).run(made.context)))
    assert found["local", 0].verdict == "disturbed"
    assert text in " ".join(found["local", 0].disturbances)


def test_interrupts_follow_the_processes_and_come_back() -> None:
    made = laboratory(obedient)
    asyncio.run(method(nodes=["local", "remote"], memory_loads=[0], interrupts="follow").run(made.context))
    assert made.player.steered == [("s0", (0, 1)), ("s0", (2, 3)), ("s0", None)]


def test_a_machine_with_one_node_has_nothing_remote_and_says_so_before_anything_is_sent() -> None:
    made = laboratory(obedient)
    made.context.nodes = NODES[:1]
    objection = method().objection(made.context)
    assert "one NUMA node" in objection.message


def test_a_port_that_belongs_to_no_node_is_neither_near_nor_far() -> None:
    objection = method().objection(laboratory(obedient, (None,)).context)
    assert "s0" in objection.message


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"of": {"method": "throughput"}}, "`of` needs a `method`"),
        ({"of": {"method": "stream", "transport": "sctp"}}, "of.transport"),
        ({"of": {"method": "placement", "of": STREAM}}, "`of` needs a `method`"),
        ({"of": {"method": "concurrent-connections"}}, "`of` needs a `method`"),
        ({"nodes": ["near"]}, "nodes"),
        ({"memory_loads": [-1]}, "0 to 256"),
    ],
    ids=[
        "frames",
        "an option of the inner test",
        "itself",
        "figures that are not compared",
        "a place",
        "fewer than none",
    ],
)
def test_options_that_mean_nothing_are_refused(wrong: dict[str, object], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        method(**wrong)
