"""`nicbench serve` when things go wrong around it: disks, clients, bodies, signals. Clients get OTG's errors."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import httpx
import pytest
from tests.commands import run_checked, run_tried

from nicbench.otg.api import MOST_PER_S, Pace
from nicbench.otg.http_front import MOST_BODIES
from nicbench.otg.model import OtgError, parse_message
from nicbench.store import landlock

from .served import (
    Served,
    add_flow,
    capture,
    configured,
    configured_endlessly,
    flow_metrics,
    serving,
    transmit,
    wait_for_stop,
    wait_until,
)

pytestmark = pytest.mark.sampled(3, of="faults of serve")

METHOD = "/otg.Openapi/SetConfig"


def fill(path: Path) -> None:
    """Writes until the disk is full."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 4096)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    runs = tmp_path / "runs"
    runs.mkdir()
    run_checked(("mount", "-t", "tmpfs", "-o", "size=4m", "none", str(runs)))
    yield runs
    run_checked(("umount", "-l", str(runs)))


@pytest.mark.lab
def test_a_full_disk_is_told_and_the_session_goes_on_when_there_is_room(tmp_path: Path, small_disk: Path) -> None:
    with serving(tmp_path) as served:
        api = served.api()
        config = configured(api, captured=False)
        add_flow(config, "f").packet.ethernet().ipv4().udp()
        api.set_config(config)
        filler = small_disk / "filler"
        fill(filler)
        transmit(api, "start")
        wait_for_stop(api)
        with pytest.raises(Exception, match="disk is full") as refused:
            wait_until(lambda: transmit(api, "start"))
        assert api.from_exception(refused.value).code == 500
        with pytest.raises(Exception, match="disk is full"):
            api.set_config(config)
        filler.unlink()
        api.set_config(config)
        transmit(api, "start")
        assert wait_for_stop(api)["f"].frames_rx == 20
        folder = max(path for path in small_disk.iterdir())
        wait_until(lambda: served.trials(folder))
    assert served.events(folder)[-1]["event"] == "run_finished"
    assert (folder / "report.html").exists()


@pytest.mark.lab
def test_a_capture_that_cannot_be_kept_leaves_the_configuration_as_it_was(tmp_path: Path, small_disk: Path) -> None:
    with serving(tmp_path) as served:
        api = served.api()
        config = configured(api)
        flow = add_flow(config, "f", frames=5000, size=1500)
        flow.rate.pps = 100_000
        flow.packet.ethernet().ipv4().udp()
        api.set_config(config)
        capture(api, "start")
        transmit(api, "start")
        assert wait_for_stop(api)["f"].frames_rx == 5000
        other = configured(api, captured=False)
        add_flow(other, "g").packet.ethernet().ipv4().udp()
        with pytest.raises(Exception, match=r"the capture at p2 is not whole: No space left"):
            api.set_config(other)
        assert [flow.name for flow in api.get_config().flows] == ["f"]
        assert flow_metrics(api).keys() == {"f"}


