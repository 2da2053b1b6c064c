"""Facts: recorded outputs of tools in, plain data out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.hosts.asking import paths_and_values
from nicbench.hosts.base import Completed
from nicbench.system.inventory.base import parse_meminfo
from nicbench.system.inventory.facts.interface import parse_link
from nicbench.system.inventory.facts.kernel import (
    is_running,
    parse_command_line,
    parse_os_release,
    parse_packages,
    parse_settings,
    parse_version,
)
from nicbench.system.inventory.facts.machine import Hypervisor, parse_virtualization
from nicbench.system.inventory.facts.memory import parse_nodes, selected_word
from nicbench.system.inventory.facts.processor import parse_lscpu, parse_policies, parse_vulnerabilities
from nicbench.system.inventory.facts.queues import parse_masks, parse_steering

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
