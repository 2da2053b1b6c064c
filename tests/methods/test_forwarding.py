"""Forwarding: every ordered pair of ports, and the mean over the destinations of each."""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from nicbench.core.result import Result
from nicbench.core.round import Figures, Flow, Job, JobOutcome, MachineCpu
from nicbench.importing.cells import read_sheet
from nicbench.importing.columns import ImportOptions, choose_rows
from nicbench.importing.results import import_results
from nicbench.methods.forwarding import Forwarding
from nicbench.methods.stream import Stream
from nicbench.report.section import grid_tables

from .round_contexts import Laboratory, streamed

REFERENCE = Path(__file__).parents[2] / "src/nicbench/importing/reference/data" / "nsfnic4_2000_streams.csv"
RATES = {("s0", "s1"): 90e6, ("s0", "s2"): 60e6, ("s1", "s0"): 80e6, ("s1", "s2"): 40e6}


def through(_: int, job: Job) -> JobOutcome:
    """By the ports of both clients: ``c10`` is the first client of ``s1``."""
    return streamed(RATES.get((f"s{job.client[1]}", f"s{job.server[1]}"), 50e6))


def run(laboratory: Laboratory, **options: object) -> Forwarding:
    method = Forwarding("forwarding", Forwarding.Options.model_validate({"duration": "1 s", **options}))
    assert method.objection(laboratory.context) is None
    asyncio.run(method.run(laboratory.context))
    return method


def test_each_port_sends_to_each_other_and_its_figure_is_the_mean_over_its_destinations() -> None:
    laboratory = Laboratory(through, ports=3)
    run(laboratory)
    found = {
        (result.parameters["port"], result.parameters["destination"]): result.values["throughput_bits_per_s"]
        for result in laboratory.published
    }
    assert len(laboratory.requests) == 6
    assert {pair: found[pair] for pair in RATES} == RATES
    assert (found["s0", "mean"], found["s1", "mean"], found["s2", "mean"]) == (75e6, 60e6, 50e6)
    (table,) = grid_tables(laboratory.published, Forwarding.table().grid)  # type: ignore[arg-type]
    assert [row for row, _ in table.rows] == ["s0", "s1", "s2"]
    assert table.heads[0][-1] == "mean"


def test_all_clients_of_a_port_send_at_once_and_never_to_the_router_itself() -> None:
    laboratory = Laboratory(through, ports=2, clients_per_port=2, link_bits_per_s=1e9)
    run(laboratory)
    assert [(job.client, job.server) for job in laboratory.requests[0].jobs] == [("c00", "c10"), ("c01", "c11")]
    assert len({job.port for job in laboratory.requests[0].jobs}) == 2
    first = laboratory.published[0]
    assert first.values["throughput_bits_per_s"] == 180e6


def test_a_pair_that_fails_leaves_the_mean_unknown_and_the_others_stand() -> None:
    laboratory = Laboratory(
        lambda number, job: streamed(None) if (job.client, job.server) == ("c00", "c10") else through(number, job),
        ports=3,
    )
    run(laboratory)
    by_pair = {(r.parameters["port"], r.parameters["destination"]): r for r in laboratory.published}
    assert by_pair["s0", "s1"].verdict == "incomplete"
    assert by_pair["s0", "mean"].values["throughput_bits_per_s"] is None
    assert by_pair["s1", "mean"].values["throughput_bits_per_s"] == 60e6


def test_a_slow_destination_is_named_as_the_limit_and_not_charged_to_the_router() -> None:
    cpu = (MachineCpu(machine="h10", mean=0.5, busiest_core=0.99), MachineCpu(machine="server", busiest_core=0.3))
    laboratory = Laboratory(lambda *_: streamed(30e6), ports=2, cpu=cpu)
    run(laboratory)
    assert laboratory.published[0].values["limited_by"] == "client"
    assert "c10" in str(laboratory.published[0].values["limit"])


