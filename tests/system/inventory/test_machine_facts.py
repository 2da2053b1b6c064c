"""Facts of the machine itself: outputs of several makers' machines in, plain data out."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import paths_and_values
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.system.inventory.collect import collect_host
from nicbench.system.inventory.facts.kernel import (
    parse_iommu,
    parse_last_update,
    parse_mask,
    parse_ruleset,
    parse_security,
    parse_tools,
    parse_tuned,
)
from nicbench.system.inventory.facts.machine import (
    parse_fans,
    parse_hwmon_fans,
    parse_identity,
    parse_supplies,
    parse_supply_states,
)
from nicbench.system.inventory.facts.memory import parse_memory, parse_nodes
from nicbench.system.inventory.facts.processor import (
    parse_idle_states,
    parse_lscpu,
    parse_microcode,
    parse_power_policy,
    parse_smt,
)
from nicbench.system.inventory.facts.storage import merge_drives, parse_controllers, parse_lsblk, parse_nvme_list

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


def values(name: str) -> dict[str, str]:
    return paths_and_values(golden(name))


def test_bios_board_and_chassis_are_named() -> None:
    dell = parse_identity(values("dmi_id_dell.txt"))
    assert (dell["bios_version"], dell["bios_date"], dell["product"]) == ("2.19.1", "06/04/2023", "PowerEdge R740")
    assert (dell["chassis"], dell["serial"], dell["asset_tag"]) == ("rack mount chassis", "7QX4N53", "LAB-004711")
    assert dell["product_version"] is None


def test_what_a_maker_never_filled_in_is_unknown() -> None:
    found = parse_identity(values("dmi_id_supermicro.txt"))
    assert (found["product_version"], found["asset_tag"], found["serial"]) == (None, None, None)
    assert parse_identity(values("dmi_id_kvm.txt"))["product"] == "Standard PC (Q35 + ICH9, 2009)"


def test_alike_memory_modules_are_told_once_with_rated_and_running_speed() -> None:
    memory = parse_memory(golden("dmidecode_memory_dell_ddr4.txt"))
    assert (memory["modules"], memory["slots"], memory["total_bytes"]) == (6, 24, 192 << 30)
    (kind,) = memory["installed"]
    assert (kind["count"], kind["model"], kind["type"], kind["size_bytes"]) == (6, "M393A4K40DB3-CWE", "DDR4", 32 << 30)
    assert (kind["rated_mt_per_s"], kind["running_mt_per_s"]) == (3200, 2933)
    assert kind["vendor"] == "Samsung"
    assert kind["slots"] == ["A1", "A2", "A3", "A4", "A5", "A6"]


def test_modules_of_two_makers_are_two_kinds() -> None:
    memory = parse_memory(golden("dmidecode_memory_ddr5_two_makers.txt"))
    assert [(kind["vendor"], kind["count"]) for kind in memory["installed"]] == [
        ("SK Hynix", 2),
        ("Micron Technology", 2),
    ]


def test_an_older_dmidecode_says_megahertz_and_megabytes() -> None:
    (kind,) = parse_memory(golden("dmidecode_memory_old_mhz.txt"))["installed"]
    assert (kind["size_bytes"], kind["rated_mt_per_s"], kind["running_mt_per_s"]) == (16 << 30, 1600, 1333)
    assert kind["serials"] == []


def test_a_virtual_machines_module_has_no_speed() -> None:
    (kind,) = parse_memory(golden("dmidecode_memory_kvm.txt"))["installed"]
    assert (kind["vendor"], kind["rated_mt_per_s"], kind["model"]) == ("QEMU", None, None)


def test_tables_without_a_module_are_no_memory_of_zero() -> None:
    with pytest.raises(UnknownFactError, match="no memory module"):
        parse_memory("# dmidecode 3.4\n# No SMBIOS nor DMI entry point found, sorry.\n")


def test_storage_controllers_are_of_the_class_and_alike_ones_together() -> None:
    raid, nvme = parse_controllers(golden("lspci_storage.txt"))
    assert (raid["model"], raid["sold_as"], raid["driver"]) == (
        "MegaRAID SAS-3 3108 [Invader]",
        "PERC H730P Mini",
        "megaraid_sas",
    )
    assert (nvme["count"], nvme["addresses"]) == (2, ["0000:5e:00.0", "0000:5e:01.0"])


@pytest.mark.parametrize("version", ["nvme_list_1.json", "nvme_list_2.json"])
def test_drives_have_their_firmware_from_the_tool_that_knows_it(version: str) -> None:
    raid, nvme = merge_drives(parse_lsblk(golden("lsblk_server.json")), parse_nvme_list(golden(version)))
    assert (raid["vendor"], raid["rotating"], raid["firmware"]) == ("DELL", True, "4.30")
    assert (nvme["count"], nvme["firmware"], nvme["interface"]) == (2, "2.1.8", "nvme")
    assert nvme["serials"] == ["S61MNE0R900120", "S61MNE0R900121"]


def test_an_older_lsblk_prints_numbers_as_text() -> None:
    sata, virtual = parse_lsblk(golden("lsblk_before_2_33.json"))
    assert (sata["size_bytes"], sata["interface"], sata["rotating"]) == (480103981056, "sata", False)
    assert virtual["model"] is None


def test_fans_are_counted_and_one_without_reading_has_none() -> None:
    assert parse_fans(golden("ipmi_fans_dell.txt"))["count"] == 4
    assert parse_fans(golden("ipmi_fans_supermicro.txt"))["speed_per_minute"] == {
        "FAN1": 1700,
        "FAN2": None,
        "FANA": 3100,
    }
    assert parse_hwmon_fans(values("hwmon_fans.txt"))["speed_per_minute"] == {"hwmon2 fan1": 1204, "hwmon2 fan2": 0}


def test_power_supplies_have_a_state_and_a_maker() -> None:
    assert parse_supply_states(golden("ipmi_supplies_dell.txt"))["PS Redundancy"] == "Redundancy Lost"
    assert list(parse_supply_states(golden("ipmi_supplies_supermicro.txt"))) == ["PS1 Status"]
    (dell,) = parse_supplies(golden("ipmi_fru_dell.txt"))
    assert (dell["count"], dell["model"]) == (2, "PWR SPLY,750W,RDNT,DELTA")
    (hpe,) = parse_supplies(golden("ipmi_fru_hpe.txt"))
    assert (hpe["vendor"], hpe["part"]) == ("DELTA", "865414-B21")


@pytest.mark.parametrize("manager", ["dpkg", "rpm", "apk", "apk_database", "pacman"])
def test_the_day_of_the_last_updates_is_found_whoever_keeps_it(manager: str) -> None:
    assert parse_last_update(golden(f"last_update_{manager}.txt")) == "2024-03-07"


def test_energy_preferences_are_those_of_all_cpus() -> None:
    intel = parse_power_policy(values("power_policy_intel.txt"))
    assert intel["energy_preference"] == ["balance_performance", "performance"]
    assert (intel["pci_express_power"], intel["scaling_mode"]) == ("performance", "active")
    amd = parse_power_policy(values("power_policy_amd.txt"))
    assert (amd["platform_profile"], amd["scaling_mode"], amd["energy_bias"]) == ("balanced", "guided", None)


def test_idle_states_say_what_leaving_takes_and_where_they_are_disabled() -> None:
    states = parse_idle_states(values("cpuidle_intel.txt"))["states"]
    assert states["C6"] == {"exit_latency_us": 133, "disabled": "yes"}
    assert states["C1E"] == {"exit_latency_us": 10, "disabled": "on CPUs 2, 3"}
    assert states["POLL"]["disabled"] == "no"
    assert parse_idle_states(values("cpuidle_amd.txt"))["states"]["C2"]["exit_latency_us"] == 800
    assert parse_idle_states(values("cpuidle_none.txt")) == {"driver": "none", "governor": "menu", "states": {}}


def test_a_firewall_is_its_rules_and_the_hooks_where_packets_meet_it() -> None:
    found = parse_ruleset(golden("nft_ruleset.json"))
    assert found["rules_by_table"] == {"inet filter": 3, "ip nat": 0}
    assert found["hooks"] == ["inet filter forward, policy drop"]
    assert parse_ruleset(golden("nft_ruleset_empty.json")) == {"rules": 0, "rules_by_table": {}, "hooks": []}


def test_small_facts_of_the_machine() -> None:
    assert parse_smt(values("smt_on.txt")) == {"active": True, "control": "on"}
    assert parse_smt(values("smt_vm.txt")) == {"active": False, "control": "notsupported"}
    assert parse_tuned(values("tuned_rhel.txt"))["running"] is True
    assert parse_tuned(values("tuned_stopped.txt"))["running"] is False
    assert parse_security(values("lsm_rhel.txt"))["selinux"] == "enforcing"
    assert parse_security(values("lsm_debian.txt"))["apparmor"] is True
    assert parse_iommu(golden("iommu_intel.txt"))["groups_by_type"] == {"DMA-FQ": 2, "identity": 1}
    assert parse_iommu("")["active"] is False
    assert parse_mask(golden("irq_default.txt")) == "ffffffff,00000003"
    assert parse_microcode(golden("cpuinfo_intel.txt")) == "0x1"
    assert parse_microcode(golden("cpuinfo_arm.txt")) is None
    assert parse_lscpu(golden("lscpu.json"))["maximum_hz"] is None
    assert parse_nodes(values("numa_two_nodes.txt"), ())["distances_by_node"] == {"0": "10 21", "1": "21 10"}


def test_tools_answer_one_after_the_other_and_an_error_message_is_no_version() -> None:
    debian = parse_tools(golden("tools_debian.txt"))
    assert debian == {"iproute2": "6.1.0", "bpftool": "7.1.0", "gcc": "12.2.0", "dpdk": "22.11.9", "rustc": "1.85.0"}
    rhel = parse_tools(golden("tools_rhel.txt"))
    assert (rhel["gcc"], rhel["nvme_cli"], rhel["dpdk"]) == ("11.4.1", "2.4", None)


async def test_what_belongs_to_the_machine_is_asked_once_and_outside_of_its_namespaces() -> None:
    machine = FakeHost(files={"/etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'})
    known: dict[str, dict[str, tuple[object, str | None]]] = {}
    hosts = [await collect_host(NetnsHost(machine, name), (), known) for name in ("a", "b")]
    assert [host["operating_system"] for host in hosts] == ["Debian GNU/Linux 12 (bookworm)"] * 2
    assert machine.commands.count(("dmidecode", "-t", "memory")) == 1
    rules = [command for command in machine.commands if "nft" in command]
    assert {command[:4] for command in rules} == {("ip", "netns", "exec", "a"), ("ip", "netns", "exec", "b")}
