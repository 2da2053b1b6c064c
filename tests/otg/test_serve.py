"""`nicbench serve` on simulated ports, driven by the real snappi client over each transport."""

from __future__ import annotations

import json
import os
import signal
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from nicbench.bench_file import parse
from nicbench.bench_file.load import has_tests
from nicbench.core.errors import UsageError
from nicbench.otg.configuration import read_configuration
from nicbench.stages.served import require_servable

from .frames import frame_of
from .packets import PACKETS, config_of_many, wait_for_many
from .served import (
    PORTS,
    Served,
    add_flow,
    capture,
    captured_frames,
    configured,
    configured_endlessly,
    flow_metrics,
    port_metrics,
    serving,
    transmit,
    wait_for_stop,
    wait_until,
)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("add_headers", PACKETS)
def test_frames_are_captured_byte_for_byte_as_their_headers_say(
    server: Served, add_headers: Callable[[Any], None]
) -> None:
    api = server.api()
    config = configured(api)
    flow = add_flow(config, "f", frames=30, size=256, metrics=False)
    flow.payload.choice = "increment_byte"
    add_headers(flow.packet)
    api.set_config(config)
    capture(api, "start")
    transmit(api, "start")
    wait_until(lambda: port_metrics(api)["p2"].frames_rx == 30)
    capture(api, "stop")
    program = read_configuration(config.serialize(config.DICT), PORTS, seed=1).flows[0].program
    sent = [frame_of(program, number) for number in range(30)]
    assert captured_frames(api, "p2") == [frame + zlib.crc32(frame).to_bytes(4, "little") for frame in sent]
    assert captured_frames(api, "p1") == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("transport", ["http", "https", "grpc"])
def test_a_flow_is_sent_counted_timed_and_captured_over_each_transport(server: Served, transport: str) -> None:
    api = server.api(transport)
    config = configured(api)
    flow = add_flow(config, "f", frames=100)
    flow.metrics.loss = flow.metrics.latency.enable = True
    flow.packet.ethernet().ipv4().udp()
    api.set_config(config)
    capture(api, "start")
    transmit(api, "start")
    metric = wait_for_stop(api)["f"]
    capture(api, "stop")
    assert (metric.frames_tx, metric.frames_rx, metric.loss) == (100, 100, 0)
    assert (metric.port_tx, metric.port_rx, metric.bytes_tx, metric.bytes_rx) == ("p1", "p2", 12_800, 12_800)
    assert 0 < metric.latency.minimum_ns <= metric.latency.average_ns <= metric.latency.maximum_ns
    assert metric.timestamps.first_timestamp_ns < metric.timestamps.last_timestamp_ns
    assert [len(frame) for frame in captured_frames(api, "p2")] == [128] * 100
    ports = port_metrics(api)
    assert (ports["p1"].frames_tx, ports["p2"].frames_rx) == (100, 100)
    assert (ports["p1"].link, ports["p1"].location, ports["p1"].speed) == ("up", "t0", 10_000)
    assert [flow.name for flow in api.get_config().flows] == ["f"]


@pytest.mark.acceptance
def test_flows_start_pause_resume_and_stop_while_others_send(server: Served) -> None:
    api = server.api()
    config = configured(api, captured=False)
    for name in ("a", "b"):
        flow = add_flow(config, name)
        flow.duration.choice = "continuous"
        flow.packet.ethernet().ipv4().udp()
    api.set_config(config)
    transmit(api, "start", "a")
    wait_until(lambda: flow_metrics(api)["a"].frames_tx_rate > 500)
    assert flow_metrics(api)["b"].transmit == "stopped"
    transmit(api, "start", "b")
    transmit(api, "pause", "a")
    paused = flow_metrics(api, "a")["a"]
    assert (paused.transmit, flow_metrics(api)["b"].transmit) == ("paused", "started")
    wait_until(lambda: flow_metrics(api)["b"].frames_tx > 100)
    assert flow_metrics(api)["a"].frames_tx == paused.frames_tx
    transmit(api, "resume", "a")
    wait_until(lambda: flow_metrics(api)["a"].frames_tx > paused.frames_tx + 50)
    transmit(api, "stop", "b")
    assert [flow_metrics(api)[name].transmit for name in ("a", "b")] == ["started", "stopped"]
    transmit(api, "stop")
    metrics = flow_metrics(api)
    assert all(metric.frames_tx == metric.frames_rx and metric.transmit == "stopped" for metric in metrics.values())