def test_links_that_are_full_are_the_limit() -> None:
    laboratory = Laboratory(lambda *_: streamed(94e6), ports=2)
    run(laboratory)
    assert laboratory.published[0].values["limited_by"] == "link"


def test_both_directions_fill_a_link_each_by_itself() -> None:
    """Two clients a port, one mostly forth and one mostly back: 70 of 100 Mb/s each way."""

    def both_ways(_: int, job: Job) -> JobOutcome:
        forth, back = (60e6, 10e6) if job.client.endswith("0") else (10e6, 60e6)
        flows = (
            Flow(direction="forward", received_bits_per_s=forth),
            Flow(direction="reverse", received_bits_per_s=back),
        )
        return JobOutcome(figures=Figures(flows=flows), began_s=0.0, took_s=1.0)

    laboratory = Laboratory(both_ways, ports=2, clients_per_port=2)
    run(laboratory, direction=["both"])
    assert laboratory.published[0].values["limited_by"] == "unknown"


def test_one_port_with_clients_is_refused_before_anything_is_sent() -> None:
    laboratory = Laboratory(through, ports=1)
    objection = Forwarding("f", Forwarding.Options()).objection(laboratory.context)
    assert "two ports" in objection.message


def test_the_published_means_through_ip_forwarding_come_out_as_they_are_printed() -> None:
    said = ImportOptions(where={"table": "5"}, columns={"link_mbps": "link mbps"})
    sheet = choose_rows(read_sheet(REFERENCE.read_text(), "x.csv"), said)
    results = import_results(sheet, "x.csv", Forwarding, said).results
    with REFERENCE.open() as file:
        printed = [row for row in csv.DictReader(file) if row["table"] == "5"]
    assert len(results) == len(printed) > 0
    for result, row in zip(results, printed, strict=True):
        assert result.values["throughput_bits_per_s"] == pytest.approx(float(row["throughput_mbps"]) * 1e6)
        assert (result.parameters["port"], result.parameters["destination"]) == (f"port {row['port']}", "mean")
        assert result.parameters["mode"] == f"{row['link_mbps']} Mb/s, {row['duplex']} duplex"


@pytest.mark.parametrize(
    "wrong", [{"direction": ["sideways"]}, {"transport": "sctp"}, {"duration": "10 ms"}, {"streams": 0}]
)
def test_options_that_mean_nothing_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Forwarding.Options.model_validate(wrong)


# Streams over two ports, three, and at last all: which ports, and how fairly they share.


RATES_OF_STREAMS_GROWING = {"s0": 4e6, "s1": 2e6, "s2": 0.0, "s3": 2e6}


async def test_more_and_more_ports_send_at_once_and_their_fairness_is_told() -> None:
    def outcome(number: int, job: Job) -> JobOutcome:
        return streamed(RATES_OF_STREAMS_GROWING[job.server])

    laboratory = Laboratory(outcome, ports=4)
    method = Stream("shares", Stream.Options(at_once=("port", "growing", "all")))
    results = await method.run(laboratory.context)
    combined = [each for each in results if each.parameters["part"] == "combined"]
    together = {str(each.parameters["at_once"]): each.values for each in combined}
    assert list(together) == ["2 ports", "3 ports", "all ports"]
    assert [sorted(job.server for job in request.jobs) for request in laboratory.requests][4:] == [
        ["s0", "s1"],
        ["s0", "s1", "s2"],
        ["s0", "s1", "s2", "s3"],
    ]
    indexes = [values["jain_index"] for values in together.values()]
    assert indexes == pytest.approx([36 / (2 * 20), 36 / (3 * 20), 64 / (4 * 24)])


# Published throughputs of four and eight ports at once (docs/studies.md to 2.8), given to the method as a tool's.
#
# What it makes of them is what was published: per client, per port and combined.


REFERENCE_OF_PUBLISHED_STREAMS = Path(__file__).parents[2] / "src/nicbench/importing/reference/data"


