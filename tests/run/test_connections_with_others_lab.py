"""Connections in the driver's hook with other programs at the other end, in numbers, and as Wireshark judges them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .test_connections_in_hook_lab import PORT, SERVER, RoutedPair, path

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.acceptance]
__all__ = ["path"]  # a fixture

EXCHANGES = 10_000
COMPARE = """
local threads = {{}}
function setup(thread) table.insert(threads, thread) end
function init()
    wrong = 0
    expected = string.rep("x", {size})
end
function response(status, headers, body)
    if status ~= 200 or body ~= expected then wrong = wrong + 1 end
end
function done(summary)
    local of = 0
    for _, thread in ipairs(threads) do of = of + thread:get("wrong") end
    local errors = summary.errors
    print("RESULT", summary.requests, of + errors.connect + errors.read + errors.write + errors.status + errors.timeout)
end
"""


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def test_curl_gets_ten_thousand_objects(path: RoutedPair, tmp_path: Path) -> None:
    need("curl")
    server = path.serve("serve", "--xdp", "c1")
    some = 500
    for first in range(1, EXCHANGES, some):
        objects = f"http://{SERVER}:{PORT}/bytes/[{first}-{first + some - 1}]"
        words = ("curl", "-sfZ", "--parallel-max", "20", "-m", "60", objects, "-o", f"{tmp_path}/#1")
        path.run(path.client, *words)
        for size in range(first, first + some):
            body = tmp_path / str(size)
            assert body.read_bytes() == b"x" * size
            body.unlink()
    assert path.end(server)["requests"] == EXCHANGES


@pytest.mark.parametrize(("size", "closes"), [(1, False), (1, True), (20_000, False), (65_536, True)])
def test_wrk_has_no_error_in_ten_thousand_exchanges(size: int, closes: bool, path: RoutedPair, tmp_path: Path) -> None:
    need("wrk")
    script = tmp_path / "compare.lua"
    script.write_text(COMPARE.format(size=size))
    server = path.serve("serve", "--xdp", "c1")
    header = ("-H", "Connection: close") if closes else ()
    words = ("wrk", "-t1", "-c40", "-d3s", "--timeout", "10s", *header, "-s", str(script))
    done = 0
    while done < EXCHANGES:
        said = path.run(path.client, *words, f"http://{SERVER}:{PORT}/bytes/{size}")
        _, count, wrong = next(line for line in said.splitlines() if line.startswith("RESULT")).split()
        assert (int(wrong), int(count) > 0) == (0, True), said
        done += int(count)
    path.end(server)


@pytest.mark.parametrize("task", ["connect", "requests"])
def test_nginx_answers_ten_thousand_requests(task: str, path: RoutedPair) -> None:
    need("nginx")
    objects = ("--object", "1", "--object", "5000", "--object", "65536")
    server = path.serve("nginx", *objects)
    patient = ("--connect-within", "10", "--answer-within", "20")
    asked = ("--task", task, "--rate", "2000", "--seconds", "5", "--connections", "50", *objects, *patient)
    assert path.connect(*asked)["sustain"] == {"due": EXCHANGES, "completed": EXCHANGES, "failed": {}}
    path.end(server)


@contextmanager
def captured(path: RoutedPair, file: Path) -> Iterator[None]:
    """Writes what the router takes from both ends to a file."""
    words = ("tcpdump", "-ni", "s0", "-B", "65536", "-w", str(file), "tcp")
    capture = path.start(path.router, *words)
    assert capture.stderr is not None
    while "listening" not in capture.stderr.readline():
        assert capture.poll() is None
    yield
    time.sleep(0.5)
    os.kill(capture.pid, signal.SIGINT)
    assert ", 0 packets dropped by kernel" in " ".join(capture.communicate(timeout=20)[1].replace("\n", ", ").split())


def complaints(file: Path) -> list[str]:
    """What Wireshark's analysis of TCP says of segments, without that connections begin and end.

    The router's kernel has put segments together: their checksums are those that the ends check.
    """
    of_interest = "tcp.analysis.flags or _ws.expert.severity >= 0x600000"
    # tshark takes some ports of clients for other protocols.
    protocol = [word for port in (PORT, PORT + 1) for word in ("-d", f"tcp.port=={port},http")]
    options = ("-o", "tcp.check_checksum:FALSE", "-Y", of_interest, "-T", "fields", "-e", "_ws.expert.message")
    words = ("tshark", "-nr", str(file), *protocol, *options)
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.parametrize("ends", ["both", "client", "server"])
@pytest.mark.parametrize("size", [1, 65_536])
def test_wireshark_has_no_complaint(ends: str, size: int, path: RoutedPair, tmp_path: Path) -> None:
    need("tcpdump", "tshark")
    server = path.serve("serve", *(("--xdp", "c1") if ends != "client" else ()))
    rate = 5000 if size == 1 else 100
    asked = ("--task", "connect", "--rate", str(rate), "--seconds", "4", "--object", str(size))
    file = tmp_path / "capture.pcap"
    with captured(path, file):
        found = path.connect(*asked, in_hook=ends != "server")
    assert found["sustain"] == {"due": 4 * rate, "completed": 4 * rate, "failed": {}}
    path.end(server)
    assert complaints(file) == []
