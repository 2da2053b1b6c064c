"""Connections in the driver's hook through DUTs of known truths: tables, address translation, a SYN proxy, a policer.

The DUT is the kernel's, set up by nicbench in a namespace.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nicbench.core.events import RoundFinished
from nicbench.core.result import Bounded, Result
from nicbench.core.round import Round

from .lab_bench import make_folder, run_async

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.sampled(2, of="connections through DUTs")]

HEAD = """
nicbench: 1
title: Connections through a DUT
monitor: off
thresholds: {start_spread_share: 0.9, machine_steal_share: 0.9}
lab: {kind: clients, ports: %s}
dut: {kind: firewall%s}
tests: [{name: test, method: %s, driver: xdp, through: true, duration: %s s, %s}]
"""


LIMIT = Path("/proc/sys/net/netfilter/nf_conntrack_max")


def measure(
    folder: Path, dut: str, method: str, options: str, seconds: int = 1, ports: int = 2
) -> tuple[Result, list[Round]]:
    """The only result, and every round."""
    made = make_folder(folder, HEAD % (ports, dut and f", {dut}", method, seconds, options))
    before = LIMIT.read_text()
    (result,) = asyncio.run(run_async(made)).results
    assert LIMIT.read_text() == before
    return result, [event.round for event in made.journal.events() if isinstance(event, RoundFinished)]


def interval_of(result: Result, value: str) -> tuple[float, float]:
    found = result.values[value]
    assert isinstance(found, Bounded), result.disturbances
    assert found.lower is not None, found
    assert found.upper is not None, found
    return found.lower, found.upper


@pytest.mark.parametrize("size", [757, 1283, 3301])
def test_the_size_of_a_table_is_found_to_the_connection(size: int, tmp_path: Path) -> None:
    options = f"maximum: {2 * size}, rate: 4000, precision: 0, loss_verification: 0"
    result, rounds = measure(tmp_path, f"table_size: {size}", "concurrent-connections", options)
    assert interval_of(result, "concurrent_connections") == (size, size + 1)
    assert result.values["limited_by"] == "DUT's connection table"
    assert f"the DUT's connection table was full ({size} of {size} entries" in str(result.values["limit"])
    assert all(one.connection_table is not None and one.connection_table.before < size // 100 for one in rounds)


def test_ended_connections_that_fill_the_table_are_the_limit_of_a_rate(tmp_path: Path) -> None:
    options = "maximum: 6000, ramp: 0 s, precision: 1 %, object_bytes: [1 B], loss_verification: 2"
    result, _ = measure(tmp_path, "table_size: 2711", "connections-per-second", options)
    lower, upper = interval_of(result, "connections_per_s")
    assert lower <= 2711 < upper
    assert result.values["limited_by"] == "DUT's connection table"


@pytest.mark.parametrize("dut", ["", "masquerade: true", "syn_proxy: true", "masquerade: true, syn_proxy: true"])
def test_every_connection_through_a_dut_is_whole(dut: str, tmp_path: Path) -> None:
    options = "rate: 1000, object_bytes: [1 B, 20000 B], ramp: 0 s"
    made = make_folder(tmp_path, HEAD % (2, dut and f", {dut}", "http-latency", 1, options))
    for result in asyncio.run(run_async(made)).results:
        assert (result.values["transactions"], result.values["failures"]) == (1000, 0), result.values


@pytest.mark.parametrize("ports", [3, 4])
def test_clients_of_two_ports_share_what_a_firewall_holds(ports: int, tmp_path: Path) -> None:
    """Of three ports two ask the third one, of four each has another one."""
    options = "maximum: 1500, rate: 4000, precision: 0, loss_verification: 0"
    result, rounds = measure(tmp_path, "connections: 617", "concurrent-connections", options, ports=ports)
    assert interval_of(result, "concurrent_connections") == (617, 618)
    for one in rounds:
        known = [outcome.figures.connections for outcome in one.outcomes]
        failed = sum(each.sustain.failures for each in known)
        assert sum(each.sustain.due for each in known) == sum(each.sustain.completed for each in known) + failed
        assert sum(each.held for each in known) == sum(each.accepted or 0 for each in known) <= 617
    assert [f"s{port}: " in str(result.values["by_port"]) for port in range(ports)] == [True, True] + [False] * (
        ports - 2
    )


@pytest.mark.parametrize("ports", [3, 4])
@pytest.mark.parametrize(
    "method",
    [
        "connections-per-second, maximum: 2000, object_bytes: [1 B], ramp: 0 s",
        "http-transactions, maximum: 2000, connections: 10, object_bytes: [1 KiB], ramp: 0 s",
        "http-latency, rate: 2000, object_bytes: [1 KiB], ramp: 0 s",
    ],
)
def test_each_method_asks_from_two_ports_at_once(method: str, ports: int, tmp_path: Path) -> None:
    name, options = method.split(", ", 1)
    result, rounds = measure(tmp_path, "", name, options, ports=ports)
    assert result.values["by_port"] is not None, result
    for due in ("s0: 1000 of 1000 completed", "s1: 1000 of 1000 completed"):
        assert due in str(result.values["by_port"])
    servers = [job.server for job in rounds[-1].request.jobs]
    assert servers == (["c2", "c2"] if ports == 3 else ["c2", "c3"])


def test_a_policer_of_new_connections_is_found_within_one_percent(tmp_path: Path) -> None:
    rate, burst, seconds = 4000, 400, 2  # the burst is what a client makes up for that had to wait 0.1 s for its CPU
    dut = f"connection_rate: {rate}, burst: {burst}, over: reset"
    options = f"maximum: {2 * rate}, ramp: 0 s, precision: 0.5 %, object_bytes: [1 B]"
    result, _ = measure(tmp_path, dut, "connections-per-second", options, seconds)
    lower, upper = interval_of(result, "connections_per_s")
    truth = rate + (burst - 1) / seconds
    # A client that waits for its CPU while the bucket is full gets none of that time's tokens.
    assert 0.99 * truth <= lower
    assert upper <= 1.01 * truth
