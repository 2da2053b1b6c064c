"""Published throughputs of four and eight ports at once (docs/studies.md to 2.8), given to the method as a tool's.

What it makes of them is what was published: per client, per port and combined.
"""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.result import Result
from nicbench.core.round import Job, JobOutcome, MachineCpu
from nicbench.methods.stream import Stream

from .round_contexts import Laboratory, streamed

REFERENCE = Path(__file__).parents[2] / "src/nicbench/importing/reference/data"


def lines(name: str) -> list[dict[str, str]]:
    with (REFERENCE / f"nsfnic4_2000_{name}.csv").open() as file:
        return list(csv.DictReader(file))


PUBLISHED = lines("combined")
ONE_CLIENT = [row for row in PUBLISHED if row["table"] in ("8", "10")]
TWO_CLIENTS = [row for row in PUBLISHED if row["table"] == "9"]


def of_row(name: str, row: dict[str, str]) -> list[dict[str, str]]:
    return [line for line in lines(name) if (line["table"], line["duplex"]) == (row["table"], row["duplex"])]


def measured(rates: dict[str, float], row: dict[str, str], **shape: int) -> tuple[Result, ...]:
    """What the method finds where each client moves so many Mb/s, with the CPU of the whole server as published."""

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
