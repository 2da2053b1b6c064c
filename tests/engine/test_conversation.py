"""A conversation in which requests stand side by side."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.test_examples import Played

from nicbench.core.errors import EngineError
from nicbench.engine import client
from nicbench.engine.client import Conversation


async def test_a_request_that_no_line_holds_is_refused_before_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LINE_LIMIT_BYTES", 3 << 20)
    engine = Played([])
    asks = Conversation(engine, "tester", lambda _: None)
    flows: list[dict[str, Any]] = [{"name": "f", "filler": {"kind": "hex", "hex": "00" * (2 << 20)}}]
    with pytest.raises(EngineError, match="load takes 4 MiB as a line, of at most 3") as error:
        await asks.request("load", flows=flows)
    await asks.stop()
    assert (error.value.kind, engine.asked) == ("bad_request", [])
