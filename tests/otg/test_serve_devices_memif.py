"""Emulated devices at rings in memory, behind a forwarder in user space."""

from __future__ import annotations

from pathlib import Path

import pytest

from .served import serving, transmit, wait_for_stop, wait_until
from .test_serve_devices import MACS, control_protocols, neighbours, with_devices

BENCH = """nicbench: 1
title: Devices over memif
lab: {kind: memif}
dut: {kind: reflector, huge_pages: false}
tester: {huge_pages: false}
"""


@pytest.mark.lab
@pytest.mark.acceptance
def test_devices_find_each_other_over_memif_and_no_frame_between_them_is_lost(tmp_path: Path) -> None:
    with serving(tmp_path, text=BENCH) as served:
        api = served.api()
        api.set_config(with_devices(api, frames=10_000))
        control_protocols(api, "start")
        found = {"e1": ("10.0.0.2", MACS[2]), "e2": ("10.0.0.1", MACS[1])}
        wait_until(lambda: neighbours(api) == found)
        wait_until(lambda: neighbours(api, 6)["e1"] == ("2001:db8::2", MACS[2]))
        transmit(api, "start")
        metric = wait_for_stop(api)["f"]
        assert (metric.frames_tx, metric.frames_rx, metric.loss) == (10_000, 10_000, 0)
