"""Settings of a card: applied by the right command, verified, and undone to what they were; by real tools' texts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.core.plan import Outcome, TunedSetting
from nicbench.core.registry import find
from nicbench.tuning.items.base import Item
from nicbench.tuning.items.steering import arguments_of, weighted_table
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.tune import Part, PlacedRequest, TuningRequest, place_requests, tune

from ._card import ADDRESS, DEVICE, Card, golden, refusing

ITEMS = find("nicbench.tuning.items", Item)


def asked(host: FakeHost, named: str, /, **options: Any) -> tuple[PlacedRequest, ...]:
    item = ITEMS[named]
    return place_requests(
        [TuningRequest("dut", item, item.Options.model_validate(options))], [Part("dut", host, (DEVICE,))]
    )


async def tuned(tmp_path: Path, host: FakeHost, named: str, /, **options: Any) -> TunedSetting:
    (row,) = await tune(UndoStack("run", None, tmp_path), asked(host, named, **options))
    return row


# Item, options, a command that must have been run, and what the setting then reads.
CHANGES = (
    ("rings", {"rx": 4096, "tx": "maximum"}, f"ethtool -G {DEVICE} rx 4096 tx 8192", {"rx": 4096, "tx": 8192}),
    ("channels", {"combined": 8}, f"ethtool -L {DEVICE} combined 8", {"combined": 8}),
    (
        "coalescing",
        {"adaptive_rx": False, "rx_usecs": 0, "tx_frames": 1},
        f"ethtool -C {DEVICE} adaptive-rx off rx-usecs 0 tx-frames 1",
        {"adaptive_rx": False, "rx_usecs": 0, "tx_frames": 1},
    ),
    (
        "offloads",
        {"features": {"gro": False, "tso": False}},
        f"ethtool -K {DEVICE} gro off tx-tcp-segmentation off tx-tcp6-segmentation off",
        {
            "generic-receive-offload": False,
            "tx-tcp-segmentation": False,
            "tx-tcp-mangleid-segmentation": False,
            "tx-tcp6-segmentation": False,
        },
    ),
    ("flow_control", {"rx": False, "tx": False}, f"ethtool -A {DEVICE} rx off tx off", {"rx": False, "tx": False}),
    (
        "link",
        {"speed": 25e9, "autonegotiation": False},
        f"ethtool -s {DEVICE} speed 25000 autoneg off",
        {"speed_bits_per_s": 25_000_000_000, "autonegotiation": False},
    ),
    ("link", {"fec": "baser"}, f"ethtool --set-fec {DEVICE} encoding baser", {"fec": "BaseR"}),
    (
        "private_flags",
        {"flags": {"rx_cqe_compress": True, "rx_striding_rq": True}},
        f"ethtool --set-priv-flags {DEVICE} rx_cqe_compress on",
        {"rx_cqe_compress": True, "rx_striding_rq": True},
    ),
    ("energy_efficient_ethernet", {"on": False}, f"ethtool --set-eee {DEVICE} eee off", {"enabled": False}),
    (
        "receive_hashing",
        {"queues": 4, "key": ":".join(["6d"] * 40), "fields": {"udp4": "sdfn"}},
        f"ethtool -X {DEVICE} equal 4 hkey {':'.join(['6d'] * 40)}",
        {"fields_udp4": "sdfn", "key": ":".join(["6d"] * 40), "table": [entry % 4 for entry in range(128)]},
    ),
    ("pci_read_request", {"bytes": 4096}, f"setpci -s {ADDRESS} CAP_EXP+8.w=5000:7000", {"read_request_bytes": 4096}),
    (
        "priority_flow_control",
        {"priorities": [5]},
        f"dcb pfc set dev {DEVICE} prio-pfc all:off 5:on",
        {"priorities": [5]},
    ),
    ("trust", {"order": ["pcp"]}, f"dcb apptrust set dev {DEVICE} order pcp", {"order": ["pcp"]}),
    (
        "devlink_parameters",
        {"values": {"flow_steering_mode": "smfs"}},
        f"devlink dev param set pci/{ADDRESS} name flow_steering_mode value smfs cmode runtime",
        {"flow_steering_mode": "smfs"},
    ),
    (
        "firmware_changes",
        {"settings": {"CQE_COMPRESSION": "BALANCED"}},
        f"mlxconfig -d {ADDRESS} --yes set CQE_COMPRESSION=BALANCED",
        {"CQE_COMPRESSION, after the next reset": "BALANCED"},
    ),
)


@pytest.mark.parametrize(("kind", "options", "command", "expected"), CHANGES, ids=lambda value: str(value)[:40])
async def test_a_setting_is_made_by_its_tool_verified_and_put_back(
    tmp_path: Path, kind: str, options: dict[str, Any], command: str, expected: dict[str, Any]
) -> None:
    card = Card()
    item = asked(card, kind, **options)[0]
    before = await item.item.read(item.place)
    stack = UndoStack("run", None, tmp_path)
    (row,) = await tune(stack, [item])
    assert (row.outcome, row.asked) == (Outcome.CHANGED, expected)
    assert command in [" ".join(each) for each in card.commands]
    during = await item.item.read(item.place)
    assert not item.item.find_differing(expected, during)
    assert item.item.find_differing(before, during)
    assert await stack.undo_all() == []
    after = await item.item.read(item.place)
    assert not item.item.find_differing(before, after)
    assert set(after) == set(before)


FILES = (
    ("virtual_functions", {"count": 4}, {"device/sriov_numvfs": "4"}),
    (
        "packet_steering",
        {"receive": "1,3", "send": "2-3", "flows": 512},
        {
            "queues/rx-0/rps_cpus": "a",
            "queues/rx-1/rps_cpus": "a",
            "queues/rx-0/rps_flow_cnt": "512",
            "queues/tx-0/xps_cpus": "4",
            "queues/tx-1/xps_cpus": "8",
        },
    ),
    (
        "ecn",
        {"priorities": [3]},
        {
            "ecn/roce_np/enable/3": "1",
            "ecn/roce_np/enable/4": "0",
            "ecn/roce_rp/enable/3": "1",
            "ecn/roce_rp/enable/4": "0",
        },
    ),
)


@pytest.mark.parametrize(("kind", "options", "expected"), FILES, ids=lambda value: str(value)[:30])
async def test_files_are_written_and_put_back(
    tmp_path: Path, kind: str, options: dict[str, Any], expected: dict[str, str]
) -> None:
    card = Card()
    before = {path: text.strip() for path, text in card.files.items()}
    stack = UndoStack("run", None, tmp_path)
    await tune(stack, asked(card, kind, **options))
    for name, value in expected.items():
        assert card.files[f"/sys/class/net/{DEVICE}/{name}"].strip() == value
    assert await stack.undo_all() == []
    assert {path: text.strip() for path, text in card.files.items()} == before


async def test_virtual_functions_that_are_there_are_not_taken_away(tmp_path: Path) -> None:
    card = Card()
    card.files[f"/sys/class/net/{DEVICE}/device/sriov_numvfs"] = "2\n"
    for count in (0, 4):
        with pytest.raises(NotReadyError, match="has 2 virtual functions already"):
            await tuned(tmp_path, card, "virtual_functions", count=count)
    assert not card.writes


async def test_times_come_back_before_the_adaptive_mode_that_decides_over_them(tmp_path: Path) -> None:
    card = Card()
    stack = UndoStack("run", None, tmp_path)
    await tune(stack, asked(card, "coalescing", adaptive_rx=False, rx_usecs=0))
    command = ("ethtool", "-C", DEVICE)

    def adapt(words: tuple[str, ...]) -> str:
        card.coalesce(words)
        return card.coalesce((*command, "rx-usecs", "64"))  # as the load has it just now

    card.answer((*command, "adaptive-rx", "on"), adapt)
    assert await stack.undo_all() == []
    assert [" ".join(words[3:]) for words in card.commands if words[:3] == command] == [
        "adaptive-rx off rx-usecs 0",
        "adaptive-rx off rx-usecs 8",
        "adaptive-rx on",
    ]


async def test_a_table_over_all_queues_is_left_to_the_driver_so_that_channels_may_become_fewer(tmp_path: Path) -> None:
    card = Card()
    stack = UndoStack("run", None, tmp_path)
    await tune(stack, asked(card, "receive_hashing", queues=4))
    assert await stack.undo_all() == []
    tables = [words[3:] for words in card.commands if words[:2] == ("ethtool", "-X")]
    assert tables == [("equal", "4"), ("default",)]


@pytest.mark.parametrize("name", ["../../sys", "e0/device", "e0 *", "e0;id", "", "-h"])
def test_what_is_no_interface_is_refused_before_any_tool_hears_of_it(name: str) -> None:
    with pytest.raises(ValidationError):
        asked(Card(), "rings", rx=512, devices=(name,))


@pytest.mark.parametrize(
    ("where", "cpus"), [("local", ["2", "3"]), ("far", ["0", "1"]), ("spread", ["0", "1"]), ("3", ["3", "3"])]
)
async def test_interrupts_of_queues_are_placed_on_the_cpus_asked_for(
    tmp_path: Path, where: str, cpus: list[str]
) -> None:
    card = Card()
    stack = UndoStack("run", None, tmp_path)
    (row,) = await tune(stack, asked(card, "irq_affinity", cpus=where))
    assert row.asked == {"201 queue 0": cpus[0], "202 queue 1": cpus[1]}
    assert [card.files[f"/proc/irq/{number}/smp_affinity_list"] for number in (201, 202)] == cpus
    assert await stack.undo_all() == []
    assert card.files["/proc/irq/201/smp_affinity_list"] == "0-3"


@pytest.mark.parametrize(
    ("kind", "options", "reason"),
    [
        ("rings", {"rx": 16384}, "rx 16384 is more than the driver's 8192"),
        ("rings", {"rx_mini": 5}, "the driver has no rx_mini"),
        ("channels", {"rx": 4}, "the driver has no rx; it has: combined"),
        ("coalescing", {"rx_usecs_irq": 4}, "the driver has no rx_usecs_irq"),
        ("offloads", {"features": {"rx-gro": True}}, "there is no offload rx-gro"),
        ("offloads", {"features": {"lro": True}}, "lro stays off in this driver"),
        ("private_flags", {"flags": {"legacy-rx": True}}, "the driver has no legacy-rx"),
        ("virtual_functions", {"count": 17}, "17 are more than the adapter's 16"),
        ("receive_hashing", {"queues": 9}, "queues 0 to 8 are asked for; there are 8"),
        ("packet_steering", {"flows": 1, "send": "5000"}, None),
        ("irq_affinity", {"cpus": "7"}, "the CPUs 7 are not online"),
        ("devlink_parameters", {"values": {"enable_roce": False}}, "takes effect only after a reload or a reset"),
        ("firmware_settings", {"settings": {"NO_SUCH": 1}}, "the firmware has no setting NO_SUCH"),
        ("priority_flow_control", {"priorities": [0, 1, 2]}, None),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_what_cannot_be_is_refused_with_what_could(
    tmp_path: Path, kind: str, options: dict[str, Any], reason: str | None
) -> None:
    card = Card()
    if reason is None:
        assert (await tuned(tmp_path, card, kind, **options)).outcome is Outcome.CHANGED
        return
    with pytest.raises(NotReadyError, match="cannot be tuned") as refused:
        await tuned(tmp_path, card, kind, **options)
    assert reason in str(refused.value)
    assert not [command for command in card.commands if command[:2] in (("ethtool", "-G"), ("ethtool", "-K"))]


async def test_an_offload_that_stays_off_though_it_was_asked_for_is_left_so(tmp_path: Path) -> None:
    card = Card()
    gso = "generic-segmentation-offload: "
    card.texts["ethtool -k"] = card.texts["ethtool -k"].replace(f"{gso}on", f"{gso}off [requested on]")
    with pytest.raises(NotReadyError, match="gso stays off"):
        await tuned(tmp_path, card, "offloads", features={"gso": True})
    assert not [command for command in card.commands if command[:2] == ("ethtool", "-K")]


async def test_flow_control_that_differs_from_what_was_negotiated_ends_the_negotiation(tmp_path: Path) -> None:
    card = Card()
    card.texts["ethtool -a"] = re.sub(r"(Autonegotiate:\s+)off", r"\1on", card.texts["ethtool -a"])
    await tuned(tmp_path, card, "flow_control", rx=False)
    assert ("ethtool", "-A", DEVICE, "rx", "off", "autoneg", "off") in card.commands
    again = len(card.commands)
    await tuned(tmp_path, card, "flow_control", rx=False)
    assert not [command for command in card.commands[again:] if command[1] == "-A"]


async def test_a_driver_that_rounds_is_told_apart_and_the_old_value_is_put_back(tmp_path: Path) -> None:
    card = Card()
    real = card._current

    def rounding(question: str, pairs: tuple[str, ...]) -> str:
        return real(question, tuple("512" if word == "500" else word for word in pairs))

    card._current = rounding  # type: ignore[method-assign]
    with pytest.raises(NotReadyError, match="asked for rx 500, got rx 512"):
        await tuned(tmp_path, card, "rings", rx=500)
    (one,) = asked(card, "rings", rx=1)
    assert (await one.item.read(one.place))["rx"] == 1024


async def test_the_tools_own_words_are_the_reason(tmp_path: Path) -> None:
    card = Card()
    refusing(card, "ethtool -G", "netlink error: Invalid argument")
    with pytest.raises(NotReadyError, match="netlink error: Invalid argument"):
        await tuned(tmp_path, card, "rings", rx=4096)


async def test_an_offload_that_the_driver_refuses_does_not_stay_requested(tmp_path: Path) -> None:
    card = Card()
    refusing(card, "ethtool -K", "Could not change any device features")
    with pytest.raises(NotReadyError, match="Could not change any device features"):
        await tuned(tmp_path, card, "offloads", features={"gro": False})
    written = [command[3:] for command in card.commands if command[:2] == ("ethtool", "-K")]
    assert [words[1:] for words in written] == [("off",), ("on",)]


async def test_a_link_that_does_not_come_back_refuses_the_run(tmp_path: Path) -> None:
    card = Card()

    def lost(_command: tuple[str, ...]) -> str:
        card.files[f"/sys/class/net/{DEVICE}/carrier"] = "0\n"
        return ""

    card.answer("ethtool -s", lost)
    with pytest.raises(NotReadyError, match=r"the link did not come back within 0\.2 s"):
        await tuned(tmp_path, card, "link", speed=25e9, wait=0.2)


async def test_the_link_is_checked_once_all_is_set(tmp_path: Path) -> None:
    card = Card()
    met = await tuned(tmp_path, card, "link_state", speed=100e9, duplex="full", fec="rs", wait=0)
    assert met.outcome is Outcome.MET
    slow = await tuned(tmp_path, card, "link_state", speed=25e9, wait=0)
    assert slow.outcome is Outcome.NOT_MET
    card.texts[f"ethtool {DEVICE}"] = golden("ice/settings.txt")
    card.files[f"/sys/class/net/{DEVICE}/carrier"] = "0\n"
    with pytest.raises(NotReadyError):
        await tuned(tmp_path, card, "link_state", wait=0, required=True)


async def test_firmware_is_only_checked_unless_the_bench_file_says_to_change_it(tmp_path: Path) -> None:
    card = Card()
    row = await tuned(tmp_path, card, "firmware_settings", settings={"NUM_OF_VFS": 8, "CQE_COMPRESSION": 1})
    assert row.outcome is Outcome.NOT_MET
    assert row.before["CQE_COMPRESSION, after the next reset"] == "AGGRESSIVE(1)"
    met = await tuned(tmp_path, card, "firmware_settings", settings={"NUM_OF_VFS": 8, "SRIOV_EN": "True"})
    assert met.outcome in (Outcome.MET, Outcome.NOT_MET)
    assert not [command for command in card.commands if "set" in command]


async def test_a_firmware_change_that_is_to_stay_is_not_undone(tmp_path: Path) -> None:
    card = Card()
    stack = UndoStack("run", None, tmp_path)
    await tune(stack, asked(card, "firmware_changes", settings={"NUM_OF_VFS": 32}, keep=True))
    assert stack.entries == ()
    assert " 32" in card.texts["mlxconfig query"]


async def test_a_root_qdisc_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    host = FakeHost("dut")
    host.answer("tc -j qdisc", golden("veth/qdisc.json"))
    with pytest.raises(NotReadyError, match=r"somebody set a tbf \(handle 1:\)"):
        await tuned(tmp_path, host, "qdisc", kind="fq")


async def test_an_mtu_outside_of_the_drivers_bounds_is_refused(tmp_path: Path) -> None:
    host = FakeHost("dut")
    host.answer("ip -j -d link", json.dumps([{"ifname": DEVICE, "mtu": 1500, "min_mtu": 68, "max_mtu": 9978}]))
    with pytest.raises(NotReadyError, match="9979 bytes are more than the driver's 9978"):
        await tuned(tmp_path, host, "mtu", bytes=9979)


async def test_a_path_is_checked_with_packets_that_may_not_be_fragmented(tmp_path: Path) -> None:
    host = FakeHost("dut")
    (row,) = await tune(UndoStack("run", None, tmp_path), asked(host, "path_mtu", to="198.18.0.2", bytes=9000))
    assert row.outcome is Outcome.MET
    assert "8972" in host.commands[-1]
    host.fail("ping", "")
    (row,) = await tune(UndoStack("run", None, tmp_path), asked(host, "path_mtu", to="198.18.0.2", bytes=9000))
    assert row.outcome is Outcome.NOT_MET


@pytest.mark.parametrize(
    ("table", "arguments"),
    [
        ((0, 1, 2, 0, 1, 2, 0, 1), ("equal", "3")),
        ((2, 3, 2, 3), ("start", "2", "equal", "2")),
        ((0, 0, 0, 1, 1, 2, 2, 2), ("weight", "3", "2", "3")),
        ((1, 1, 3, 3), ("start", "1", "weight", "2", "0", "2")),
        ((0, 0, 0, 0), ("equal", "1")),
        ((0, 2, 1, 0), None),
        ((0, 1, 1, 0), None),
        ((), None),
    ],
)
def test_only_a_table_that_ethtool_can_make_again_is_one_to_replace(
    table: tuple[int, ...], arguments: tuple[str, ...] | None
) -> None:
    assert arguments_of(table) == arguments


def test_weights_make_runs_as_long_as_their_share() -> None:
    assert weighted_table(8, 0, (1, 1)) == (0, 0, 0, 0, 1, 1, 1, 1)
    assert weighted_table(8, 4, (6, 2)) == (4, 4, 4, 4, 4, 4, 5, 5)
    assert weighted_table(4, 0, (0, 1, 0, 1)) == (1, 1, 3, 3)
