"""The engine as a generator: what is asked, and the frozen types that its replies become."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.engine.test_examples import EXAMPLES, Played, known

from nicbench.core.errors import EngineError
from nicbench.engine.client import EngineClient
from nicbench.engine.generator import Action, FlowState, Generator, parse_tally

LINES = (EXAMPLES / "generator.ndjson").read_text().splitlines()


def told(number: int) -> dict[str, Any]:
    """The reply to the request of this number."""
    replies = (json.loads(line.removeprefix("< ")) for line in LINES if line.startswith("< "))
    return next(reply for reply in replies if reply.get("id") == number)


def generator(*replies: dict[str, Any]) -> tuple[Generator, Played]:
    """A generator whose engine says this."""
    engine = Played([json.dumps(known(reply)) for reply in replies])
    return Generator(EngineClient(engine, "tester")), engine


async def test_the_conversation_of_the_protocol_is_led_with_types() -> None:
    lines = [json.dumps(known(json.loads(line.removeprefix("< ")))) for line in LINES if line.startswith("< ")]
    engine = Played(lines)
    client = EngineClient(engine, "tester")
    asked = [json.loads(line.removeprefix("> ")) for line in LINES if line.startswith("> ")]
    for request in asked[:2]:
        await client.request(**{key: value for key, value in request.items() if key != "id"})
    flows = Generator(client)
    assert await flows.load(asked[2]["flows"]) == 3
    assert (await flows.tally([0])).flows[0].state is FlowState.STOPPED
    options = {key: asked[4][key] for key in ("filters", "at_most_bytes")}
    assert (await flows.start_capture([1], "captured-", **options))[0].frames == 0
    assert (await flows.control(Action.START)).changed == 3
    tally = await flows.tally(histograms=True)
    assert [flow.sent for flow in tally.flows] == [1000, 50, 500]
    assert [flow.received for flow in tally.flows] == [1000, None, 500]
    assert tally.flows[2].latency is None
    assert tally.health is not None
    assert (await flows.tally_columns()).columns.sent == (1000, 50, 500)
    (captured,) = await flows.stop_capture([1])
    assert (captured.frames, captured.dropped) == (124, 376)
    defaults = {"flows": None, "histograms": False, "columns": False}
    for request, expected in zip(engine.asked[2:], asked[2:], strict=False):
        assert {**defaults, **request} == {**defaults, **expected}


async def test_flows_by_columns_are_told_as_in_their_tallies() -> None:
    flows, engine = generator({**told(8), "id": 1})
    told_by_columns = (await flows.tally_columns()).columns
    whole = parse_tally(known(told(7))).flows
    left_out = {"in_flight": None, "misdirected": None, "by_port": ()}
    for flow, same in zip(whole, told_by_columns.tallies(), strict=True):
        latency = flow.latency.replace(histogram=None) if flow.latency else None
        assert same == flow.replace(**(left_out | {"latency": latency}))
    assert engine.asked[-1]["columns"] is True
    flows, _ = generator({**told(8), "id": 1, "columns": {**told(8)["columns"], "sent": [1]}})
    with pytest.raises(EngineError, match="columns of flows differ in their length"):
        await flows.tally_columns()


async def test_what_the_engine_refuses_is_an_error_of_its_kind() -> None:
    refused = {**told(12), "id": 1}
    flows, _ = generator(refused)
    with pytest.raises(EngineError) as error:
        await flows.load([])
    assert error.value.kind == "frame_size"
    assert "64 bytes" in str(error.value)


def test_what_a_newer_engine_tells_beyond_is_ignored_and_a_reply_that_is_none_is_an_error() -> None:
    reply = known(told(7))
    assert parse_tally({**reply, "colour": "green"}).flows == parse_tally(reply).flows
    for wrong in ({}, {**reply, "flows": [{}]}, {**reply, "health": 3}):
        with pytest.raises(EngineError, match="none of a generator"):
            parse_tally(wrong)
