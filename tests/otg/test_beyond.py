"""What nicbench tells beyond OTG, over HTTP and by its own gRPC service."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import httpx
import pytest
from google.protobuf.descriptor import FieldDescriptor

from nicbench.bench_file.load import load
from nicbench.core.errors import BusyError
from nicbench.core.events import StageStarted, Waiting
from nicbench.otg import sessions
from nicbench.otg.api import Api, handlers_of
from nicbench.otg.grpc_front import BeyondService
from nicbench.otg.line import Calls, answer_calls
from nicbench.otg.model import OtgError
from nicbench.otg.session import Session
from nicbench.otg.sessions import Sessions
from nicbench.otg.v1 import nicbench_pb2 as messages
from nicbench.otg.v1 import nicbench_pb2_grpc as service

from .served import BENCH, SIMULATED, Served, add_flow, configured, transmit, wait_for_stop, wait_until

ROOT = Path(__file__).parents[2]
PROTO = ROOT / "src/nicbench/otg/v1/nicbench.proto"


def type_of(field: Any) -> str:
    """The type of a field as a .proto file writes it."""
    if field.type != FieldDescriptor.TYPE_MESSAGE:
        names = {getattr(FieldDescriptor, name): name for name in dir(FieldDescriptor) if name.startswith("TYPE_")}
        return names[field.type].removeprefix("TYPE_").lower()
    entry = field.message_type
    if entry.GetOptions().map_entry:
        return f"map<{type_of(entry.fields[0])}, {type_of(entry.fields[1])}>"
    return str(entry.full_name.removeprefix("nicbench.v1."))


def test_the_generated_stub_is_that_of_the_proto_file() -> None:
    text = re.sub(r"//.*", "", PROTO.read_text())
    written = {
        (message, name): (kind, int(number))
        for message, body in re.findall(r"message (\w+) \{([^}]*)\}", text)
        for kind, name, number in re.findall(r"(?:optional |repeated )?([\w.]+(?:<[^>]*>)?) (\w+) = (\d+);", body)
    }
    generated = {
        (message.name, field.name): (type_of(field), field.number)
        for message in messages.DESCRIPTOR.message_types_by_name.values()
        for field in message.fields
    }
    assert generated == written
    called = re.findall(r"rpc (\w+)\((\w+)\) returns \((stream )?(\w+)\)", text)
    methods = messages.DESCRIPTOR.services_by_name["Nicbench"].methods
    assert called == [
        (method.name, method.input_type.name, "stream " * method.server_streaming, method.output_type.name)
        for method in methods
    ]


class Call:
    """A call that is ended by an error."""

    async def abort(self, status: grpc.StatusCode, details: str) -> None:
        self.told = (status, json.loads(details))


async def test_without_a_session_grpc_tells_otgs_error(tmp_path: Path) -> None:
    bench = tmp_path / "bench.yaml"
    bench.write_text(BENCH.format(lab=SIMULATED))
    sessions = Sessions(load(bench, serves=True), tmp_path, str, idle_s=1.0)
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    its_reader, its_writer = await asyncio.open_unix_connection(sock=theirs)
    calls = Calls(its_reader, its_writer)
    hearing = asyncio.gather(answer_calls(reader, writer, handlers_of(sessions), str), calls.hear())
    service, call = BeyondService(calls), Call()
    assert (await service.GetSession(None, call)).state == "empty"
    with pytest.raises(OtgError):
        [part async for part in service.GetReport(None, call)]
    status, told = call.told
    assert status is grpc.StatusCode.INVALID_ARGUMENT
    assert told["errors"] == ["there was no session yet: set a configuration first"]
    writer.close()
    await hearing
    its_writer.close()


def test_grpc_tells_what_http_tells_of_a_transmission(server: Served) -> None:
    api = server.api()
    with grpc.insecure_channel(server.grpc) as channel, httpx.Client(base_url=server.http, timeout=60) as client:
        stub = service.NicbenchStub(channel)
        config = configured(api, captured=False)
        for name, receivers in (("heard", ["p2"]), ("unheard", [])):
            flow = add_flow(config, name, frames=50)
            flow.tx_rx.port.rx_names = receivers
            flow.packet.ethernet().ipv4().udp()
        api.set_config(config)
        transmit(api, "start")
        wait_for_stop(api)
        wait_until(lambda: stub.GetSession(messages.GetSessionRequest()).state == "configured")
        assert stub.GetSession(messages.GetSessionRequest()).run_folder == str(server.run_folder())

        heard, unheard = stub.GetFlows(messages.GetFlowsRequest())
        told = client.get("/nicbench/v1/flows").json()["flows"][0]
        assert (heard.name, heard.sent, heard.received, heard.lost, heard.latency.count) == ("heard", 50, 50, 0, 50)
        assert heard.latency.histogram == base64.b64decode(told["latency"]["histogram"])
        assert (heard.last_received_ns, heard.by_port[0].received) == (told["last_received_ns"], 50)
        assert not any(unheard.HasField(name) for name in ("received", "lost", "latency", "first_received_ns"))
        ports = stub.GetPorts(messages.GetPortsRequest()).ports
        assert [(port.name, port.sent, port.received) for port in ports] == [("t0", 100, 0), ("t1", 0, 100)]

        transmission = list(stub.GetTransmissions(messages.GetTransmissionsRequest()))[-1]
        same = client.get("/nicbench/v1/transmissions").json()["transmissions"][-1]
        assert (transmission.id, transmission.valid, transmission.counts.received) == (same["id"], same["valid"], 50)
        assert transmission.latency.percentiles_ns["50"] == same["latency"]["percentiles_ns"]["50"]
        assert transmission.health["longest_gap_ns"] == same["health"]["longest_gap_ns"]

        capabilities = stub.GetCapabilities(messages.GetCapabilitiesRequest())
        assert list(capabilities.headers) == client.get("/nicbench/v1/capabilities").json()["headers"]
        assert (capabilities.flows, capabilities.body_bytes) == (4096, 64 * 2**20)
        report = b"".join(part.html for part in stub.GetReport(messages.GetReportRequest()))
        assert b"Transmissions" in report
        assert client.get("/nicbench/v1/nicbench.proto").text == PROTO.read_text()


SHARED_BENCH = "nicbench: 1\ntitle: t\nlab: {kind: simulated}\ndut: {kind: simulated}\n"


class Machine:
    """A machine that others have until it is free; counts who came to wait for it."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.came = 0

    @asynccontextmanager
    async def session_on(self, bed: Any, seed: int, locations: Any) -> AsyncIterator[Session]:
        self.came += 1
        bus = bed.args[2]
        bus.publish(Waiting(text="place 3 in the queue, held by X since 4 min"))
        await self.free.wait()
        bus.publish(StageStarted(stage="testbed", text="making the testbed"))
        yield cast("Session", _Idle())