def test_a_flow_that_nobody_receives_has_counts_of_what_was_sent(server: Served) -> None:
    api = server.api()
    config = configured(api, captured=False)
    flow = add_flow(config, "f", frames=50)
    flow.tx_rx.port.rx_names = []
    flow.packet.ethernet().ipv4().udp()
    api.set_config(config)
    transmit(api, "start")
    metric = wait_for_stop(api)["f"]
    assert (metric.frames_tx, metric.frames_rx, metric.frames_rx_rate, metric.loss) == (50, None, None, None)


def test_sizes_and_bursts_are_exactly_what_was_asked_for(server: Served) -> None:
    api = server.api()
    config = configured(api, captured=False)
    mixed = add_flow(config, "mixed")
    mixed.size.weight_pairs.predefined = "imix"
    mixed.rate.pps, mixed.duration.fixed_packets.packets = 50_000, 12_000
    bursts = add_flow(config, "bursts")
    bursts.duration.burst.bursts, bursts.duration.burst.packets = 7, 9
    for flow in config.flows:
        flow.packet.ethernet().ipv4().udp()
    api.set_config(config)
    transmit(api, "start")
    metrics = wait_for_stop(api)
    assert (metrics["mixed"].frames_rx, metrics["bursts"].frames_rx) == (12_000, 63)
    assert metrics["mixed"].bytes_rx == 12_000 // 12 * (7 * 64 + 4 * 570 + 1518)


def test_4096_flows_are_configured_sent_and_counted(server: Served) -> None:
    with httpx.Client(base_url=server.http, timeout=60) as client:
        assert client.post("/config", json=config_of_many(4096)).status_code == 200
        metrics = wait_for_many(client)
    assert len(metrics) == 4096
    assert {(metric["frames_tx"], metric["frames_rx"]) for metric in metrics} == {(2, 2)}


@pytest.mark.parametrize(
    ("path", "body", "code", "words"),
    [
        ("/config", b"{", 400, "the body is no JSON"),
        ("/config", b"[]", 400, "the body is no JSON object"),
        ("/config", b"\xff" * 100, 400, "the body is no JSON"),
        ("/config", b'{"flow": []}', 400, "config.flow: is no member of Config"),
        ("/config", b'{"ports": [{"name": "p", "location": "eth0"}]}', 400, "'eth0' is no port of this server"),
        (
            "/config",
            b'{"ports": [{"name": "p", "location": "t0"}], "lldp": [{"name": "l", "connection": {"port_name": "p"}}]}',
            501,
            "config.lldp",
        ),
        ("/control/action", b'{"choice": "protocol", "protocol": {"choice": "ipv4"}}', 501, "control_action.protocol"),
        ("/monitor/states", b'{"choice": "isis_lsps"}', 501, "states_request.isis_lsps"),
        ("/control/state", b'{"choice": "protocol", "protocol": {"choice": "bgp"}}', 501, "control_state.protocol.bgp"),
        ("/monitor/metrics", b'{"choice": "isis"}', 501, "metrics_request.isis"),
        ("/monitor/metrics", b'{"choice": "flow", "flow": {"flow_names": ["nobody"]}}', 400, "flow_names[0]"),
        ("/monitor/capture", b'{"port_name": "nobody"}', 400, "capture_request.port_name"),
        ("/nowhere", b"{}", 404, "POST /nowhere: is not known"),
    ],
)
def test_what_is_wrong_is_answered_with_otgs_error(
    server: Served, path: str, body: bytes, code: int, words: str
) -> None:
    with httpx.Client(base_url=server.http, timeout=60) as client:
        client.post("/config", json=config_of_many(1)).raise_for_status()
        answer = client.post(path, content=body)
    assert answer.status_code == code
    told = answer.json()
    assert (told["code"], told["kind"]) == (code, "internal" if code == 501 else "validation")
    assert words in told["errors"][0]


