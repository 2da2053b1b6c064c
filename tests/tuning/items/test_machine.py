"""Items of the machine and its kernel."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost, FakeProcess

from nicbench.core.errors import NotReadyError
from nicbench.core.plan import Outcome, TunedSetting
from nicbench.core.registry import find
from nicbench.hosts.base import Completed
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.tuning.items.base import Item
from nicbench.tuning.items.kernel import (
    SysctlOptions,
    Sysctls,
    parameters_of,
    path_of,
    profile_of,
    table_of,
    values_of_ruleset,
)
from nicbench.tuning.items.steering import state_of_stat
from nicbench.tuning.items.storage import group_values
from nicbench.tuning.setting import CannotSetError
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.tune import Part, PlacedRequest, TuningRequest, place_requests, tune

# Items of the machine: what each reads, asks for, writes and puts back, on machines that are files in memory.

CPU = "/sys/devices/system/cpu"
THP = "/sys/kernel/mm/transparent_hugepage"
MOUNTS = """\
22 28 0:20 / /proc rw,relatime shared:5 - proc proc rw
28 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
41 28 0:45 / /srv/my\\040media rw,noatime shared:9 - nfs4 nas:/x rw,vers=4.2
"""


class Machine(FakeHost):
    """Its files answer the patterns that items read them by; the word that is selected is shown in brackets."""

    def __init__(self, files: Mapping[str, str]) -> None:
        super().__init__("machine", files)
        self.answer("sh -c", self._grep)
        self.choices: dict[str, str] = {}

    def choose(self, path: str, choices: str) -> None:
        """A file whose value is one of several words, and shown among them."""
        self.choices[path] = choices
        self.files[path] = choices.replace(self.files[path], f"[{self.files[path]}]")
        self.write_filter = lambda path, text: self.choices.get(path, text).replace(text, f"[{text}]", 1)

    def _grep(self, command: tuple[str, ...]) -> str:
        patterns = command[2].split()[3:]
        found = {path for pattern in patterns for path in self.files if fnmatch.fnmatchcase(path, pattern)}
        return "".join(f"{path}:{self.files[path]}\n" for path in sorted(found))


def make(kind: str, **options: Any) -> TuningRequest:
    item = find("nicbench.tuning.items", Item)[kind]
    return TuningRequest("all", item, item.Options.model_validate(options))


async def there_and_back(host: FakeHost, wish: TuningRequest, tmp_path: Path) -> tuple[TunedSetting, dict[str, str]]:
    """The row, and the files as they were during the test; afterwards they are as before."""
    before = dict(host.files)
    stack = UndoStack("run", None, tmp_path)
    (row,) = await tune(stack, place_requests([wish], [Part("tester", host, ("e0",))]))
    during = dict(host.files)
    assert await stack.undo_all() == []
    assert host.files == before
    return row, {path: during[path] for path in during if during[path] != before[path]}


SWITCHES = [
    ("numa_balancing", {"/proc/sys/kernel/numa_balancing": "1"}, "0"),
    ("timer_migration", {"/proc/sys/kernel/timer_migration": "1"}, "0"),
    ("watchdog", {"/proc/sys/kernel/nmi_watchdog": "1", "/proc/sys/kernel/soft_watchdog": "1"}, "0"),
    ("realtime_throttling", {"/proc/sys/kernel/sched_rt_runtime_us": "950000"}, "-1"),
    ("page_merging", {"/sys/kernel/mm/ksm/run": "1"}, "0"),
    ("turbo", {f"{CPU}/intel_pstate/no_turbo": "0"}, "1"),
    ("turbo", {f"{CPU}/cpufreq/boost": "1"}, "0"),
]


@pytest.mark.parametrize(
    ("kind", "files", "off"), SWITCHES, ids=[f"{kind} {min(files)}" for kind, files, _ in SWITCHES]
)
async def test_a_switch_is_switched_off_and_on_again(
    kind: str, files: dict[str, str], off: str, tmp_path: Path
) -> None:
    row, changed = await there_and_back(Machine(files), make(kind, on=False), tmp_path)
    assert row.outcome is Outcome.CHANGED
    assert changed == dict.fromkeys(files, off)
    row, changed = await there_and_back(Machine(files), make(kind, on=True), tmp_path)
    assert (row.outcome, changed) == (Outcome.ALREADY, {})


@pytest.mark.parametrize("kind", ["numa_balancing", "turbo", "page_merging"])
async def test_a_machine_without_the_switch_refuses_the_run(kind: str, tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match=rf"{kind} \(machine\): "):
        await there_and_back(Machine({}), make(kind, on=False), tmp_path)


async def test_the_governor_is_set_before_the_preference_that_it_fixes(tmp_path: Path) -> None:
    files = {
        f"{CPU}/cpufreq/policy{n}/{name}": value
        for n in (0, 1)
        for name, value in (("scaling_governor", "powersave"), ("energy_performance_preference", "balance_power"))
    }
    host = Machine(files)
    wish = make("cpu_frequency", governor="performance", energy_preference="performance")
    _, changed = await there_and_back(host, wish, tmp_path)
    assert set(changed.values()) == {"performance"}
    assert len(changed) == 4
    assert [path.rpartition("/")[2] for path, _ in host.writes] == 2 * [
        "scaling_governor",
        "scaling_governor",
        "energy_performance_preference",
        "energy_performance_preference",
    ]


async def test_a_driver_without_energy_preference_is_told(tmp_path: Path) -> None:
    host = Machine({f"{CPU}/cpufreq/policy0/scaling_governor": "powersave"})
    with pytest.raises(NotReadyError, match="the frequency driver has no energy_performance_preference"):
        await there_and_back(host, make("cpu_frequency", energy_preference="power"), tmp_path)


async def test_idle_states_that_take_longer_to_leave_are_switched_off(tmp_path: Path) -> None:
    files = {}
    for state, latency in ((0, "0"), (1, "2"), (2, "33"), (3, "133")):
        files[f"{CPU}/cpu0/cpuidle/state{state}/latency"] = latency
        files[f"{CPU}/cpu0/cpuidle/state{state}/disable"] = "0"
    _, changed = await there_and_back(Machine(files), make("idle_states", most_exit_latency_us=2), tmp_path)
    assert changed == {f"{CPU}/cpu0/cpuidle/state{state}/disable": "1" for state in (2, 3)}


async def test_of_words_to_choose_from_the_selected_one_is_the_value(tmp_path: Path) -> None:
    host = Machine({f"{THP}/enabled": "madvise", f"{THP}/defrag": "defer+madvise"})
    host.choose(f"{THP}/enabled", "always madvise never")
    row, changed = await there_and_back(host, make("transparent_huge_pages", enabled="never"), tmp_path)
    assert row.before == {"enabled": "madvise", "defrag": "defer+madvise"}
    assert changed == {f"{THP}/enabled": "always madvise [never]"}


async def test_huge_pages_are_never_taken_away(tmp_path: Path) -> None:
    path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    _, changed = await there_and_back(Machine({path: "4"}), make("huge_pages", pages=16), tmp_path)
    assert changed == {path: "16"}
    row, _ = await there_and_back(Machine({path: "64"}), make("huge_pages", pages=16), tmp_path)
    assert (row.outcome, row.asked) == (Outcome.ALREADY, {"pages": 64})
    with pytest.raises(NotReadyError, match="no huge pages of 1048576 KiB on a NUMA node 1"):
        await there_and_back(Machine({path: "4"}), make("huge_pages", pages=1, size="1 GiB", node=1), tmp_path)


async def test_fewer_huge_pages_than_asked_for_are_put_back(tmp_path: Path) -> None:
    path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    host = Machine({path: "4"})
    host.write_filter = lambda path, text: str(min(int(text), 9))
    with pytest.raises(NotReadyError, match="asked for pages 16, got pages 9"):
        await there_and_back(host, make("huge_pages", pages=16), tmp_path)
    assert host.files == {path: "4"}


async def test_irqbalance_is_paused_and_woken_as_the_same_process(tmp_path: Path) -> None:
    stat = "77 (irqbalance) {} 1 77 77 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 4242 0 0"
    host = Machine({"/proc/77/stat": stat.format("S")})
    host.answer("pgrep -x irqbalance", "77\n")

    def kill(command: tuple[str, ...]) -> str:
        host.files["/proc/77/stat"] = stat.format("T" if command[4] == "-STOP" else "S")
        return ""

    host.answer(("sh", "-c", 'kill "$1" "$2"'), kill)
    row, _ = await there_and_back(host, make("irqbalance", on=False), tmp_path)
    assert row.asked == {"process 77, start 4242": "paused"}
    host.answer("pgrep -x irqbalance", Completed((), 1, "", ""))
    assert (await there_and_back(host, make("irqbalance", on=False), tmp_path))[0].outcome is Outcome.ALREADY
    with pytest.raises(NotReadyError, match="irqbalance does not run here"):
        await there_and_back(host, make("irqbalance", on=True), tmp_path)


async def test_permissive_is_fulfilled_where_selinux_is_off(tmp_path: Path) -> None:
    path = "/sys/fs/selinux/enforce"
    _, changed = await there_and_back(Machine({path: "1"}), make("selinux", mode="permissive"), tmp_path)
    assert changed == {path: "0"}
    row, _ = await there_and_back(Machine({}), make("selinux", mode="permissive"), tmp_path)
    assert (row.outcome, row.before) == (Outcome.ALREADY, {"mode": "disabled"})
    with pytest.raises(NotReadyError, match="SELinux is off here"):
        await there_and_back(Machine({}), make("selinux", mode="enforcing"), tmp_path)


async def test_read_ahead_is_found_by_block_device_and_by_mount_point(tmp_path: Path) -> None:
    disk, share = "/sys/block/nvme0n1/queue/read_ahead_kb", "/sys/class/bdi/0:45/read_ahead_kb"
    host = Machine({disk: "128", share: "256", "/proc/self/mountinfo": MOUNTS})
    wish = make("read_ahead", of=("nvme0n1", "/srv/my media"), kib=4096)
    _, changed = await there_and_back(host, wish, tmp_path)
    assert changed == {disk: "4096", share: "4096"}
    with pytest.raises(NotReadyError, match="nothing is mounted at /srv"):
        await there_and_back(host, make("read_ahead", of=("/srv",), kib=1), tmp_path)


async def test_mount_options_are_remounted_by_their_opposite(tmp_path: Path) -> None:
    host = Machine({"/proc/self/mountinfo": MOUNTS})

    def mount(command: tuple[str, ...]) -> str:
        old, new = ("relatime", "noatime") if "noatime" in command[4] else ("noatime", "relatime")
        line = MOUNTS.splitlines()[1]
        host.files["/proc/self/mountinfo"] = host.files["/proc/self/mountinfo"].replace(
            line.replace("relatime", old), line.replace("relatime", new)
        )
        return ""

    host.answer("mount", mount)
    row, _ = await there_and_back(host, make("mount_options", path="/", options=("noatime",)), tmp_path)
    assert row.asked == {"access time": "noatime"}
    assert [command[1:] for command in host.commands if command[0] == "mount"] == [
        ("--options-source", "mtab", "-o", "remount,noatime", "/"),
        ("--options-source", "mtab", "-o", "remount,atime,relatime", "/"),
    ]


def test_mount_options_without_an_opposite_are_refused() -> None:
    for options in (("rsize=1048576",), ("noatime", "relatime")):
        with pytest.raises(ValidationError):
            make("mount_options", path="/", options=options)
    assert group_values(("rw", "sync"))["access time"] == "strictatime"


async def test_threads_of_an_nfs_server_are_set_and_its_versions_only_checked(tmp_path: Path) -> None:
    threads, versions = "/proc/fs/nfsd/threads", "/proc/fs/nfsd/versions"
    host = Machine({threads: "8", versions: "-2 +3 +4 +4.1 -4.2"})
    _, changed = await there_and_back(host, make("nfsd", threads=64, versions={"4.2": False, "3": True}), tmp_path)
    assert changed == {threads: "64"}
    with pytest.raises(NotReadyError, match="version 3 is on; to change it the server must be stopped"):
        await there_and_back(host, make("nfsd", threads=64, versions={"3": False}), tmp_path)
    with pytest.raises(NotReadyError, match="no NFS server of the kernel runs here"):
        await there_and_back(Machine({threads: "0"}), make("nfsd", threads=8), tmp_path)


async def test_a_request_for_wakeup_latency_is_held_and_let_go(tmp_path: Path) -> None:
    host = Machine({})
    host.answer("od", "  2000000000\n")
    holder = FakeProcess(["held"])
    host.process("sh -c", holder)
    stack = UndoStack("run", None, tmp_path)
    with pytest.raises(NotReadyError, match="asked for us 0, got us 2000000000"):
        await tune(stack, place_requests([make("wakeup_latency", us=0)], [Part("tester", host, ())]))
    assert host.commands[-3][-1] == "00000000"
    assert await stack.undo_all() == []


async def test_boot_parameters_are_checked_and_where_required_refuse_the_run(tmp_path: Path) -> None:
    host = Machine({"/proc/cmdline": "quiet isolcpus=2-5 mitigations=auto"})
    expected = {"isolcpus": "2-5", "quiet": True, "nosmt": False}
    row, changed = await there_and_back(host, make("boot_parameters", expected=expected), tmp_path)
    assert (row.outcome, changed) == (Outcome.MET, {})
    other = {"mitigations": "off"}
    assert (await there_and_back(host, make("boot_parameters", expected=other), tmp_path))[0].outcome is Outcome.NOT_MET
    with pytest.raises(NotReadyError, match="expected mitigations off, and it is mitigations auto"):
        await there_and_back(host, make("boot_parameters", expected=other, required=True), tmp_path)


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("a=1 b a=2 -- c", {"a": "2", "b": True}),
        ('x="1 2" intel-iommu=on', {"x": "1 2", "intel_iommu": "on"}),
        ('dyndbg="file a +p" =', {"dyndbg": "file a +p"}),
        ("", {}),
    ],
)
def test_a_command_line_is_read_as_the_kernel_does(text: str, parameters: dict[str, Any]) -> None:
    assert parameters_of(text) == parameters


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("Current active profile: network-latency\n", "network-latency"),
        ("Current active profile: balanced my extra\nPreset profile: balanced\n", "balanced my extra"),
        ("No current active profile.\n", "off"),
        ("Cannot talk to TuneD daemon via DBus. Is TuneD daemon running?\nNo current active profile.\n", "off"),
        ("Cannot talk to TuneD daemon via DBus.\n", None),
        ("", None),
    ],
)
def test_the_active_profile_of_tuned(text: str, profile: str | None) -> None:
    assert profile_of(text) == profile


async def test_tuned_is_switched_and_switched_back(tmp_path: Path) -> None:
    host = Machine({})
    host.answer("tuned-adm active", "Current active profile: balanced\n")

    def switch(command: tuple[str, ...]) -> str:
        host.answer("tuned-adm active", f"Current active profile: {' '.join(command[2:])}\n")
        return ""

    host.answer("tuned-adm profile", switch)
    row, _ = await there_and_back(host, make("tuned", profile="network-latency"), tmp_path)
    assert (row.before, row.asked) == ({"profile": "balanced"}, {"profile": "network-latency"})
    assert host.commands[-3] == ("tuned-adm", "profile", "balanced")


def test_rules_of_others_are_counted_and_ours_are_not() -> None:
    ruleset = (
        '{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"table": {"family": "inet", "name": "filter"}},'
        ' {"rule": {"table": "filter"}}, {"table": {"name": "nicbench_notrack_e0"}}, {"rule": {"table": '
        '"nicbench_notrack_e0"}}]}'
    )
    assert values_of_ruleset(ruleset, "nicbench_notrack_e0") == {"on": False, "rules_of_others": 1}
    assert values_of_ruleset(ruleset, "nicbench_notrack_e1") == {"on": True, "rules_of_others": 1}
    assert values_of_ruleset("", "x") == {"on": True, "rules_of_others": 0}
    with pytest.raises(CannotSetError):
        values_of_ruleset('{"nftables": [', "x")
    assert table_of("eth0.100") == "nicbench_notrack_eth0_2e_100"


def test_a_process_is_paused_by_signal_or_debugger() -> None:
    assert state_of_stat("7 (a) b) T 1") == "paused"
    assert state_of_stat("7 (irqbalance) S 1") == "running"


# Sysctls by name: the kernel's spacing is no change, a missing one is refused, an undo writes what was there.

RMEM = "/proc/sys/net/ipv4/tcp_rmem"
SWAPPINESS = "/proc/sys/vm/swappiness"
POLL = "/proc/sys/net/core/busy_poll"


def sysctls(host: FakeHost, **values: int | str) -> tuple[PlacedRequest, ...]:
    options = SysctlOptions(values={name.replace("__", "."): value for name, value in values.items()})
    return place_requests([TuningRequest("dut", Sysctls, options)], [Part("dut", host, ())])


async def test_several_are_set_and_put_back(tmp_path: Path) -> None:
    host = FakeHost(files={RMEM: "4096\t131072\t33554432\n", POLL: "0\n"})
    stack = UndoStack("run", None, tmp_path)
    (row,) = await tune(stack, sysctls(host, net__ipv4__tcp_rmem="4096 131072 7", net__core__busy_poll=50))
    assert row.outcome is Outcome.CHANGED
    assert row.before == {"net.ipv4.tcp_rmem": "4096 131072 33554432", "net.core.busy_poll": "0"}
    assert host.files == {RMEM: "4096 131072 7", POLL: "50"}
    assert await stack.undo_all() == []
    assert host.files == {RMEM: "4096 131072 33554432", POLL: "0"}


async def test_only_what_differs_is_written(tmp_path: Path) -> None:
    host = FakeHost(files={RMEM: "4096\t131072\t7\n", POLL: "0\n"})
    await tune(
        UndoStack("run", None, tmp_path), sysctls(host, net__ipv4__tcp_rmem="4096 131072 7", net__core__busy_poll=1)
    )
    assert host.writes == [(POLL, "1")]


async def test_one_that_the_kernel_lacks_refuses_the_run(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match=r"there is no sysctl net\.core\.busy_polling"):
        await tune(UndoStack("run", None, tmp_path), sysctls(FakeHost(), net__core__busy_polling=1))


def test_names_are_those_of_sysctl() -> None:
    assert path_of("net.core.busy_poll") == POLL
    assert path_of("net.ipv4.conf.eth0/100.forwarding") == "/proc/sys/net/ipv4/conf/eth0.100/forwarding"


@pytest.mark.parametrize("name", ["kernel.//.//etc.passwd", "../../etc/passwd", "net..core", ".net", "net.core/"])
def test_a_name_stays_below_its_folder(name: str) -> None:
    with pytest.raises(ValidationError):
        SysctlOptions(values={name: 1})


async def test_one_of_the_machine_is_put_back_when_the_namespace_is_gone(tmp_path: Path) -> None:
    machine = FakeHost(files={SWAPPINESS: "60\n"})
    in_lab = ("ip", "netns", "exec", "lab")
    machine.answer((*in_lab, "cat", "--", RMEM), "4096 131072 1\n")

    def write(command: tuple[str, ...]) -> str:
        machine.answer((*in_lab, "cat", "--", RMEM), "4096 131072 7\n")
        return ""

    machine.answer((*in_lab, "tee", "--", RMEM), write)
    stack = UndoStack("run", None, tmp_path)
    asked = sysctls(NetnsHost(machine, "lab"), net__ipv4__tcp_rmem="4096 131072 7", vm__swappiness=1)
    (row,) = await tune(stack, asked)
    assert row.outcome is Outcome.CHANGED
    assert machine.files[SWAPPINESS] == "1"
    machine.fail("test -e", "")  # somebody deleted the namespace
    assert await stack.undo_all() == []
    assert machine.files[SWAPPINESS] == "60"
