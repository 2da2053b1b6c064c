"""Facts of a machine, from recorded outputs, and their collection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import UnknownFactError
from nicbench.core.registry import find
from nicbench.hosts.asking import paths_and_values
from nicbench.hosts.base import Completed
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.system.inventory.base import REASONS, Fact, collect_host, parse_meminfo
from nicbench.system.inventory.facts.interface import parse_link
from nicbench.system.inventory.facts.kernel import (
    is_running,
    parse_command_line,
    parse_iommu,
    parse_last_update,
    parse_mask,
    parse_os_release,
    parse_packages,
    parse_ruleset,
    parse_security,
    parse_settings,
    parse_tools,
    parse_tuned,
    parse_version,
)
from nicbench.system.inventory.facts.machine import (
    Hypervisor,
    parse_fans,
    parse_hwmon_fans,
    parse_identity,
    parse_supplies,
    parse_supply_states,
    parse_virtualization,
)
from nicbench.system.inventory.facts.memory import parse_memory, parse_nodes, selected_word
from nicbench.system.inventory.facts.processor import (
    parse_idle_states,
    parse_lscpu,
    parse_microcode,
    parse_policies,
    parse_power_policy,
    parse_smt,
    parse_vulnerabilities,
)
from nicbench.system.inventory.facts.queues import parse_masks, parse_steering
from nicbench.system.inventory.facts.storage import merge_drives, parse_controllers, parse_lsblk, parse_nvme_list

# Facts: recorded outputs of tools in, plain data out.

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


def test_a_processor_is_described_by_model_sockets_cores_and_threads() -> None:
    cpu = parse_lscpu(golden("lscpu.json"))
    assert (cpu["model"], cpu["cpus"], cpu["sockets"], cpu["threads_per_core"]) == ("AMD EPYC", 2, 1, 1)


def test_a_newer_lscpu_that_nests_its_fields_is_read_as_well() -> None:
    cpu = parse_lscpu(golden("lscpu_nested.json"))
    assert (cpu["vendor"], cpu["cpus"], cpu["cores_per_socket"], cpu["threads_per_core"]) == ("GenuineIntel", 56, 14, 2)
    assert cpu["level_3_cache"] is None


def test_a_virtual_machine_is_told_from_hardware() -> None:
    assert parse_virtualization(golden("lscpu.json"))["virtual_machine"] is True
    assert parse_virtualization(golden("lscpu_nested.json")) == {"virtual_machine": False, "vendor": None}


@pytest.mark.parametrize(("answer", "virtual"), [("kvm\n", True), ("none\n", False), ("", None)])
async def test_flags_of_an_arm64_processor_say_nothing_of_a_hypervisor(answer: str, virtual: bool | None) -> None:
    fields = [{"field": "Architecture:", "data": "aarch64"}, {"field": "Flags:", "data": "fp asimd evtstrm aes"}]
    host = FakeHost(files={"/proc/cpuinfo": golden("cpuinfo_arm.txt")})
    host.answer("lscpu -J", json.dumps({"lscpu": fields}))
    host.answer("systemd-detect-virt --vm", lambda command: Completed(command, int(not virtual), answer, ""))
    assert (await Hypervisor().read(host, ()))["virtual_machine"] is virtual


def test_memory_is_in_bytes_and_page_counts_stay_counts() -> None:
    found = parse_meminfo(golden("meminfo.txt"))
    assert found["Hugepagesize"] == 2 * 1024 * 1024
    assert found["HugePages_Total"] == 0
    assert found["MemTotal"] > 1 << 30


def test_only_vulnerabilities_that_the_processor_has_are_listed() -> None:
    states = parse_vulnerabilities(paths_and_values(golden("vulnerabilities.txt")))
    assert "meltdown" not in states
    assert states["spectre_v2"].startswith("Mitigation: Retpolines; STIBP: disabled")


def test_an_interface_shows_its_kind_mtu_and_queues() -> None:
    link = parse_link(golden("ip_link.json"))
    assert (link["kind"], link["mtu_bytes"], link["state"], link["receive_queues"]) == ("veth", 1500, "UP", 2)
    assert link["xdp_program"] is None


def test_queues_that_nobody_steers_are_left_out() -> None:
    assert parse_steering(paths_and_values(golden("queues.txt"))) == {
        "xps_cpus": {"ens3f0np0 tx-0": "00000000,00000001", "ens3f0np0 tx-1": "00000000,00000002"},
        "rps_flow_cnt": {"ens3f0np0 rx-0": "4096"},
    }


def test_nodes_list_their_cpus_and_a_virtual_interface_has_no_node() -> None:
    values = paths_and_values(golden("numa.txt")) | {"/sys/class/net/eth9/device/numa_node": "1"}
    values["/sys/class/net/eth8/device/numa_node"] = "-1"
    nodes = parse_nodes(values, ("t0", "eth8", "eth9"))
    assert nodes["cpus_by_node"] == {"0": "0-1"}
    assert nodes["node_by_interface"] == {"t0": None, "eth8": None, "eth9": 1}


def test_the_clock_policy_collects_distinct_values_and_says_hertz() -> None:
    policy = "/sys/devices/system/cpu/cpufreq/policy"
    values = {f"{policy}{cpu}/scaling_governor": "performance" for cpu in (0, 1)}
    values |= {f"{policy}0/scaling_max_freq": "3700000", "/sys/devices/system/cpu/intel_pstate/no_turbo": "1"}
    found = parse_policies(values)
    assert found == {
        "driver": None,
        "governor": ["performance"],
        "minimum_hz": None,
        "maximum_hz": [3_700_000_000],
        "boost": False,
    }


def test_the_distribution_is_named_as_it_names_itself() -> None:
    assert parse_os_release(golden("os_release.txt")) == "Debian GNU/Linux 12 (bookworm)"
    assert parse_os_release("ID=x\n") is None


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ("ip utility, iproute2-6.1.0, libbpf 1.1.2\n", "6.1.0"),
        ("ethtool version 6.1\n", "6.1"),
        ("bpftool v7.1.0\nusing libbpf v1.1\n", "7.1.0"),
        ("Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n", "14.0.6"),
        ("no number here\n", None),
    ],
)
def test_each_tools_version_is_found_in_its_answer(answer: str, version: str | None) -> None:
    assert parse_version(answer) == version


def test_a_package_that_was_removed_is_not_installed() -> None:
    listing = "libbpf1 1:1.1.2-0+deb12u1 installed\nlibxdp1 1.3.1-1 config-files\n"
    assert parse_packages(listing) == {"libbpf1": "1:1.1.2-0+deb12u1"}


def test_small_readings() -> None:
    assert selected_word("always [madvise] never\n") == "madvise"
    assert selected_word("always\n") is None
    assert is_running("bash\nirqbalance\n", "irqbalance")
    assert not is_running("irqbalance-ui\n", "irqbalance")
    assert parse_masks({"/sys/class/net/d0/queues/rx-0/rps_cpus": "2"}) == {"d0 rx-0": "2"}
    assert parse_settings({"/proc/sys/net/ipv4/ip_forward": "1"}) == {"net.ipv4.ip_forward": "1"}
    assert parse_command_line("mitigations=auto quiet -- first process\n") == "mitigations=auto quiet"


# Facts of the machine itself: outputs of several makers' machines in, plain data out.


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
    known = {}
    hosts = [await collect_host(NetnsHost(machine, name), (), known) for name in ("a", "b")]
    assert [host["operating_system"] for host in hosts] == ["Debian GNU/Linux 12 (bookworm)"] * 2
    assert machine.commands.count(("dmidecode", "-t", "memory")) == 1
    rules = [command for command in machine.commands if "nft" in command]
    assert {command[:4] for command in rules} == {("ip", "netns", "exec", "a"), ("ip", "netns", "exec", "b")}


# Collecting: everything that can be known, and a reason for what cannot. Never an exception.


async def test_a_host_that_says_nothing_gives_null_facts_with_reasons() -> None:
    facts = await collect_host(FakeHost(), ("t0",))
    assert facts["cpu"] is None
    assert facts[REASONS]["cpu"] == "lscpu -J: no output"
    assert facts[REASONS]["clock_source"].endswith("current_clocksource does not exist")


async def test_a_tool_that_writes_something_else_costs_its_fact_alone() -> None:
    host = FakeHost(files={"/etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'})
    host.answer("lscpu -J", '{"cpus": []}')
    facts = await collect_host(host, ())
    assert facts["cpu"] is None
    assert facts[REASONS]["cpu"] == "not understood: KeyError: 'lscpu'"
    assert facts["operating_system"] == "Debian GNU/Linux 12 (bookworm)"


async def test_a_failing_command_gives_its_last_words_as_the_reason() -> None:
    host = FakeHost()
    host.answer(
        "lscpu -J", lambda command: Completed(command, 1, "", "lscpu: first\nlscpu: cannot open /proc/cpuinfo\n")
    )
    facts = await collect_host(host, ())
    assert facts[REASONS]["cpu"] == "lscpu -J: lscpu: cannot open /proc/cpuinfo"


async def test_an_inventory_can_be_written_as_json() -> None:
    assert json.loads(json.dumps(await collect_host(FakeHost(), ("t0",))))


def test_every_fact_is_in_a_file_of_its_own_and_found() -> None:
    found = find("nicbench.system.inventory.facts", Fact)
    assert {"cpu", "kernel", "memory", "clock_source", "hypervisor", "interfaces", "sysctls", "software"} <= set(found)
    assert {"huge_pages", "numa", "rps_cpu_masks", "irqbalance_running", "mitigations"} <= set(found)


async def test_the_name_of_an_interface_cannot_run_a_command() -> None:
    host = FakeHost()
    await collect_host(host, ("t0; reboot",))
    shells = [command[-1] for command in host.commands if command[0] == "sh"]
    assert any("'t0; reboot'" in line for line in shells)
    assert not any("/t0; reboot" in line for line in shells)
