"""What flows have beyond ports and sizes, on a server with simulated ports: both directions, tags, PCAPNG."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pytest
from scapy.utils import RawPcapNgReader

from .served import (
    Served,
    add_flow,
    capture,
    configured,
    flow_metrics,
    port_metrics,
    serving,
    transmit,
    wait_for_stop,
    wait_until,
)
from .test_serve_devices import MACS, neighbours, with_devices


def test_a_flow_in_both_directions_is_one_in_metrics_and_two_in_the_report(server: Served) -> None:
    api = server.api()
    config = with_devices(api)
    config.flows[0].tx_rx.device.bidirectional = True
    config.flows[0].tx_rx.device.tx_names, config.flows[0].tx_rx.device.rx_names = ["d1"], ["d2"]
    api.set_config(config)
    transmit(api, "start", "f")
    metric = wait_for_stop(api)["f"]
    assert (metric.frames_tx, metric.frames_rx, metric.loss) == (40, 40, 0)
    assert (metric.port_tx, metric.port_rx) == ("p1,p2", "p2,p1")
    assert [port.frames_tx for port in port_metrics(api).values()] == [20, 20]
    assert metric.latency.minimum_ns <= metric.latency.average_ns <= metric.latency.maximum_ns
    wait_until(lambda: [row["values"]["sent_frames"] for row in server.results()[-2:]] == [20, 20])


@pytest.mark.parametrize("size", [128, 64])
def test_frames_are_counted_by_the_values_that_they_have_where_they_are_received(server: Served, size: int) -> None:
    """Those of 64 bytes have no room for a signature behind these headers: they are counted by their headers."""
    api = server.api()
    config = configured(api, captured=False)
    flow = add_flow(config, "f", frames=30, size=size)
    flow.packet.ethernet().vlan().ipv4().tcp()
    flow.packet[1].id.values = [5, 6, 7]
    flow.packet[2].priority.raw.values = [0x03, 0x2A]
    egress = flow.egress_packet.ethernet().vlan().ipv4()
    egress[1].id.metric_tags.add(name="vlan")
    egress[2].priority.raw.metric_tags.add(name="ecn", offset=6, length=2)
    api.set_config(config)
    transmit(api, "start")
    metric = wait_for_stop(api)["f"]
    told = Counter[tuple[str, ...]]()
    for each in flow_metrics(api, "f")["f"].tagged_metrics:
        assert [tag.name for tag in each.tags] == ["vlan", "ecn"]
        told[tuple(tag.value.hex for tag in each.tags)] += each.frames_rx
    assert told == {(vlan, ecn): 5 for vlan in ("005", "006", "007") for ecn in ("2", "3")}
    assert sum(told.values()) == metric.frames_rx == 30
    request = api.metrics_request()
    request.flow.flow_names = ["f"]
    request.flow.tagged_metrics.filters.add(name="vlan", values=["6"])
    (only,) = api.get_metrics(request).flow_metrics
    assert [each.tags[0].value.hex for each in only.tagged_metrics] == ["006", "006"]
    request.flow.tagged_metrics.include = False
    assert not api.get_metrics(request).flow_metrics[0].tagged_metrics


def test_a_capture_as_pcapng_holds_the_frames_with_their_fcs_and_ends_when_it_is_fetched(server: Served) -> None:
    api = server.api()
    config = configured(api)
    config.captures[0].format = "pcapng"
    add_flow(config, "f", frames=7).packet.ethernet().ipv4().udp()
    api.set_config(config)
    capture(api, "start")
    transmit(api, "start")
    wait_for_stop(api)
    request = api.capture_request()
    request.port_name = "p2"
    frames = [bytes(frame) for frame, _ in RawPcapNgReader(io.BytesIO(api.get_capture(request).read()))]
    assert [len(frame) for frame in frames] == [128] * 7
    assert port_metrics(api)["p2"].capture == "stopped"


def test_the_duration_of_losses_is_told_where_it_is_asked_for(server: Served) -> None:
    api = server.api()
    config = configured(api, captured=False)
    config.options.flow_options.packet_loss_duration = True
    add_flow(config, "f").packet.ethernet().ipv4().udp()
    api.set_config(config)
    transmit(api, "start")
    assert wait_for_stop(api)["f"].packet_loss_duration.value == 0


def test_links_of_simulated_ports_are_refused_with_the_path(server: Served) -> None:
    api = server.api()
    api.set_config(configured(api, captured=False))
    control = api.control_state()
    control.port.link.state, control.port.link.port_names = "down", ["p1"]
    with pytest.raises(Exception, match=r"control_state.port.link.port_names\[0\]: port ''p1'' is not an interface"):
        api.set_control_state(control)


def test_the_ports_of_groups_share_what_their_hosts_send_and_receive(tmp_path: Path) -> None:
    """Two groups of two ports, back to back."""
    with serving(tmp_path, "--location", "first=t0", lab="{kind: simulated, ports: 4}") as served:
        api = served.api()
        config = configured(api, ("first", "t1", "t2", "t3"), captured=False)
        for number, ports in ((1, ("p1", "p3")), (2, ("p2", "p4"))):
            group = config.lags.add(name=f"l{number}")
            group.protocol.static.lag_id = number
            for port in ports:
                member = group.ports.add(port_name=port)
                member.ethernet.name, member.ethernet.mac = f"m{port}", "02:00:00:00:01:01"
            ethernet = config.devices.add(name=f"d{number}").ethernets.add(name=f"e{number}", mac=MACS[number])
            ethernet.connection.lag_name = f"l{number}"
            own = {"name": f"i{number}", "address": f"10.0.0.{number}", "gateway": f"10.0.0.{3 - number}", "prefix": 32}
            ethernet.ipv4_addresses.add(**own)
        flow = add_flow(config, "f", frames=101)
        flow.tx_rx.device.tx_names, flow.tx_rx.device.rx_names = ["d1"], ["d2"]
        flow.packet.ethernet().ipv4().udp()
        api.set_config(config)
        transmit(api, "start")
        metric = wait_for_stop(api)["f"]
        assert (metric.frames_tx, metric.frames_rx, metric.loss) == (101, 101, 0)
        assert (metric.port_tx, metric.port_rx) == ("p1,p3", "p2,p4")
        assert neighbours(api) == {"e1": ("10.0.0.2", MACS[2]), "e2": ("10.0.0.1", MACS[1])}
        assert [(port.frames_tx, port.frames_rx) for port in port_metrics(api).values()] == [
            (50, 0),
            (0, 50),
            (51, 0),
            (0, 51),
        ]
        request = api.metrics_request()
        request.lag.lag_names = ["l1"]
        (told,) = api.get_metrics(request).lag_metrics
        assert (told.name, told.oper_status, told.member_ports_up, told.frames_tx) == ("l1", "up", 2, 101)
    report = (served.run_folder() / "report.html").read_text()
    assert all(f"emulated hosts at {port}: " in report for port in ("p1", "p2", "p3", "p4"))
