"""Facts of network adapters, from the questions to the answers: a host that replays what tools printed elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fakes import FakeHost

from nicbench.report.system_table import system_table
from nicbench.system.inventory.base import REASONS, collect_host
from nicbench.system.inventory.facts.adapter import parse_ofed
from nicbench.system.inventory.facts.interface import Aggregates

GOLDEN = Path(__file__).parents[1] / "adapters" / "golden"
DEVICE = "ens3f0np0"


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


def connectx() -> FakeHost:
    """A machine with a ConnectX-5, whose ethtool has JSON for some questions and not for offloads."""
    host = FakeHost(files={"/proc/interrupts": golden("mlx5/interrupts.txt")})
    for option in ("i", "g", "l", "c", "x", "T", "m"):
        host.answer(("ethtool", f"-{option}", DEVICE), golden(f"mlx5/{option}.txt"))
    host.answer(("ethtool", DEVICE), golden("mlx5/settings.txt"))
    host.answer(("ethtool", "--json", "-a", DEVICE), golden("mlx5/a.json"))
    host.answer(("ethtool", "--json", "--show-fec", DEVICE), golden("mlx5/fec.json"))
    host.fail(("ethtool", "--json", "-k"), "ethtool: bad command line argument(s)\n")
    host.answer(("ethtool", "-k", DEVICE), golden("virtio_net/k.txt"))
    host.answer(("ethtool", "--show-priv-flags", DEVICE), golden("mlx5/priv.txt"))
    host.fail(("ethtool", "--show-eee"), "netlink error: Operation not supported\n")
    for word in ("pfc", "ets", "app", "apptrust"):
        host.answer(("dcb", "-j", word, "show", "dev", DEVICE), golden(f"mlx5/dcb_{word}.json"))
    host.answer(("lldpcli", "-f", "json", "show", "neighbors"), golden("lldp/json.json"))
    host.answer(("devlink", "-j", "dev", "info"), golden("ice/devlink_info.json"))
    host.answer(("devlink", "-j", "dev", "param"), golden("ice/devlink_param.json"))
    host.answer(("lspci", "-D", "-vmm"), golden("mlx5/lspci_vmm.txt"))
    host.answer(("lspci", "-D", "-vv"), golden("mlx5/lspci_vv.txt"))
    host.answer(("mlxconfig", "-d", "0000:af:00.0", "-e", "query"), golden("mlx5/mlxconfig.txt"))
    host.answer(("sh", "-c"), _small_files)
    return host


def _small_files(command: tuple[str, ...]) -> str:
    if "/sys/bus/pci/devices" in command[2]:
        return golden("mlx5/sysfs.txt")
    if "/msi_irqs/" in command[2]:
        return "".join(f"/sys/class/net/{DEVICE}/device/msi_irqs/{number}:msix\n" for number in (200, 201, 202))
    if "/proc/irq/201" in command[2]:
        return "/proc/irq/201/smp_affinity_list:14-27\n/proc/irq/201/effective_affinity_list:14\n"
    return ""


async def test_the_facts_of_an_adapter_are_all_there() -> None:
    facts = await collect_host(connectx(), (DEVICE,))

    def of(kind: str) -> Any:
        return facts[kind][DEVICE]

    assert of("drivers")["firmware"] == "16.35.2000 (MT_0000000013)"
    assert of("rings")["rx"] == {"maximum": 8192, "current": 1024}
    assert of("channels")["combined"]["current"] == 56
    assert "rx-checksumming" in of("offloads_on")
    assert of("coalescing")["adaptive_rx"] is True
    assert of("flow_control")["rx"] is True
    assert of("forward_error_correction") == {"configured": ["Auto", "RS"], "active": ["RS"]}
    assert of("link_settings")["speed_bits_per_s"] == 100_000_000_000
    assert of("receive_hashing")["table"] == "0 to 7, again and again to 128 entries"
    assert of("private_flags")["rx_cqe_compress"] is False
    assert of("time_stamping")["clock"] == 2
    assert of("modules")["part"] == "MCP1600-C002"
    assert of("data_centre_bridging")["priority_flow_control"]["priorities"] == [3, 4]
    assert of("lldp_neighbours")[0]["name"] == "leaf01"
    assert of("interrupts")[1] == {
        "number": 201,
        "name": "mlx5_comp0@pci:0000:af:00.0",
        "queue": 0,
        "cpus_allowed": "14-27",
        "cpus": "14",
    }
    pci = facts["pci_adapters"]["0000:af:00.0"]
    assert (pci["model"], pci["link"]["lanes"]) == ("MT27800 Family [ConnectX-5]", 8)
    assert facts["pci_express"]["0000:af:00.0"]["read_request_bytes"] == 512
    assert facts["devlink"]["pci/0000:18:00.0"]["parameters"]["loopback"] == "enabled"
    assert facts["adapter_firmware"]["0000:af:00.0"]["after_the_next_reset"]["NUM_OF_VFS"] == "16"
    assert facts[REASONS]["energy_efficient_ethernet"].endswith("Operation not supported")


async def test_one_interface_that_does_not_answer_does_not_cost_the_others() -> None:
    host = FakeHost()
    host.answer("ethtool -g eth1", golden("ixgbe/g.txt"))
    host.fail("ethtool -g veth0", "netlink error: Operation not supported\n")
    rings = (await collect_host(host, ("veth0", "eth1")))["rings"]
    assert rings["eth1"]["rx"] == {"maximum": 4096, "current": 512}
    assert rings["veth0"] is None
    assert rings[REASONS]["veth0"].endswith("Operation not supported")


async def test_without_a_test_interface_the_reason_says_so() -> None:
    facts = await collect_host(FakeHost(), ())
    assert facts["rings"] is None
    assert facts[REASONS]["rings"] == "this host has no kernel interface in the test"


async def test_a_bond_has_its_ports_in_the_order_in_which_they_joined() -> None:
    host = FakeHost()
    host.answer("ip -j -d link show", golden("bonding/links.json"))
    bond = (await Aggregates().read(host, ()))["bond0"]
    assert "order" not in bond  # sysfs did not tell
    host.answer(("sh", "-c", 'grep -sH "" /sys/class/net/*/bonding/slaves'), golden("bonding/slaves.txt"))
    bond = (await Aggregates().read(host, ()))["bond0"]
    assert bond["order"] == ["eth3", "eth2", "eth4", "eth5"]
    assert bond["ad_info"]["num_ports"] == 2


@pytest.mark.parametrize(
    ("driver", "devices", "firmware"),
    [
        (
            "mlx5",
            (
                "mlx5_0: MT4119, board MT_0000000013, driver mlx5_core, firmware 16.35.2000, 0000:af:00.0; "
                "mlx5_1: MT4119, board MT_0000000013, driver mlx5_core, firmware 16.35.2000, 0000:af:00.1"
            ),
            "0000:af:00.0: fw.version 16.35.2000 (after a reset 16.35.4030), fw.psid MT_0000000013",
        ),
        (
            "bnxt",
            "bnxt_re0: Broadcom NetXtreme-C/E RoCE Driver HCA, driver bnxt_en, firmware 220.0.57.0, 0000:ca:00.0",
            "0000:ca:00.0: fw 220.0.57.0, fw.mgmt 220.0.57.0, fw.roce 220.0.57.0, fw.psid 0.0.0",
        ),
        (
            "ice",
            "rocep24s0f0: driver ice, firmware 1.60, 0000:18:00.0",
            (
                "0000:18:00.0: fw.mgmt 6.1.9, fw.bundle_id 0x8000d84e (after a reset 0x8001778b), "
                "fw.psid.api 3.10 (after a reset 4.20)"
            ),
        ),
    ],
)
async def test_versions_of_rdma_devices_and_firmware_are_told(driver: str, devices: str, firmware: str) -> None:
    host = FakeHost()
    host.answer(("devlink", "-j", "dev", "info"), golden(f"{driver}/devlink_info.json"))
    host.answer(
        ("sh", "-c"),
        lambda command: (
            golden(f"{'irdma' if driver == 'ice' else driver}/infiniband.txt")
            if "/sys/class/infiniband" in command[2]
            else ""
        ),
    )
    host.answer(("ofed_info", "-s"), "MLNX_OFED_LINUX-5.8-1.1.2.1:\n")
    table = {row.label: row.texts[0] for row in system_table({"dut": await collect_host(host, ())}).rows}
    assert (table["RDMA devices"], table["Adapter firmware"]) == (devices, firmware)
    assert table["OFED"] == "MLNX_OFED_LINUX-5.8-1.1.2.1"


async def test_a_machine_without_rdma_has_no_row_of_it() -> None:
    host = FakeHost()
    for tool in ("devlink", "ofed_info"):
        host.fail((tool,), f"{tool}: not found\n", 127)
    table = system_table({"dut": await collect_host(host, ())})
    labels = {row.label for row in table.rows} | {label for label, _ in table.unknown}
    assert not labels & {"RDMA devices", "Adapter firmware", "OFED"}


def test_the_name_of_an_ofed_is_kept_without_its_colon() -> None:
    assert parse_ofed("OFED-internal-24.04-0.6.6:\n") == "OFED-internal-24.04-0.6.6"
    assert parse_ofed("ofed_info: error\n") is None
