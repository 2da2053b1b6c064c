"""Workloads between containers: a server with two ports and two clients, each in a container of its own."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run_captured, run_checked, run_tried

from nicbench.bench_file import load
from nicbench.core.errors import NotReadyError
from nicbench.core.events import Bus
from nicbench.core.result import ResultVerdict
from nicbench.run import run
from nicbench.store.folder import RunFolder

pytestmark = [
    pytest.mark.lab,
    pytest.mark.acceptance,
    pytest.mark.skipif(shutil.which("podman") is None, reason="podman is not installed"),
    pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a container of this machine's root needs root"),
]

BENCH = """\
nicbench: 1
title: In containers
hosts:
  server: {{kind: container, root: /, inner: {{kind: netns, namespace: {0}}}}}
  one: {{kind: container, root: /, inner: {{kind: netns, namespace: {1}}}}}
  two: {{kind: container, root: /, inner: {{kind: netns, namespace: {2}}}}}
ports:
  s1: {{host: server, device: s1}}
  s2: {{host: server, device: s2}}
  c1: {{host: one, device: client}}
  c2: {{host: two, device: client}}
links: [c1 <-> s1, c2 <-> s2]
dut: {{kind: server, host: server}}
monitor: off
tests:
  - name: tcp
    method: stream
    workload: iperf3
    direction: [forward]
    at_once: [all]
    write_bytes: [8 KiB]
    duration: 1 s
"""


def test_streams_run_between_containers_and_nothing_of_them_is_left(tmp_path: Path, namespaces: list[str]) -> None:
    before = _containers()
    path = tmp_path / "bench.yaml"
    path.write_text(BENCH.format(*namespaces))
    bench = load(path)
    folder = RunFolder.create(tmp_path / "runs", bench.source, bench.title)
    bus = Bus()
    bus.subscribe(folder.journal.append)
    try:
        summary = asyncio.run(run(bench, folder, bus, wait_s=300.0))
    except NotReadyError as error:
        if "cannot start the container" in error.message:
            pytest.skip(f"no container can be started here: {error.message}")
        raise

    combined = [result for result in summary.results if result.id.endswith("/combined")]
    assert len(combined) == 1
    assert combined[0].verdict is not ResultVerdict.INCOMPLETE
    assert _containers() == before
    inventory = folder.read_json("inventory.json")
    assert inventory["server"]["container"]["engine"] == "podman"


@pytest.fixture
def namespaces() -> Iterator[list[str]]:
    """A server's and two clients', joined by veth pairs."""
    mark = secrets.token_hex(3)
    names = [f"nbc{mark}{role}" for role in ("s", "a", "b")]
    try:
        for name in names:
            _ip("netns", "add", name)
        for number, client in enumerate(names[1:], start=1):
            pair = ("type", "veth", "peer", "name", "client", "netns", client)
            _ip("link", "add", f"s{number}", "netns", names[0], *pair)
            for space, device, last in ((names[0], f"s{number}", 1), (client, "client", 2)):
                _ip("-n", space, "address", "add", f"198.18.{number}.{last}/24", "dev", device)
                _ip("-n", space, "link", "set", device, "up")
        yield names
    finally:
        for name in names:
            run_tried(("ip", "netns", "delete", name))


def _ip(*words: str) -> None:
    run_checked(("ip", *words))


def _containers() -> list[str]:
    listed = run_captured(("podman", "ps", "--all", "--quiet"))
    return listed.stdout.split()
