"""Tools of four distributions over a path of known loss: each figure is right, or refused with the reason."""

from __future__ import annotations

import asyncio
import re
from itertools import product
from pathlib import Path

import pytest
from tests.commands import run_checked
from tests.distributions import DEBIANS, command_of, unpack
from tests.workloads.test_real_tools_lab import CLIENT, SERVER, ends

from nicbench.core.round import Job, JobOutcome, JobSpec, RoundRequest
from nicbench.workloads.base import End
from nicbench.workloads.play import play
from nicbench.workloads.processes import RawFolder

__all__ = ["ends"]

RATE = 10e6
SHORT_BYTES, LONG_BYTES = 1_000_000, 7_000_000
LOST = """
table inet lossy {{
    chain arriving {{
        type filter hook input priority 0;
        udp length > 1000 numgen random mod 10 0 drop
    }}
}}
"""
WRAPPER = """#!/bin/sh
[ /proc/self/ns/net -ef /run/netns/{name} ] && exec {server} "$@"
exec {client} "$@"
"""
TCP = JobSpec(duration_s=2, rate_bits_per_s=RATE)
UDP = TCP.replace(transport="udp", write_bytes=1200)
ASKS = {
    "tcp": TCP,
    "tcp, reverse": TCP.replace(direction="reverse"),
    "tcp, both ways": TCP.replace(direction="both"),
    "tcp, few bytes": JobSpec(total_bytes=SHORT_BYTES, rate_bits_per_s=RATE),
    "tcp, many bytes": JobSpec(total_bytes=LONG_BYTES, rate_bits_per_s=RATE),
    "tcp, omit": TCP,
    "udp": UDP,
    "udp, reverse": UDP.replace(direction="reverse"),
    "udp, both ways": UDP.replace(direction="both"),
    "udp, omit": UDP,
}


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("distributions")
    return {suite: unpack(suite, ("iperf3",), folder) for suite in DEBIANS}


@pytest.fixture
def lossy(ends: dict[str, End]) -> dict[str, End]:
    """The two ends; each loses a tenth of the long datagrams that arrive."""
    for name in (CLIENT, SERVER):
        run_checked(("ip", "netns", "exec", name, "nft", "-f", "-"), input=LOST.format(), text=True)
    return ends


@pytest.mark.lab
@pytest.mark.acceptance
@pytest.mark.parametrize(("client", "server"), list(product(DEBIANS, DEBIANS)), ids=lambda suite: suite)
def test_any_two_versions_of_iperf3_are_right_or_refused(
    client: str,
    server: str,
    roots: dict[str, Path],
    lossy: dict[str, End],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrapper = tmp_path / "bin/iperf3"
    wrapper.parent.mkdir()
    commands = {"client": command_of(roots[client], "iperf3"), "server": command_of(roots[server], "iperf3")}
    wrapper.write_text(WRAPPER.format(name=SERVER, **commands))
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:/usr/sbin:/usr/bin:/sbin:/bin")
    jobs = tuple(
        Job(
            workload="iperf3",
            client="client",
            server="server",
            ask=ask,
            port=5400 + number,
            options={"omit_s": 1} if "omit" in name else {},
        )
        for number, (name, ask) in enumerate(ASKS.items())
    )
    request = RoundRequest(jobs=jobs, duration_s=2.0, timeout_s=30.0)
    outcomes = dict(zip(ASKS, asyncio.run(play(request, lossy, RawFolder(tmp_path, "r0001"))), strict=True))
    told = {name: describe(outcome) for name, outcome in outcomes.items()}
    print(client, "to", server, told)
    assert not [(name, outcome.failure) for name, outcome in outcomes.items() if is_wrong(name, outcome)], told


def describe(outcome: JobOutcome) -> str:
    if outcome.figures is None:
        return str(outcome.failure)
    return ", ".join(
        f"{(flow.bits_per_s or 0) / 1e6:.2f} Mb/s, {flow.lost_datagrams} of {flow.datagrams}"
        for flow in outcome.figures.flows
    )


def is_wrong(name: str, outcome: JobOutcome) -> bool:
    """Whether a figure is off by more than the dice of the path explain, or a failure gives no reason that is one."""
    if outcome.figures is None:
        return outcome.failure is None or "iperf3" not in str(outcome.failure)
    for flow in outcome.figures.flows:
        share = 0.9 if "udp" in name else 1.0
        tolerance = 0.2 if "few" in name else 0.06  # it begins with a burst
        if flow.bits_per_s is None or abs(flow.bits_per_s / RATE - share) > tolerance:
            return True
        if "udp" in name and (
            not flow.datagrams or flow.lost_datagrams is None or abs(flow.lost_datagrams / flow.datagrams - 0.1) > 0.03
        ):
            return True
    return False


OTHERS = {
    "iperf": TCP,
    "nuttcp": TCP,
    "netperf": JobSpec(duration_s=2, operation="request-response", write_bytes=64),
    "stress-ng": JobSpec(duration_s=6, operation="memory"),
    "qperf": JobSpec(duration_s=2, operation="request-response", write_bytes=64),
    "sockperf": JobSpec(duration_s=2, operation="request-response", write_bytes=64, transport="udp"),
}


@pytest.mark.lab
@pytest.mark.acceptance
@pytest.mark.parametrize("suite", DEBIANS)
def test_other_tools_of_a_distribution_are_understood(
    suite: str, ends: dict[str, End], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {kind: ask for kind, ask in OTHERS.items() if kind != "netperf" or suite in ("trixie", "sid")}
    root = unpack(suite, tuple(wanted), tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in (*wanted, *(("netserver",) if "netperf" in wanted else ())):
        (programs / name).write_text(f'#!/bin/sh\nexec {command_of(root, name)} "$@"\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin")
    jobs = tuple(
        Job(
            workload=kind,
            client="client",
            server=None if ask.operation == "memory" else "server",
            ask=ask,
            port=5400 + 200 * number,
        )
        for number, (kind, ask) in enumerate(wanted.items())
    )
    outcomes = asyncio.run(
        play(RoundRequest(jobs=jobs, duration_s=2.0, timeout_s=30.0), ends, RawFolder(tmp_path, "r0001"))
    )
    for kind, outcome in zip(wanted, outcomes, strict=True):
        if outcome.figures is None:
            assert re.search(r"\d and later (do|say)", str(outcome.failure)), f"{kind}: {outcome.failure}"
            continue
        print(
            suite, kind, outcome.version, describe(outcome), outcome.figures.latency and outcome.figures.latency.mean_ns
        )
        if outcome.figures.flows:
            assert not is_wrong(kind, outcome), describe(outcome)
        else:
            assert outcome.figures.latency or outcome.figures.transactions_per_s or outcome.figures.memory_bytes_per_s