def test_a_body_of_65_mib_is_refused_and_the_server_goes_on(server: Served) -> None:
    with httpx.Client(base_url=server.http, timeout=60) as client:
        answer = client.post("/config", content=b" " * (65 * 2**20))
        assert (answer.status_code, answer.json()["errors"]) == (400, ["the body has more than 64 MiB"])
        assert client.get("/capabilities/version").json()["api_spec_version"] == ">=1.30.0,<2.0.0"


def test_pages_of_browsers_and_other_names_are_refused(server: Served) -> None:
    with httpx.Client(base_url=server.http, timeout=60) as client:
        assert client.post("/config", json={}, headers={"Origin": "http://evil.example"}).status_code == 403
        assert client.post("/config", json={}, headers={"Host": "evil.example"}).status_code == 421


def test_errors_over_grpc_are_otgs_too(server: Served) -> None:
    api = server.api("grpc")
    config = api.config()
    config.ports.add(name="p1", location="eth0")
    with pytest.raises(Exception) as refused:  # noqa: PT011 - the client raises nothing more special
        api.set_config(config)
    error = api.from_exception(refused.value)
    assert (error.code, error.kind) == (400, "validation")
    assert error.errors == ["config.ports[0].location: 'eth0' is no port of this server; its ports are t0, t1"]


@pytest.mark.acceptance
def test_a_session_leaves_a_run_folder_with_loss_verdict_and_report(tmp_path: Path) -> None:
    with serving(tmp_path, lab="{kind: simulated, loss: 20 %, seed: 3}") as served:
        api = served.api()
        config = configured(api, captured=False)
        add_flow(config, "f", frames=500).packet.ethernet().ipv4().udp()
        add_flow(config, "g", frames=100, metrics=False).packet.ethernet().ipv4().udp()
        api.set_config(config)
        transmit(api, "start")
        metric = wait_for_stop(api)["f"]
        assert metric.frames_tx == 500
        assert 5 < metric.loss < 40
        with httpx.Client(base_url=served.http, timeout=60) as client:
            told = wait_until(lambda: client.get("/nicbench/v1/transmissions").json()["transmissions"])
            assert [each["counts"]["lost"] for each in told] == [500 - metric.frames_rx]
            assert [each["uncounted"] for each in told] == [{"flows": 1, "sent": 100, "received": None}]
            assert client.get("/nicbench/v1/flows").json()["flows"][0]["latency"]["histogram"]
            assert "Transmissions" in client.get("/nicbench/v1/report").text
        api.set_config(api.config())  # an empty one ends the session
        folder = served.run_folder()
        events = [json.loads(line) for line in (folder / "journal.ndjson").read_text().splitlines()]
        assert [event["event"] for event in events][-4:] == [
            "trial_finished",
            "result_ready",
            "result_ready",
            "run_finished",
        ]
        of_uncounted = events[-2]["result"]["values"]
        assert [of_uncounted[f"{name}_frames"] for name in ("sent", "received", "lost")] == [100, None, None]
        assert "What became of 100 frames beside them was counted by nobody" in (folder / "report.html").read_text()
        assert (folder / "MANIFEST.json").exists()
        with pytest.raises(Exception, match="there is no configuration"):
            flow_metrics(api)
        api.set_config(config)
        assert len(list(served.runs.iterdir())) == 2


def test_a_start_of_flows_that_send_already_counts_nothing_twice(tmp_path: Path) -> None:
    with serving(tmp_path, lab="{kind: simulated}") as served:
        api = served.api()
        api.set_config(configured_endlessly(api))
        for _ in range(3):
            transmit(api, "start")
            sent = flow_metrics(api)["f"].frames_tx
            wait_until(lambda before=sent: flow_metrics(api)["f"].frames_tx > before + 20)
        transmit(api, "stop")
        metric = wait_for_stop(api)["f"]
        with httpx.Client(base_url=served.http, timeout=60) as client:
            told = client.get("/nicbench/v1/transmissions").json()["transmissions"]
        assert [each["counts"]["sent"] for each in told] == [metric.frames_tx]


