"""A machine whose tools answer with the goldens of one maker, and everything in them that identifies it."""

from __future__ import annotations

from pathlib import Path

from tests.fakes import FakeHost

from nicbench.hosts.base import Completed

GOLDEN = Path(__file__).parents[1] / "system" / "inventory" / "golden"

HOST_NAME = "r740-lab7.example.net"
MAC = "0c:42:a1:65:8e:3e"
SECRETS = (
    *("r740-lab7", "7QX4N53", "CNFCP0088U00LA", "LAB-004711", "CNDED0088U0PS1", "CNDED0088U0PS2"),
    *("4c4c4544-0051-5810-8034-b7c04f4e3533", "3f1f1c3e-5b1e-4a4f-9d2b-8a0f6a2a77c1"),
    *(f"03A0A5F{number}" for number in range(6)),
    *("S61MNE0R900120", "S61MNE0R900121", "61866da0a5f3b70028b4c1a20fa1d5c2"),
    *(MAC, "0c42a1658e3e", "e42:a1ff:fe65:8e3e"),
)
"""Lower or upper case: none of them may be found in what is given away."""


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


def golden_machine() -> FakeHost:
    """A Dell R740 as its tools tell of it."""
    files = {"/etc/os-release": golden("os_release.txt"), "/proc/cpuinfo": golden("cpuinfo_intel.txt")}
    named = f"ip=::::{HOST_NAME}:enx0c42a1658e3e:dhcp {golden('cmdline_isolated.txt')}"
    files["/proc/cmdline"] = named
    host = FakeHost("r740", files)
    host.answer("uname -n", f"{HOST_NAME}\n")
    host.answer("uname -r", "6.1.0-18-amd64\n")
    host.answer("uname -v", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)\n")
    host.answer("uname -m", "x86_64\n")
    host.answer("lscpu -J", golden("lscpu_nested.json"))
    host.answer("dmidecode -t memory", golden("dmidecode_memory_dell_ddr4.txt"))
    host.answer("lsblk", golden("lsblk_server.json"))
    host.answer("nvme list -o json", golden("nvme_list_2.json"))
    host.answer("lspci -Dvmmnnk", golden("lspci_storage.txt"))
    host.answer("ipmitool sdr type Fan", golden("ipmi_fans_dell.txt"))
    host.answer(("ipmitool", "sdr", "type", "Power Supply"), golden("ipmi_supplies_dell.txt"))
    host.answer("ipmitool fru print", golden("ipmi_fru_dell.txt"))
    link = f'[{{"ifname": "enp59s0f0", "address": "{MAC}", "mtu": 1500, "operstate": "UP", "qdisc": "mq"}}]'
    host.answer("ip -j -d link show dev", link)
    host.answer("sh -c", _files)
    return host


def _files(command: tuple[str, ...]) -> str | Completed:
    """What the shell finds of the small files that are asked for."""
    every = "".join(
        golden(name)
        for name in (
            "dmi_id_dell.txt",
            "cpuidle_intel.txt",
            "cpufreq_intel.txt",
            "power_policy_intel.txt",
            "smt_on.txt",
        )
    )
    folders = (
        "/sys/class/dmi",
        "/sys/devices/system/cpu/cpuidle",
        "/sys/devices/system/cpu/cpufreq",
        "/sys/devices/system/cpu/intel_pstate",
        "/sys/devices/system/cpu/smt",
    )
    asked = [folder for folder in folders if folder in command[-1]]
    idle = ["/cpuidle/"] if "/cpuidle/" in command[-1] else []
    lines = every.splitlines(keepends=True)
    return "".join(line for line in lines if line.startswith(tuple(asked)) or any(part in line for part in idle))
