"""Two engines that share a trial: what one sent and the other received, their clocks, and the death of one of them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from nicbench.core.errors import EngineError
from nicbench.engine.client import PROTOCOL, EngineClient
from nicbench.engine.pair import EnginePair
from nicbench.engine.reading import parse_reading
from nicbench.hosts.base import Process

STREAMS = [
    {"name": "0->1", "transmit_port": 0, "receive_port": 1, "frame_bytes": 64, "rate_frames_per_s": 1000},
    {"name": "1->0", "transmit_port": 1, "receive_port": 0, "frame_bytes": 64, "rate_frames_per_s": 1000},
]
WAY_NS = 20_000
"""How long a frame takes either way."""


class Machine(Process):
    """An engine with a clock of its own: it sends from its port 1000 frames and receives 990 at once."""

    def __init__(self, port: int, ahead_ns: int = 0, drift: float = 0.0) -> None:
        self.port = port
        self.ahead_ns, self.drift = ahead_ns, drift
        self.asked: list[dict[str, Any]] = []
        self.is_dead = False
        self.began_ns = time.monotonic_ns()
        self.peer: Machine | None = None
        self._lines = [json.dumps({"event": "ready", "protocol": PROTOCOL, "seq": 0, "time_ns": 0})]

    def now_ns(self) -> int:
        elapsed_ns = time.monotonic_ns() - self.began_ns
        return self.began_ns + self.ahead_ns + round(elapsed_ns * (1.0 + self.drift))

    def true_ns(self, said_ns: int) -> float:
        """When its clock shows so much."""
        return (said_ns - self.began_ns - self.ahead_ns) / (1.0 + self.drift) + self.began_ns

    @property
    def pid(self) -> int | None:
        return 1

    async def write_line(self, line: str) -> None:
        request = json.loads(line)
        self.asked.append(request)
        reply = {"id": request["id"], "ok": True, **self.answer(request)}
        self._lines.append(json.dumps(reply))
        if request["command"] == "start":
            self._lines.append(json.dumps({"event": "transmitted", "trial": request["trial"]}))

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["command"]:
            case "hello":
                return {"version": "1"}
            case "configure":
                return {"ports": [{"name": port["name"], "kind": port["kind"]} for port in request["ports"]]}
            case "clock":
                return {"now_ns": self.now_ns(), "realtime_ns": 0}
            case "sent":
                return {"trial": 1, "sent": [1000 * self.sends(number) for number in (0, 1)], "burst_ns": [700.0, 0.0]}
            case "drain":
                return self.reading(request["sent"])
            case "settle":
                return {"late": [2, 2]}
        return {}

    def sends(self, number: int) -> bool:
        return STREAMS[number]["transmit_port"] == self.port

    def reading(self, sent: list[int | None]) -> dict[str, Any]:
        streams = [self.stream(number, told) for number, told in enumerate(sent)]
        ports = [
            {
                "name": f"t{number}",
                "foreign": number,
                "misdirected": 2 * number,
                "corrupted_unattributed": 0,
                "receive_overrun": 0,
            }
            for number in (0, 1)
        ]
        health = {"longest_gap_ns": 10 * (self.port + 1), "total_gap_ns": 5, "gaps": 1, "clock_step_ns": -self.port}
        health |= {"iterations": 4, "idle_iterations": 2, "voluntary_switches": 1, "involuntary_switches": None}
        times = {"transmit_ns": 10**9, "sending_ns": 10**9, "sent_while_sending": 1000}
        return {"streams": streams, "ports": ports, "health": health, **times}

    def stream(self, number: int, told: int | None) -> dict[str, Any]:
        own = self.sends(number)
        counts = dict.fromkeys(("unsent_tester", "unsent_backpressure", "duplicated", "reordered", "corrupted"), 0)
        if own:
            times = {"count": 999, "minimum_ns": 0, "maximum_ns": 9, "histogram": ""}
            gaps = {"transmit_gaps": 5.0, "lateness": 6.0, "gap_errors": 7.0}
            return {
                **{name: {**times, "mean_ns": mean_ns} for name, mean_ns in gaps.items()},
                "name": STREAMS[number]["name"],
                "intended": 1000,
                "sent": 1000,
                "received": 0,
                "lost": 1000,
                **counts,
            }
        assert told == 1000, "the receiver must be told what the other engine sent"
        latency = {
            "source": "software",
            "count": 990,
            **self.stamped(),
            "mean_ns": 30_000.0,
            "maximum_ns": 60_000,
            "histogram": None,
            "uncertainty_ns": 1.0,
        }
        return {
            **counts,
            "name": STREAMS[number]["name"],
            "intended": 0,
            "sent": told,
            "received": 990,
            "lost": 10,
            "reordered": 3,
            "latency": latency,
            "arrivals": {"first_ns": 10**9, "last_ns": 2 * 10**9, "silence": {"from_ns": 10**9, "to_ns": 2 * 10**9}},
            "last_jump_ns": 10**9,
        }

    def stamped(self) -> dict[str, int]:
        """The least latency, by stamps that count from the beginning on each clock."""
        own = next(one for one in reversed(self.asked) if one["command"] == "start")["at_ns"]
        other = next(one for one in reversed(self.peer.asked) if one["command"] == "start")["at_ns"]
        # By how much later in truth this clock began to count than the other one.
        least = WAY_NS - round(self.true_ns(own) - self.peer.true_ns(other))
        if least < 0:
            return {"minimum_ns": 0, "negative": 5, "negative_maximum_ns": -least}
        return {"minimum_ns": least, "negative": 0, "negative_maximum_ns": 0}

    async def read_line(self, timeout_s: float | None = None) -> str | None:
        return None if self.is_dead or not self._lines else self._lines.pop(0)

    async def close_stdin(self) -> None:
        self._lines.clear()

    async def wait(self, timeout_s: float | None = None) -> int:
        return -9 if self.is_dead else 0

    async def signal(self, number: int) -> None:
        self._lines.clear()

    def stderr_tail(self) -> str:
        return ""


async def make_pair(ahead_ns: int = 0, drift: float = 0.0) -> tuple[EnginePair, Machine, Machine]:
    near, far = Machine(0), Machine(1, ahead_ns, drift)
    near.peer, far.peer = far, near
    clients = [EngineClient(each, f"nicbench-packets on {name}") for each, name in ((near, "a"), (far, "b"))]
    pair = EnginePair(clients[0], clients[1], frozenset({1}), {"worker_cpu": 5})
    await pair.greet()
    ports = [{"name": "t0", "kind": "af_packet", "device": "e0"}, {"name": "t1", "kind": "af_packet", "device": "e1"}]
    await pair.request("configure", ports=ports, worker_cpu=2)
    return pair, near, far


async def transmit(pair: EnginePair, trial: int = 2) -> tuple[dict[str, Any], dict[str, Any]]:
    await pair.request("start", trial=trial, duration_s=1e-5, streams=STREAMS)
    await pair.wait_for("transmitted", within_s=1.0, trial=trial)
    return await pair.request("drain", duration_s=0.1), await pair.request("settle", duration_s=0.1)


async def test_each_machine_opens_its_own_ports_and_knows_those_of_the_other_by_number() -> None:
    _, near, far = await make_pair()
    asked = [next(one for one in each.asked if one["command"] == "configure") for each in (near, far)]
    assert [[port["kind"] for port in one["ports"]] for one in asked] == [
        ["af_packet", "remote"],
        ["remote", "af_packet"],
    ]
    assert [one["worker_cpu"] for one in asked] == [2, 5]


async def test_what_one_sent_and_the_other_did_not_receive_is_lost() -> None:
    pair, _, _ = await make_pair()
    drained, settled = await transmit(pair)
    reading = parse_reading(drained, settled["late"])
    assert [(one.counts.sent, one.counts.received, one.counts.late, one.counts.lost) for one in reading.streams] == [
        (1000, 990, 2, 8),
        (1000, 990, 2, 8),
    ]
    assert [one.counts.reordered for one in reading.streams] == [3, 3]
    for gaps in (one.transmit_gaps for one in reading.streams):
        means = (gaps.mean_ns, gaps.lateness.mean_ns, gaps.errors.mean_ns)
        assert means == (5.0, 6.0, 7.0), "when frames of a capture left is known to their sender alone"
    of_ports = [(port.foreign, port.misdirected) for port in reading.ports]
    assert of_ports == [(0, 0), (1, 2)], "of each port its own machine counts"
    assert reading.latency.uncertainty_ns == 700.0, "the stamp of a burst is as uncertain as the burst is long"
    assert (reading.health.longest_gap_ns, reading.health.total_gap_ns, len(reading.health.workers)) == (20, 10, 2)
    assert reading.health.involuntary_switches is None


@pytest.mark.parametrize(("ahead_ns", "drift"), [(1_000_000, 100e-6), (-5_000_000_000, -100e-6), (0, 0.0)])
async def test_the_clocks_are_found_to_differ_as_they_do(ahead_ns: int, drift: float) -> None:
    pair, near, far = await make_pair(ahead_ns, drift)
    for trial in (2, 4, 6):
        await transmit(pair, trial)
    start = pair.last_start
    assert start is not None
    await transmit(pair, 8)
    mapping = pair.mapping(start)
    true_ns = far.ahead_ns + drift * (start.begin_ns - near.began_ns)
    assert abs(mapping.offset_ns - true_ns) <= mapping.uncertainty_ns
    assert (mapping.by, mapping.step_ns) == ("test links", 0.0)
    assert mapping.asymmetry_bound_ns == pytest.approx(WAY_NS, abs=2)


async def test_times_since_the_beginning_are_those_of_the_first_machines_clock() -> None:
    pair, _, _ = await make_pair(0, 100e-6)
    for trial in (2, 4, 6):
        await transmit(pair, trial)
    drained, settled = await transmit(pair, 8)
    start = pair.last_start
    there, back = parse_reading(drained, settled["late"]).streams
    gained_ns = round(1e9 - 1e9 / (1.0 + start.line.drift))
    assert (there.arrivals.first_ns, there.last_jump_ns) == (10**9 - gained_ns, 10**9)
    assert there.arrivals.silence.length_ns == pytest.approx(10**9 - gained_ns, abs=1)
    assert (back.arrivals.first_ns, back.last_jump_ns) == (10**9, 10**9 - gained_ns)


async def test_both_begin_at_one_moment_and_what_is_received_is_timed_by_the_senders_clock() -> None:
    pair, near, far = await make_pair(1_000_000_000, 100e-6)
    for trial in (2, 4):
        await transmit(pair, trial)
    first, second = (next(one for one in reversed(each.asked) if one["command"] == "start") for each in (near, far))
    assert second["at_ns"] - first["at_ns"] == pytest.approx(1e9, abs=1e6)
    assert "sender_drift" in first["streams"][1]
    assert "sender_drift" not in first["streams"][0], "a stream of its own has the clock of the engine"


async def test_a_clock_that_is_set_in_the_trial_is_told() -> None:
    pair, _, far = await make_pair()
    await transmit(pair, 2)
    await transmit(pair, 4)
    start = pair.last_start
    assert start is not None
    far.ahead_ns += 1_000_000
    await transmit(pair, 6)
    mapping = pair.mapping(start)
    assert mapping.step_ns == pytest.approx(1_000_000, abs=WAY_NS + 1000)


async def test_the_machine_whose_engine_died_is_named_and_the_other_is_not_waited_for() -> None:
    pair, _, far = await make_pair()
    await pair.request("start", trial=2, duration_s=1e-5, streams=STREAMS)
    far.is_dead = True
    with pytest.raises(EngineError, match="killed by signal 9") as caught:
        await pair.wait_for("transmitted", within_s=1.0, trial=2)
    assert caught.value.place == "nicbench-packets on b"
    await pair.close()


async def test_flows_that_begin_on_their_own_are_refused() -> None:
    pair, _, _ = await make_pair()
    with pytest.raises(EngineError, match="two machines"):
        pair.hand_over()
