"""`nicbench serve` of the example: real frames through a bridge between veth pairs, and an unchanged machine."""

from __future__ import annotations

import json
import re
import signal
import sys
import zlib
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from tests.commands import run_captured, run_tried

from nicbench.otg.configuration import read_configuration

from .frames import frame_of
from .served import (
    PORTS,
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

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "examples/otg.yaml").read_text()


def namespaces() -> set[str]:
    told = run_captured(("ip", "netns", "list")).stdout
    return {line.split()[0] for line in told.splitlines() if line}


@pytest.mark.lab
@pytest.mark.sampled(2, of="served labs")
def test_frames_pass_a_bridge_byte_for_byte_and_the_lab_is_gone_afterwards(tmp_path: Path) -> None:
    before = namespaces()
    with serving(tmp_path, text=EXAMPLE) as served:
        api = served.api("https")
        config = configured(api)
        flow = add_flow(config, "unaltered", frames=40, size=200, metrics=False)
        ethernet, ip, udp = flow.packet.ethernet().ipv4().udp()
        ethernet.src.value, ethernet.dst.value = "02:00:01:01:01:01", "02:00:01:01:01:02"
        ip.src.value, ip.dst.values = "10.1.1.1", ["10.1.1.2", "10.1.1.3"]
        udp.src_port.increment.start, udp.src_port.increment.count = 5000, 7
        api.set_config(config)
        capture(api, "start")
        transmit(api, "start")
        wait_until(lambda: port_metrics(api)["p2"].frames_rx >= 40)
        capture(api, "stop")
        program = read_configuration(config.serialize(config.DICT), PORTS, seed=1).flows[0].program
        sent = [frame_of(program, number) for number in range(40)]
        ours = [frame for frame in captured_frames(api, "p2") if frame[6:12] == bytes.fromhex("020001010101")]
        assert ours == [frame + zlib.crc32(frame).to_bytes(4, "little") for frame in sent]

        config.flows[0].metrics.enable = True
        config.flows[0].duration.fixed_packets.packets, config.flows[0].rate.pps = 2000, 20_000
        api.set_config(config)
        transmit(api, "start")
        metric = wait_for_stop(api)["unaltered"]
        assert (metric.frames_tx, metric.frames_rx, metric.loss) == (2000, 2000, 0)
        assert metric.latency.minimum_ns > 0

        first, captures, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "docs/otg.md").read_text(), re.DOTALL)
        script = (first + captures).replace("https://localhost:8443", served.https).replace("5000", "500")
        command = (sys.executable, "-W", "ignore", "-c", script.replace("sleep(6)", "sleep(1.5)"))
        said = run_tried(command, cwd=tmp_path, timeout=120)
        assert "500 sent, 500 received" in said.stdout, said.stderr
        assert (tmp_path / "p2.pcap").stat().st_size > 500 * 64
    folder = served.run_folder()
    journal = [json.loads(line) for line in (folder / "journal.ndjson").read_text().splitlines()]
    trial = next(event["trial"] for event in reversed(journal) if event["event"] == "trial_finished")
    assert (trial["reading"]["counts"]["lost"], trial["reading"]["unexplained"]) == (0, 0)
    plan = json.loads((folder / "plan.json").read_text())
    watched = trial["reading"]["health"]["cpus"]
    assert [cpu["cpu"] for cpu in watched] == ([] if plan["cores"]["shared"] else plan["cores"]["dut"])
    assert all(cpu["speed_samples"] and cpu["looks"] for cpu in watched)
    assert [monitor["host"] for monitor in plan["monitors"]] == ["local"]
    assert {"t0002", "t0003"} <= set(pyarrow.parquet.read_table(folder / "monitor.parquet")["trial"].to_pylist())
    assert (folder / "report.html").exists()
    assert namespaces() <= before


def started(api: Any, frames: int) -> None:
    config = configured(api, captured=False)
    ethernet, _, _ = add_flow(config, "f", frames=frames).packet.ethernet().ipv4().udp()
    ethernet.src.value, ethernet.dst.value = "02:00:01:01:01:01", "02:00:01:01:01:02"
    api.set_config(config)
    transmit(api, "start")


@pytest.mark.lab
@pytest.mark.acceptance
def test_the_next_server_restores_what_a_killed_one_left(tmp_path: Path) -> None:
    before = namespaces()
    with serving(tmp_path, text=EXAMPLE, ends=-signal.SIGKILL) as served:
        api = served.api()
        started(api, frames=100_000)
        wait_until(lambda: flow_metrics(api)["f"].frames_rx > 10)
        killed, engine = served.run_folder(), served.engine()
        served.process.kill()
        served.process.wait()
    wait_until(lambda: not Path(f"/proc/{engine}").exists())
    assert not namespaces() <= before
    with serving(tmp_path, text=EXAMPLE) as served:
        api = served.api()
        started(api, frames=10)
        assert wait_for_stop(api)["f"].frames_rx == 10
    assert namespaces() <= before
    assert [event["event"] for event in served.events(killed)][-1] == "configuration_set"
