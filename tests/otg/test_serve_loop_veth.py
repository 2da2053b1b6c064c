"""A loop of a bridge, which sends frames round and round: bounded and counted, and no frame of a flow is miscounted."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_captured

from nicbench.testbed.labs.veth import namespace_name

from .served import Served, add_flow, configured, serving, transmit, wait_for_stop, wait_until
from .test_serve_devices import add_device, control_protocols
from .test_serve_devices_veth import DRIVERS, told_by_hosts
from .test_serve_links_veth import BENCH

# What hosts of a port send, of a storm's answers too.
MOST_PER_S, MOST_AT_ONCE = 5000, 2 * 256


@contextmanager
def loop(served: Served) -> Iterator[None]:
    """A cable from the DUT's bridge to itself."""
    space = namespace_name(served.run_folder().name, "dut")

    def ip(*words: str) -> str:
        return run_captured(("ip", "-n", space, *words)).stdout

    bridge = json.loads(ip("-j", "link", "show", "dev", "d0"))[0]["master"]
    ip("link", "add", "l0", "type", "veth", "peer", "name", "l1")
    try:
        for device in ("l0", "l1"):
            ip("link", "set", "dev", device, "master", bridge, "up")
        yield
    finally:
        ip("link", "delete", "dev", "l0")


def counted(served: Served) -> Any:
    return json.load(urllib.request.urlopen(f"{served.http}/nicbench/v1/flows"))["flows"][0]


@pytest.mark.sampled(1)
@pytest.mark.lab
@pytest.mark.alone
@pytest.mark.parametrize("driver", DRIVERS)
def test_frames_that_go_round_in_a_loop_are_counted_and_change_no_count_of_a_flow(driver: str, tmp_path: Path) -> None:
    with serving(tmp_path, text=BENCH.replace("DRIVER", driver)) as served:
        api = served.api()
        config = configured(api, captured=False)
        add_device(config, 1, 2)
        add_device(config, 2, 1)
        flow = add_flow(config, "f", frames=1000)
        ethernet, _, _ = flow.packet.ethernet().ipv4().udp()
        ethernet.src.value, ethernet.dst.value = "02:00:00:00:0a:01", "02:00:00:00:0a:02"
        api.set_config(config)
        before = told_by_hosts(served)["ports"]
        began = time.monotonic()
        with loop(served):
            control_protocols(api, "stop")
            control_protocols(api, "start")  # hosts ask all whether their addresses are free
            transmit(api, "start")
            wait_until(lambda: sum(port["looped"] for port in told_by_hosts(served)["ports"]) > 100)
        wait_for_stop(api)
        told = counted(served)
        assert (told["sent"], told["received"] + told["lost"], told["in_flight"]) == (1000, 1000, 0)
        assert (told["corrupted"], told_by_hosts(served)["duplicates"]) == (0, []), "its own frames are no rival's"
        after = told_by_hosts(served)["ports"]
        most = MOST_AT_ONCE + MOST_PER_S * (time.monotonic() - began)
        for port, earlier in zip(after, before, strict=True):
            assert port["sent"] - earlier["sent"] < most, "a storm was answered"

        def received() -> int:
            transmit(api, "start")
            return int(wait_for_stop(api)["f"].frames_rx)

        wait_until(lambda: received() == 1000)
