"""`nicbench serve` on six veth pairs and a bridge, driven by the real snappi client: real frames, counted exactly."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import httpx
import pytest

from nicbench.otg.configuration import read_configuration
from nicbench.testbed.labs.veth import mac

from .frames import frame_of
from .packets import PACKETS, config_of_many, wait_for_many
from .served import (
    PORTS,
    Served,
    add_flow,
    capture,
    captured_frames,
    configured,
    flow_metrics,
    port_metrics,
    serving,
    transmit,
    wait_for_stop,
    wait_until,
)

BENCH = """nicbench: 1
title: Six ports
lab: {kind: veth, ports: 6}
dut: {kind: bridge}
"""
SOURCE = "02:0a:0a:0a:0a:0a"
RATE = 10_000


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("serve"), text=BENCH) as served:
        yield served


@pytest.mark.lab
@pytest.mark.parametrize(("times", "frames"), [(3, 20_000), pytest.param(10, 1_000_000, marks=pytest.mark.acceptance)])
def test_as_many_frames_are_sent_as_were_asked_for(lab: Served, times: int, frames: int) -> None:
    api = lab.api()
    config = configured(api, captured=False)
    flow = add_flow(config, "f", frames=frames, size=64)
    flow.rate.pps = 100_000
    flow.packet.ethernet().ipv4()
    api.set_config(config)
    before = port_metrics(api)["p1"].frames_tx
    for time in range(1, times + 1):
        transmit(api, "start")
        metric = wait_for_stop(api)["f"]
        assert (metric.frames_tx, metric.bytes_tx) == (frames, 64 * frames)
        assert metric.frames_rx == frames - round(metric.loss * frames / 100)
        assert port_metrics(api)["p1"].frames_tx - before == time * frames


@dataclass(frozen=True)
class Look:
    """A flow at one moment: frames sent, frames given up since the machine was busy, and when the last was sent."""

    sent: int
    unsent: int
    last_ns: int


def watch_the_steady_flow(served: Served, phase_frames: int) -> list[Look]:
    """Starts, pauses, resumes and stops a flow along with a steady one, at which it looks before, between and after."""
    api = served.api()
    config = configured(api, captured=False)
    for name in ("steady", "other"):
        flow = add_flow(config, name)
        flow.rate.pps, flow.duration.choice = RATE, "continuous"
        flow.packet.ethernet().ipv4().udp()
    api.set_config(config)
    looks: list[Look] = []
    with httpx.Client(base_url=served.http, timeout=60) as client:

        def look() -> None:
            flow = client.get("/nicbench/v1/flows").json()["flows"][0]
            looks.append(Look(flow["sent"], flow["unsent_tester"], flow["last_sent_ns"]))

        transmit(api, "start", "steady")
        wait_until(lambda: flow_metrics(api)["steady"].frames_tx)
        look()
        told = {"start": "started", "pause": "paused", "resume": "started", "stop": "stopped"}
        for action, state in told.items():
            transmit(api, action, "other")
            wait_until(lambda: flow_metrics(api)["steady"].frames_tx >= looks[-1].sent + phase_frames)
            look()
            assert flow_metrics(api)["other"].transmit == state
        transmit(api, "stop")
    return looks


def rates_of(looks: list[Look], *, with_unsent: bool) -> list[float]:
    """Frames per second from each look to the next, by the engine's own times."""
    counts = [look.sent + look.unsent * with_unsent for look in looks]
    return [
        (count - before) * 1e9 / (look.last_ns - earlier.last_ns)
        for (before, count), (earlier, look) in zip(pairwise(counts), pairwise(looks), strict=True)
    ]


def test_a_flow_keeps_its_schedule_while_another_starts_pauses_resumes_and_stops(server: Served) -> None:
    """Frames that are given up count: they are the machine's fault, which others use meanwhile."""
    looks = watch_the_steady_flow(server, 1_000)
    assert rates_of(looks, with_unsent=True) == pytest.approx([RATE] * 4, rel=0.01)


@pytest.mark.lab
@pytest.mark.alone
@pytest.mark.acceptance
def test_the_rate_of_a_flow_over_a_veth_stays_while_another_changes(lab: Served) -> None:
    assert rates_of(watch_the_steady_flow(lab, 20_000), with_unsent=False) == pytest.approx([RATE] * 4, rel=0.01)


@pytest.mark.lab
@pytest.mark.acceptance
@pytest.mark.parametrize("add_headers", PACKETS)
def test_frames_pass_a_bridge_byte_for_byte_as_their_headers_say(
    lab: Served, add_headers: Callable[[Any], None]
) -> None:
    api = lab.api()
    config = configured(api)
    flow = add_flow(config, "f", frames=30, size=256, metrics=False)
    add_headers(flow.packet)
    flow.packet[0].src.value = SOURCE
    api.set_config(config)
    capture(api, "start")
    transmit(api, "start")
    wait_until(lambda: port_metrics(api)["p2"].frames_rx >= 30)
    capture(api, "stop")
    program = read_configuration(config.serialize(config.DICT), PORTS, seed=1).flows[0].program
    sent = [frame_of(program, number) for number in range(30)]
    ours = [frame for frame in captured_frames(api, "p2") if frame[6:12] == bytes.fromhex(SOURCE.replace(":", ""))]
    assert ours == [frame + zlib.crc32(frame).to_bytes(4, "little") for frame in sent]


@pytest.mark.lab
@pytest.mark.acceptance
def test_six_ports_send_to_each_other_over_a_bridge(lab: Served) -> None:
    api = lab.api()
    config = configured(api, tuple(f"t{number}" for number in range(6)), captured=False)
    for sender in range(6):
        for receiver in set(range(6)) - {sender}:
            flow = add_flow(config, f"{sender}-{receiver}", frames=200)
            flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = f"p{sender + 1}", [f"p{receiver + 1}"]
            ethernet, _, _ = flow.packet.ethernet().ipv4().udp()
            ethernet.src.value, ethernet.dst.value = mac(0, sender), mac(0, receiver)
    unheard = add_flow(config, "unheard", frames=100)
    unheard.tx_rx.port.rx_names = []
    unheard.packet.ethernet().ipv4().udp()
    api.set_config(config)
    transmit(api, "start")
    metrics = wait_for_stop(api)
    unheard = metrics.pop("unheard")
    assert (unheard.frames_tx, unheard.frames_rx, unheard.loss) == (100, 0, None)
    assert len(metrics) == 30
    assert {(metric.frames_tx, metric.frames_rx, metric.loss) for metric in metrics.values()} == {(200, 200, 0)}


@pytest.mark.lab
@pytest.mark.acceptance
def test_4096_flows_pass_a_bridge(lab: Served) -> None:
    with httpx.Client(base_url=lab.http, timeout=60) as client:
        assert client.post("/config", json=config_of_many(4096)).status_code == 200
        metrics = wait_for_many(client)
    assert len(metrics) == 4096
    assert {(metric["frames_tx"], metric["frames_rx"]) for metric in metrics} == {(2, 2)}
