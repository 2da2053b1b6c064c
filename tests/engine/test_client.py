"""The conversation with an engine: replies, events, errors and deaths, as a user meets them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engine.test_examples import Played

from nicbench.core.errors import EngineError, HostError, NotReadyError
from nicbench.engine import client
from nicbench.engine import client as client_module
from nicbench.engine.binaries import deploy_file
from nicbench.engine.client import PROTOCOL, Conversation, EngineClient, refusal_of_ports
from nicbench.hosts.base import Completed, Process
from nicbench.hosts.kinds.local import LocalHost

READY = {"event": "ready", "protocol": PROTOCOL, "seq": 0, "time_ns": 0}


class ScriptedProcess(Process):
    """Says the given lines, then ends with ``status``."""

    def __init__(self, messages: list[Any], status: int = 0, stderr: str = "") -> None:
        self._lines = [message if isinstance(message, str) else json.dumps(message) for message in messages]
        self._status = status
        self._stderr = stderr
        self.written: list[dict[str, Any]] = []

    @property
    def pid(self) -> int | None:
        return 1

    async def write_line(self, line: str) -> None:
        self.written.append(json.loads(line))

    async def read_line(self, timeout_s: float | None = None) -> str | None:
        return self._lines.pop(0) if self._lines else None

    async def close_stdin(self) -> None:
        self._lines.clear()

    async def wait(self, timeout_s: float | None = None) -> int:
        return self._status

    async def signal(self, number: int) -> None:
        self._lines.clear()

    def stderr_tail(self) -> str:
        return self._stderr


async def test_a_reply_is_matched_by_its_id_and_events_meanwhile_are_kept() -> None:
    process = ScriptedProcess(
        [
            READY,
            {"id": 1, "ok": True, "engine": "nicbench-packets"},
            {"event": "transmitted", "trial": 7},
            {"id": 2, "ok": True},
        ]
    )
    client = EngineClient(process, "engine")
    assert (await client.greet())["engine"] == "nicbench-packets"
    await client.request("start", trial=7)
    assert (await client.wait_for("transmitted", within_s=1.0, trial=7))["trial"] == 7


@pytest.mark.parametrize("theirs", ["2.0", "0.9", "1", "next", None])
async def test_another_protocol_is_refused_naming_both_versions(theirs: str | None) -> None:
    client = EngineClient(ScriptedProcess([{**READY, "protocol": theirs}]), "engine")
    with pytest.raises(EngineError, match=rf"protocol {theirs}, this controller speaks {PROTOCOL}"):
        await client.greet()


async def test_an_engine_older_than_the_controller_is_refused_before_it_is_asked_for_anything() -> None:
    process = ScriptedProcess([{**READY, "protocol": "1.0"}, {"id": 1, "ok": True}])
    with pytest.raises(EngineError, match=r"(?s)older than the controller.*protocol 1\.0.*make install") as caught:
        await EngineClient(process, "engine").greet()
    assert (caught.value.kind, process.written) == ("version", [])


async def test_a_newer_engine_of_the_same_major_number_is_welcome() -> None:
    process = ScriptedProcess([{**READY, "protocol": "1.999"}, {"id": 1, "ok": True, "engine": "nicbench-packets"}])
    assert (await EngineClient(process, "engine").greet())["engine"] == "nicbench-packets"


async def test_a_program_that_is_no_engine_is_refused() -> None:
    with pytest.raises(EngineError, match="does not start with protocol"):
        await EngineClient(ScriptedProcess([{"event": "hello"}]), "engine").greet()


async def test_an_error_of_the_engine_carries_its_kind_and_next_step() -> None:
    error = {"kind": "frame_size", "message": "frames of 60 bytes cannot hold the signature", "next": "use 64"}
    client = EngineClient(ScriptedProcess([{"id": 1, "ok": False, "error": error}]), "engine")
    with pytest.raises(EngineError, match="use 64") as caught:
        await client.request("start")
    assert caught.value.kind == "frame_size"
    assert caught.value.exit_status == 4


async def test_an_engine_that_was_killed_is_named_with_its_signal_and_last_words() -> None:
    client = EngineClient(ScriptedProcess([], status=-9, stderr="EAL: out of memory"), "engine on netns x")
    with pytest.raises(EngineError, match=r"engine on netns x.*killed by signal 9.*EAL: out of memory"):
        await client.request("drain")


@pytest.mark.parametrize("line", ["not json", "[1, 2]", '"text"'], ids=["no json", "a list", "a text"])
async def test_a_line_that_is_no_message_is_an_error_not_a_crash(line: str) -> None:
    client = EngineClient(ScriptedProcess([line]), "engine")
    with pytest.raises(HostError, match="not a message"):
        await client.request("hello")


async def test_closing_an_engine_that_is_gone_does_not_raise() -> None:
    await EngineClient(ScriptedProcess([], status=1), "engine").close()


async def test_the_lease_is_kept_up_between_requests_and_not_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "RENEW_AFTER_S", 0.01)
    process = ScriptedProcess([{"id": 1, "ok": True}])
    client = EngineClient(process, "engine")
    await client.request("stats")
    assert [request["command"] for request in process.written] == ["stats"]
    await asyncio.sleep(0.05)
    assert process.written[1] == {"id": 2, "command": "renew", "duration_s": 0.0}
    await client.close()
    count = len(process.written)
    await asyncio.sleep(0.05)
    assert len(process.written) == count


async def test_an_engine_that_died_between_two_requests_is_named_with_its_signal_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(self: ScriptedProcess, line: str) -> None:
        raise HostError("nicbench-packets: has ended")

    monkeypatch.setattr(ScriptedProcess, "write_line", broken)
    client = EngineClient(ScriptedProcess([], status=-9), "engine")
    with pytest.raises(EngineError, match="killed by signal 9"):
        await client.request("stats")


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"id": 1, "a": ' + "[" * 100_000,
        '{"id": 1, "ok": NaN}',
        '{"id": 1, "rate": 1e999}',
        '{"id": 9' + "9" * 5000,
    ],
    ids=["deep list", "deep value", "NaN", "infinity", "number of thousands of digits"],
)
async def test_a_line_that_no_engine_writes_is_an_error_and_not_a_traceback(line: str) -> None:
    with pytest.raises(EngineError, match="not a message"):
        await EngineClient(ScriptedProcess([READY, line]), "engine").greet()


@pytest.mark.parametrize("error", [[], "no", {"message": 5, "next": ["x"]}, None])
async def test_an_error_of_another_form_is_an_error_all_the_same(error: Any) -> None:
    with pytest.raises(EngineError):
        await EngineClient(ScriptedProcess([READY, {"id": 1, "ok": False, "error": error}]), "engine").greet()


@pytest.mark.parametrize("protocol", ["1." + "9" * 5000, "\u0663.\u0661", "1.1.1", "", None, []])
async def test_a_version_that_is_none_is_refused(protocol: Any) -> None:
    with pytest.raises(EngineError, match="protocol"):
        await EngineClient(ScriptedProcess([{**READY, "protocol": protocol}]), "engine").greet()


# A conversation in which requests stand side by side.


async def test_a_request_that_no_line_holds_is_refused_before_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LINE_LIMIT_BYTES", 3 << 20)
    engine = Played([])
    asks = Conversation(engine, "tester", lambda _: None)
    flows = [{"name": "f", "filler": {"kind": "hex", "hex": "00" * (2 << 20)}}]
    with pytest.raises(EngineError, match="load takes 4 MiB as a line, of at most 3") as error:
        await asks.request("load", flows=flows)
    await asks.stop()
    assert (error.value.kind, engine.asked) == ("bad_request", [])


# A binary on another host: the same one, in a folder where nobody else could have put another.


class _Elsewhere(LocalHost):
    """A host that does not share our files, as far as it says; counts what is copied to it."""

    copies = 0

    @property
    def shares_files(self) -> bool:
        return False

    async def put(self, local: Path, remote: str, mode: int = 0o644) -> None:
        self.copies += 1
        await super().put(local, remote, mode)


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    path = tmp_path / "engine"
    path.write_text("#!/bin/sh\necho runs\n")
    return path


async def test_on_this_machine_it_is_started_where_it_is(binary: Path) -> None:
    assert await deploy_file(LocalHost(), binary) == str(binary)


async def test_it_is_copied_once_and_again_only_when_it_has_changed(binary: Path, tmp_path: Path) -> None:
    host, folder = _Elsewhere(), str(tmp_path / "cache")
    first = await deploy_file(host, binary, folder)
    again = await deploy_file(host, binary, folder)
    binary.write_text("#!/bin/sh\necho other\n")
    other = await deploy_file(host, binary, folder)

    assert (first, host.copies) == (again, 2)
    assert [(await host.run((path,))).stdout for path in (first, other)] == ["runs\n", "other\n"]
    assert Path(first).stat().st_mode & 0o777 == 0o700


async def test_what_somebody_made_of_it_is_replaced(binary: Path, tmp_path: Path) -> None:
    host, folder = _Elsewhere(), str(tmp_path / "cache")
    path = Path(await deploy_file(host, binary, folder))
    path.write_text("planted")

    assert await deploy_file(host, binary, folder) == str(path)
    assert path.read_text() == binary.read_text()


async def test_a_folder_of_ours_that_others_may_only_read_becomes_ours_alone(binary: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o755)
    path = await deploy_file(_Elsewhere(), binary, str(folder))
    assert Path(path).read_text() == binary.read_text()
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("how", ["anybody may write to it", "it is a link", "it is a file"])
async def test_a_folder_in_which_somebody_else_may_write_is_refused(how: str, binary: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    if how == "it is a file":
        folder.write_text("")
    elif how == "it is a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    with pytest.raises(NotReadyError, match="is not ours alone"):
        await deploy_file(_Elsewhere(), binary, str(folder))


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder of another user needs root")
async def test_a_folder_of_somebody_else_is_refused(binary: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    with pytest.raises(NotReadyError, match="owner 65534"):
        await deploy_file(_Elsewhere(), binary, str(folder))


async def test_a_host_that_changes_what_it_gets_is_told_of(binary: Path, tmp_path: Path) -> None:
    class Spoiling(_Elsewhere):
        async def run(
            self,
            command: Sequence[str],
            *,
            input_text: str | None = None,
            timeout_s: float = 30.0,
            check: bool = True,
            environment: Mapping[str, str] | None = None,
        ) -> Completed:
            for path in (tmp_path / "cache").glob("engine-*"):
                path.write_text("spoilt")
            return await super().run(command, check=check)

    with pytest.raises(NotReadyError, match="differs from what was copied"):
        await deploy_file(Spoiling(), binary, str(tmp_path / "cache"))


_MACVLAN = (
    "ip link add v0 type veth peer name v1 && ip link add link v0 name m0 type macvlan && ip link set v0 up && "
    'ip link set m0 up && exec "$0"'
)


@pytest.mark.lab
def test_af_xdp_is_there_without_a_driver_that_runs_xdp_programs() -> None:
    port = {"name": "t0", "kind": "af_xdp", "device": "m0", "queue": 0, "xdp_program": None}
    prefix = ("unshare", "--net", "sh", "-c", _MACVLAN)
    assert asyncio.run(refusal_of_ports(LocalHost(), [port], prefix=prefix)) is None
