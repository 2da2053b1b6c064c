"""Bonds on a kernel that has them, in a guest: LACP negotiates, and ports come back as they were."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from nicbench.core.errors import NotReadyError
from nicbench.hosts.kinds.vm import VmHost
from nicbench.testbed.interfaces import bond as making
from nicbench.testbed.interfaces.base import BondOptions
from nicbench.testbed.interfaces.bond import create_bond, join_bond, make_bond
from nicbench.tuning.stack import UndoStack

pytestmark = [pytest.mark.vm, pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("guest")]

PORTS, FAR = ("e0", "e1"), ("f0", "f1")
MAC = "02:00:00:00:0a:0{}"


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def veths(guest: VmHost) -> AsyncIterator[None]:
    """Two veth pairs in the guest, one of whose near ends is up."""
    for number, (port, far) in enumerate(zip(PORTS, FAR, strict=True)):
        own = ("ip", "link", "add", port, "address", MAC.format(number), "type", "veth", "peer", "name", far)
        await guest.run(own)
    await guest.run(("ip", "link", "set", "dev", "e0", "mtu", "1400", "up"))
    yield
    for port in PORTS:
        await guest.run(("ip", "link", "delete", "dev", port))


async def links(guest: VmHost) -> dict[str, dict[str, Any]]:
    shown = json.loads((await guest.run(("ip", "-j", "-d", "link", "show"))).stdout)
    return {link["ifname"]: link for link in shown}


async def ports(guest: VmHost) -> list[tuple[Any, ...]]:
    there = await links(guest)
    return [
        (there[port].get("master"), there[port]["address"], there[port]["mtu"], "UP" in there[port]["flags"])
        for port in PORTS
    ]


async def test_ports_that_have_no_partner_come_back_with_the_reason(
    guest: VmHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "_TRIES", 2)
    before, changes = await ports(guest), UndoStack("test-alone", None, tmp_path)
    with pytest.raises(NotReadyError, match=r"e0 is down.*e1 is down"):
        await make_bond(changes, guest, "bond0", BondOptions(of=PORTS), "guest, port s0")
    assert await changes.undo_all() == []
    assert await ports(guest) == before
    assert "bond0" not in await links(guest)


async def test_lacp_negotiates_and_ports_come_back_as_they_were(guest: VmHost, tmp_path: Path) -> None:
    before, changes = await ports(guest), UndoStack("test-pair", None, tmp_path)
    options = BondOptions(of=PORTS, policy="layer2+3", mtu=1300)
    await create_bond(guest, "far", options)
    for far in FAR:
        await join_bond(guest, "far", far)
    await guest.run(("ip", "link", "set", "dev", "far", "up"))
    try:
        told = await make_bond(changes, guest, "bond0", options, "guest, port s0")
        there = (await links(guest))["bond0"]
    finally:
        troubles = await changes.undo_all()
        await guest.run(("ip", "link", "delete", "dev", "far"))
    assert troubles == []
    assert told["xmit_hash_policy"] == "layer2+3"
    assert there["mtu"] == 1300
    assert there["linkinfo"]["info_data"]["ad_info"]["num_ports"] == 2
    assert await ports(guest) == before
    assert "bond0" not in await links(guest)
