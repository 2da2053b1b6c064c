"""Each method of connections finds a known truth by real connections: a rate, a goodput, a distribution of times.

What a firewall holds at once is in ``test_connections_lab.py``. ``make test`` draws among these, ``make acceptance``
has ten of each.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest

from nicbench.core.errors import NothingMeasuredError, ToolsFailedError
from nicbench.core.events import RoundFinished
from nicbench.core.result import Bounded, Result
from nicbench.stats.latency import counts_above

from .lab_bench import make_folder, run_async

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.sampled(2, of="known truths")]

HEAD = """
nicbench: 1
title: Connections
monitor: off
thresholds: {start_spread_share: 0.9, machine_steal_share: 0.9}
"""
MEGABIT = 1e6
ETHERNET, HEADERS, SEGMENT = 14, 20 + 20 + 12, 1500 - 20 - 20 - 12
"""Bytes of an Ethernet header without FCS, of the headers of IPv4 and of TCP with time stamps, and of a segment."""


def result_of(folder: Path, text: str) -> Result:
    (result,) = asyncio.run(run_async(make_folder(folder, HEAD + text))).results
    return result


def check_connection_rate(folder: Path, rate: int, burst: int, seconds: int) -> str:
    """The bucket of nftables is full at first: in D seconds at an even rate, R * D + burst - 1 connections pass."""
    result = result_of(
        folder,
        f"""