def test_a_client_whose_deadline_passes_loses_no_transmission(tmp_path: Path) -> None:
    with serving(tmp_path, lab="{kind: simulated}") as served:
        api = served.api()
        config = configured_endlessly(api)
        api.set_config(config)
        transmit(api, "start")
        wait_until(lambda: flow_metrics(api)["f"].frames_tx > 20)
        hasty = served.api("grpc")
        hasty.get_config()  # so that the deadline below is not used up by the connection
        hasty.request_timeout = 0.01
        with httpx.Client(base_url=served.http, timeout=60) as client:

            def is_kept() -> bool:
                """After one more request with that deadline, which may pass before the server takes the request up."""
                with suppress(Exception):
                    hasty.set_config(config)
                time.sleep(0.5)
                return len(client.get("/nicbench/v1/transmissions").json()["transmissions"]) == 1

            wait_until(is_kept)


@pytest.mark.acceptance
def test_a_session_ends_when_nobody_asks_any_more(tmp_path: Path) -> None:
    with serving(tmp_path, "--idle", "2s") as served:
        api = served.api()
        api.set_config(configured(api))
        wait_until((served.run_folder() / "report.html").exists)


@pytest.mark.acceptance  # of real ports: test_serve_lab_faults.py
def test_an_engine_that_is_killed_ends_the_session_and_the_next_one_works(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        api = served.api()
        config = configured(api, captured=False)
        flow = add_flow(config, "f")
        flow.duration.choice = "continuous"
        flow.packet.ethernet().ipv4().udp()
        api.set_config(config)
        transmit(api, "start")
        children = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)
        with pytest.raises(Exception, match="killed by signal 9"):
            wait_until(lambda: flow_metrics(api) and None)
        api.set_config(config)
        transmit(api, "start")
        wait_until(lambda: flow_metrics(api)["f"].frames_rx > 10)
        first, second = sorted(served.runs.iterdir())
    for folder in (first, second):
        events = [json.loads(line) for line in (folder / "journal.ndjson").read_text().splitlines()]
        assert events[-1]["event"] == "run_finished"


def test_two_clients_may_change_and_read_at_once(server: Served) -> None:
    api, other = server.api(), server.api("grpc")
    config = configured(api, captured=False)
    add_flow(config, "f").packet.ethernet().ipv4().udp()
    api.set_config(config)
    with ThreadPoolExecutor(8) as pool:
        changes = [pool.submit(client.set_config, config) for client in (api, other) * 3]
        reads = [pool.submit(flow_metrics, client) for client in (api, other) * 6]
        assert all(done.result() is not None for done in changes)
        assert all(done.result().keys() == {"f"} for done in reads)


def flows_of(api: Any) -> list[str]:
    return [flow.name for flow in api.get_config().flows]


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_flows_are_changed_added_and_taken_away_while_none_is_sending(server: Served, transport: str) -> None:
    api = server.api(transport)
    config = configured(api, captured=False)
    add_flow(config, "a", frames=30).packet.ethernet().ipv4().udp()
    api.set_config(config)

    update = api.config_update()
    update.flows.property_names = ["rate", "size"]
    changed = update.flows.flows.add(name="a")
    changed.tx_rx.port.tx_name, changed.rate.pps, changed.size.fixed = "p1", 5000, 256
    api.update_config(update)
    assert api.get_config().flows[0].rate.pps == 5000

    more = api.config_append()
    resources = more.config_append_list.add()
    added = resources.flows.add(name="b")
    added.tx_rx.port.tx_name, added.tx_rx.port.rx_names = "p1", ["p2"]
    added.duration.fixed_packets.packets, added.metrics.enable = 40, True
    api.append_config(more)
    assert flows_of(api) == ["a", "b"]

    transmit(api, "start")
    metrics = wait_for_stop(api)
    assert (metrics["a"].frames_rx, metrics["a"].bytes_rx, metrics["b"].frames_rx) == (30, 30 * 256, 40)

    fewer = api.config_delete()
    fewer.config_delete_list.add().flows = ["a"]
    api.delete_config(fewer)
    assert flows_of(api) == ["b"]
    assert flow_metrics(api).keys() == {"b"}
    with pytest.raises(Exception, match="flow 0: no flow of the configuration is called"):
        api.delete_config(fewer)
    with pytest.raises(Exception, match=r"is the name of config\.flows"):
        api.append_config(more)
    assert flows_of(api) == ["b"]


