"""Commands before a round that do not come to their end."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.errors import HostError
from nicbench.core.round import EndpointFacts, HostCommand
from nicbench.hosts.kinds.local import LocalHost
from nicbench.measure.host_player import HostPlayer
from nicbench.testbed.labs.base import Endpoint, EndpointTestbed
from nicbench.tuning.stack import UndoStack


@pytest.fixture
def player(tmp_path: Path) -> HostPlayer:
    host = LocalHost("c0a")
    end = Endpoint(host, EndpointFacts(name="c0a", host="c0a", machine="local", address="127.0.0.1"))
    testbed = EndpointTestbed(servers=(end,), clients=(), link_is_nominal=True)
    return HostPlayer(testbed, tmp_path, UndoStack("a-run", None, tmp_path / "runtime"))


@pytest.mark.parametrize(
    ("run", "why"),
    [("sleep 60", "did not end within 0.1 s"), ("sleep 60 &", "did not end within 0.1 s")],
    ids=["hangs", "leaves something behind"],
)
async def test_one_that_does_not_end_is_named_with_its_host_its_time_and_what_to_do(
    run: str, why: str, player: HostPlayer
) -> None:
    with pytest.raises(HostError) as stopped:
        await player.run_before(HostCommand(host="c0a", run=run, timeout_s=0.1))
    assert stopped.value.place == "c0a"
    assert stopped.value.message.startswith(f"`before_each`, the command {run!r}")
    assert why in stopped.value.message
    assert ">/dev/null 2>&1 &" in str(stopped.value.next_step)


async def test_one_that_prints_too_much_is_named_as_well(player: HostPlayer) -> None:
    with pytest.raises(HostError, match=r"^c0a: `before_each`, the command 'yes' .*bytes of output; it was killed"):
        await player.run_before(HostCommand(host="c0a", run="yes", timeout_s=60.0))


async def test_caches_that_are_not_dropped_in_time_are_called_by_their_option(player: HostPlayer) -> None:
    with pytest.raises(HostError, match=r"^c0a: `drop_caches`") as stopped:
        await player.run_before(HostCommand(host="c0a", run="sleep 60", timeout_s=0.1, on_machine=True))
    assert "drop_caches: false" in str(stopped.value.next_step)
