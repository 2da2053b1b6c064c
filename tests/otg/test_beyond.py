"""What nicbench tells beyond OTG, over HTTP and by its own gRPC service."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf.descriptor import FieldDescriptor

from nicbench.bench_file.load import load
from nicbench.otg.api import Api, Beyond
from nicbench.otg.grpc_front import BeyondService
from nicbench.otg.model import OtgError
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
    service, call = BeyondService(Beyond(sessions, Api(sessions).turn)), Call()
    assert (await service.GetSession(None, call)).state == "empty"
    with pytest.raises(OtgError):
        [part async for part in service.GetReport(None, call)]
    status, told = call.told
    assert status is grpc.StatusCode.INVALID_ARGUMENT
    assert told["errors"] == ["there was no session yet: set a configuration first"]


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

        script = re.findall(r"```python\n(.*?)```", (ROOT / "docs/otg.md").read_text(), re.DOTALL)[2]
        command = (sys.executable, "-c", script.replace("localhost:40051", server.grpc))
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert re.search(r"heard: 0 of 50 lost, 99 % within \d+ ns\n", said.stdout), said.stderr
        assert f"transmission {same['id']}: " in said.stdout
