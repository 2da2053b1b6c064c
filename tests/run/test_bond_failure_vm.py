"""A whole run over a bond in a guest: which connection used which link, and what a link that is pulled does to them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from .lab_bench import make_folder, run_async

pytestmark = [pytest.mark.vm, pytest.mark.acceptance]  # minutes on an emulated machine

FAILING = """
nicbench: 1
title: A link that fails
hosts: {guest: {kind: vm}}
lab: {kind: clients, on: guest, clients_per_port: 2, rate: 5 Mb/s, bond: {links: 2}}
dut: {kind: server}
monitor: off
tests:
  - name: pulled
    method: stream
    direction: [reverse]
    at_once: [port]
    duration: 9 s
    failure: {port: s0, link: 1, after: 3 s, lasts: 3 s}
"""


def test_a_link_that_is_pulled_is_told_with_what_each_connection_did(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, FAILING)
    asyncio.run(run_async(folder))
    (one,) = folder.journal.rounds().values()
    assert one.verdict.valid, one.verdict
    assert one.failure.taken_down == "p-s0p1 of switch"
    assert all(flow.went_on for flow in one.failure.flows)
    assert {flow.port_down for flow in one.failure.flows} == {"s0p2"}
    (own,) = (seen for seen in one.bonds if seen.endpoint == "s0")
    assert own.confirmed, own.why
