"""Soft RoCE over a port: made, verified by its state and its GID, refused where it cannot be, removed again."""

from __future__ import annotations

import json

import pytest
from tests.fakes import FakeHost, NotedChanges

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.measure.host_readings import parse_counters
from nicbench.system.adapters.links import gid_index_of, gid_of, parse_rdma_links
from nicbench.testbed.interfaces import host_interfaces as rdma
from nicbench.testbed.interfaces.base import Making, Port
from nicbench.testbed.interfaces.host_interfaces import GIDS_SCRIPT, make_rdma_devices
from nicbench.tuning.undo.adapters import DeleteRdmaLink
from nicbench.tuning.undo.base import undo_one

LISTED = ("sh", "-c", "command -v rdma >/dev/null && rdma -j link show || echo '[]'")
ADD = "rdma link add rxe_r0 type rxe netdev r0"
GID = "0000:0000:0000:0000:0000:ffff:c612:0001"


class _Machine(FakeHost):
    """Has the link that it shows as soon as it was added."""

    def __init__(
        self, state: str = "ACTIVE", gids: str = "0 r0 RoCE v1\n1 r0 RoCE v2\nsoft\n", there: str = ""
    ) -> None:
        super().__init__("receiver")
        shown = [{"ifindex": 0, "ifname": there or "rxe_r0", "port": 1, "state": state, "netdev": "r0"}]
        self.shown = json.dumps(shown)
        self.answer(LISTED, self.shown if there else "[]")
        self.answer(("sh", "-c", GIDS_SCRIPT.format(device=there or "rxe_r0", port=1, gid=GID)), gids)
        self.answer(ADD, self._add)

    def _add(self, _command: tuple[str, ...]) -> str:
        self.answer(LISTED, self.shown)
        return ""


def _making(host: Host, changes: NotedChanges) -> Making:
    port = Port.model_validate({"host": "receiver", "device": "r0", "ip": "198.18.0.1/24", "rdma": "rxe"})
    return Making({"receiver": host}, {"s0": port}, changes)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdma, "_STEP_S", 0.0)


async def test_it_is_made_over_the_interface_and_its_gid_is_found_and_told() -> None:
    machine, changes = _Machine(), NotedChanges()
    making = _making(machine, changes)
    await make_rdma_devices(making)
    assert changes.undos == [DeleteRdmaLink(device="rxe_r0")]
    assert making.facts == {"rdma_devices": {"s0": "rxe_r0, soft RoCE over r0, GID 1"}}


async def test_one_that_is_there_already_is_used_and_stays() -> None:
    changes = NotedChanges()
    machine = _Machine(there="rxe0")
    await make_rdma_devices(_making(machine, changes))
    assert changes.undos == []


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (_Machine(state="DOWN"), "is DOWN, not ACTIVE"),
        (_Machine(gids="0 r0 RoCE v1\n2 r1 RoCE v2\n"), "has no RoCE v2 GID of the address 198.18.0.1"),
        (_Machine(there="mlx5_0", gids="3 r0 RoCE v2\n"), "r0 has RDMA of its own: mlx5_0"),
        (NetnsHost(FakeHost(), "space"), "only in the first network namespace of a machine"),
    ],
)
async def test_one_that_could_not_be_measured_by_is_refused(machine: Host, words: str) -> None:
    with pytest.raises(NotReadyError, match=words):
        await make_rdma_devices(_making(machine, NotedChanges()))


async def test_a_kernel_without_soft_roce_says_what_to_do() -> None:
    machine = _Machine()
    machine.fail(ADD, "error: Operation not supported\n")
    with pytest.raises(NotReadyError, match=r"no soft RoCE \(rdma_rxe\): error: Operation not supported") as caught:
        await make_rdma_devices(_making(machine, NotedChanges()))
    assert "modprobe rdma_rxe" in str(caught.value.next_step)


async def test_what_cannot_be_deleted_is_told_and_what_is_gone_already_is_not() -> None:
    gone, stays = FakeHost(), FakeHost()
    for host in (gone, stays):
        host.fail("rdma link delete rxe_r0", "error: Device or resource busy\n")
    gone.fail("test -e /sys/class/infiniband/rxe_r0", "")
    assert await undo_one(gone, DeleteRdmaLink(device="rxe_r0")) is None
    with pytest.raises(HostError, match="cannot be deleted: error: Device or resource busy"):
        await undo_one(stays, DeleteRdmaLink(device="rxe_r0"))


def test_gids_of_addresses_are_as_the_kernel_writes_them() -> None:
    assert gid_of("198.18.0.1") == GID
    assert gid_of("2001:2::1") == "2001:0002:0000:0000:0000:0000:0000:0001"
    assert gid_index_of("3 r0 RoCE v2\n", "r0") == 3
    assert gid_index_of("3 r0 IB/RoCE v1\n4 r0.5 RoCE v2\nnonsense\n", "r0") is None


@pytest.mark.parametrize("text", ["{}", "[1]", "nonsense", '[{"port": 1}]'])
def test_what_rdma_says_that_is_no_list_of_links_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_rdma_links(text)


def test_what_soft_roce_counts_is_beside_what_its_interface_counts() -> None:
    said = "/sys/class/infiniband/rxe_r0/ports/1/hw_counters/out_of_seq_request:68\n"
    assert parse_counters(said) == {"out_of_seq_request": 68}