def lines(name: str) -> list[dict[str, str]]:
    with (REFERENCE_OF_PUBLISHED_STREAMS / f"nsfnic4_2000_{name}.csv").open() as file:
        return list(csv.DictReader(file))


PUBLISHED = lines("combined")
ONE_CLIENT = [row for row in PUBLISHED if row["table"] in ("8", "10")]
TWO_CLIENTS = [row for row in PUBLISHED if row["table"] == "9"]


def of_row(name: str, row: dict[str, str]) -> list[dict[str, str]]:
    return [line for line in lines(name) if (line["table"], line["duplex"]) == (row["table"], row["duplex"])]


def measured(rates: dict[str, float], row: dict[str, str], **shape: int) -> tuple[Result, ...]:
    """What the method finds where each client moves some Mb/s, with the CPU of the whole server as published."""

    def outcome(_: int, job: Job) -> JobOutcome:
        return streamed(rates[job.client] * 1e6)

    share = {name: float(row[f"overall_cpu_{name}"]) / 100 for name in ("mean", "min", "max")}
    cpu = MachineCpu(machine="server", mean=share["mean"], minimum=share["min"], maximum=share["max"])
    laboratory = Laboratory(outcome, cpu=[cpu], **shape)  # type: ignore[arg-type]
    method = Stream("all", Stream.Options(at_once=("all",)))
    return asyncio.run(method.run(laboratory.context))


def found(results: tuple[Result, ...], part: str, **where: Any) -> float:
    """The throughput of one result, Mb/s."""
    (one,) = (
        result
        for result in results
        if result.parameters["part"] == part and all(result.parameters[key] == value for key, value in where.items())
    )
    rate = one.values["throughput_bits_per_s"]
    assert isinstance(rate, float)
    return rate / 1e6


def named(row: dict[str, str]) -> str:
    return f"table {row['table']}, {row['duplex']} duplex"


@pytest.mark.parametrize("row", ONE_CLIENT, ids=named)
def test_ports_at_once_add_up_to_what_was_published(row: dict[str, str]) -> None:
    ports = [float(line["throughput_mbps"]) for line in of_row("streams", row)]
    results = measured({f"c{port}0": rate for port, rate in enumerate(ports)}, row, ports=len(ports))
    for port, rate in enumerate(ports):
        assert found(results, "ports", port=f"s{port}") == pytest.approx(rate)
    assert f"{found(results, 'combined'):.2f}" == f"{float(row['combined_throughput_mbps']):.2f}"


@pytest.mark.parametrize("row", TWO_CLIENTS, ids=named)
def test_two_clients_at_each_port_add_up_to_what_was_published(row: dict[str, str]) -> None:
    clients = of_row("two_clients_per_port", row)
    rates = {
        f"c{int(line['port']) - 1}{number % 2}": float(line["throughput_mbps"]) for number, line in enumerate(clients)
    }
    results = measured(rates, row, ports=4, clients_per_port=2)
    for client, rate in rates.items():
        assert found(results, "clients", client=client) == pytest.approx(rate)
    for port in range(4):
        both = rates[f"c{port}0"] + rates[f"c{port}1"]
        assert found(results, "ports", port=f"s{port}") == pytest.approx(both)
    assert f"{found(results, 'combined'):.2f}" == f"{float(row['combined_throughput_mbps']):.2f}"


@pytest.mark.parametrize("row", PUBLISHED, ids=named)
def test_the_overall_cpu_is_told_as_mean_least_and_most(row: dict[str, str]) -> None:
    ports = 8 if row["table"] == "10" else 4
    results = measured({f"c{port}0": 1.0 for port in range(ports)}, row, ports=ports)
    (combined,) = (result for result in results if result.parameters["part"] == "combined")
    for ours, theirs in (("mean", "mean"), ("minimum", "min"), ("maximum", "max")):
        assert combined.values[f"server_cpu_{ours}_percent"] == pytest.approx(float(row[f"overall_cpu_{theirs}"]))