def test_nothing_is_changed_while_flows_are_sending(server: Served) -> None:
    api = server.api()
    config = configured(api, captured=False)
    flow = add_flow(config, "a")
    flow.duration.choice = "continuous"
    flow.packet.ethernet().ipv4().udp()
    api.set_config(config)
    transmit(api, "start")
    fewer = api.config_delete()
    fewer.config_delete_list.add().flows = ["a"]
    with pytest.raises(Exception, match="flows are not changed while any is sending: stop them"):
        api.delete_config(fewer)
    assert flow_metrics(api)["a"].transmit == "started"
    transmit(api, "stop")


def test_ports_say_since_when_their_links_are_as_they_are(server: Served) -> None:
    api = server.api()
    api.set_config(configured(api, captured=False))
    changed = {port.last_change for port in port_metrics(api).values()}
    assert min(changed) > 1_700_000_000_000_000_000
    assert {port.last_change for port in port_metrics(api).values()} == changed


def test_flows_whose_frames_would_be_taken_for_one_anothers_are_refused(server: Served) -> None:
    api = server.api()
    config = configured(api, captured=False)
    for name, metrics in (("counted", True), ("background", False)):
        flow = add_flow(config, name, size=64, metrics=metrics)
        flow.packet.ethernet().ipv4().tcp()
        flow.packet[2].src_port.increment.start, flow.packet[2].src_port.increment.count = 5000, 100
    config.flows[0].packet[2].src_port.value = 5010
    with pytest.raises(
        Exception, match="frames of flow background would be counted as those of flow counted"
    ) as refused:
        api.set_config(config)
    assert api.from_exception(refused.value).code == 400

    config.flows[0].packet[2].src_port.value = 5020  # which none of the 20 frames has
    api.set_config(config)
    transmit(api, "start")
    assert wait_for_stop(api)["counted"].frames_rx == 20


BENCH = "nicbench: 1\ntitle: t\nlab: {kind: veth}\ndut: {kind: bridge}\n"


@pytest.mark.parametrize(
    ("tester", "words"),
    [
        ("{driver: xdp}", "no single flow"),
        ("{workers: [{cpu: 0, transmit: [t0, t1]}, {cpu: 1, receive: [t0, t1]}]}", "`tester.workers`"),
        ("{timestamps: kernel, driver: net_pcap}", "`tester.timestamps`"),
        ("{capture: {frames: 5}}", "`tester.capture`"),
        ("{per_flow: counts}", "`tester.per_flow`"),
    ],
)
def test_what_a_session_would_ignore_is_refused(tester: str, words: str) -> None:
    bench = parse(f"{BENCH}tester: {tester}\n".encode(), Path("bench.yaml"), serves=True)
    with pytest.raises(UsageError, match=words) as refused:
        require_servable(bench)
    assert "leave" in str(refused.value.next_step)


def test_a_bench_file_without_a_driver_is_served_by_af_xdp() -> None:
    bench = parse(BENCH.encode(), Path("bench.yaml"), serves=True)
    assert require_servable(bench).tester.options.driver == "net_af_xdp"  # type: ignore[attr-defined]
    assert not has_tests(bench)
    assert has_tests(parse(f"{BENCH}tests: []\n".encode(), Path("bench.yaml"), serves=True))
