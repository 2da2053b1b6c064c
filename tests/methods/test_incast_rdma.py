"""An incast over RDMA end to end, by processes that say what perftest said: there are no RDMA devices in namespaces."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest

from nicbench.core.round import JobOutcome, RoundRequest
from nicbench.hosts.kinds.local import LocalHost
from nicbench.methods.incast import Incast
from nicbench.workloads.base import End, Watch
from nicbench.workloads.play import play
from nicbench.workloads.processes import RawFolder

from .round_contexts import Laboratory, streamed

GOLDEN = Path(__file__).parents[1] / "golden" / "workloads"
SAID = {"ib_write_bw": "perftest-4.5-write-bw-q10.client.txt", "ib_send_lat": "perftest-4.5-send-lat-raw.client.txt"}
TOOL = """#!{python} -IS
import socket, sys, time
words = sys.argv[1:]
if "--version" in words or "-V" in words:
    print("Version: 4.5")
    sys.exit()
port = int(words[words.index("-p") + 1])
if words[-1] == "127.0.0.1":
    socket.create_connection(("127.0.0.1", port)).close()
    time.sleep({longer_s})
    print(open({said!r}).read())
else:
    with socket.create_server(("127.0.0.1", port)) as server:
        server.accept()
"""


def free_port() -> int:
    """Other tests run beside this one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def perftest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In front of PATH; the load lasts longer than the probe."""
    for name, said in SAID.items():
        script = tmp_path / name
        longer_s = 0.5 if name == "ib_write_bw" else 0.0
        script.write_text(TOOL.format(python=sys.executable, said=str(GOLDEN / said), longer_s=longer_s))
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


@pytest.mark.usefixtures("perftest")
def test_two_senders_by_ib_write_bw_and_a_probe_by_ib_send_lat(tmp_path: Path) -> None:
    laboratory = Laboratory(lambda *_: streamed(None), clients_per_port=2, link_bits_per_s=None)

    async def played(number: int, request: RoundRequest, watch: Watch) -> tuple[JobOutcome, ...]:
        ends = {name: End(LocalHost(), "127.0.0.1", rdma_device="rxe0") for name in ("s0", "c00", "c01")}
        jobs = tuple(job.replace(port=free_port()) for job in request.jobs)
        request = request.replace(jobs=jobs)
        return await play(request, ends, RawFolder(tmp_path, f"r{number}"))

    laboratory.player.play = played  # type: ignore[method-assign]
    options = {
        "transport": "rdma",
        "message_bytes": [16384],
        "streams": [10],
        "duration": 2,
        "bins": [1e-3, 4e-3, 1e-2],
    }
    (result,) = asyncio.run(Incast("i", Incast.Options.model_validate(options)).run(laboratory.context))
    assert result.disturbances == ()
    assert result.values["throughput_bits_per_s"] == 2 * 2.66 * 2**20 * 8
    assert (result.values["latency_maximum_ns"], result.values["latency_basis"]) == (26_601_500, "half round trip")
    assert result.values["timed_messages"] == 999
    assert result.values["outside_10000000_ns_messages"] == 3
