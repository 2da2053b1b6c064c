"""The conversations of protocol/examples, played to the controller: it asks as written, and understands the answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import EngineError
from nicbench.engine.client import EngineClient
from nicbench.engine.generator import Neighbours
from nicbench.engine.reading import parse_reading
from nicbench.hosts.base import Process

EXAMPLES = Path(__file__).parents[2] / "protocol" / "examples"


class Played(Process):
    """An engine that says what the conversation says, whatever is asked."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.asked: list[dict[str, Any]] = []

    @property
    def pid(self) -> int | None:
        return 1

    async def write_line(self, line: str) -> None:
        self.asked.append(json.loads(line))

    async def read_line(self, timeout_s: float | None = None) -> str | None:
        return self.lines.pop(0) if self.lines else None

    async def close_stdin(self) -> None:
        self.lines.clear()

    async def wait(self, timeout_s: float | None = None) -> int:
        return 0

    async def signal(self, number: int) -> None:
        self.lines.clear()

    def stderr_tail(self) -> str:
        return ""


def requests(lines: list[str]) -> list[dict[str, Any]] | None:
    """What is asked, in order; None where the controller would never ask so."""
    try:
        asked = [json.loads(line.removeprefix("> ")) for line in lines if line.startswith("> ")]
    except ValueError:
        return None
    good = all(isinstance(one, dict) and one.get("id") == number for number, one in enumerate(asked, start=1))
    return asked if good and all("command" in one for one in asked) else None


def known(value: Any, name: str = "") -> Any:
    """With something in the place of what the conversation leaves open."""
    if isinstance(value, dict):
        return {key: known(part, key) for key, part in value.items()}
    if isinstance(value, list):
        return [known(part, name) for part in value]
    if value == "*":
        return None if name in ("histogram", "latency") else 0
    return value


async def answered(client: EngineClient, command: str, fields: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The reply, or the kind of the error."""
    try:
        return await client.request(command, **fields), None
    except EngineError as error:
        return {}, error.kind


def conversations() -> list[Path]:
    """Those that a controller can lead."""
    return [path for path in sorted(EXAMPLES.glob("*.ndjson")) if requests(path.read_text().splitlines()) is not None]


def test_most_conversations_are_such_as_a_controller_leads() -> None:
    assert {"trial", "faults", "overload", "capture", "layers", "card", "generator", "hosts"} <= {
        path.stem for path in conversations()
    }


@pytest.mark.parametrize("path", conversations(), ids=lambda path: path.stem)
async def test_the_controller_asks_as_written_and_understands_the_answers(path: Path) -> None:
    lines = path.read_text().splitlines()
    asked = requests(lines)
    assert asked
    engine = Played([line.removeprefix("< ") for line in lines if line.startswith("< ")])
    client = EngineClient(engine, path.stem)
    drained = None
    for one in asked:
        fields = {name: value for name, value in one.items() if name not in ("id", "command")}
        reply, refused = await answered(client, one["command"], fields)
        assert refused not in ("unknown", "protocol")
        if refused is not None:
            continue
        if one["command"] == "drain":
            drained = reply
        elif one["command"] == "settle" and drained is not None:
            reading = parse_reading(known(drained), reply["late"])
            assert reading.counts.sent == sum(stream["sent"] for stream in drained["streams"])
            if capture := drained.get("capture"):
                assert reading.capture.frames == capture["frames"]
            drained = None
        elif one["command"] == "neighbours" and "counts" in reply:
            assert len(Neighbours.model_validate(known(reply)).neighbours) == len(reply["neighbours"])
    assert engine.asked == asked