lab: {{kind: clients, ports: 2}}
dut: {{kind: firewall, connection_rate: {rate}, burst: {burst}, over: reset}}
tests:
  - {{name: cps, method: connections-per-second, through: true, maximum: {3 * rate // 2}, duration: {seconds} s,
     ramp: 0 s, precision: 4 %, object_bytes: [1 B]}}
""",
    )
    found, truth = result.values["connections_per_s"], rate + (burst - 1) / seconds
    assert isinstance(found, Bounded), result.disturbances
    assert found.lower is not None, found
    assert found.upper is not None, found
    said = f"{found.lower:.0f} to {found.upper:.0f} connections/s, truth {truth:.1f}"
    assert found.lower <= truth <= found.upper, said
    assert "refused" in str(result.values["limit"])
    return said


def check_accept_rate(folder: Path, rate: int, ports: int, queue: int, seconds: int = 4) -> str:
    """A server of the kernel's sockets accepts at an even rate; the client is in the driver's hook.

    In D seconds it accepts R * D + 1. More fit into its queues, each of which has a place beyond its size: the SYN that
    finds all of them full is dropped. With long queues the rate is too great once 1 % of what is due waits at the end.
    """
    made = make_folder(
        folder,
        HEAD
        + f"""
lab: {{kind: clients}}
dut: {{kind: server}}
tests:
  - {{name: cps, method: connections-per-second, driver: xdp, maximum: {3 * rate // 2}, duration: {seconds} s,
     ramp: 0 s, precision: 2 %, object_bytes: [1 B], ports: {ports}, loss_verification: 2,
     own_server: {{accept_rate: {rate}, accept_queue: {queue}}}}}
""",
    )
    (result,) = asyncio.run(run_async(made)).results
    found, accepted = result.values["connections_per_s"], rate * seconds + 1
    in_time, in_queues = accepted / 0.99 / seconds, (accepted + ports * (queue + 1)) / seconds
    assert isinstance(found, Bounded), result.disturbances
    assert found.lower is not None, found
    assert found.upper is not None, found
    said = f"{found.lower:.0f} to {found.upper:.0f} connections/s, truth {min(in_time, in_queues):.1f} of {rate}"
    said += f", {ports} queues of {queue}: {result.values['limit']}"
    assert found.lower <= min(in_time, in_queues) <= found.upper, said
    assert ("not connected in time" if in_queues < in_time else "were complete in time") in str(result.values["limit"])
    for event in made.journal.events():
        if isinstance(event, RoundFinished):
            counted = event.round.outcomes[0].figures.connections
            assert counted.sustain.due == counted.sustain.completed + counted.sustain.failures, said
            unanswered = counted.accepted - counted.sustain.completed
            assert 0 <= unanswered <= counted.sustain.failed.get("response_timeout", 0)
    return said


def wire_bytes(body: int) -> int:
    """Bytes of the frames of an answer, without FCS."""
    head = len(f"HTTP/1.1 200 OK\r\nContent-Length: {body}\r\n\r\n")
    segments = -(-(head + body) // SEGMENT)
    return head + body + segments * (ETHERNET + HEADERS)


def check_throughput(folder: Path, megabits: int, body: int, seconds: int, precision: str = "2 %") -> str:
    """A link of a known rate: 99 % of what is due in D seconds must come through it, and what its bucket holds."""
    result = result_of(
        folder,
        f"""
lab: {{kind: clients, rate: {megabits} Mb/s}}
dut: {{kind: server}}
tests:
  - {{name: http, method: http-transactions, maximum: {int(1.8e5 * megabits / body)}, connections: 16,
     precision: {precision}, object_bytes: [{body} B], duration: {seconds} s, ramp: 500 ms,
     answer_within: 1 s, loss_verification: 0}}
""",
    )
    found, goodput = result.values["transactions_per_s"], result.values["goodput_bits_per_s"]
    link = megabits * MEGABIT / 8 / wire_bytes(body)
    assert isinstance(found, Bounded), result.disturbances
    assert found.lower is not None, found
    assert found.upper is not None, found
    assert isinstance(goodput, int | float)
    said = f"{found.lower:.0f} to {found.upper:.0f} transactions/s, truth {link:.1f} to {link / 0.99:.1f}; goodput "
    share = goodput / (8 * body * min(link, found.lower))
    said += f"{share:.4f} of its truth"
    assert found.lower <= 1.002 * link / 0.99, said
    assert found.upper >= link, said
    assert 0.985 <= share <= 1.005, said
    return said


def check_first_byte(folder: Path, delay_ms: int, every: int) -> str:
    """A server delays one answer of so many: their share is known, and with it each percentile."""
    made = make_folder(
        folder,
        HEAD
        + f"""
lab: {{kind: clients}}
dut: {{kind: server}}
tests:
  - {{name: ttfb, method: http-latency, rate: 1000, object_bytes: [1 KiB], duration: 2 s, ramp: 0 s,
     own_server: {{delay: {delay_ms} ms, delay_every: {every}}}}}
""",
    )
    (result,) = asyncio.run(run_async(made)).results
    (one,) = [event.round for event in made.journal.events() if isinstance(event, RoundFinished)]
    (outcome,) = one.outcomes
    times = outcome.figures.connections.first_byte
    delay_ns = delay_ms * 1e6
    (slow,) = counts_above(times.histogram, times.maximum_ns, [int(0.999 * delay_ns)])
    median, tail = (result.values[f"first_byte_p{which}_ns"] for which in (50, 99))
    assert isinstance(median, int | float)
    assert isinstance(tail, int | float)
    said = f"{slow} of {times.count} delayed by {delay_ms} ms, truth {2000 // every}; median {median / 1e6:.2f} ms, "
    said += f"99 % {tail / 1e6:.2f} ms, greatest {times.maximum_ns / 1e6:.2f} ms"
    assert (times.count, slow) == (2000, 2000 // every), said
    assert median < delay_ns / 2, said
    assert (delay_ns <= tail < 1.25 * delay_ns) if every < 100 else (tail < delay_ns), said
    assert delay_ns <= times.maximum_ns < 1.5 * delay_ns, said
    return said


@pytest.mark.slow
def test_the_connections_a_second_that_a_firewall_lets_pass_are_found(tmp_path: Path) -> None:
    check_connection_rate(tmp_path, 500, 20, 1)


@pytest.mark.slow
@pytest.mark.parametrize("queue", [12, 4096])
def test_the_rate_at_which_a_server_accepts_is_found_by_a_client_in_the_hook(queue: int, tmp_path: Path) -> None:
    check_accept_rate(tmp_path, 1500, 2, queue)


@pytest.mark.slow
def test_the_goodput_of_a_link_of_known_rate_is_found(tmp_path: Path) -> None:
    check_throughput(tmp_path, 100, 16_384, 1, "10 %")


@pytest.mark.parametrize("every", [20, 200])
def test_the_share_of_answers_that_a_server_delays_is_found(every: int, tmp_path: Path) -> None:
    check_first_byte(tmp_path, 40, every)


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_the_connection_rate_is_found_in_ten_of_ten_runs(repetition: int, draw: random.Random, tmp_path: Path) -> None:
    print(check_connection_rate(tmp_path, draw.randrange(200, 1000), draw.randrange(10, 40), draw.randrange(2, 4)))


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_the_accept_rate_is_found_in_ten_of_ten_runs(repetition: int, draw: random.Random, tmp_path: Path) -> None:
    rate, ports = draw.randrange(1000, 3000), draw.randrange(1, 5)
    short = int(draw.uniform(0.4, 0.8) * 0.01 * rate * 4 / ports)
    print(check_accept_rate(tmp_path, rate, ports, short if repetition % 2 else 4096))


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_the_goodput_is_found_in_ten_of_ten_runs(repetition: int, draw: random.Random, tmp_path: Path) -> None:
    print(check_throughput(tmp_path, draw.randrange(50, 150), draw.randrange(8_192, 32_768), 2))


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_the_delayed_share_is_found_in_ten_of_ten_runs(repetition: int, draw: random.Random, tmp_path: Path) -> None:
    print(check_first_byte(tmp_path, draw.randrange(20, 80), draw.choice([10, 16, 20, 25, 40, 125, 200, 250])))


_COARSE = "maximum: 40, precision: 30 %, loss_verification: 0"
SEARCHES = {
    "cps": f"connections-per-second, {_COARSE}, ramp: 0 s, object_bytes: [1 KiB]",
    "http": f"http-transactions, {_COARSE}, connections: 4, ramp: 0 s, object_bytes: [1 KiB]",
    "held": f"concurrent-connections, {_COARSE}, rate: 200, object_bytes: 1 KiB",
}
METHODS = {**SEARCHES, "ttfb": "http-latency, rate: 100, ramp: 0 s, object_bytes: [1 KiB]"}
WORDS = {
    "reset_every": "reset",
    "short_every": "closed before the answer was complete",
    "status_every": "another status than 200",
    "corrupt_every": "another content",
}


def broken(test: str, fault: str) -> str:
    """A short test, on a server of this fault."""
    return f"""
lab: {{kind: clients}}
dut: {{kind: server}}
tests:
  - {{name: {test}, method: {METHODS[test]}, own_server: {{{fault}}}, duration: 1 s}}
"""


@pytest.mark.sampled(1, of="broken servers of connections")
@pytest.mark.parametrize("fault", WORDS)
@pytest.mark.parametrize("test", SEARCHES)
def test_a_broken_server_is_told_and_is_no_number(test: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(NothingMeasuredError, match=rf"% of the answers are wrong \(\d+ {WORDS[fault]}\)"):
        result_of(tmp_path, broken(test, f"{fault}: 20"))


def servers_of_ours() -> list[int]:
    """The processes of nicbench's own server that descend from this one."""
    parents, servers = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if words[0].endswith(b"nicbench-connections") and b"serve" in words:
            servers.append(int(folder.name))

    def descends(process: int) -> bool:
        return process == os.getpid() or (process in parents and descends(parents[process]))

    return [each for each in servers if descends(each)]


async def run_with_dying_servers(folder: Path, text: str) -> None:
    """Runs it, and kills each server half a second after it was first seen."""
    run = asyncio.create_task(run_async(make_folder(folder, HEAD + text)))
    while not run.done():
        seen = servers_of_ours()
        await asyncio.sleep(0.5)
        for process in set(seen) & set(servers_of_ours()):
            os.kill(process, signal.SIGKILL)
    await run


@pytest.mark.sampled(1, of="broken servers of connections")
@pytest.mark.parametrize("test", METHODS)
def test_a_server_that_dies_in_mid_trial_is_told_and_is_no_number(test: str, tmp_path: Path) -> None:
    with pytest.raises(ToolsFailedError, match=r"nicbench-connections, server on s0: was killed by signal 9"):
        asyncio.run(run_with_dying_servers(tmp_path, broken(test, "delay: 1 ms")))
