"""What the doctor says of machines that lack something: the lack in words, and the command that fixes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.registry import find
from nicbench.core.shipped import shipped
from nicbench.doctor.base import Check, State
from nicbench.doctor.checks import cores, software
from nicbench.doctor.checks.software import (
    Package,
    judge_emulator,
    judge_kernel,
    judge_kvm,
    judge_memory,
    parse_installed_packages,
    parse_packages,
)
from nicbench.hosts.base import Completed
from nicbench.system.inventory.base import parse_meminfo
from nicbench.testbed.cores import PhysicalCores, core_map
from nicbench.testbed.vm.programs import Emulator, Kernel
from nicbench.tuning.preparation import HugePages
from nicbench.workloads.base import Workload

CLANG = Package("clang", "runtime", "compiles XDP programs")
ETHTOOL = Package("ethtool", "runtime", "reads queues")
GCC = Package("gcc", "build", "links the engine")
TESTPMD = Package("dpdk-dev", "test", "the peer")
ALL = (CLANG, ETHTOOL, GCC, TESTPMD)


def test_missing_packages_are_named_with_their_purpose_and_one_command() -> None:
    runtime, build = software.judge_packages(ALL, frozenset({"gcc"}), engine_is_built=False)
    assert runtime.state is State.MISSING
    assert "clang (compiles XDP programs); ethtool (reads queues)" in runtime.text
    assert runtime.mend_command == "apt-get install --no-install-recommends clang ethtool"
    assert build.state is State.OK


@pytest.mark.parametrize(("built", "state"), [(True, State.WARNING), (False, State.MISSING)])
def test_packages_for_building_are_missed_only_until_the_engine_is_built(built: bool, state: State) -> None:
    _, build = software.judge_packages(ALL, frozenset({"clang", "ethtool"}), engine_is_built=built)
    assert build.state is state
    assert build.mend_command == "apt-get install --no-install-recommends gcc"


def test_tools_of_workloads_that_are_not_there_are_a_warning() -> None:
    iperf3 = Package("iperf3", "tools", "streams")
    *_, tools = software.judge_packages((*ALL, iperf3), frozenset({"gcc"}), engine_is_built=True)
    assert tools.state is State.WARNING
    assert "iperf3 (streams)" in tools.text
    assert tools.mend_command == "apt-get install --no-install-recommends iperf3"


def test_an_installed_program_does_not_ask_for_what_builds_it() -> None:
    (runtime,) = software.judge_packages(ALL, frozenset({"clang", "ethtool"}), engine_is_built=True, can_build=False)
    assert runtime.state is State.OK


def test_packages_for_the_tests_are_never_missed() -> None:
    checks = software.judge_packages(ALL, frozenset({"clang", "ethtool", "gcc"}), engine_is_built=True)
    assert {check.state for check in checks} == {State.OK}


def test_without_its_daemon_emulated_routers_are_told_of() -> None:
    assert software.judge_bird("/usr/sbin/bird").state is State.OK
    assert software.judge_bird("").mend_command == "apt-get install --no-install-recommends bird2"


TABLES = "/sys/firmware/dmi/tables/DMI"
CONTROLLER = "/dev/ipmi0"


def test_programs_for_facts_are_missed_where_facts_would_come_of_them() -> None:
    reasons = software._reasons()
    check = software.judge_report_facts({TABLES, CONTROLLER}, ["enp1s0"], reasons)
    assert check.state is State.WARNING
    assert check.mend_command == "apt-get install --no-install-recommends dmidecode ipmitool lldpd"
    for words in ("dmidecode (memory modules", "ipmitool (fans and power supplies", "lldpd (the switch and port"):
        assert words in check.text


def test_what_would_tell_nothing_of_a_machine_is_not_missed_there() -> None:
    nothing = software.judge_report_facts({"/usr/sbin/ipmitool"}, [], {})
    assert nothing.state is State.OK
    assert nothing.text == "nothing is missing; dmidecode, ipmitool, lldpd would add nothing on this machine"
    some = software.judge_report_facts({TABLES, "/usr/sbin/dmidecode", CONTROLLER}, [], {"ipmitool": "fans"})
    assert "ipmitool (fans)" in some.text
    assert "dmidecode" not in some.text
    every = {TABLES, CONTROLLER, "/usr/sbin/dmidecode", "/usr/bin/ipmitool", "/usr/sbin/lldpcli"}
    assert software.judge_report_facts(every, ["enp1s0"], {}).text == "dmidecode, ipmitool, lldpd are installed"


def test_the_list_of_packages_in_the_repository_can_be_read() -> None:
    listed = {package.name: package.needed_for for package in parse_packages(shipped("packages.debian").read_text())}
    assert (listed["iproute2"], listed["libdpdk-dev"]) == ("runtime", "build")


def test_a_malformed_line_in_the_list_is_named() -> None:
    with pytest.raises(ValueError, match="line 2 is not"):
        parse_packages("gcc  # build: links\nclang\n")


def test_a_package_that_was_removed_but_not_purged_is_not_installed() -> None:
    assert parse_installed_packages("gcc installed\nclang config-files\n") == {"gcc"}


def test_another_clock_source_is_fixed_where_the_tsc_is_there() -> None:
    check = cores.judge_clock("hpet", ["tsc", "hpet"])
    assert check.state is State.WARNING
    assert check.mend_command == "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"
    assert cores.judge_clock("hpet", ["hpet"]).mend_command is None
    assert cores.judge_clock("tsc", ["tsc"]).state is State.OK


def test_on_arm64_the_clock_is_the_processors_own_counter() -> None:
    assert cores.judge_clock("arch_sys_counter", ["arch_sys_counter"]).state is State.OK
    check = cores.judge_clock("jiffies", ["jiffies", "arch_sys_counter"])
    assert check.text == "the kernel uses jiffies instead of the processor's counter: latencies may be wrong"
    assert (check.mend_command or "").startswith("echo arch_sys_counter > ")


def test_the_roles_of_the_cores_are_said() -> None:
    def judge(*cpus: int, physical_cores: PhysicalCores = ()) -> Check:
        return cores.judge_cores(core_map(cpus, physical_cores, dut_apart=True))

    assert judge(0, 1, 2, 3).text == "tester on CPU 0, DUT on 1, everything else on 2-3"
    assert judge(0, 1).state is State.OK
    assert judge(0).state is State.WARNING
    apart = judge(0, 1, 2, 3, physical_cores=((0, 1), (2, 3)))
    assert apart.text == "tester on CPU 0, DUT on 2, everything else on 1,3"
    halved = judge(0, 1, physical_cores=((0, 1),))
    assert halved.state is State.WARNING
    assert "CPUs 0-1 are hyperthreads of one physical core" in halved.text
    assert "labelled `shared cores`" in halved.text


def test_an_engine_without_dpdk_can_only_simulate() -> None:
    hello = {"version": "0.1.0", "protocol": "1.0", "dpdk": None, "drivers": []}
    assert "only simulated runs" in software.judge_engine(hello).text
    with_dpdk = software.judge_engine(hello | {"dpdk": "22.11.7", "drivers": ["net_af_xdp", "net_null"]})
    assert with_dpdk.state is State.OK
    assert "DPDK 22.11.7, drivers: net_af_xdp, net_null" in with_dpdk.text


def test_huge_pages_are_welcome_and_never_required() -> None:
    assert cores.judge_huge_pages(HugePages(2048, 512, 100)).text.startswith("100 of 512 free, 2048 KiB each")
    assert cores.judge_huge_pages(None).state is State.WARNING


def test_stolen_time_is_a_share_of_all_time_since_the_start() -> None:
    stat = "cpu  10 0 20 60 0 0 5 5 0 0\ncpu0 10 0 20 60 0 0 5 5 0 0\n"
    assert cores.steal_share(stat) == 0.05
    assert cores.steal_share("cpu  10 0 20 60\n") is None
    assert cores.judge_hypervisor(True, 0.05).state is State.WARNING
    assert cores.judge_hypervisor(True, 0.001).state is State.OK
    assert cores.judge_hypervisor(False, 0.0).state is State.OK


@pytest.mark.parametrize(("flags", "text"), [("fpu hypervisor sse", "this is a virtual"), ("fpu sse", "none")])
async def test_a_hypervisor_shows_in_the_flags_of_an_x86_processor(flags: str, text: str) -> None:
    host = FakeHost(files={"/proc/cpuinfo": f"processor\t: 0\nflags\t\t: {flags}\n"})
    (check,) = await cores.Hypervisor().examine(host)
    assert check.text.startswith(text)
    assert host.commands == []


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        ("kvm\n", 0, "this is a virtual machine; 5.00 % of its CPU time"),
        ("none\n", 1, "none: this is no virtual machine"),
        ("", 127, "whether this is a virtual machine is not known here; 5.00 % of its CPU time"),
    ],
)
async def test_on_arm64_whose_processor_says_nothing_of_it_systemd_knows_the_hypervisor(
    answer: str, status: int, text: str
) -> None:
    cpuinfo = (Path(__file__).parents[1] / "system" / "inventory" / "golden" / "cpuinfo_arm.txt").read_text()
    host = FakeHost(files={"/proc/cpuinfo": cpuinfo, "/proc/stat": "cpu  10 0 20 60 0 0 5 5 0 0\n"})
    host.answer("systemd-detect-virt --vm", lambda command: Completed(command, status, answer, ""))
    (check,) = await cores.Hypervisor().examine(host)
    assert check.text.startswith(text)


def test_little_locked_memory_matters_only_to_a_process_that_the_limit_binds() -> None:
    limits = "Limit  Soft Limit  Hard Limit  Units\nMax locked memory         8388608              8388608    bytes\n"
    assert cores.locked_bytes(limits) == 8 << 20
    assert cores.locked_bytes(limits.replace("8388608", "unlimited")) is None
    assert cores.judge_locked_memory(8 << 20, exempt=True).state is State.OK
    bound = cores.judge_locked_memory(8 << 20, exempt=False)
    assert (bound.state, bound.mend_command) == (State.WARNING, "ulimit -l unlimited")


def test_a_tight_control_group_is_worth_a_warning() -> None:
    assert cores.judge_group("268435456\n").state is State.WARNING
    assert cores.judge_group("max\n").state is State.OK
    assert cores.judge_group(None).state is State.OK


@pytest.mark.parametrize(
    ("held", "lacking"),
    [
        ("000001ffffffffff", None),
        ("0000000000000000", "CAP_NET_ADMIN"),
        ("0000000000202000", "CAP_NET_ADMIN"),
        ("0000000000203000", None),  # before Linux 5.8 CAP_SYS_ADMIN stood for CAP_BPF
    ],
)
def test_what_a_process_may_do_counts_and_not_who_it_is(held: str, lacking: str | None) -> None:
    check = software.judge_privileges(f"Uid:\t1000\nCapEff:\t{held}\n")
    assert check.state is (State.OK if lacking is None else State.MISSING)
    if lacking:
        assert lacking in check.text
        assert check.mend_command == "sudo nicbench doctor"


# What the doctor says of a machine on which a virtual machine is to boot.

QEMU = Path("/usr/bin/qemu-system-x86_64")


def test_an_old_qemu_works_without_the_card_and_the_step_to_a_newer_one_is_named() -> None:
    check = judge_emulator(Emulator(QEMU, "7.2.22", has_igb=False))
    assert check.state is State.WARNING
    assert "QEMU 7.2.22" in check.text
    assert "igb" in check.text
    assert check.mend_command == "scripts/fetch-vm"
    assert judge_emulator(Emulator(QEMU, "10.0.2", has_igb=True)).state is State.OK


def test_what_was_never_fetched_is_no_lack_of_the_rest_of_nicbench() -> None:
    for check in (judge_emulator(None), judge_kernel(None)):
        assert check.state is State.WARNING
        assert check.mend_command == "scripts/fetch-vm"


def test_the_kernel_that_is_booted_is_named() -> None:
    kernel = Kernel("6.1.0-56-amd64", Path("/cache/boot/vmlinuz-6.1.0-56-amd64"), Path("/cache/lib"))
    assert "6.1.0-56-amd64" in judge_kernel(kernel).text


def test_a_machine_without_kvm_emulates_and_lacks_nothing() -> None:
    check = judge_kvm(is_there=False, may_be_used=False)
    assert check.state is State.OK
    assert "emulated" in check.text


def test_kvm_that_is_there_but_not_for_this_user_is_told_with_the_step() -> None:
    check = judge_kvm(is_there=True, may_be_used=False)
    assert check.state is State.WARNING
    assert "kvm" in (check.mend_command or "")


def test_a_device_on_which_no_kernel_comes_up_is_not_taken_for_kvm() -> None:
    texts = [judge_kvm(is_there=True, may_be_used=True, works=works).text for works in (None, False, True)]
    assert ["emulated" in text for text in texts] == [False, True, False]
    assert "is tried" in texts[0]


def test_too_little_memory_is_known_before_a_guest_is_booted() -> None:
    meminfo = "MemTotal:        2000000 kB\nMemFree:          100000 kB\nMemAvailable:    1048576 kB\n"
    check = judge_memory(parse_meminfo(meminfo).get("MemAvailable"))
    assert check.state is State.WARNING
    assert "memory" in check.text
    assert judge_memory(8 << 30).state is State.OK


def test_a_kernel_that_says_nothing_of_its_memory_is_not_taken_for_an_empty_one() -> None:
    assert "does not say" in judge_memory(None).text


def test_a_tool_that_is_newer_than_any_that_was_tried_is_warned_of() -> None:
    (check,) = software.judge_tool_versions({"iperf3": "3.22.1", "sockperf": "4.0", "qperf": "0.4.11"})
    assert check.text.startswith("sockperf 4.0 (tried up to 3.8): compare a figure")
    assert software.judge_tool_versions({"iperf3": "3.12"})[0].state is State.OK
    assert software.judge_tool_versions({}) == ()


def test_the_documents_say_which_versions_were_tried() -> None:
    text = (Path(__file__).parents[2] / "docs/workloads.md").read_text()
    for kind, tool in find("nicbench.workloads.tools", Workload).items():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{kind}` |")]
        assert all(version in row.split("|")[3] for version in tool.tried or ())
