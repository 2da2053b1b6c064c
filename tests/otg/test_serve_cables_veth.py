"""Ports outside a lab: what a server changes at its interfaces is put back after it, also where it was killed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_captured, run_tried
from tests.testbed.duts.lab import Wires, wires

from .served import Served, configured, serving, wait_until
from .test_serve_links_veth import set_link

BENCH = """nicbench: 1
title: Cables
hosts: {{tester: {{kind: netns, namespace: {tester}}}, other: {{kind: netns, namespace: {dut}}}}}
ports:
  t0: {{host: tester, device: t0}}
  t1: {{host: tester, device: t1}}
  d0: {{host: other, device: d0}}
  d1: {{host: other, device: d1}}
links: [t0 <-> d0, t1 <-> d1]
dut: {{kind: external}}
tester: {{driver: net_af_packet}}
"""


@pytest.fixture
def cables() -> Iterator[Wires]:
    with wires() as made:
        ethtool(made, "-K", "gro", "on")
        yield made


def ethtool(cables: Wires, option: str, *words: str) -> str:
    return run_captured(("ip", "netns", "exec", cables.tester, "ethtool", option, "t0", *words)).stdout


def state_of(cables: Wires) -> tuple[list[str], bool]:
    """The flags of the second port, and whether the kernel merges what arrives at the first."""
    link: dict[str, Any] = json.loads(run_captured(("ip", "-n", cables.tester, "-j", "link", "show", "t1")).stdout)[0]
    return sorted(link["flags"]), "generic-receive-offload: on" in ethtool(cables, "-k")


@contextmanager
def configured_server(cables: Wires, folder: Path, ends: int = 0) -> Iterator[tuple[Served, Any]]:
    """A server, and a client that has set a configuration."""
    with serving(folder, text=BENCH.format(tester=cables.tester, dut=cables.dut), ends=ends) as served:
        api = served.api()
        api.set_config(configured(api, captured=False))
        yield served, api


@pytest.mark.lab
def test_what_a_killed_server_left_is_put_back_by_restore_and_by_the_next_session(
    cables: Wires, tmp_path: Path
) -> None:
    before = state_of(cables)
    assert before[1]
    assert "UP" in before[0]

    def kill_with_a_link_down() -> str:
        with configured_server(cables, tmp_path, ends=-9) as (served, api):
            set_link(api, "down", "p2")
            flags, merges = state_of(cables)
            assert ("UP" in flags, merges) == (False, False)
            served.process.kill()
            return served.run_folder().name

    run_captured((sys.executable, "-m", "nicbench", "restore", kill_with_a_link_down()))
    wait_until(lambda: state_of(cables) == before)
    kill_with_a_link_down()
    with configured_server(cables, tmp_path):
        assert "UP" in state_of(cables)[0]
    wait_until(lambda: state_of(cables) == before)
    assert not run_tried(("pgrep", "-f", str(tmp_path))).stdout