def test_a_signal_ends_a_transmission_with_its_counts_and_a_report(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        api = served.api()
        api.set_config(configured_endlessly(api))
        transmit(api, "start")
        seen = wait_until(lambda: flow_metrics(api)["f"].frames_rx)
        folder = served.run_folder()
    (trial,) = served.trials(folder)
    assert trial["reading"]["counts"]["received"] >= seen
    assert all(finding["reason"] != "tester_failed" for finding in trial["verdict"]["findings"])
    assert (folder / "report.html").exists()


def test_flows_without_end_do_not_outlive_a_client_that_is_gone(tmp_path: Path) -> None:
    with serving(tmp_path, "--idle", "1s") as served:
        api = served.api()
        api.set_config(configured_endlessly(api))
        transmit(api, "start")
        folder = served.run_folder()
        wait_until((folder / "report.html").exists)
        assert served.trials(folder)[0]["reading"]["counts"]["sent"] > 0
        with pytest.raises(Exception, match="there is no configuration"):
            flow_metrics(api)


def test_garbage_on_any_port_is_refused_and_the_server_goes_on(server: Served) -> None:
    channel = grpc.insecure_channel(server.grpc)
    call = channel.unary_unary(METHOD, request_serializer=bytes, response_deserializer=bytes)
    for body in (b"\xff" * 1000, os.urandom(4096)):
        with pytest.raises(grpc.RpcError):
            call(body, timeout=10)
    with pytest.raises(grpc.RpcError) as refused:
        call(b"\x0a" * (65 * 2**20), timeout=30)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    channel.close()
    for address in (server.https, server.http, f"tcp://{server.grpc}"):
        host, _, port = address.partition("//")[2].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(os.urandom(2000) + b"\r\n\r\n")
    for transport in ("http", "https", "grpc"):
        assert server.api(transport).get_version().api_spec_version == ">=1.30.0,<2.0.0"


@pytest.mark.acceptance
def test_bodies_that_do_not_come_keep_nobody_out(server: Served) -> None:
    """Nor do those that drip, nor calls of gRPC without a message; and the one that came first gives way."""
    host, _, port = server.http.partition("//")[2].rpartition(":")
    head = f"POST /config HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 100\r\n\r\n{{"
    hung = [socket.create_connection((host, int(port)), timeout=30) for _ in range(MOST_BODIES)]
    for connection in hung:
        connection.sendall(head.encode())
    for connection in hung:
        connection.sendall(b" ")
    with grpc.insecure_channel(server.grpc) as channel:
        ended = threading.Event()
        calls = [channel.stream_unary(METHOD).future(_nothing_until(ended)) for _ in range(70)]
        asked = channel.unary_unary("/otg.Openapi/GetVersion")
        wait_until(lambda: asked(b"", timeout=10))
        ended.set()
        for call in calls:
            call.cancel()
    with httpx.Client(base_url=server.http, timeout=30) as client:
        assert client.get("/capabilities/version").status_code == 200
        assert client.post("/config", content="{").status_code == 400
    assert "the body is not whole" in hung[0].recv(4096).decode()
    for connection in hung:
        connection.close()


def _nothing_until(ended: threading.Event) -> Iterator[bytes]:
    ended.wait(60)
    yield from ()


def test_a_message_of_more_parts_than_any_configuration_has_is_not_parsed() -> None:
    for body, what in ((b"[[],[" + b"[]," * 2**20, "lists and objects"), (b"[" + b"1," * 2**23, "elements")):
        with pytest.raises(OtgError) as refused:
            parse_message(body)
        assert what in refused.value.errors[0]


async def test_more_requests_than_so_many_a_second_are_refused() -> None:
    pace = Pace()
    turns = [asyncio.ensure_future(pace.turn()) for _ in range(4 * MOST_PER_S)]
    await asyncio.sleep(0)
    refused = [turn for turn in turns if turn.done() and isinstance(turn.exception(), OtgError)]
    passed = [turn for turn in turns if turn.done() and turn not in refused]
    assert len(passed) >= MOST_PER_S
    assert len(refused) >= MOST_PER_S
    for turn in turns:
        turn.cancel()
    await asyncio.gather(*turns, return_exceptions=True)


SCRIPT = """
import snappi
api = snappi.api(location={location!r}, verify=False)
config = api.config()
config.ports.port(name="p1", location="t0")
api.set_config(config)
print([port.location for port in api.get_config().ports])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
def test_what_hears_clients_has_no_rights_of_root_and_its_death_ends_the_server(tmp_path: Path) -> None:
    with serving(tmp_path, ends=4) as served:
        api = served.api()
        api.set_config(configured(api, captured=False))
        status = dict(
            line.split(":\t", 1)
            for line in Path(f"/proc/{served.front()}/status").read_text().splitlines()
            if "\t" in line
        )
        assert "0" not in status["Uid"].split()
        assert status["NoNewPrivs"] == "1"
        of_reading_and_listening = 1 << landlock.CAP_DAC_READ_SEARCH | 1 << landlock.CAP_NET_BIND_SERVICE
        assert not int(status["CapEff"], 16) & ~of_reading_and_listening
        assert not int(status["CapBnd"], 16) & ~of_reading_and_listening
        os.kill(served.front(), signal.SIGKILL)
        assert served.process.wait(60) == 4
    said = (tmp_path / "stderr").read_text()
    assert "its process was killed by SIGKILL" in said
    assert "report: " in said


@pytest.fixture
def namespace() -> Iterator[str]:
    name = f"nbserve{os.getpid()}"
    run_checked(("ip", "netns", "add", name))
    for command in ("ip link set lo up", "ip address add 198.18.9.1/32 dev lo"):
        run_checked(("ip", "netns", "exec", name, *command.split()))
    yield name
    run_checked(("ip", "netns", "delete", name))


@pytest.mark.lab
def test_another_address_asks_for_the_password_that_stock_snappi_takes_from_netrc(
    tmp_path: Path, namespace: str
) -> None:
    from nicbench.otg.fronts import make_certificate

    certificate, key = make_certificate(tmp_path)
    password = tmp_path / "password"
    password.write_text("correct horse battery\n")
    password.chmod(0o600)
    options = ("--tls-cert", str(certificate), "--tls-key", str(key), "--password-file", str(password))
    inside = ("ip", "netns", "exec", namespace)
    with serving(tmp_path, "--host", "198.18.9.1", *options, inside=inside) as served:
        assert served.https.startswith("https://198.18.9.1:")

        def ask(home: Path) -> subprocess.CompletedProcess[str]:
            command = (*inside, sys.executable, "-W", "ignore", "-c", SCRIPT.format(location=served.https))
            environment = {**os.environ, "HOME": str(home)}
            return run_tried(command, env=environment, timeout=60)

        refused = ask(tmp_path / "nobody")
        assert refused.returncode != 0
        assert "the password is needed" in refused.stderr
        (tmp_path / ".netrc").write_text('machine 198.18.9.1 login nicbench password "correct horse battery"\n')
        (tmp_path / ".netrc").chmod(0o600)
        told = ask(tmp_path)
        assert told.stdout == "['t0']\n", told.stderr
        for address in (served.grpc, served.http.partition("//")[2]):
            port = address.rpartition(":")[2]
            connect = f"import socket; socket.create_connection(('198.18.9.1', {port}), timeout=5)"
            answer = subprocess.run((*inside, sys.executable, "-c", connect), capture_output=True, check=False)
            assert b"ConnectionRefusedError" in answer.stderr, "only HTTPS leaves this machine"


@pytest.mark.parametrize("options", [(), ("--tls-cert", "c", "--tls-key", "k")])
def test_another_address_without_tls_and_password_is_refused(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "bench.yaml").write_text("nicbench: 1\ntitle: t\nlab: {kind: simulated}\ndut: {kind: simulated}\n")
    command = (sys.executable, "-m", "nicbench", "serve", "bench.yaml", "--host", "198.18.9.1", *options)
    done = run_tried(command, cwd=tmp_path, timeout=60)
    assert done.returncode == 2
    assert "others can reach 198.18.9.1, and clients send frames" in done.stderr
    assert "ssh -L 8443" in done.stderr


def test_flows_that_are_started_as_soon_as_they_have_stopped_are_transmissions_of_their_own(server: Served) -> None:
    api, earlier = server.api(), len(server.trials())
    config = configured(api, captured=False)
    add_flow(config, "f", frames=3).packet.ethernet().ipv4().udp()
    api.set_config(config)
    for _ in range(5):
        transmit(api, "start")
        wait_for_stop(api)
    trials = wait_until(lambda: (found := server.trials()[earlier:])[4:] and found)
    assert [trial["reading"]["counts"]["sent"] for trial in trials] == [3] * 5
