"""Links of a server with veth pairs: what a client takes down is down at the DUT; frames pass when it is up again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.commands import run_captured

from nicbench.testbed.labs.veth import namespace_name

from .served import (
    Served,
    add_flow,
    configured,
    flow_metrics,
    port_metrics,
    serving,
    transmit,
    wait_for_stop,
    wait_until,
)
from .test_serve_devices_veth import DRIVERS

BENCH = """nicbench: 1
title: Links
lab: {kind: veth}
dut: {kind: bridge}
tester: {driver: DRIVER}
"""


@pytest.fixture(scope="module", params=DRIVERS)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("links"), text=BENCH.replace("DRIVER", request.param)) as served:
        yield served


def set_link(api: Any, state: str, *names: str) -> None:
    control = api.control_state()
    control.port.link.state, control.port.link.port_names = state, list(names)
    api.set_control_state(control)


def carriers(served: Served) -> list[bool]:
    """Whether the DUT's ends of the links have a carrier."""
    namespace = namespace_name(served.run_folder().name, "dut")
    shown = [run_captured(("ip", "-n", namespace, "link", "show", "dev", device)).stdout for device in ("d0", "d1")]
    return ["LOWER_UP" in text for text in shown]


@pytest.mark.lab
def test_a_link_that_a_client_takes_down_is_down_at_the_dut_until_it_is_taken_up(lab: Served) -> None:
    api = lab.api()
    config = configured(api, captured=False)
    ethernet, _, _ = add_flow(config, "f", frames=100).packet.ethernet().ipv4().udp()
    ethernet.src.value, ethernet.dst.value = "02:00:00:00:00:01", "02:00:00:00:00:02"
    api.set_config(config)

    def received() -> int:
        transmit(api, "start")
        return int(wait_for_stop(api)["f"].frames_rx)

    assert received() == 100
    assert carriers(lab) == [True, True]
    set_link(api, "down", "p2")
    wait_until(lambda: carriers(lab) == [True, False])
    assert [port.link for port in port_metrics(api).values()] == ["up", "down"]
    assert received() == 0
    set_link(api, "up", "p2")
    wait_until(lambda: carriers(lab) == [True, True])
    wait_until(lambda: [port.link for port in port_metrics(api).values()] == ["up", "up"])
    # The bridge forwards again a moment after the carrier is there.
    wait_until(lambda: received() == 100)
    with pytest.raises(Exception, match=r"port_names\[0\]: no port of the configuration is called ''p9''"):
        set_link(api, "down", "p9")


@pytest.mark.lab
def test_the_frames_that_a_link_loses_while_it_is_down_are_told_as_a_time(lab: Served) -> None:
    api = lab.api()
    config = configured(api, captured=False)
    flow = add_flow(config, "f")
    flow.duration.choice = "continuous"
    ethernet, _, _ = flow.packet.ethernet().ipv4().udp()
    ethernet.src.value, ethernet.dst.value = "02:00:00:00:00:01", "02:00:00:00:00:02"
    config.options.flow_options.packet_loss_duration = True
    api.set_config(config)
    transmit(api, "start")
    wait_until(lambda: flow_metrics(api)["f"].frames_rx > 100)
    set_link(api, "down", "p2")
    wait_until(lambda: carriers(lab) == [True, False])
    sent = flow_metrics(api)["f"].frames_tx
    wait_until(lambda: flow_metrics(api)["f"].frames_tx > sent + 300)
    set_link(api, "up", "p2")
    received = flow_metrics(api)["f"].frames_rx
    wait_until(lambda: flow_metrics(api)["f"].frames_rx > received + 100)
    transmit(api, "stop")
    metric = wait_for_stop(api)["f"]
    lost = metric.frames_tx - metric.frames_rx
    assert lost >= 300
    # One frame is a millisecond.
    assert metric.packet_loss_duration.value == pytest.approx(lost, abs=0.01)


@pytest.mark.lab
def test_links_that_are_down_come_up_with_another_configuration(lab: Served) -> None:
    api = lab.api()
    config = configured(api, captured=False)
    api.set_config(config)
    set_link(api, "down")
    wait_until(lambda: carriers(lab) == [False, False])
    api.set_config(config)
    wait_until(lambda: carriers(lab) == [True, True])
