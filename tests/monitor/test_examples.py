"""The conversations of protocol/examples/monitor, played to the controller: it understands the answers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import EngineError
from nicbench.engine.client import PROTOCOL
from nicbench.hosts.base import Process
from nicbench.monitor.running import CpuWatch, MonitorClient

EXAMPLES = sorted((Path(__file__).parents[2] / "protocol" / "examples" / "monitor").glob("*.ndjson"))


class Played(Process):
    """A monitor that says its next lines when it is asked; the number of a request is put into its reply."""

    def __init__(self, said: list[list[str]]) -> None:
        self.said = said
        self.asked: list[dict[str, Any]] = []
        self.lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._say(0)

    def _say(self, number: int) -> None:
        for line in self.said.pop(0) if self.said else [None]:
            if line is None:
                self.lines.put_nowait(None)
                continue
            message = json.loads(line.replace('"*"', "0"))
            self.lines.put_nowait(
                json.dumps(message | ({"id": number} if "id" in message else {}), separators=(",", ":"))
            )

    @property
    def pid(self) -> int | None:
        return 1

    async def write_line(self, line: str) -> None:
        self.asked.append(json.loads(line))
        self._say(self.asked[-1]["id"])

    async def read_line(self, timeout_s: float | None = None) -> str | None:
        return await self.lines.get()

    async def close_stdin(self) -> None:
        self.lines.put_nowait(None)

    async def wait(self, timeout_s: float | None = None) -> int:
        return 0

    async def signal(self, number: int) -> None:
        self.lines.put_nowait(None)

    def stderr_tail(self) -> str:
        return "its last words"


def turns(text: str) -> tuple[list[str], list[list[str]]]:
    """What is asked, and what is said before and after each."""
    asked = []
    said = [[]]
    for line in text.splitlines():
        if line.startswith("> "):
            asked.append(line[2:])
            said.append([])
        elif line.startswith("< "):
            said[-1].append(line[2:])
    return asked, said


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
async def test_replies_and_events_come_to_whom_they_are_for(path: Path) -> None:
    asked, said = turns(path.read_text())
    good = [json.loads(line).get("command") if line.startswith("{") else "nonsense" for line in asked]
    events = [line for lines in said for line in lines if '"event"' in line]  # "ready" as well
    expected = [json.loads(line)["ok"] for lines in said[1:] for line in lines if '"ok"' in line]
    hello = json.dumps({"id": 1, "ok": True, "engine": "nicbench-monitor", "protocol": PROTOCOL})
    logged = []
    client = MonitorClient(Played([said[0], [hello], *said[1:]]), logged.append, path.stem)
    await client.greet()
    for command, is_ok in zip(good, expected, strict=True):
        if is_ok:
            assert (await client.request(str(command)))["ok"]
        else:
            with pytest.raises(EngineError):
                await client.request(str(command))
    assert len(logged) == len(events)
    await client.close()


async def test_a_monitor_that_dies_is_an_error_with_its_last_words() -> None:
    ready = json.dumps({"event": "ready", "protocol": PROTOCOL, "seq": 0, "time_ns": 0})
    client = MonitorClient(Played([[ready], ['{"id": 1, "ok": true}']]), lambda line: None, "here")
    await client.greet()
    with pytest.raises(EngineError, match="its last words"):
        await client.request("stats")
    assert await client.close() is None


@pytest.mark.parametrize("first", ['{"event": "ready", "protocol": "2.0"}', '{"id": 3}', "nonsense", "[]"])
async def test_who_does_not_speak_the_protocol_is_refused(first: str) -> None:
    process = Played([[]])
    process.lines.put_nowait(first)
    with pytest.raises(EngineError, match="protocol"):
        await MonitorClient(process, lambda line: None, "here").greet()


async def test_one_that_was_not_understood_is_ended_without_waiting_for_a_reply() -> None:
    process = Played([[]])
    process.lines.put_nowait("nonsense")
    client = MonitorClient(process, lambda line: None, "here")
    with pytest.raises(EngineError):
        await client.greet()
    assert await client.close() is None
    assert process.asked == []


async def test_an_event_that_cannot_be_understood_ends_the_conversation_with_its_line() -> None:
    ready = json.dumps({"event": "ready", "protocol": PROTOCOL})
    watch = CpuWatch()
    watch.begin()
    client = MonitorClient(
        Played([[ready], ['{"id": 1, "ok": true}', '{"event": "series", "series": [5]}']]), watch.heard, "it"
    )
    await client.greet()
    with pytest.raises(EngineError, match=r"cannot be understood.*series"):
        await client.request("stats")