class _Idle:
    failure = None
    is_busy = False


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Sessions, Machine]:
    path = tmp_path / "bench.yaml"
    path.write_text(SHARED_BENCH)
    machine = Machine()
    monkeypatch.setattr(sessions, "session_on", machine.session_on)
    for name in ("_ANSWER_S", "_LOOK_S"):
        monkeypatch.setattr(sessions, name, 0.01)
    monkeypatch.setattr(sessions, "build", lambda path: path)
    return Sessions(load(path, serves=True), tmp_path / "runs", lambda line: None, idle_s=60.0), machine


async def test_a_client_that_asks_again_keeps_its_place(waiting: tuple[Sessions, Machine]) -> None:
    served, machine = waiting
    for _ in range(3):
        with pytest.raises(BusyError, match="place 3 in the queue, held by X since 4 min"):
            await served.begin()
    machine.free.set()
    assert await served.begin() is served.current
    assert machine.came == 1
    await served.end()


async def test_a_place_that_nobody_asks_for_is_given_up(
    waiting: tuple[Sessions, Machine], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    served, machine = waiting
    monkeypatch.setattr(sessions, "_PLACE_S", 0.01)
    with pytest.raises(BusyError):
        await served.begin()
    await asyncio.sleep(0.1)
    assert not list((tmp_path / "runs").iterdir())
    machine.free.set()
    await served.begin()
    assert machine.came == 2
    await served.end()


async def test_a_session_that_nobody_asks_of_gives_the_machine_to_others(
    waiting: tuple[Sessions, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, machine = waiting
    machine.free.set()
    await served.begin()
    monkeypatch.setattr(sessions, "_OTHERS_S", 0.0)
    await asyncio.sleep(0.1)
    assert served.current is not None, "nobody waits"
    monkeypatch.setattr(sessions, "is_waited_for", lambda: True)
    await asyncio.sleep(0.2)
    assert served.current is None


async def test_a_port_that_is_not_there_is_refused_before_the_machine_is_asked_for(
    waiting: tuple[Sessions, Machine],
) -> None:
    served, machine = waiting
    with pytest.raises(OtgError, match="'eth0' is no port of this server; its ports are t0, t1") as refused:
        await Api(served).set_config({"ports": [{"name": "p", "location": "eth0"}]})
    assert (refused.value.code, machine.came) == (400, 0)
