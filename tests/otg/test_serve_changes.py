"""Changes of a configuration by the real snappi client, over HTTP and gRPC."""

from __future__ import annotations

from typing import Any

import pytest

from .served import Served, add_flow, configured, flow_metrics, port_metrics, transmit, wait_for_stop


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
