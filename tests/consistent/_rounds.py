"""Runs of workloads, drawn: streams, transfers, requests, forwarding, incast, two tools, and editors that share a link.

What each job says follows from the link that it shares with the others of its round, so that sums and shares are those
of a machine that could be.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.fakes import FakeHost, FakeMonitors, FakePlayer

import nicbench.run as running
from nicbench.bench_file.models import BenchFile
from nicbench.core.bond import LinkFailureOutcome
from nicbench.core.reading import Times
from nicbench.core.round import (
    EndpointFacts,
    Figures,
    Flow,
    FrameFigures,
    Job,
    JobOutcome,
    MachineCpu,
    ProcessShare,
    RequestLatency,
    RoundRequest,
)
from nicbench.measure import host_player
from nicbench.stages import plan, rigs
from nicbench.stats.latency import histogram_of
from nicbench.testbed.labs.base import Endpoint, EndpointTestbed
from nicbench.tuning.changes import Changes

METHODS = ("stream", "tcp-throughput", "transfer", "request-response", "agreement", "forwarding", "incast", "frames")
MACHINES = ("server", "client")


def round_bench(draw: random.Random, method: str) -> tuple[dict[str, object], str]:
    """The bench file of a run that has a test of this method, as a dictionary and as text."""
    test = {"name": method, "method": method, "duration": "1 s"}
    if method == "stream":
        test |= {"direction": draw.choice((["forward"], ["forward", "reverse"])), "at_once": ["port", "all"]}
        test |= {"repetitions": draw.choice((1, 3)), "streams": draw.choice((1, 4))}
        test["transport"] = draw.choice(("tcp", "udp"))
        if test["transport"] == "udp":
            test["write_bytes"] = ["1400 B"]
    elif method == "transfer":
        del test["duration"]
        test |= {"transfer_bytes": ["1 MB", "5 MB"], "write_bytes": ["1 KiB"], "repetitions": draw.choice((1, 3))}
    elif method == "request-response":
        test |= {"transport": ["tcp"], "message_bytes": ["64 B", "1 KiB"]}
        if draw.random() < 0.5:
            test["load"] = {"workload": "iperf3", "streams": 2}
    elif method == "agreement":
        test |= {"workloads": ["iperf3", "nuttcp"], "within": draw.choice(("1 %", "5 %")), "repetitions": 3}
    elif method == "incast":
        test |= {"message_bytes": ["8 KiB"], "streams": [1, 4]}
    elif method == "frames":
        test |= {"instances": draw.choice(([1], [1, 2, 3, 4])), "direction": draw.choice((["read"], ["read", "write"]))}
        test |= {"directories": "/mnt/d{instance}", "frame_size": "256 KiB", "duration": "2 s", "warm_up": "1 s"}
    fewest = 2 if method == "incast" else 1
    ports = draw.choice((1, 2, 4)) if method != "forwarding" else draw.choice((2, 3))
    bench = {
        "nicbench": 1,
        "title": f"Drawn {method}",
        "seed": draw.randrange(1, 10**6),
        "lab": {"kind": "clients", "ports": ports, "clients_per_port": draw.choice((fewest, 2, 2)), "rate": "100 Mb/s"},
        "dut": {"kind": "router" if method == "forwarding" else "server"},
        "tests": [test],
        "monitor": "off",
    }
    runs = draw.choice((1, 1, 2, 5, "growing"))
    if runs == "growing":
        bench["runs"] = {"warm_up": 1, "at_least": 2, "at_most": 4, "until": "1 %"}
    elif runs != 1:
        bench["runs"] = runs
    if draw.random() < 0.5:
        bench["configurations"] = {
            name: {"lab": {"mtu": 1500 + 100 * at}} for at, name in enumerate(("wide", "narrow"))
        }
    return bench, json.dumps(bench, indent=1)


class _Drawn:
    """The machines of one turn: how fast their links are, and how often a tool fails or something disturbs."""

    def __init__(self, seed: str) -> None:
        self.draw = random.Random(seed)
        self.link_bits_per_s = self.draw.choice((1e8, 1e9, 25e9))
        self.bears = self.draw.choice((0.99, 0.9, 0.4))
        self.fails = self.draw.choice((0.0, 0.0, 0.02, 0.3))
        self.late = self.draw.choice((0.0, 0.0, 0.2))
        self.steal = self.draw.choice((0.0, 0.0, 0.1))

    def outcomes(self, request: RoundRequest) -> tuple[JobOutcome, ...]:
        shares = {}
        for job in request.jobs:
            shares[job.server or "server"] = shares.get(job.server or "server", 0) + 1
        return tuple(self._outcome(job, shares[job.server or "server"], request) for job in request.jobs)

    def _outcome(self, job: Job, beside: int, request: RoundRequest) -> JobOutcome:
        draw = self.draw
        began_s = 0.5 * request.duration_s if draw.random() < self.late else 0.0
        if draw.random() < self.fails:
            return JobOutcome(failure="it ended with exit status 1", repeatable=draw.random() < 0.5)
        rate = self.link_bits_per_s * self.bears / beside * draw.gauss(1.0, 0.02)
        if job.ask.operation == "frames":
            return self._frames(job, rate)
        figures = {"server_cpu_share": draw.random(), "client_cpu_share": draw.random()}
        if job.ask.operation == "request-response":
            figures |= self._latency()
        elif job.ask.operation == "memory":
            figures["memory_bytes_per_s"] = 1e10
        else:
            ways = ("forward", "reverse") if job.ask.direction == "both" else (job.ask.direction,)
            figures["flows"] = tuple(self._flow(job, way, min(rate, 0.97 * self.link_bits_per_s)) for way in ways)
        return JobOutcome(figures=Figures(**figures), began_s=began_s, took_s=job.ask.duration_s or 1.0, version="3.9")

    def _flow(self, job: Job, way: str, rate: float) -> Flow:
        moved = int(rate * (job.ask.duration_s or 1.0) / 8)
        counts = {"retransmissions": self.draw.randrange(5)}
        if job.ask.transport == "udp":
            lost = self.draw.choice((0, 0, 17))
            counts = {"datagrams": moved // 1400 + lost, "lost_datagrams": lost, "jitter_s": 1e-5}
        return Flow(
            direction="reverse" if way == "reverse" else "forward",
            sent_bytes=moved,
            received_bytes=moved,
            sent_bits_per_s=rate,
            received_bits_per_s=rate,
            duration_s=job.ask.duration_s,
            **counts,
        )

    def _latency(self) -> dict[str, Any]:
        base = self.draw.uniform(2e4, 1e5)
        counted = sorted(
            (int(base * math.exp(self.draw.gauss(0.0, 0.3))), self.draw.randrange(1, 900)) for _ in range(30)
        )
        total = sum(count for _, count in counted)
        latency = RequestLatency(
            basis="half round trip",
            count=total,
            minimum_ns=counted[0][0],
            mean_ns=sum(value * count for value, count in counted) / total,
            maximum_ns=counted[-1][0],
            histogram=histogram_of(counted),
        )
        return {"transactions_per_s": 1e9 / base, "latency": latency}

    def _frames(self, job: Job, rate_bits_per_s: float) -> JobOutcome:
        asked = job.ask.frames
        assert asked is not None
        seconds = job.ask.duration_s or 2.0
        frame_bytes = asked.frame_bytes or 262_144
        bears = rate_bits_per_s / 8 / frame_bytes
        per_s = bears if asked.frames_per_s is None else min(asked.frames_per_s, bears)
        frames = int(per_s * seconds)
        due = None if asked.frames_per_s is None else int(asked.frames_per_s * seconds)
        times = self._times(1e9 / max(per_s, 1.0) / 3)
        figures = FrameFigures(
            engine="io_uring",
            measured_ns=round(seconds * 1e9),
            frames=frames,
            bytes=frames * frame_bytes,
            frames_per_s=frames / seconds,
            bytes_per_s=frames * frame_bytes / seconds,
            dropped_frames=None if due is None else max(0, due - frames),
            due_frames=due,
            completion=times,
            lateness=None if due is None else times,
            cpu_ns=frames * 2_000_000,
            all_frames=frames,
        )
        return JobOutcome(figures=Figures(frames=figures), began_s=0.0, took_s=seconds)

    def _times(self, base: float) -> Times:
        each = [max(1, int(base * math.exp(self.draw.gauss(0.0, 0.3)))) for _ in range(30)]
        return Times(
            count=len(each),
            minimum_ns=min(each),
            mean_ns=sum(each) / len(each),
            maximum_ns=max(each),
            histogram=histogram_of([(one, 1) for one in each]),
        )


class _Player(FakePlayer):
    drawn: _Drawn

    async def play(self, number: int, request: RoundRequest, watch: Any) -> tuple[JobOutcome, ...]:
        await watch.begin()
        self.heard.append(request)
        return self.drawn.outcomes(request)

    def failure(self) -> LinkFailureOutcome | None:
        return None


class _Monitors(FakeMonitors):
    drawn: _Drawn

    def _users(self, busy: float) -> dict[str, Any]:
        """Strangers are on one machine of three."""
        draw = self.drawn.draw
        strangers = busy * draw.uniform(0.0, 0.9) if draw.random() < 0.3 else 0.001
        left = busy - strangers
        shares = {"own": 0.7 * left, "kernel": 0.2 * left, "nicbench": 0.1 * left, "strangers": strangers}
        names = {
            "own": "iperf3",
            "kernel": "interrupts",
            "nicbench": "nicbench",
            "stranger": "make",
        }
        rows = [
            ProcessShare(user=user, name=name, share=share)
            for (user, name), share in zip(names.items(), shares.values(), strict=True)
        ]
        return {
            **shares,
            "counted_s": 2.0,
            "idle": 1.0 - busy,
            "pressure": draw.uniform(0.0, 0.1),
            "processes": tuple(sorted(rows, key=lambda row: -row.share)),
        }

    async def end_round(self) -> tuple[MachineCpu, ...]:
        draw = self.drawn.draw
        return tuple(
            MachineCpu(
                machine=machine,
                mean=(mean := draw.uniform(0.01, 0.95)),
                minimum=mean * 0.9,
                maximum=min(1.0, mean * 1.1),
                busiest_core=min(1.0, mean * 1.3),
                steal=self.drawn.steal,
                samples=3,
                cpus=4,
                monitor=0.001,
                controller=0.01,
                **self._users(mean),
            )
            for machine in MACHINES
        )


def draw_rounds(monkeypatch: pytest.MonkeyPatch, draw: random.Random) -> None:
    """From now on labs of clients have machines whose tools say what is drawn."""
    seed = draw.randrange(10**9)
    turns = iter(range(10**6))
    turn = []

    async def make_endpoints(bench: BenchFile, changes: Changes) -> EndpointTestbed:
        turn[:] = [_Drawn(f"{seed} {bench.configuration} {next(turns)}")]
        server = FakeHost("server")
        options = bench.lab.options
        servers, clients = [], []
        for port in range(options.ports):
            servers.append(_end(server, f"s{port}", None, turn[0].link_bits_per_s))
            count = options.clients_per_port
            names = [f"c{port}"] if count == 1 else [f"c{port}{chr(ord('a') + at)}" for at in range(count)]
            clients += [_end(FakeHost(name), name, f"s{port}", turn[0].link_bits_per_s) for name in names]
        return EndpointTestbed(servers=tuple(servers), clients=tuple(clients), link_is_nominal=False)

    async def make_server(bench: BenchFile, testbed: EndpointTestbed, changes: Changes) -> Any:
        return bench.dut.plugin(bench.dut.options)

    def player(*_: Any) -> _Player:
        made = _Player(lambda number, job: JobOutcome())
        made.drawn = turn[0]
        return made

    @asynccontextmanager
    async def run_monitors(*_: Any) -> AsyncIterator[_Monitors]:
        monitors = _Monitors()
        monitors.drawn = turn[0]
        yield monitors

    async def nothing(*_: Any) -> tuple[()]:
        return ()

    async def inventory(*_: object) -> dict[str, dict[str, object]]:
        return {"server": {}, "client": {}}

    monkeypatch.setattr(plan, "collect", inventory)
    monkeypatch.setattr(running, "touches_machine", lambda bench: False)
    monkeypatch.setattr(running, "claims", lambda bench: ())
    monkeypatch.setattr(running, "run_monitors", run_monitors)
    monkeypatch.setattr(rigs, "make_endpoints", make_endpoints)
    monkeypatch.setattr(rigs, "make_server", make_server)
    monkeypatch.setattr(host_player, "HostPlayer", player)
    monkeypatch.setattr(rigs, "clocks_of", nothing)
    monkeypatch.setattr(rigs, "numa_nodes", nothing)


def _end(host: FakeHost, name: str, port: str | None, link_bits_per_s: float) -> Endpoint:
    machine = "server" if port is None else "client"
    facts = EndpointFacts(
        name=name,
        host=host.name,
        machine=machine,
        address="198.18.0.1",
        device=f"{name}-device",
        port=port,
        link_bits_per_s=link_bits_per_s,
    )
    return Endpoint(host=host, facts=facts)
