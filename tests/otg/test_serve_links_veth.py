"""Links of a server with veth pairs: what a client takes down is down at the DUT, and up again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.commands import run_captured

from nicbench.testbed.labs.veth import namespace_name

from .served import Served, add_flow, configured, port_metrics, serving, transmit, wait_for_stop, wait_until

BENCH = """nicbench: 1
title: Links
lab: {kind: veth, ports: 2}
dut: {kind: bridge}
tester: {driver: net_af_packet}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    options = ("--location", "localhost:5555=t0", "--location", "localhost:5556=t1")
    with serving(tmp_path_factory.mktemp("links"), *options, text=BENCH) as served:
        yield served


def set_link(api: Any, state: str, *names: str) -> None:
    control = api.control_state()
    control.port.link.state, control.port.link.port_names = state, list(names)
    api.set_control_state(control)


def carrier(served: Served, device: str) -> bool:
    """Whether the DUT's end of a link has a carrier."""
    namespace = namespace_name(served.run_folder().name, "dut")
    shown = run_captured(("ip", "-n", namespace, "link", "show", "dev", device)).stdout
    return "LOWER_UP" in shown


@pytest.mark.lab
def test_a_link_that_a_client_takes_down_is_down_at_the_dut_until_it_is_taken_up(lab: Served) -> None:
    api = lab.api()
    config = configured(api, ("localhost:5555", "localhost:5556"), captured=False)
    flow = add_flow(config, "f", frames=100)
    flow.packet.ethernet().ipv4().udp()
    api.set_config(config)
    assert carrier(lab, "d1")
    set_link(api, "down", "p2")
    wait_until(lambda: not carrier(lab, "d1"))
    assert [port.link for port in port_metrics(api).values()] == ["up", "down"]
    transmit(api, "start")
    assert wait_for_stop(api)["f"].frames_rx == 0
    set_link(api, "up", "p2")
    wait_until(lambda: carrier(lab, "d1") and port_metrics(api)["p2"].link == "up")

    def passes() -> bool:
        """Whether the bridge forwards again, which it does a moment after the carrier is there."""
        transmit(api, "start")
        return bool(wait_for_stop(api)["f"].frames_rx == 100)

    wait_until(passes)
    set_link(api, "down")
    wait_until(lambda: not carrier(lab, "d0") and not carrier(lab, "d1"))
    api.set_config(config)
    wait_until(lambda: carrier(lab, "d0") and carrier(lab, "d1"))
    with pytest.raises(Exception, match=r"port_names\[0\]: no port of the configuration is called ''p9''"):
        set_link(api, "down", "p9")
