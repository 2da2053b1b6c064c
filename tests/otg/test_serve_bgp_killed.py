"""A server that is killed while it emulates routers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.commands import run_captured, run_tried

from nicbench.testbed.labs.veth import namespace_name

from .served import configured, serving
from .test_serve_bgp_veth import add_router
from .test_serve_devices import control_protocols
from .test_serve_devices_veth import BENCH, DRIVERS


@pytest.mark.lab
def test_a_killed_server_leaves_no_router_behind(tmp_path: Path) -> None:
    with serving(tmp_path, text=BENCH.replace("DRIVER", DRIVERS[0]), ends=-9) as served:
        api = served.api()
        config = configured(api, captured=False)
        add_router(config, 1)
        api.set_config(config)
        control_protocols(api, "start")
        run_id = served.run_folder().name
        space = namespace_name(run_id, "router-1")
        assert space in run_captured(("ip", "netns", "list")).stdout
        served.process.kill()
    run_captured((sys.executable, "-m", "nicbench", "restore", run_id))
    assert space not in run_captured(("ip", "netns", "list")).stdout
    assert not run_tried(("pgrep", "-f", f"nicbench-{run_id}-routers")).stdout
